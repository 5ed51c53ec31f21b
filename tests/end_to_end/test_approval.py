"""Approvals before a tool call runs, and the answers that allow it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, calls, text
from tests.fakes.screen import Terminal, pty_wolo

READY = "or type why not ›"


@contextmanager
def asked(provider: ProviderServer, command: str, *args: str) -> Iterator[Terminal]:
    """A person in front of the question whether a command may run."""
    provider.script(call("shell", {"command": command}), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, *args, "go on") as terminal:
        terminal.wait_for(READY)
        yield terminal


def test_yes_runs_it_once(provider: ProviderServer) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.wait_for("  $ touch made")
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    assert Path("made").exists()


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("answer", ["", "N", "yes please"])
def test_everything_else_is_a_no(provider: ProviderServer, answer: str) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.enter(answer)
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("⊘ shell touch made · you said no")
    assert ("yes please" if answer == "yes please" else "no reason given") in provider.requests[1].results[0]
    assert not Path("made").exists()


def test_other_text_is_the_reason_the_model_reads(provider: ProviderServer) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.enter("use the other folder, ünïcode")
        assert terminal.wait_for_exit() == 0
    assert "use the other folder, ünïcode" in provider.requests[1].results[0]
    assert not Path("made").exists()


def test_number_without_panel_asks_again(provider: ProviderServer) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.enter("1")
        terminal.wait_for("No answer has a number here")
        terminal.wait_until(lambda: terminal.text.count(READY) == 2)
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    assert Path("made").exists()


def test_ctrl_d_denies_and_the_turn_continues(provider: ProviderServer) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.press("ctrl-d")
        terminal.wait_for("I see.")
        assert terminal.wait_for_exit() == 0
    assert not Path("made").exists()


def test_ctrl_c_denies_and_ends_the_turn(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for(READY)
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
    assert not Path("made").exists()


def test_early_typing_does_not_answer_the_question(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_constants(monkeypatch, tmp_path / "constants", {"wolo.frontends.terminal.display.line_prompt.READING_S": 3.0})
    provider.script(call("shell", {"command": "touch made"}, content="Thinking about it.\n").slow(0.05), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for("Thinking about it.")
        terminal.enter("y")
        terminal.wait_for("$ touch made")
        terminal.enter("y")
        terminal.wait_for(READY)
        assert len(provider.requests) == 1
        terminal.enter("n")
        assert terminal.wait_for_exit() == 0
    assert not Path("made").exists()


def test_yes_counts_only_once_the_question_is_readable(provider: ProviderServer) -> None:
    hold, asking = Hold(), call("shell", {"command": "touch made"})
    provider.script(replace(asking, pieces=(hold, *asking.pieces)))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        hold.wait_until_reached()
        asked_at = time.monotonic()
        hold.release()
        terminal.wait_for(READY)
        assert time.monotonic() - asked_at > 0.25
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_paste_of_several_lines_is_no_yes(provider: ProviderServer, is_marked: bool) -> None:
    with asked(provider, "touch made") as terminal:
        if is_marked:
            terminal.paste("y\ny\n")
            terminal.press("enter")
        else:
            terminal.type("y\ry\r")
        assert terminal.wait_for_exit() == 0
    assert not Path("made").exists()


def test_session_covers_the_same_call_until_the_end(provider: ProviderServer) -> None:
    provider.script(*(call("shell", {"command": "echo x >> log"}) for _ in range(2)), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for(READY)
        terminal.enter("s")
        assert terminal.wait_for_exit() == 0
    assert Path("log").read_text() == "x\nx\n"


def test_always_writes_the_rule_that_was_shown(provider: ProviderServer, isolated: Path) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.wait_for("always: adds the rule shell:touch made")
        terminal.enter("a")
        assert terminal.wait_for_exit() == 0
    assert "shell:touch made" in (isolated / "wolo/config/permissions.toml").read_text()
    provider.script(call("shell", {"command": "touch made"}), text("Again."))
    with pty_wolo("--mode", "edit", *provider.flags, "once more") as terminal:
        assert terminal.wait_for_exit() == 0


def answered_once_more(provider: ProviderServer, command: str, cwd: Path) -> bool:
    """Whether the same command asks when wolo is started again."""
    provider.script(call("shell", {"command": command}), text("Again."))
    with pty_wolo("--mode", "edit", *provider.flags, "once more", cwd=cwd) as terminal:
        terminal.wait_until(lambda: terminal.shows(READY) or terminal.shows("Again."))
        if not terminal.shows(READY):
            return False
        terminal.enter("n")
        assert terminal.wait_for_exit() == 0
        return True


def test_always_holds_for_this_workspace_and_command_only(provider: ProviderServer, isolated: Path) -> None:
    other = isolated / "other"
    other.mkdir()
    with asked(provider, "touch made") as terminal:
        terminal.enter("a")
        assert terminal.wait_for_exit() == 0
    assert not answered_once_more(provider, "touch made", Path.cwd())
    assert answered_once_more(provider, "touch made2", Path.cwd())
    assert answered_once_more(provider, "touch made", other)


def test_everywhere_holds_in_other_workspaces_until_taken_back(provider: ProviderServer, isolated: Path) -> None:
    other = isolated / "other"
    other.mkdir()
    with asked(provider, "touch made") as terminal:
        terminal.enter("w")
        assert terminal.wait_for_exit() == 0
    assert not answered_once_more(provider, "touch made", other)
    assert run_wolo("permissions", "remove", "shell:touch made").exit_code == 2
    assert run_wolo("permissions", "remove", "shell:touch made", "--everywhere").exit_code == 0
    assert answered_once_more(provider, "touch made", other)


def test_rule_can_be_edited_before_it_is_kept(provider: ProviderServer, isolated: Path) -> None:
    with asked(provider, "touch made") as terminal:
        terminal.enter("e")
        terminal.wait_for("rule › shell:touch made")
        terminal.type("\x15")
        terminal.enter("shell:touch ma*")
        terminal.wait_for("adds the rule shell:touch ma* for")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.enter("a")
        assert terminal.wait_for_exit() == 0
    assert Path("made").exists()
    assert '"shell:touch ma*"' in (isolated / "wolo/config/permissions.toml").read_text()
    assert not answered_once_more(provider, "touch made2", Path.cwd())


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("command", "rule", "wrong"),
    [
        ("python3 x.py", "shell:python3 *", "would let any code run"),
        ("sudo make", "shell:sudo *", "would let any code run"),
        ("touch made", "shell:*", "would let any code run"),
        ("touch made", "shell:rm made", "does not cover this call"),
        ("touch made", "shell:touch made; rm x", "cannot be used"),
        ("touch made", "touch made", "is not a rule tool"),
    ],
)
def test_rule_too_wide_or_unrelated_is_not_kept(
    provider: ProviderServer, isolated: Path, command: str, rule: str, wrong: str
) -> None:
    with asked(provider, command) as terminal:
        terminal.enter("e")
        terminal.wait_for("rule › ")
        terminal.type("\x15")
        terminal.enter(rule)
        terminal.wait_until(lambda: wrong in " ".join(terminal.text.split()))
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        terminal.enter("n")
        assert terminal.wait_for_exit() == 0
    assert not (isolated / "wolo/config/permissions.toml").exists()


def test_always_is_no_yes_without_an_offered_rule(provider: ProviderServer) -> None:
    with asked(provider, "touch made; true $(pwd)") as terminal:
        assert not terminal.shows("[a]lways")
        terminal.enter("a")
        assert terminal.wait_for_exit() == 0
    assert not Path("made").exists()


def test_whole_command_is_shown_and_nothing_hidden(provider: ProviderServer) -> None:
    command = "touch a\n# \x1b[2K\x1b]0;t\x07\u202egnp\u200b\n" + "echo " + "long " * 60 + "\ntouch z"
    with asked(provider, command) as terminal:
        terminal.wait_for("  $ touch a\n  > # \\x1b[2K\\x1b]0;t\\x07\\u{202e}gnp\\u{200b}\n  > echo long")
        assert terminal.text.replace("\n", "").count("long") == 60
        terminal.wait_for("  > touch z")
        terminal.press("enter")
        assert terminal.wait_for_exit() == 0


def test_each_call_of_an_answer_is_asked_separately(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "touch one"}), ("shell", {"command": "touch two"})), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on") as terminal:
        terminal.wait_for(READY)
        terminal.enter("y")
        terminal.wait_until(lambda: terminal.times(READY) == 2)
        assert Path("one").exists()
        terminal.enter("")
        assert terminal.wait_for_exit() == 0
    assert not Path("two").exists()


def test_a_write_shows_what_would_be_written(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "hello\nworld\n"}), text("I see."))
    with pty_wolo(*provider.flags, "--mode", "ask", "go on") as terminal:
        terminal.wait_for(READY)
        terminal.wait_for("Write this file?")
        terminal.wait_for("  1 + hello\n  2 + world\n")
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    assert Path("a.txt").read_text() == "hello\nworld\n"


def test_a_dumb_terminal_is_asked_too(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go on", env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("or type why not >")
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    assert Path("made").exists()


def test_edits_may_be_accepted_onwards_by_a_line(provider: ProviderServer) -> None:
    writes = [call("write", {"path": name, "content": "x\n"}) for name in ("one", "two")]
    provider.script(*writes, text("I see."))
    with pty_wolo(*provider.flags, "--mode", "ask", "go on") as terminal:
        terminal.wait_for(READY)
        terminal.wait_for("f: yes, and accept edits from now on")
        terminal.enter("f")
        assert terminal.wait_for_exit() == 0
        assert terminal.times(READY) == 1
    assert Path("one").exists()
    assert Path("two").exists()
