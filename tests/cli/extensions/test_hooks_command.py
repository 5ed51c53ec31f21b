"""`wolo hooks`: what hooks there are, what they answer, and a consent without a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.search_server import search_server
from wolo.conversation.resources import conversation_hooks
from wolo.places import find_home, find_places
from wolo.workspace.root import find_site

GUARD = 'grep -q "rm -rf" && { echo never >&2; exit 2; }; true'


def write_hooks() -> Path:
    path = find_places().config / "hooks.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    guard = {"matcher": "Bash", "hooks": [{"type": "command", "command": GUARD}]}
    start = {"hooks": [{"command": 'echo "export A=1" > "$CLAUDE_ENV_FILE" && cat "$CLAUDE_ENV_FILE"'}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [guard], "SessionStart": [start], "Nothing": []}}))
    return path


def write_project_hooks() -> None:
    Path(".claude").mkdir()
    Path(".claude/settings.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}))


def write_component(path: Path, event: str) -> Path:
    path.parent.mkdir(parents=True)
    hooks = f"hooks:\n  {event}:\n    - hooks:\n        - type: command\n          command: echo {path.stem} >&2; exit 2\n"
    path.write_text(f"---\nname: careful\ndescription: Be careful.\n{hooks}---\nBe careful.\n")
    return path


def test_hooks_of_skills_and_agents_are_listed() -> None:
    own = write_component(find_home() / ".claude/skills/careful/SKILL.md", "PreToolUse")
    write_component(Path(".claude/agents/careful.md"), "Stop")
    rows = run_wolo("hooks", "list", "--trust", "--json").json
    assert [(row["event"], row["source"], row["active_with"], row["standing"]) for row in rows] == [
        ("PreToolUse", str(own), ["skill careful"], "yours"),
        ("Stop", ".claude/agents/careful.md", ["agent careful"], "needs consent"),
        ("SubagentStop", ".claude/agents/careful.md", ["agent careful"], "needs consent"),
    ]
    assert f"{own}  (yours, with the skill careful)" in run_wolo("hooks", "list").stdout
    doctor = run_wolo("doctor")
    assert f"1 in {own}: yours, with the skill careful" in doctor.stdout


def test_hooks_of_skills_and_agents_are_tried_out() -> None:
    write_component(find_home() / ".claude/skills/careful/SKILL.md", "PreToolUse")
    write_component(find_home() / ".claude/agents/careful.md", "Stop")
    assert run_wolo("hooks", "test", "PreToolUse", "--json").json["reason"] == "SKILL"
    for event in ("Stop", "SubagentStop"):
        answer = run_wolo("hooks", "test", event, "--json").json
        assert (answer["decision"], answer["reason"]) == ("deny", "careful")
    other = run_wolo("hooks", "test", "SubagentStop", "--input", '{"agent_type": "other"}', "--json")
    assert other.json["hooks"] == []


def test_own_hooks_in_the_workspace_are_listed_unrun() -> None:
    folder = Path("own/careful").absolute()
    path = write_component(folder / "SKILL.md", "PreToolUse")
    skills = find_home() / ".claude/skills"
    skills.mkdir(parents=True)
    (skills / "careful").symlink_to(folder)
    (row,) = run_wolo("hooks", "list", "--json").json
    assert (row["standing"], row["runs"]) == ("refused", False)
    assert "yours, not run: the file is in the workspace" in run_wolo("hooks", "list").stdout
    assert run_wolo("hooks", "test", "PreToolUse", "--json").json["hooks"] == []
    assert path.exists()


def test_hooks_are_listed_with_faults_of_their_files() -> None:
    path = write_hooks()
    write_project_hooks()
    ran = run_wolo("hooks", "list", "--trust", "--json")
    assert [(row["event"], row["matcher"], row["standing"], row["runs"]) for row in ran.json] == [
        ("PreToolUse", "Bash", "yours", True),
        ("SessionStart", "", "yours", True),
        ("Stop", "", "needs consent", False),
    ]
    assert "there is no event Nothing" in ran.stderr
    untrusted = run_wolo("hooks", "list")
    assert "is not trusted, so these are not used: .claude/settings.json" in untrusted.stderr
    listed = untrusted.stdout
    assert f"{path}  (yours)" in listed
    assert GUARD in listed
    assert "Stop" not in listed


def test_event_is_tried_out_with_sample_input() -> None:
    write_hooks()
    command = json.dumps({"command": "rm -rf /"})
    denied = run_wolo("hooks", "test", "PreToolUse", "--tool", "Bash", "--input", command, "--json")
    assert (denied.json["decision"], denied.json["reason"], len(denied.json["hooks"])) == ("deny", "never", 1)
    assert run_wolo("hooks", "test", "PreToolUse", "--tool", "shell", "--input", command, "--json").json["decision"] == "deny"
    assert run_wolo("hooks", "test", "PreToolUse", "--tool", "Read", "--json").json["hooks"] == []
    sample = run_wolo("hooks", "test", "PreToolUse")
    assert "PreToolUse: no decision" in sample.stdout
    assert 'The sample is a call of Bash with {"command": "true"}' in sample.stderr
    started = run_wolo("hooks", "test", "SessionStart")
    assert "SessionStart: no decision · tells the model: export A=1" in started.stdout
    assert not list(find_places().state.glob("hooks-*"))


def test_mistakes_are_told_before_anything_runs() -> None:
    for words, said in (
        (("test", "PreTool"), "Unknown event: PreTool."),
        (("test", "Stop", "--input", "{"), "--input is not valid JSON"),
        (("test", "Stop", "--input", "[]"), "--input is not a JSON object"),
        (("allow",), "There are no hooks of this project."),
    ):
        ran = run_wolo("hooks", *words)
        assert (ran.exit_code, said in ran.stderr) == (2, True), ran.stderr


def test_project_hooks_are_allowed_without_terminal() -> None:
    write_project_hooks()
    ran = run_wolo("hooks", "allow")
    assert ran.exit_code == 0, ran.stderr
    assert "This folder is not trusted: a run reads its hooks with --trust" in ran.stderr
    assert "  Stop\n    runs: true\n" in ran.stdout
    (found,) = conversation_hooks.project_hooks(find_site())
    assert found.consent == "allowed"
    Path(".claude/settings.json").write_text(json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "false"}]}]}}))
    (changed,) = conversation_hooks.project_hooks(find_site())
    assert changed.consent == "needs consent"


def test_hooks_of_every_kind_are_tried_out() -> None:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    late = '[[hooks.PostToolUse]]\ncommand = "echo later >&2; exit 2"\nasync = true\n'
    watch = '[[hooks.FileChanged]]\nmatcher = ".env"\ncommand = "cat > seen.json"\n'
    with search_server() as server:
        server.answer = {"decision": "block", "reason": "no"}
        path.write_text(f'{late}{watch}[[hooks.Stop]]\ntype = "http"\nurl = "{server.url}"\n')
        stop = run_wolo("hooks", "test", "AfterAgent", "--json").json
        assert (stop["event"], stop["decision"], stop["reason"]) == ("Stop", "deny", "no")
        rows = run_wolo("hooks", "list", "--json").json
        assert [(row["type"], row.get("url", ""), row["async"]) for row in rows] == [
            ("command", "", True),
            ("http", server.url, False),
            ("command", "", False),
        ]
    after = run_wolo("hooks", "test", "PostToolUse", "--json").json
    assert (after["decision"], after["context"]) == (None, "later")
    assert run_wolo("hooks", "test", "FileChanged").exit_code == 0
    assert json.loads(Path("seen.json").read_text())["event"] == "change"
