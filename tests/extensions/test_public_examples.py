"""The behaviour of public examples of pi's extension API, rebuilt in `public_examples`, in runs of wolo."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.screen import pty_wolo
from wolo.places import find_places

EXAMPLES = Path(__file__).with_name("public_examples")


def run(provider: ProviderServer, name: str, *words: str, mode: str = "auto") -> Completed:
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / f"{name}.py", folder)
    return run_wolo("--json", *provider.flags, "--mode", mode, *words)


def git(*words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    return subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True).stdout.strip()


def make_repository() -> None:
    git("init", "-q")
    Path("a.txt").write_text("one\n")
    git("add", "-A")
    git("commit", "-qm", "first")


def long_read(number: int) -> Reply:
    """A call whose result is long, each time another one."""
    Path(f"long{number}.txt").write_text(f"word {number}\n" * 1_500)
    return call("read", {"path": f"long{number}.txt"})


def sent(provider: ProviderServer, at: int = -1) -> str:
    return json.dumps(provider.requests[at].json, ensure_ascii=False)


def test_permission_gate_asks_before_a_dangerous_command(provider: ProviderServer) -> None:
    Path("old").mkdir()
    provider.script(call("shell", {"command": "rm -rf old"}), text("Done."))
    ran = run(provider, "permission_gate", "go", mode="yolo")
    assert (ran.exit_code, Path("old").exists()) == (4, True), ran.stderr
    assert "This command is dangerous." in provider.requests[-1].results[0]


def test_protected_paths_are_not_written(provider: ProviderServer) -> None:
    provider.script(
        call("write", {"path": "node_modules/x", "content": ""}), call("write", {"path": "y", "content": ""}), text("Done.")
    )
    ran = run(provider, "protected_paths", "go", mode="edit")
    assert (Path("node_modules/x").exists(), Path("y").exists()) == (False, True), ran.stderr
    assert "node_modules/x is protected." in provider.requests[1].results[0]
    assert "Denied a write to node_modules/x." in ran.stderr


def test_dirty_repo_guard_sends_no_prompt(provider: ProviderServer) -> None:
    make_repository()
    provider.script(text("Hi."))
    assert run(provider, "dirty_repo_guard", "go").exit_code == 0
    Path("a.txt").write_text("two\n")
    blocked = run(provider, "dirty_repo_guard", "go")
    assert (blocked.exit_code, len(provider.requests)) == (1, 1)
    assert "1 files are not committed." in blocked.stdout


def test_git_checkpoint_saves_the_tree_before_a_prompt(provider: ProviderServer) -> None:
    make_repository()
    git("config", "user.name", "a")
    git("config", "user.email", "a@b.c")
    Path("a.txt").write_text("two\n")
    provider.script(call("read", {"path": "a.txt"}), call("write", {"path": "a.txt", "content": "three\n"}), text("Done."))
    assert run(provider, "git_checkpoint", "12345", mode="edit").exit_code == 0
    assert Path("a.txt").read_text() == "three\n"
    assert git("show", "refs/checkpoints/5:a.txt") == "two"


def test_auto_commit_takes_the_last_answer(provider: ProviderServer) -> None:
    make_repository()
    git("config", "user.name", "a")
    git("config", "user.email", "a@b.c")
    provider.script(call("write", {"path": "b.txt", "content": "x"}), text("Adds b."))
    assert run(provider, "auto_commit_on_exit", "go", mode="edit").exit_code == 0
    assert git("log", "-1", "--format=%s") == "Adds b."
    assert git("show", "--name-only", "--format=", "HEAD") == "b.txt"


def test_todo_has_tool_command_and_state(provider: ProviderServer) -> None:
    provider.script(call("tasks", {"action": "add", "text": "sweep"}), text("Noted."))
    first = run(provider, "todo", "add it")
    assert provider.requests[-1].results[0] == "1 tasks", first.stderr
    shown = run_wolo("-p", *provider.flags, "-r", first.json["session_id"], "/tasklist")
    assert "sweep" in shown.stdout + shown.stderr


def test_hello_is_an_async_tool(provider: ProviderServer) -> None:
    provider.script(call("hello", {"name": "Ada"}), text("Done."))
    run(provider, "hello", "go")
    assert json.loads(provider.requests[-1].results[0]) == {"greeting": "Hello, Ada!"}


def test_trigger_compacts_before_the_next_request(provider: ProviderServer) -> None:
    provider.script(*map(long_read, range(5)))
    provider.otherwise = text("Done.")
    ran = run(provider, "trigger_compact", "go")
    assert ran.exit_code == 0, ran.stderr
    sizes = [len(each.body) for each in provider.requests]
    assert any(later < earlier for earlier, later in pairwise(sizes)), sizes


def test_confirm_destructive_asks_before_git_forgets_work(provider: ProviderServer) -> None:
    make_repository()
    Path("a.txt").write_text("two\n")
    provider.script(call("shell", {"command": "git reset --hard"}), text("Done."))
    assert run(provider, "confirm_destructive", "go", mode="yolo").exit_code == 4
    assert Path("a.txt").read_text() == "two\n"


def test_bell_rings_at_the_end_of_a_turn(provider: ProviderServer) -> None:
    provider.script(text("Hi."))
    run(provider, "bell", "go")
    assert Path("bell").read_text() == "ready\n"


def test_claude_rules_are_named_in_the_system_prompt(provider: ProviderServer) -> None:
    Path(".claude/rules").mkdir(parents=True)
    Path(".claude/rules/style.md").write_text("---\npaths: nothing/**\n---\nUse tabs.")
    provider.script(text("Hi."))
    run(provider, "claude_rules", "go")
    assert "to be read when they matter: style.md" in provider.requests[-1].json["messages"][0]["content"]


def test_input_is_transformed_in_the_request_only(provider: ProviderServer) -> None:
    provider.script(text("Hi."))
    ran = run(provider, "input_transform", "?quick what is rust?")
    assert "Answer in one sentence: what is rust?" in sent(provider)
    exported = run_wolo("sessions", "export", ran.json["session_id"], "--format", "openai")
    assert "?quick what is rust?" in exported.stdout


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("send_user_message", "/ask-me physics", "Ask me a question about physics."),
        ("handoff", "/handoff ship it", "Goal: ship it. Files changed so far: none."),
    ],
)
def test_command_sends_a_prompt(provider: ProviderServer, name: str, line: str, expected: str) -> None:
    provider.script(text("Hi."))
    ran = run(provider, name, line)
    assert ran.exit_code == 0, ran.stderr
    assert expected in sent(provider)


def test_spawn_hook_changes_the_command(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": 'printf "%s" "$STAGE"; env | grep STAGE'}), text("Done."))
    run(provider, "bash_spawn_hook", "go", mode="yolo")
    assert "STAGE=test printf" in provider.requests[-1].results[0]


def test_cards_are_removed_from_results(provider: ProviderServer) -> None:
    Path("a.txt").write_text("pay 4111 1111 1111 1111 now")
    provider.script(call("read", {"path": "a.txt"}), text("Done."))
    run(provider, "redaction_audit", "go")
    assert "pay [card] now" in provider.requests[-1].results[0]
    assert "4111 1111" not in sent(provider)


def test_request_log_has_each_request(provider: ProviderServer) -> None:
    provider.script(call("read", {"path": "none"}), text("Hi."))
    run(provider, "provider_payload", "go")
    lines = Path("requests.log").read_text().splitlines()
    assert [line.split()[1] for line in lines][:1] == ["1"]
    assert len([line for line in lines if line.startswith("custom/")]) == 2


def test_content_of_a_file_reaches_the_model(provider: ProviderServer) -> None:
    Path("trigger.txt").write_text("deploy failed")
    provider.script(text("Hi."))
    run(provider, "file_trigger", "go")
    assert "trigger.txt: deploy failed" in sent(provider)


def test_truncated_tool_says_what_it_cut(provider: ProviderServer) -> None:
    provider.script(call("numbers", {"count": 9}), text("Done."))
    run(provider, "truncated_tool", "go")
    assert provider.requests[-1].results[0] == "0\n1\n2\n[6 more lines]"


def test_plan_mode_lasts_over_a_resume(provider: ProviderServer) -> None:
    run(provider, "plan_mode", "--version")
    provider.script(text("Hi."))
    first = run_wolo("--json", *provider.flags, "go")
    (find_places().state / "extensions" / first.json["session_id"]).mkdir(parents=True)
    (find_places().state / "extensions" / first.json["session_id"] / "plan_mode.json").write_text("true")
    provider.script(call("write", {"path": "a", "content": ""}), text("Done."))
    run_wolo("-p", *provider.flags, "--yolo", "-r", first.json["session_id"], "write a")
    assert "Make a plan first; change nothing." in sent(provider)
    assert "Exploring: change nothing." in provider.requests[-1].results[0]
    assert not Path("a").exists()


def test_uv_is_named_in_place_of_pip(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "pip install x"}), text("Done."))
    run(provider, "uv", "go", mode="yolo")
    assert "Use `uv add` in place of pip." in provider.requests[-1].results[0]


def test_model_continues_until_tests_pass(provider: ProviderServer) -> None:
    provider.script(text("I think it works."), text("The tests pass."))
    ran = run(provider, "keep_going", "go")
    assert ran.json["result"].endswith("The tests pass.")
    assert "Run the tests first." in sent(provider)


def test_custom_provider_gets_the_key_of_its_login(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_OF_COMPANY", "ada")
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True)
    source = (EXAMPLES / "custom_provider.py").read_text()
    (folder / "custom_provider.py").write_text(source.replace("https://llm.company.example/v1", provider.base_url))
    provider.script(text("Hi."))
    ran = run_wolo("-p", "-m", "company/large", "go")
    assert (ran.exit_code, ran.stdout) == (0, "Hi.\n"), ran.stderr
    assert provider.requests[-1].headers["authorization"] == "Bearer token-of-ada"
    assert run_wolo("extensions", "key", "custom_provider", "none").exit_code == 2


@pytest.mark.parametrize("name", ["model_status", "status_line", "pirate", "summarize"])
def test_example_loads_without_problems(name: str) -> None:
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLES / f"{name}.py", folder)
    assert run_wolo("extensions", "test", name).exit_code == 0


def test_status_line_and_completion_of_an_extension(provider: ProviderServer) -> None:
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True)
    for name in ("status_line", "send_user_message"):
        shutil.copy(EXAMPLES / f"{name}.py", folder)
    provider.script(text("Hello."))
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_until(lambda: any(line.strip().startswith("›") for line in terminal.lines))
        terminal.enter("hi")
        terminal.wait_for("Hello.")
        terminal.type("/ask-me ")
        terminal.wait_for("✓ turn 1")
        terminal.type("h")
        terminal.wait_for("history")


def test_rows_of_a_renderer_are_shown(provider: ProviderServer) -> None:
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLES / "todo.py", folder)
    provider.script(call("tasks", {"action": "add", "text": "sweep\u202e the floor"}), text("Noted."))
    with pty_wolo("--yolo", *provider.flags, "add it") as terminal:
        terminal.wait_for("Noted.")
        assert terminal.shows("☐ sweep")
        assert not terminal.shows("\u202e")
