"""Approval panels in the REPL: shown in full, answered with one key."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.components import require
from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, calls, text
from tests.fakes.screen import Terminal, pty_wolo
from tests.fakes.tmux import tmux_shell, tmux_wolo
from tests.guard.sandbox_setup import Ground, land

READY = "› 3"


@contextmanager
def asked(
    provider: ProviderServer, *replies: Reply, mode: str = "edit", rows: int = 24, columns: int = 100, ready: str = READY
) -> Iterator[Terminal]:
    """A person in front of a panel whose keys count."""
    provider.script(*replies)
    with pty_wolo(*provider.flags, "--mode", mode, rows=rows, columns=columns) as terminal:
        terminal.wait_until(lambda: terminal.lines[terminal.cursor[0]] == "›", complaint="there was no prompt")
        terminal.enter("go on")
        terminal.wait_until(lambda: ready in visible(terminal), complaint="there was no panel")
        yield terminal


def visible(terminal: Terminal) -> str:
    return "\n".join(terminal.lines)


def scroll_to(terminal: Terminal, words: str) -> None:
    """In a low window a page shows little, and in a narrow one words are broken."""

    def is_there() -> bool:
        return words in "".join(visible(terminal).split())

    while not is_there():
        before = visible(terminal)
        terminal.press("page-down")
        terminal.wait_until(lambda before=before: visible(terminal) != before, complaint=f"{words!r} stands on no page")  # type: ignore[misc]


def for_a_while(terminal: Terminal, seconds: float = 0.6) -> None:
    """Reads what comes; nothing is waited for."""
    until = time.monotonic() + seconds
    terminal.wait_until(lambda: time.monotonic() > until, seconds + 1)


def touch(name: str = "made") -> Reply:
    return call("shell", {"command": f"touch {name}"})


def test_y_runs_once_and_its_answer_stays_above(provider: ProviderServer) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        assert "$ touch made" in visible(terminal)
        terminal.type("y")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        assert terminal.times("✓ allowed once: shell touch made") == 1
        assert not terminal.shows(READY)
        leave(terminal)
    assert Path("made").exists()


def test_no_is_visible_and_the_turn_continues(provider: ProviderServer) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        terminal.type("n")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        assert terminal.times("touch made · you said no") == 1
        assert terminal.times("touch made") == terminal.times("you said no") == 1  # the panel is gone
        leave(terminal)
    assert not Path("made").exists()


@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
def test_escape_and_ctrl_c_deny_and_stop_turn(provider: ProviderServer, key: str) -> None:
    with asked(provider, touch()) as terminal:
        terminal.press(key)
        terminal.wait_until(lambda: terminal.is_idle)
        assert leave(terminal) == 0
    assert not Path("made").exists()
    assert len(provider.requests) == 1


def test_keys_around_the_appearance_are_dropped(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    guard = "wolo.frontends.terminal.panels.key_guard"
    set_constants(monkeypatch, tmp_path / "constants", {f"{guard}.READING_S": 3.0, f"{guard}.QUIET_S": 3.0})
    provider.script(touch(), text("I see."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("go on")
        provider.wait_for_requests(1)
        terminal.type("y")
        terminal.wait_for("Run this command?")
        terminal.type("y")
        for_a_while(terminal, 0.1)
        terminal.paste("y")
        terminal.type("y\r")
        terminal.wait_for(READY)
        for_a_while(terminal)
        assert READY in visible(terminal)
        assert len(provider.requests) == 1
        terminal.type("n")
        terminal.wait_for("I see.")
        # the first one was typed into the line, or into the panel when that was quicker
        terminal.wait_until(lambda: terminal.lines[terminal.cursor[0]] in ("› y", "›"))
        terminal.press("backspace")
        leave(terminal)
    assert not Path("made").exists()


def test_a_paste_is_no_yes(provider: ProviderServer) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        terminal.type("y\ry\r")
        for_a_while(terminal)
        assert READY in visible(terminal)
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)
    assert not Path("made").exists()


def test_later_edits_need_no_yes_after_acceptance(provider: ProviderServer) -> None:
    writes = [call("write", {"path": name, "content": "x\n"}) for name in ("one", "two")]
    with asked(provider, *writes, touch("made"), text("I see."), mode="ask") as terminal:
        assert "f Yes, and accept edits from now on" in visible(terminal)
        terminal.type("f")
        terminal.wait_for("$ touch made")
        terminal.wait_until(lambda: READY in visible(terminal))
        assert "accept edits" not in visible(terminal).partition("touch made")[2]
        terminal.wait_for("✓ allowed, with all later edits: write one")
        assert Path("two").exists()
        terminal.type("n")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        terminal.wait_until(lambda: "edit" in terminal.lines[terminal.cursor[0] + 1])
        leave(terminal)
    assert not Path("made").exists()


def test_a_reason_reaches_the_model(provider: ProviderServer) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        terminal.press("enter")
        terminal.wait_for("why not ›")
        terminal.enter("use the other folder, ünïcode")
        terminal.wait_for("I see.")
        leave(terminal)
    assert "use the other folder, ünïcode" in provider.requests[1].results[0]


def test_draft_text_returns_afterwards(provider: ProviderServer) -> None:
    hold, asking = Hold(), touch()
    provider.script(replace(asking, pieces=(hold, *asking.pieces)), text("I see."), text("Done."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("go on")
        provider.wait_for_requests(1)
        terminal.type("half a thou")
        terminal.wait_for("› half a thou")
        hold.release()
        terminal.wait_for(READY)
        assert "half a thou" not in visible(terminal)
        terminal.type("n")
        terminal.wait_for("› half a thou")
        terminal.wait_for("I see.")
        terminal.enter("ght")
        terminal.wait_for("Done.")


def test_rule_is_edited_in_place_with_immediate_complaints(provider: ProviderServer, isolated: Path) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        terminal.type("a")
        terminal.wait_for("e Edit the rule")
        terminal.type("e")
        terminal.wait_for("rule › shell:touch made")
        terminal.type("\x15shell:*")
        terminal.wait_for("would let any code run")
        terminal.press("enter")
        for_a_while(terminal, 0.2)
        assert "rule › shell:*" in visible(terminal)
        terminal.type("\x15shell:touch ma*")
        terminal.wait_until(lambda: "would let any code run" not in visible(terminal))
        terminal.press("enter")
        terminal.wait_for("“Always” adds the rule shell:touch ma*")
        terminal.type("h")
        terminal.wait_for("I see.")
        assert "always here, by the rule shell:touch ma*" in terminal.text.replace("\n", "")
        leave(terminal)
    assert '"shell:touch ma*"' in (isolated / "wolo/config/permissions.toml").read_text()


def test_other_waiting_questions_are_listed(provider: ProviderServer) -> None:
    waiting = calls(*(("shell", {"command": f"touch {name}"}) for name in ("one", "two", "three")))
    with asked(provider, waiting, text("I see.")) as terminal:
        terminal.wait_until(lambda: "2 more approvals pending:" in visible(terminal))
        terminal.wait_until(lambda: "· shell touch two" in visible(terminal))
        terminal.type("n")
        terminal.wait_until(lambda: "1 more approval pending" in visible(terminal) and READY in visible(terminal))
        terminal.type("y")
        terminal.wait_until(lambda: "$ touch three" in visible(terminal) and READY in visible(terminal))
        assert "pending" not in visible(terminal).partition("$ touch three")[2]
        terminal.type("n")
        terminal.wait_for("I see.")
        leave(terminal)
    assert [name for name in ("one", "two", "three") if Path(name).exists()] == ["two"]


def test_a_resize_in_the_middle_loses_nothing(provider: ProviderServer) -> None:
    with asked(provider, touch(), text("I see.")) as terminal:
        for rows, columns in [(12, 40), (5, 20), (24, 100)]:
            terminal.resize(rows, columns)
            for_a_while(terminal, 0.2)
        terminal.wait_until(lambda: READY in visible(terminal) and "$ touch made" in visible(terminal))
        terminal.type("y")
        terminal.wait_for("I see.")
        leave(terminal)
    assert Path("made").exists()


def test_window_high_panel_leaves_no_copies_in_tmux(provider: ProviderServer, tmp_path: Path) -> None:
    command = "\n".join(f": line {number:03}" for number in range(60))
    provider.script(call("shell", {"command": command}), text("I see."))
    with tmux_wolo(*provider.flags, "--mode", "edit", socket=tmp_path / "tmux") as tmux:
        tmux.wait_for("\n›")
        tmux.type("go on")
        tmux.press("Enter")
        tmux.wait_for(READY)
        tmux.press("End")
        tmux.wait_until(lambda: any("line 059" in row for row in tmux.rows))
        tmux.press("Home")
        tmux.wait_until(lambda: any("line 000" in row for row in tmux.rows))
        tmux.type("n")
        tmux.wait_for("I see.")
        assert "Run this command?" not in tmux.text
        assert "> : line 001" not in tmux.text


def test_panel_survives_window_resizes(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(touch(), text("I see."))
    flags = shlex.join([*provider.flags, "--mode", "edit"])
    with tmux_shell(socket=tmp_path / "tmux") as tmux:
        tmux.type(f"{sys.executable} -m wolo {flags}")
        tmux.press("Enter")
        tmux.wait_for("/help shows the rest")
        tmux.type("go on")
        tmux.press("Enter")
        tmux.wait_for(READY)
        tmux.press("C-z")
        tmux.wait_for("Stopped")
        assert READY not in "\n".join(tmux.rows)
        tmux.type("fg")
        tmux.press("Enter")
        tmux.wait_until(lambda: READY in "\n".join(tmux.rows), "the panel did not come back")
        tmux.resize(10, 40)
        tmux.wait_until(lambda: "› 3 No, and say why…" in "\n".join(tmux.rows), "it does not fit the narrow window")
        tmux.resize(24, 100)
        tmux.wait_until(lambda: READY in "\n".join(tmux.rows), "it did not grow again")
        assert tmux.run("display-message", "-p", "#{mouse_any_flag}#{alternate_on}").strip() == "00"
        tmux.type("y")
        tmux.wait_for("I see.")
        assert tmux.text.count("allowed once") == 1
        assert READY not in tmux.text


def test_an_edit_shows_the_words_that_change(provider: ProviderServer) -> None:
    Path("a.py").write_text("def f():\n    return one + two\n")
    edit = call("edit", {"path": "a.py", "old_string": "    return one + two\n", "new_string": "    return one - two\n"})
    with asked(provider, call("read", {"path": "a.py"}), edit, text("I see."), mode="ask") as terminal:
        assert "2 -     return one + two" in visible(terminal)
        assert "2 +     return one - two" in visible(terminal)
        assert b"48;5;167m+" in terminal.raw
        terminal.type("y")
        terminal.wait_for("I see.")
        leave(terminal)
    assert Path("a.py").read_text() == "def f():\n    return one - two\n"


def test_rewritten_file_shows_its_changes(provider: ProviderServer) -> None:
    lines = [f"line {number:02} and more\n" for number in range(60)]
    Path("a.txt").write_text("".join(lines))
    lines[30] = "line 30 and less\n"
    write = call("write", {"path": "a.txt", "content": "".join(lines)})
    with asked(provider, call("read", {"path": "a.txt"}), write, text("I see."), mode="ask") as terminal:
        terminal.wait_for("8 more lines")
        shown = visible(terminal)
        assert "31 - line 30 and more" in shown
        assert "31 + line 30 and less" in shown
        assert "unchanged lines" not in shown
        terminal.press("home")
        terminal.wait_for("… 27 unchanged lines")
        shown = visible(terminal)
        assert "… 27 unchanged lines" in shown
        assert "line 05" not in shown
        assert b"48;5;167mmore" in terminal.raw
        terminal.type("y")
        terminal.wait_for("I see.")
        terminal.wait_for("● write a.txt +1 −1")
        leave(terminal)
    assert Path("a.txt").read_text() == "".join(lines)


def test_light_background_uses_no_pale_colour(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORFGBG", "0;15")
    Path("a.py").write_text("one = 1  # first\n")
    edit = call("edit", {"path": "a.py", "old_string": "one = 1", "new_string": "one = 'x'"})
    with asked(provider, call("read", {"path": "a.py"}), edit, text("`I` **see**."), mode="ask") as terminal:
        terminal.type("y")
        terminal.wait_for("I see.")
        terminal.type("/")
        terminal.wait_for("/btw")
        pale = re.compile(rb"\x1b\[(?:[0-9]+;)*(?:3[2367]|9[0-7])(?:;[0-9]+)*m")
        extended = re.compile(rb"[34]8;[25](?:;[0-9]+)+")
        assert pale.findall(extended.sub(b"", bytes(terminal.raw))) == []
        terminal.type("\x15")
        leave(terminal)


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("keys", "answer"), [("y", "trusted"), ("d", "never"), ("n", None), ("\r", None), ("\x1b", None), ("\x04", None)]
)
def test_trust_is_asked_before_a_conversation(provider: ProviderServer, isolated: Path, keys: str, answer: str | None) -> None:
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text("mode = 'plan'\n")
    with pty_wolo(*provider.flags) as terminal:
        terminal.type("y\r")
        terminal.wait_until(lambda: READY in visible(terminal))
        scroll_to(terminal, ".wolo/config.toml")
        terminal.type(keys)
        wait_for_prompt(terminal)
        assert not terminal.shows("› the files of this project")
        leave(terminal)
    store = isolated / "wolo" / "state" / "trust.json"
    kept = json.loads(store.read_text()) if store.exists() else {}
    assert [each["answer"] for each in kept.values()] == ([answer] if answer else [])


def test_outside_offer_names_the_sandbox_refusal(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    require("bwrap")
    with land("root") as folder, Ground(folder) as ground:
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.chdir(ground.work)
        outside = ground.folder / "outside" / "new"
        reply = call("shell", {"command": f"touch {outside}"})
        with asked(provider, reply, text("I see."), mode="auto", ready="› 3 No, keep it sandboxed") as terminal:
            shown = " ".join(visible(terminal).split())
            assert "The sandbox stopped this command. Run it outside?" in shown
            assert "sandbox denied:" in shown
            assert "Always" not in shown
            terminal.type("y")
            terminal.wait_for("I see.")
            terminal.wait_for("allowed once outside the sandbox")
            wait_for_prompt(terminal)
            leave(terminal)
        assert outside.exists()


def test_fenced_call_asks_in_yolo_with_single_yes(provider: ProviderServer) -> None:
    fenced = f"They write so:\n```json\n{json.dumps({'name': 'shell', 'arguments': {'command': 'touch made'}})}\n```"
    with asked(provider, text(fenced), text(fenced), text("I see."), mode="yolo") as terminal:
        assert "may be meant as an example" in visible(terminal)
        assert "for this session" not in visible(terminal)
        assert not Path("made").exists()
        terminal.type("y")
        terminal.wait_until(lambda: Path("made").exists() and READY in visible(terminal), complaint="it was not asked again")
        terminal.type("n")
        terminal.wait_for("I see.")
        wait_for_prompt(terminal)
        leave(terminal)
