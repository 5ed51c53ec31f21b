"""Skills and written commands as their users have them: in a headless run, at the keyboard, trusted or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.components import require
from tests.end_to_end.test_repl import prompts, shown, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import Terminal, pty_wolo
from tests.fakes.written import command, skill
from wolo.config import consents
from wolo.places import find_places


@pytest.fixture
def home(isolated: Path) -> Path:
    return isolated / "home"


def system_prompt(provider: ProviderServer) -> str:
    content = provider.requests[-1].messages[0]["content"]
    return content if isinstance(content, str) else json.dumps(content)


def offered(provider: ProviderServer) -> list[str]:
    return [tool["function"]["name"] for tool in provider.requests[-1].json["tools"]]


@contextmanager
def repl(provider: ProviderServer, *args: str) -> Iterator[Terminal]:
    with pty_wolo(*provider.flags, "--trust", *args, rows=40, columns=120) as terminal:
        wait_for_prompt(terminal)
        yield terminal


# Without a person


def test_named_skill_is_loaded_by_the_model(provider: ProviderServer, home: Path) -> None:
    path = skill(home / ".agents/skills", "pdf-tools", body="Run scripts/fill.py first.")
    (path.parent / "scripts").mkdir()
    (path.parent / "scripts/fill.py").write_text("print('filled')")
    provider.script(
        call("skill", {"name": "pdf-tools"}), call("read", {"path": str(path.parent / "scripts/fill.py")}), text("Done.")
    )
    done = run_wolo("-p", "--json", "fill it", *provider.flags)
    assert done.json["permission_denials"] == []  # its own folder may be read unasked
    assert f"- pdf-tools: Reads PDF files. ({path})" in system_prompt(provider)
    assert "first." not in system_prompt(provider)
    loaded, read = provider.requests[-1].results
    assert "Run scripts/fill.py first." in loaded
    assert f'folder="{path.parent}"' in loaded
    assert "scripts/fill.py" in loaded.split("Files in this folder:")[1]
    assert "filled" in read


def test_file_beside_a_skill_is_not_read_unasked(provider: ProviderServer, home: Path) -> None:
    path = skill(home / ".agents/skills", "pdf-tools")
    (home / ".agents/notes.txt").write_text("CANARY")
    provider.script(call("read", {"path": str(path.parent.parent.parent / "notes.txt")}), text("Done."))
    done = run_wolo("-p", "--json", "--mode", "ask", "go", *provider.flags)
    assert len(done.json["permission_denials"]) == 1
    assert "CANARY" not in provider.requests[-1].results[0]


def test_no_skills_means_no_tool_and_no_mention(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    run_wolo("-p", "hi", *provider.flags)
    assert "skill" not in offered(provider)
    assert "# Skills" not in system_prompt(provider)


def test_untrusted_project_brings_no_skill(provider: ProviderServer) -> None:
    skill(Path(".agents/skills"), "evil", "CANARY")
    provider.script(text("Hello."), text("Hello."))
    done = run_wolo("-p", "hi", *provider.flags)
    assert "CANARY" not in json.dumps(provider.requests[-1].json)
    assert "skill" not in offered(provider)
    assert ".agents/skills" in done.stderr  # what is not used is named
    assert "CANARY" not in done.stderr
    provider.forget_prefix()
    run_wolo("-p", "hi", "--trust", *provider.flags)
    assert "CANARY" in system_prompt(provider)


def test_project_and_nearest_skills_come_first(provider: ProviderServer, home: Path) -> None:
    Path(".git").mkdir()
    skill(home / ".claude/skills", "pdf", "The user's.")
    skill(Path(".claude/skills"), "pdf", "The root's.")
    skill(Path("deep/er/.wolo/skills"), "pdf", "The nearest.")
    skill(Path("other/.wolo/skills"), "other", "Somebody else's.")
    provider.script(text("Hello."))
    run_wolo("-p", "hi", "--trust", *provider.flags, cwd=Path("deep/er"))
    assert "The nearest." in system_prompt(provider)
    assert not any(each in system_prompt(provider) for each in ("The user's.", "The root's.", "Somebody else's."))


def test_overlong_description_is_cut_with_a_notice(provider: ProviderServer, home: Path) -> None:
    skill(home / ".agents/skills", "bad", "x" * 2000)
    provider.script(text("Hello."))
    done = run_wolo("-p", "hi", *provider.flags)
    assert done.exit_code == 0
    assert "bad/SKILL.md:3: 'description' has 2,000 characters" in done.stderr


def test_rule_hides_a_skill_and_unknown_is_error(provider: ProviderServer, home: Path) -> None:
    skill(home / ".agents/skills", "pdf", body="CANARY")
    provider.script(call("skill", {"name": "pdf"}), call("skill", {"name": "nope"}), text("Done."))
    run_wolo("-p", "go", "--deny", "read:~/.agents/**", *provider.flags)
    denied, unknown = provider.requests[-1].results
    assert denied.startswith("Denied")
    assert "Unknown skill: `nope`. Skills: pdf." in unknown


def test_the_prompt_stays_the_same_while_skills_change(provider: ProviderServer, home: Path) -> None:
    path = skill(home / ".agents/skills", "pdf")
    provider.script(call("shell", {"command": f"mkdir {home}/.agents/skills/new; sed -i s/PDF/XYZ/ {path}"}), text("Done."))
    run_wolo("-p", "go", "--yolo", *provider.flags)
    first, second = (json.dumps(asked.messages[0]) for asked in provider.requests)
    assert first == second
    assert "XYZ" in path.read_text()


def test_session_with_skills_replays_the_old_text(provider: ProviderServer, home: Path) -> None:
    path = skill(home / ".agents/skills", "pdf", body="As it was.")
    skill(Path(".agents/skills"), "deploy")
    (path.parent / "more.md").write_text("More.")
    provider.script(
        call("skill", {"name": "pdf"}),
        call("skill", {"name": "deploy"}),
        call("read", {"path": str(path.parent / "more.md")}),
        text("Done."),
    )
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    run_wolo("-p", "go", *provider.flags)
    path.write_text(path.read_text().replace("As it was.", "As it is."))
    done = run_wolo("replay", "--json", "--strict")
    assert (done.json["same"], done.json["divergence"]) == (True, None), done


# At the keyboard


def test_person_sends_a_skill_and_sees_it_short(provider: ProviderServer, home: Path) -> None:
    skill(home / ".agents/skills", "pdf-tools", body="Run fill.py.\n" * 50)
    provider.script(text("Filled."))
    with repl(provider) as terminal:
        terminal.enter("/skill:pdf-tools fill in form.pdf")
        terminal.wait_for("Filled.")
        wait_for_prompt(terminal)
        assert terminal.times("Run fill.py.") == 0
        terminal.wait_for("Use the skill pdf-tools: fill in form.pdf")
    (sent,) = prompts(provider)
    assert sent.startswith("Use the skill pdf-tools: fill in form.pdf\n\n<skill")
    assert sent.count("Run fill.py.") == 50


def test_skills_lists_them_with_what_is_wrong(provider: ProviderServer, home: Path) -> None:
    skill(home / ".agents/skills", "pdf-tools")
    skill(Path(".wolo/skills"), "deploy", "Puts it online.")
    skill(Path(".wolo/skills"), "Bad one")
    with repl(provider) as terminal:
        terminal.enter("/skills")
        terminal.wait_for("the skill is called Bad-one")
        terminal.wait_for("project:")
        terminal.wait_for("yours:")
        terminal.wait_for("Puts it online.")


def test_skill_and_command_names_are_offered_and_listed(provider: ProviderServer, home: Path) -> None:
    skill(home / ".agents/skills", "pdf-tools")
    command(home / ".claude/commands", "git/squash", "---\ndescription: Squash the commits\n---\nSquash.")
    with repl(provider) as terminal:
        terminal.type("/git:")
        terminal.wait_for("Squash the commits")
        terminal.press("ctrl-c")
        terminal.type("/skill:")
        terminal.wait_for("Reads PDF files.")
        terminal.press("ctrl-c")
        terminal.enter("/help")
        terminal.wait_for("/git:squash")
        terminal.wait_for("/skill:pdf-tools, /pdf-tools")


def test_written_command_is_sent_with_its_arguments(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "fix", "Fix issue $1 in @$2, then stop.")
    Path("code.py").write_text("print('the code')")
    provider.script(text("Fixed."))
    with repl(provider) as terminal:
        terminal.enter("/fix 12 code.py")
        terminal.wait_for("Fixed.")
        wait_for_prompt(terminal)
        terminal.wait_for("Fix issue 12 in @code.py, then stop.")
    content = json.dumps(provider.requests[0].messages[-1])
    assert "the code" in content


def test_builtin_name_wins_and_skills_yield_to_commands(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "cost", "CANARY")
    command(home / ".claude/commands", "pdf", "The command.")
    skill(home / ".claude/skills", "pdf")
    provider.script(text("Hello."))
    with repl(provider) as terminal:
        terminal.enter("/cost")
        terminal.wait_for("No request has been sent in this session yet.")
        wait_for_prompt(terminal)
        terminal.enter("/pdf")
        terminal.wait_for("Hello.")
        wait_for_prompt(terminal)
    assert prompts(provider) == ["The command."]


def test_project_command_attaches_no_file_denied_to_model(provider: ProviderServer, home: Path) -> None:
    (home / "private.txt").write_text("CANARY-HOME")
    Path(".env").write_text("PASSWORD=CANARY-ENV")
    Path("open.txt").write_text("to be seen")
    (home / "next").write_text("CANARY-NEXT")
    command(Path(".claude/commands"), "look", "Look at @~/private.txt, @.env, @.env@~/next and @open.txt.")
    provider.script(text("Seen."))
    with repl(provider) as terminal:
        terminal.enter("/look")
        terminal.wait_for("Seen.")
        wait_for_prompt(terminal)
        terminal.wait_for("Not attached, because reading it needs an approval")
    content = json.dumps(provider.requests[0].messages[-1])
    assert "to be seen" in content
    assert "CANARY" not in content


def test_own_command_runs_its_lines_first_and_visibly(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "count", "Before !`wc -c $1` after.")
    Path("a file").write_text("1234567")
    provider.script(text("Seen."))
    with repl(provider) as terminal:
        terminal.enter("/count 'a file'")
        terminal.wait_for("Seen.")
        wait_for_prompt(terminal)
        terminal.wait_for("wc -c 'a file'")
    assert prompts(provider) == ["Before 7 a file after."]


def test_project_command_runs_its_lines_where_unasked(provider: ProviderServer) -> None:
    command(Path(".claude/commands"), "state", "!`touch ran-it` and !`wc -c x` and !`head -c 9 .env`")
    Path("x").write_text("1234567")
    Path(".env").write_text("PASSWORD=CANARY")
    provider.script(text("Seen."))
    with repl(provider, "--mode", "ask") as terminal:
        terminal.enter("/state")
        terminal.wait_for("Seen.")
        wait_for_prompt(terminal)
        terminal.wait_for("Not run, sent as text: !`touch ran-it`, !`head -c 9 .env`")
    assert not Path("ran-it").exists()
    (sent,) = prompts(provider)
    assert sent.startswith("!`touch ran-it` and 7 x and !`head -c 9 .env`\n")
    assert "were not run" in sent


def test_linked_own_command_gets_no_extra_rights(provider: ProviderServer) -> None:
    """The model may write it there unasked."""
    command(Path("dotfiles"), "mine", "!`touch ran-it` done")
    own = Path.home() / ".claude/commands"
    own.mkdir(parents=True)
    (own / "mine.md").symlink_to(Path("dotfiles/mine.md").absolute())
    command(own, "other", "!`touch ran-other` done")
    provider.script(text("Seen."), text("Seen, too."))
    with repl(provider, "--mode", "ask") as terminal:
        terminal.say("/mine", "Seen.")
        terminal.wait_for("Not run, sent as text: !`touch ran-it`")
        terminal.say("/other", "Seen, too.")
    assert (Path("ran-it").exists(), Path("ran-other").exists()) == (False, True)


def test_project_command_runs_in_the_model_environment(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIDDEN_TOKEN", "CANARY-41b7e09c5d2f")
    command(Path(".claude/commands"), "state", "[!`printenv HIDDEN_TOKEN PWD`]")
    provider.script(text("Seen."))
    with repl(provider, "--mode", "ask", "--allow", "shell:printenv *") as terminal:
        terminal.say("/state", "Seen.")
    (sent,) = prompts(provider)
    assert str(Path.cwd()) in sent  # it was run
    assert "CANARY" not in sent


def test_project_command_runs_inside_the_sandbox(provider: ProviderServer, home: Path) -> None:
    require("bwrap")
    (home / "outside").mkdir()
    command(Path(".claude/commands"), "state", f"!`touch made; touch {home}/outside/made; ls`")
    provider.script(text("Seen."))
    with repl(provider, "--sandbox", "required", "--mode", "auto") as terminal:
        terminal.say("/state", "Seen.")
    assert Path("made").exists()
    assert not (home / "outside/made").exists()


def test_project_command_is_judged_where_it_runs(provider: ProviderServer, home: Path) -> None:
    command(Path(".claude/commands"), "state", "It is !`wc -c x` here.")
    Path("x").write_text("1234567")
    (home / "x").write_text("12")
    provider.script(call("shell", {"command": f"cd {home}"}), text("There."), text("Seen."))
    with repl(provider, "--mode", "ask") as terminal:
        terminal.enter("go home")
        terminal.wait_for("› 3 No")
        terminal.type("y")
        terminal.wait_for("There.")
        terminal.say("/state", "Seen.")
        terminal.wait_for("Not run, sent as text: !`wc -c x`")


def test_a_command_that_is_stopped_sends_nothing(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "slow", "Before !`echo begun; sleep 60` after.")
    with repl(provider) as terminal:
        terminal.enter("/slow")
        terminal.wait_for("begun\n")
        terminal.press("escape")
        terminal.wait_for("nothing was sent")
        wait_for_prompt(terminal)
    assert provider.requests == []


def test_own_command_is_answered_by_its_named_model(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "other", "---\nmodel: custom/other-model\n---\nSay who you are.")
    command(home / ".claude/commands", "unknown", "---\nmodel: custom/\n---\nSay who you are.")
    provider.script(text("The other."), text("The first."), text("The first again."))
    with repl(provider) as terminal:
        terminal.say("/other", "The other.")
        terminal.wait_for("custom/other-model answers this prompt.")
        terminal.wait_for("Back to custom/test-model.")
        terminal.say("hello", "The first.")
        terminal.say("/unknown", "The first again.")
        terminal.wait_for("custom/test-model answers instead.")
    assert [asked.json["model"] for asked in provider.requests] == ["other-model", "test-model", "test-model"]
    assert prompts(provider) == ["Say who you are.", "hello", "Say who you are."]


def test_a_broken_command_says_why(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "broken", "---\ndescription: x\n")
    with repl(provider) as terminal:
        terminal.enter("/broken now")
        terminal.wait_for("/broken cannot be used:")
        wait_for_prompt(terminal)
        terminal.wait_for("no second line of '---' ends the settings")
    assert provider.requests == []


def test_new_command_is_usable_at_once(provider: ProviderServer, home: Path) -> None:
    provider.script(text("Hello."))
    with repl(provider) as terminal:
        terminal.enter("/help")
        terminal.wait_for("/help NAME explains")
        wait_for_prompt(terminal)
        assert not terminal.shows("/fresh")
        command(home / ".claude/commands", "fresh", "Fresh.")
        terminal.enter("/fresh")
        terminal.wait_for("Hello.")
    assert prompts(provider) == ["Fresh."]


def test_untrusted_project_has_no_keyboard_commands(provider: ProviderServer) -> None:
    command(Path(".claude/commands"), "evil", "CANARY")
    with pty_wolo(*provider.flags, rows=40, columns=120) as terminal:
        terminal.wait_for("commands  .claude/commands")
        terminal.wait_for("› 3 Not now")
        terminal.type("n")
        wait_for_prompt(terminal)
        terminal.enter("/evil")
        terminal.wait_for("Unknown command: /evil")
        assert not any("CANARY" in line for line in shown(terminal))
