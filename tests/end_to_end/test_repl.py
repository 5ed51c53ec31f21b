"""The conversation at the keyboard: `wolo` without a task."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from wolo.places import find_places


@contextmanager
def repl(provider: ProviderServer, *args: str, rows: int | None = None, columns: int | None = None) -> Iterator[Terminal]:
    with pty_wolo(*provider.flags, *args, rows=rows, columns=columns) as terminal:
        wait_for_prompt(terminal)
        yield terminal


def wait_for_prompt(terminal: Terminal) -> None:
    terminal.wait_for_prompt()


def shown(terminal: Terminal) -> list[str]:
    return [line for line in terminal.text.split("\n") if line.strip()]


def shows_page(terminal: Terminal, times: int) -> bool:
    """The page of /help, as often as that."""
    return terminal.times("/keys the keys" if terminal.is_narrow else "/help NAME explains a command.") == times


def wait_for_choice(terminal: Terminal, chosen: str, place: str) -> None:
    """The list has come to rest on what begins like this; a narrow window does not show how many there are."""
    terminal.wait_until(
        lambda: (
            any(re.match(f"› +{chosen}", line) for line in terminal.lines)
            and ("Enter select" if terminal.is_narrow else f"{place} · Enter select") in "\n".join(terminal.lines)
        ),
        complaint=f"the list does not rest on {chosen!r}",
    )


def leave(terminal: Terminal) -> int:
    terminal.press("ctrl-d")
    return terminal.wait_for_exit()


def prompts(provider: ProviderServer) -> list[str]:
    return [asked.messages[-1]["content"] for asked in provider.requests]


def test_the_branch_is_named_beside_the_directory(provider: ProviderServer) -> None:
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/fix/größe\n")
    with repl(provider, columns=200) as terminal:
        assert shown(terminal)[0].endswith(f" · {Path.cwd()} (fix/größe)")


def test_a_conversation_goes_on_until_ctrl_d(provider: ProviderServer) -> None:
    provider.script(text("Hello yourself."), text("Fine."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.wait_for("wolo · custom/test-model · edit · ")
        assert str(Path.cwd()) in terminal.text.replace("\n", "")
        terminal.enter("hello")
        terminal.wait_for("Hello yourself.")
        wait_for_prompt(terminal)
        terminal.enter("how are you?")
        terminal.wait_for("Fine.")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0
        terminal.wait_for("wolo --resume session_")
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["hello", "Hello yourself.", "how are you?"]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("word", ["exit", ":q", "/quit"])
def test_every_usual_word_leaves(provider: ProviderServer, word: str) -> None:
    with repl(provider) as terminal:
        terminal.enter(word)
        assert terminal.wait_for_exit() == 0
    with repl(provider) as terminal:
        assert not terminal.shows("back")  # it was no prompt, and no draft
        leave(terminal)


def test_enter_takes_the_highlighted_entry_of_a_menu(provider: ProviderServer) -> None:
    Path("notes-of-mine.md").write_text("x")
    provider.script(text("Read."))
    with repl(provider, columns=100) as terminal:
        terminal.enter("/hel")  # faster than any menu
        terminal.wait_for("/help NAME explains a command.")
        assert not terminal.shows("Did you mean")
        terminal.enter("/titl")  # needs a name
        terminal.wait_for("› /title")
        terminal.enter(" A name")
        terminal.wait_for("Title: A name")
        terminal.type("look at @notes-o")
        terminal.wait_until(lambda: any(line.strip() == "notes-of-mine.md" for line in terminal.lines))
        terminal.press("enter")
        terminal.wait_for("› look at @notes-of-mine.md")
        assert not provider.requests
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider)[0].startswith("look at @notes-of-mine.md")


def test_keys_and_names_of_other_agents_work(provider: ProviderServer) -> None:
    provider.script(text("Two lines."))
    with repl(provider, columns=100) as terminal:
        assert b"\x1b[>1u\x1b[>4;1m" in terminal.raw
        terminal.type("?")
        terminal.wait_for("take_back")
        terminal.enter("help")
        terminal.wait_for("/help NAME explains a command.")
        terminal.enter("/rename Another name")
        terminal.wait_for("Title: Another name")
        wait_for_prompt(terminal)
        terminal.enter("/terminal-setup")
        terminal.wait_for("Nothing to set up")
        wait_for_prompt(terminal)
        terminal.type("ask @nobody")
        terminal.type("\x13")
        terminal.wait_for("kept aside")
        terminal.type("\x13")
        terminal.wait_for("› ask @nobody")
        terminal.type("\x1b[13;2uhere")
        terminal.press("enter")
        terminal.wait_for("Two lines.")
        terminal.wait_for("@nobody names no file and is sent as text.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert prompts(provider)[0].startswith("ask @nobody\nhere")
    assert terminal.raw.rindex(b"\x1b[<u") > terminal.raw.rindex(b"\x1b[>1u")


def test_ctrl_v_attaches_the_clipboards_image(
    provider: ProviderServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, isolated: Path
) -> None:
    programs, image = tmp_path / "programs", b"\x89PNG\r\n\x1a\n" + b"0" * 64
    programs.mkdir()
    (tmp_path / "image.png").write_bytes(image)
    (programs / "xclip").write_text(f"#!/bin/sh\ncat {tmp_path}/image.png\n")
    (programs / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    for name in ("WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    with repl(provider, columns=200) as terminal:
        terminal.type("\x16")
        terminal.wait_for("clipboard/image-")
        assert [path.read_bytes() for path in isolated.rglob("clipboard/image-*.png")] == [image]
        terminal.type("\x15")
        (tmp_path / "image.png").write_text("some text")
        terminal.type("\x16")
        terminal.wait_for("The clipboard holds no image.")
        leave(terminal)


def test_lists_open_for_settings_rules_and_themes(provider: ProviderServer) -> None:
    with repl(provider, "--allow", "shell:make", columns=100) as terminal:
        for command, title in (("/theme", "Theme"), ("/config", "Settings"), ("/permissions", "shell:make")):
            terminal.enter(command)
            terminal.wait_for(title)
            terminal.wait_until(lambda: any("Esc cancel" in line for line in terminal.lines))
            terminal.press("escape")
            wait_for_prompt(terminal)
        leave(terminal)


def test_entries_chosen_from_lists_take_effect(provider: ProviderServer, isolated: Path) -> None:
    settings = isolated / "config" / "wolo" / "config.toml"
    with repl(provider, "--allow", "shell:make", columns=100) as terminal:
        terminal.enter("/theme")
        terminal.wait_for("Esc cancel")
        terminal.enter("light")
        terminal.wait_for("Theme set to light")
        wait_for_prompt(terminal)
        terminal.enter("/config")
        terminal.wait_for("Esc cancel")
        terminal.enter("finish.check")
        terminal.wait_for("finish.check = ")
        terminal.enter("false")
        terminal.wait_for("Saved finish.check")
        wait_for_prompt(terminal)
        terminal.enter("/permissions")
        terminal.wait_for("Esc cancel")
        terminal.enter("shell:make")
        terminal.wait_until(lambda: any("allow" in line and "shell:make" in line for line in terminal.lines))
        wait_for_prompt(terminal)
        leave(terminal)
    assert "light" in next(isolated.rglob("config.toml"), settings).read_text()


def test_keys_of_vi_are_turned_on_at_once(provider: ProviderServer) -> None:
    with repl(provider, columns=100) as terminal:
        assert not terminal.shows("INSERT")
        terminal.enter("/vim")
        terminal.wait_for("INSERT · ")
        terminal.type("one two")
        terminal.type("\x7f\x7f\x7fmany")
        terminal.wait_for("› one many")
        terminal.press("escape")
        terminal.wait_for("NORMAL · ")
        terminal.type("u")
        terminal.wait_until(lambda: not terminal.shows("› one"))
        terminal.type("ithree")
        terminal.press("escape")
        terminal.wait_for("NORMAL · ")
        terminal.type("\x03")
        terminal.wait_for("INSERT · ")
        terminal.enter("/vim off")
        terminal.wait_until(lambda: not terminal.shows("INSERT · "))
        leave(terminal)


def test_ctrl_x_and_a_letter_run_commands(provider: ProviderServer) -> None:
    with repl(provider, columns=100) as terminal:
        terminal.type("some text\x18s")
        terminal.wait_for("context window unknown")
        terminal.wait_for("› some text")
        terminal.type("\x18u")
        terminal.type(" more")
        terminal.wait_for(" more")
        assert not terminal.shows("› /undo")
        terminal.type("\x15\x18u")
        terminal.wait_for("› /undo")
        wait_for_prompt(terminal)
        leave(terminal)
    assert not provider.requests


def test_typed_path_of_an_image_attaches(provider: ProviderServer) -> None:
    image = b"\x89PNG\r\n\x1a\n" + b"0" * 64
    for name in ("dot.png", "two words.png"):
        Path(name).write_bytes(image)
    Path("text.png").write_text("no image")
    provider.script(text("Seen."))
    with repl(provider, columns=100) as terminal:
        terminal.enter("compare dot.png, two\\ words.png and './dot.png' with text.png and none.png")
        terminal.wait_for("Seen.")
        wait_for_prompt(terminal)
        leave(terminal)
    content = provider.requests[0].json["messages"][-1]["content"]
    assert [part["type"] for part in content].count("image_url") == 2


def test_a_backslash_before_enter_makes_a_new_line(provider: ProviderServer) -> None:
    provider.script(text("Two lines."))
    with repl(provider) as terminal:
        terminal.type("first\\")
        terminal.wait_for("› first\\")
        terminal.press("enter")
        terminal.wait_until(lambda: terminal.shows("› first") and not terminal.shows("first\\"))
        terminal.enter("second")
        terminal.wait_for("Two lines.")
        wait_for_prompt(terminal)
        terminal.type("!printf '%s' one\\")
        terminal.wait_for("one\\")
        terminal.press("enter")
        terminal.enter("two")
        terminal.wait_for("onetwo")
        leave(terminal)
    assert prompts(provider) == ["first\nsecond"]


def test_notices_are_said_once(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    misplaced = Path.home() / ".wolo" / "config.toml"
    misplaced.parent.mkdir()
    misplaced.write_text("")
    with repl(provider, "--sandbox", "off") as terminal:
        terminal.enter("first")
        terminal.wait_for("One.")
        wait_for_prompt(terminal)
        terminal.enter("/new")
        terminal.wait_until(lambda: terminal.times("wolo · custom") == 2)
        wait_for_prompt(terminal)
        terminal.enter("second")
        terminal.wait_for("Two.")
        leave(terminal)
    assert terminal.times("No sandbox is available") == 1
    assert terminal.times("config.toml is not read: your settings are") == 1


@pytest.mark.parametrize("key", ["alt-enter", "ctrl-j"])
def test_several_lines_are_one_message(provider: ProviderServer, key: str) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("one")
        terminal.press(key)
        terminal.enter("two")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo"]


@pytest.mark.parametrize("sent", ["\x1b[13;2u", "\x1b[27;2;13~"])
def test_shift_enter_makes_a_line_where_distinguishable(provider: ProviderServer, sent: str) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type(f"one{sent}two")
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo"]


def test_five_thousand_line_paste_is_one_message(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    pasted = "\n".join(f"\tline {number} ü" for number in range(5000))
    with repl(provider) as terminal:
        terminal.paste(pasted)
        terminal.wait_for("[Pasted #1: 5,000 lines]")
        assert not provider.requests
        terminal.press("enter")
        terminal.wait_for("Read.", 20)
        leave(terminal)
    assert not terminal.shows("line 4999")
    assert prompts(provider) == [pasted]


def test_unmarked_paste_is_one_message(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("one\rtwo\rthree\r")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo\nthree"]


def test_paste_containing_an_end_mark_is_held(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.paste("one\x1b[201~\rtwo\rthree")
        terminal.wait_for("three")
        assert not provider.requests
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["one\ntwo\nthree"]


def test_wide_characters_are_edited_as_they_are_seen(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("漢字é🙂x")
        terminal.wait_for("漢字é🙂x")
        terminal.press("left", "backspace", "left")
        terminal.type("中")
        terminal.press("end", "enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["漢字中éx"]


def test_typed_history_is_remembered_for_its_user(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("One."), text("Two."))
    with repl(provider) as terminal:
        terminal.enter("remember me")
        terminal.wait_for("One.")
        leave(terminal)
    (written,) = (isolated / "wolo/state/history").iterdir()
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    with repl(provider) as terminal:
        terminal.press("up")
        terminal.wait_for("remember me")
        terminal.press("enter")
        terminal.wait_for("Two.")
        leave(terminal)
    assert prompts(provider) == ["remember me", "remember me"]


def test_ctrl_c_clears_text_and_leaves_when_empty(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.type("half a thought")
        terminal.wait_for("half a thought")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)
        terminal.press("ctrl-c")
        terminal.wait_for("Ctrl-C again quits")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_stops_a_turn_and_conversation_continues(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()), text("Still here."))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        terminal.enter("hello?")
        terminal.wait_for("Still here.")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0


def test_a_second_ctrl_c_leaves(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        terminal.press("ctrl-c")
        terminal.wait_for("Ctrl-C again quits")  # the stop was not the first one
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() in (0, 130)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_at_the_prompt_leaves(provider: ProviderServer, number: signal.Signals, status: int) -> None:
    with repl(provider) as terminal:
        os.kill(terminal.child.pid, number)
        assert terminal.wait_for_exit() == status


def test_a_signal_during_a_turn_leaves(provider: ProviderServer) -> None:
    provider.script(sse(delta("Some words.\n"), Hold()))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        os.kill(terminal.child.pid, signal.SIGTERM)
        assert terminal.wait_for_exit() == 143


def test_typing_during_a_turn_stays_below_it(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, delta("The end."), finish("stop", usage())), text("Taken."))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("writing ·")
        terminal.type("my next ")
        terminal.wait_for("› my next")
        hold.release()
        terminal.wait_for("The end.")
        assert "my next" not in terminal.text.partition("The end.")[0]
        terminal.enter("thought")
        terminal.wait_for("Taken.")
        leave(terminal)
    assert prompts(provider)[1] == "my next thought"


def test_unknown_command_is_not_sent_and_names_help(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.enter("/nosuch thing")
        terminal.wait_for("Unknown command: /nosuch.")
        terminal.wait_for("/help")
        for times, word in enumerate(("/help", "/?"), start=1):
            wait_for_prompt(terminal)
            terminal.enter(word)
            page = partial(shows_page, terminal, times)
            terminal.wait_until(page, complaint=f"{word} did not show the page")
        wait_for_prompt(terminal)
        leave(terminal)


@pytest.mark.parametrize(("typed", "sent"), [("//help me", "/help me"), ("/usr/bin is a folder", "/usr/bin is a folder")])
def test_a_text_may_begin_with_a_slash(provider: ProviderServer, typed: str, sent: str) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.enter(typed)
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == [sent]


@pytest.mark.parametrize("flags", [(), ("--no-session",)], ids=["kept", "not kept"])
def test_another_model_goes_on_with_what_was_said(provider: ProviderServer, flags: tuple[str, ...]) -> None:
    provider.script(text("First."), text("Second."))
    with repl(provider, *flags) as terminal:
        terminal.enter("/model custom/early-bird")
        terminal.wait_for("wolo · custom/early-bird")
        wait_for_prompt(terminal)
        terminal.enter("one")
        terminal.wait_for("First.")
        wait_for_prompt(terminal)
        provider.forget_prefix()
        terminal.enter("/model custom/other-model")
        terminal.wait_for("wolo · custom/other-model")
        wait_for_prompt(terminal)
        terminal.enter("two")
        terminal.wait_for("Second.")
        wait_for_prompt(terminal)
        terminal.enter("/cost")
        terminal.wait_for("200 tokens in · 20 out · price unknown · 2 answers in this session")
        leave(terminal)
    assert [asked.json["model"] for asked in provider.requests] == ["early-bird", "other-model"]
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["one", "First.", "two"]


def test_session_in_use_is_refused_and_this_continues(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("slow").then(hold), text("still here"))
    with start_wolo("-p", *provider.flags, "-s", "other", "go") as process:
        hold.wait_until_reached()
        provider.forget_prefix()
        with repl(provider) as terminal:
            terminal.enter("/resume other")
            terminal.wait_for(str(process.pid))
            wait_for_prompt(terminal)
            terminal.enter("are you there?")
            terminal.wait_for("still here")
            wait_for_prompt(terminal)
            assert leave(terminal) == 0
        hold.release()
        process.communicate(timeout=60)


def test_mistaken_names_keep_the_conversation_alive(provider: ProviderServer) -> None:
    provider.script(text("First."), text("Second."))
    with repl(provider) as terminal:
        terminal.enter("one")
        terminal.wait_for("First.")
        for typed, complaint in (("/resume no such session", "There is no session"), ("@nothing.txt", "Second.")):
            wait_for_prompt(terminal)
            terminal.enter(typed)
            terminal.wait_for(complaint)
        leave(terminal)
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["one", "First.", "@nothing.txt"]


def test_words_behind_a_new_session_are_not_lost(provider: ProviderServer) -> None:
    provider.script(text("A plan."))
    with repl(provider) as terminal:
        terminal.enter("/new make a plan")
        terminal.wait_until(lambda: terminal.times("wolo · custom/test-model") == 2)
        terminal.wait_until(lambda: shown(terminal)[-2:-1] == ["› make a plan"])
        terminal.press("enter")
        terminal.wait_for("A plan.")
        leave(terminal)


def test_new_session_leaves_the_old_one_resumable(provider: ProviderServer) -> None:
    provider.script(text("The first answer."), text("The second answer."), text("Back."))
    with repl(provider) as terminal:
        terminal.enter("one")
        terminal.wait_for("The first answer.")
        wait_for_prompt(terminal)
        terminal.enter("/clear")
        terminal.wait_until(lambda: terminal.times("wolo · custom/test-model") == 2)
        wait_for_prompt(terminal)
        terminal.enter("two")
        terminal.wait_for("The second answer.")
        wait_for_prompt(terminal)
        terminal.enter("/resume")
        wait_for_choice(terminal, "one", "1 of 1")
        terminal.press("escape")
        terminal.wait_until(lambda: "Enter select" not in "".join(terminal.lines))
        wait_for_prompt(terminal)
        terminal.enter("/resume one")
        terminal.wait_until(lambda: terminal.times("The first answer.") == 2)
        wait_for_prompt(terminal)
        terminal.enter("three")
        terminal.wait_for("Back.")
        leave(terminal)
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["two"]
    assert [message["content"] for message in provider.requests[2].messages[1:]] == ["one", "The first answer.", "three"]
    assert len(run_wolo("sessions", "list", "--json").json) == 2


def test_a_prompt_with_i_runs_and_stays(provider: ProviderServer) -> None:
    provider.script(text("First."), text("Second."))
    with repl(provider, "-i", "one") as terminal:
        terminal.wait_for("First.")
        terminal.enter("two")
        terminal.wait_for("Second.")
        assert leave(terminal) == 0


def test_resume_without_a_name_lets_one_choose(provider: ProviderServer) -> None:
    for number in ("one", "two"):
        provider.script(text(f"Answer {number}."))
        run_wolo("-p", *provider.flags, f"question {number}")
    provider.script(text("Going on."))
    provider.forget_prefix()  # with a person there, one tool more is offered
    with pty_wolo(*provider.flags, "-r", env={"TERM": "dumb"}) as terminal:
        terminal.wait_for("selects 1, q cancels >")
        terminal.wait_for("  1  question two")
        terminal.enter("7")
        terminal.wait_for("There is no number 7.")
        terminal.wait_until(lambda: terminal.times("selects 1, q cancels >") == 2)
        terminal.enter("2")
        terminal.wait_for("Answer one.")
        terminal.wait_until(lambda: shown(terminal)[-1] == ">")
        terminal.enter("and on")
        terminal.wait_for("Going on.")
        leave(terminal)
    assert provider.requests[2].messages[1]["content"] == "question one"


def test_choosing_can_be_declined_or_empty(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags, "-r") as terminal:
        assert terminal.wait_for_exit() == 3
        terminal.wait_for("There is no session to resume yet")
    provider.script(text("Answer."))
    run_wolo("-p", *provider.flags, "question")
    for keys, status in (("ctrl-d", 0), ("ctrl-c", 130)):
        with pty_wolo(*provider.flags, "-r") as terminal:
            terminal.wait_for("Which session?")
            terminal.press(keys)
            assert terminal.wait_for_exit() == status


def test_an_approval_in_the_conversation_returns_to_it(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Well."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("do it")
        terminal.wait_for("› 3")
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        wait_for_prompt(terminal)
        terminal.enter("never mind")
        terminal.wait_for("Well.")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0
    assert not Path("made").exists()


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("environment", "rows", "columns"),
    [
        ({"TERM": "dumb"}, 24, 80),
        ({"NO_COLOR": "1"}, 5, 20),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}, 24, 80),
    ],
    ids=["dumb", "tiny", "ascii"],
)
def test_any_terminal_can_have_a_conversation(
    provider: ProviderServer, environment: dict[str, str], rows: int, columns: int
) -> None:
    provider.script(text("Hello."), text("Bye."))
    with pty_wolo(*provider.flags, env=environment, rows=rows, columns=columns) as terminal:
        terminal.wait_for("/help shows")
        terminal.enter("hi")
        terminal.wait_for("Hello.")
        terminal.enter("bye")
        terminal.wait_for("Bye.")
        assert leave(terminal) == 0
    assert prompts(provider) == ["hi", "bye"]


def test_resizing_the_prompt_keeps_what_is_typed(provider: ProviderServer) -> None:
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("some words that are typed")
        terminal.wait_for("typed")
        for columns in (20, 200, 60):
            terminal.resize(24, columns)
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert prompts(provider) == ["some words that are typed"]


def test_run_key_reaches_no_other_provider(provider: ProviderServer) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    own = "".join(f'[providers.{name}]\nbase_url = "{provider.base_url}"\n' for name in ("first", "second"))
    (folder / "config.toml").write_text(own)
    (folder / "config.toml").chmod(0o600)
    provider.linted = False
    provider.script(text("One."), text("Two."), text("Three."))
    with pty_wolo("-m", "first/a", "--api-key", "key-of-the-first") as terminal:
        terminal.wait_for_prompt()
        terminal.enter("go")
        terminal.wait_for("One.")
        for number, model in enumerate(("second/b", "first/c")):
            terminal.enter(f"/model {model}")
            terminal.wait_for(f"wolo · {model}")
            terminal.enter("go on")
            terminal.wait_for(("Two.", "Three.")[number])
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    keys = [(asked.json["model"], asked.headers.get("authorization")) for asked in provider.requests]
    assert keys == [("a", "Bearer key-of-the-first"), ("b", None), ("c", "Bearer key-of-the-first")]
