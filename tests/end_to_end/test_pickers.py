"""Choosing from lists at the keyboard: sessions, models and places to go back to, in any window."""

from __future__ import annotations

import os
from pathlib import Path

import pexpect
import pytest

from tests.end_to_end.test_repl import leave, prompts, repl, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text, usage
from tests.fakes.screen import Terminal, pty_wolo
from wolo.places import find_places

CHOOSE_FILE = "\x18\x06"


def say(provider: ProviderServer, *words: str) -> None:
    """A session of its own for each."""
    for each in words:
        provider.script(text(f"The answer to {each}."))
        assert run_wolo(*provider.flags, "-p", each).exit_code == 0
    provider.forget_prefix()  # with a person there, one tool more is offered


def wait_until_chosen(terminal: Terminal) -> None:
    terminal.wait_until(lambda: "Enter select" not in foot(terminal), complaint="the list stayed")
    wait_for_prompt(terminal)


def foot(terminal: Terminal) -> str:
    return "\n".join(line for line in terminal.lines if line.strip())


@pytest.mark.unfit("small", reason="what is seen before it is chosen needs more than five rows")
def test_session_is_found_by_words_with_preview(provider: ProviderServer) -> None:
    say(provider, "about ostriches", "about emus", "about penguins")
    with repl(provider) as terminal:
        terminal.enter("/resume")
        terminal.wait_for("Which session?")
        terminal.wait_for("The answer to about penguins.")
        terminal.type("emu")
        terminal.wait_until(lambda: "about ostriches" not in foot(terminal))
        terminal.wait_for("The answer to about emus.")
        terminal.press("enter")
        wait_until_chosen(terminal)
        assert "Which session?" not in foot(terminal)
        terminal.wait_for("about emus")
        provider.script(text("Gladly."))
        terminal.enter("go on")
        terminal.wait_for("Gladly.")
        leave(terminal)
    assert [message["content"] for message in provider.requests[-1].messages[1:]] == [
        "about emus",
        "The answer to about emus.",
        "go on",
    ]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("key", ["escape", "ctrl-c", "ctrl-d"])
def test_declined_choice_keeps_the_open_session(provider: ProviderServer, key: str) -> None:
    say(provider, "about ostriches")
    with repl(provider) as terminal:
        terminal.enter("/resume")
        terminal.wait_for("Enter select")
        terminal.wait_for("› about ostriches" if terminal.is_narrow else "The answer to about ostriches.")
        terminal.press(key)
        wait_until_chosen(terminal)
        provider.script(text("New."))
        terminal.enter("hello")
        terminal.wait_for("New.")
        leave(terminal)
    assert prompts(provider)[-1] == "hello"


@pytest.mark.unfit("small", reason="what is seen before it is chosen needs more than five rows")
def test_arrows_move_and_tab_shows_other_directories(provider: ProviderServer) -> None:
    here = Path.cwd()
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    say(provider, "far away")
    os.chdir(here)
    say(provider, "one", "two")
    with repl(provider) as terminal:
        terminal.enter("/resume")
        terminal.wait_for("1 of 2")
        assert "far away" not in foot(terminal)
        terminal.press("down")
        terminal.wait_for("2 of 2")
        terminal.press("tab")
        terminal.wait_for("2 of 3")
        terminal.wait_for("far away")
        terminal.press("up", "enter")
        wait_until_chosen(terminal)
        terminal.wait_for("The answer to two.")
        leave(terminal)


def test_resume_without_id_lists_before_the_conversation(provider: ProviderServer) -> None:
    say(provider, "about ostriches", "about emus")
    provider.script(text("Gladly."))
    with pty_wolo(*provider.flags, "-r") as terminal:
        terminal.wait_for("Which session?")
        terminal.type("ostr")
        terminal.wait_until(lambda: "about emus" not in foot(terminal))
        terminal.press("enter")
        wait_until_chosen(terminal)
        terminal.enter("go on")
        terminal.wait_for("Gladly.")
        leave(terminal)
    assert "about ostriches" in provider.requests[-1].body.decode()


def test_resume_without_an_id_can_be_left(provider: ProviderServer) -> None:
    say(provider, "about ostriches")
    with pty_wolo(*provider.flags, "-r") as terminal:
        terminal.wait_for("Which session?")
        terminal.press("escape")
        assert terminal.wait_for_exit() == 0
    assert "\x1b[?1049h" not in terminal.raw.decode(errors="replace")


@pytest.mark.parametrize("env", [{"TERM": "dumb"}], ids=["dumb"])
def test_static_terminals_get_numbers(provider: ProviderServer, env: dict[str, str]) -> None:
    say(provider, "about ostriches", "about emus")
    provider.script(text("Gladly."))
    with pty_wolo(*provider.flags, "-r", env=env) as terminal:
        terminal.wait_for("Which session? Enter selects 1")
        terminal.wait_for("  2  about ostriches")
        terminal.enter("7")
        terminal.wait_for("There is no number 7.")
        terminal.wait_until(lambda: terminal.times("Which session? Enter selects 1") == 2)
        terminal.enter("2")
        terminal.wait_for("› about ostriches" if terminal.is_narrow else "The answer to about ostriches.")
        terminal.enter("go on")
        terminal.wait_for("Gladly.")
        leave(terminal)


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("rows", "columns"), [(5, 20), (8, 40), (24, 80), (50, 200)])
def test_the_list_fits_any_window(provider: ProviderServer, rows: int, columns: int) -> None:
    say(provider, *(f"about a very long matter that does not fit, number {number}" for number in range(6)))
    with pty_wolo(*provider.flags, "-r", rows=rows, columns=columns, env={"LC_ALL": "C"}) as terminal:
        terminal.wait_until(lambda: "about a very" in foot(terminal))
        terminal.press("down")
        terminal.wait_until(lambda: sum(line.startswith("› ") for line in terminal.lines) >= 1)
        assert sum(bool(line.strip()) for line in terminal.lines) <= rows
        terminal.press("escape")
        assert terminal.wait_for_exit() == 0


@pytest.mark.unfit("small", reason="what is seen before it is chosen needs more than five rows")
def test_model_is_chosen_with_window_and_price(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAI_API_KEY", "zk-0123456789abcdef")
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(f'model = "here/m"\n[providers.here]\nbase_url = "{provider.base_url}"\n')
    with pty_wolo() as terminal:
        wait_for_prompt(terminal)
        terminal.enter("/model")
        terminal.wait_for("Which model?")
        assert "/…" not in foot(terminal)
        terminal.wait_until(lambda: "› here/m  current\n" in foot(terminal))  # what nobody knows of it is left out
        assert "type…" not in foot(terminal)
        terminal.type("ollama/mine:7b")
        terminal.wait_for("Enter uses the typed text.")
        terminal.type("\x15zai glm-5.2")
        terminal.wait_for("zai/glm-5.2")
        terminal.wait_for("thinking")
        assert "$" in foot(terminal)
        terminal.press("escape")
        wait_until_chosen(terminal)
        leave(terminal)


def test_unopenable_model_leaves_the_conversation_unchanged(provider: ProviderServer) -> None:
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(
        f'[providers.odd]\nbase_url = "{provider.base_url}"\ndialect = {{zzz = 1}}\n'
    )
    provider.script(text("One."), text("Two."))
    with repl(provider) as terminal:
        terminal.enter("one")
        terminal.wait_for("One.")
        wait_for_prompt(terminal)
        terminal.enter("/model local/missing.gguf")
        terminal.wait_for("missing.gguf")
        wait_for_prompt(terminal)
        terminal.enter("/model odd/m")
        terminal.wait_for("has no flag")
        wait_for_prompt(terminal)
        terminal.enter("two")
        terminal.wait_for("Two.")
        leave(terminal)


def test_model_choice_during_a_turn_applies_afterwards(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Working.\n"), hold, delta("Done."), finish("stop")))
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text(
        f'[providers.acme]\nbase_url = "{provider.base_url}"\napi_key = "k-0123456789abcdef"\nmodels = [{{id = "small"}}]\n'
    )
    with repl(provider) as terminal:
        terminal.enter("work")
        terminal.wait_for("Working.")
        terminal.enter("/model")
        terminal.wait_for("Which model?")
        terminal.type("acme")
        terminal.wait_for("acme/small")
        terminal.press("enter")
        terminal.wait_for("⧗ /model acme/small")
        hold.release()
        terminal.wait_for("Done.")
        wait_for_prompt(terminal)
        terminal.wait_for("wolo · acme/small")
        leave(terminal)


@pytest.mark.unfit("small", reason="what is seen before it is chosen needs more than five rows")
def test_return_point_shows_its_changes(provider: ProviderServer) -> None:
    Path("kept.txt").write_text("old\n")
    provider.script(text("Hello."), call("edit", {"path": "kept.txt", "old": "old", "new": "new"}), text("Written."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("hello")
        terminal.wait_for("Hello.")
        wait_for_prompt(terminal)
        terminal.enter("overwrite it")
        terminal.wait_for("Written.")
        wait_for_prompt(terminal)
        terminal.enter("/rewind")
        terminal.wait_for("Back to before which prompt?")
        terminal.wait_for("restored  kept.txt")
        terminal.wait_for("file stays as it is")
        terminal.press("tab")
        terminal.wait_for("[x] files too")
        terminal.press("enter")
        terminal.wait_until(lambda: terminal.shows("Undo of the last turn"))
        terminal.wait_until(lambda: any(line == "› overwrite it" for line in terminal.lines))
    assert Path("kept.txt").read_text() == "old\n"


@pytest.mark.unfit("small", reason="what is seen before it is chosen needs more than five rows")
def test_rewinding_leaves_files_alone_unless_asked(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "new.txt", "content": "new\n"}), text("Written."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("write it")
        terminal.wait_for("Written.")
        wait_for_prompt(terminal)
        terminal.enter("/rewind")
        terminal.wait_for("removed   new.txt")
        terminal.press("enter")
        terminal.wait_for("Files were not changed")
    assert Path("new.txt").read_text() == "new\n"


def test_double_escape_on_empty_line_offers_return_points(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    with repl(provider) as terminal:
        terminal.enter("hello")
        terminal.wait_for("Hello.")
        wait_for_prompt(terminal)
        terminal.type("x")
        terminal.press("escape")
        terminal.press("backspace")
        wait_for_prompt(terminal)
        terminal.press("escape")
        terminal.child.expect([pexpect.TIMEOUT], timeout=0.2)
        terminal.press("escape")
        terminal.wait_for("Back to before")
        terminal.press("enter")
        terminal.wait_for("Back to before: hello")


def test_file_is_chosen_and_mentioned_at_the_cursor(provider: ProviderServer) -> None:
    Path("src").mkdir()
    Path("src/apples.py").write_text("def peel() -> None: ...\n")
    Path("src/two words.py").write_text("pears\n")
    os.mkfifo("pipe")
    provider.script(text("Read."))
    with repl(provider) as terminal:
        terminal.type("look at ")
        terminal.type(CHOOSE_FILE)
        terminal.wait_for("Which file?")
        terminal.type("appl")
        terminal.wait_for("def peel()")
        terminal.press("enter")
        terminal.wait_for("› look at @src/apples.py")
        terminal.type(CHOOSE_FILE)
        terminal.wait_for("Which file?")
        terminal.type("two")
        terminal.wait_for("pears")
        terminal.press("enter")
        terminal.wait_for('@src/apples.py @"src/two words.py"')
        terminal.press("enter")
        terminal.wait_for("Read.")
        leave(terminal)
    assert "def peel()" in provider.requests[0].body.decode()


def test_empty_list_is_answered_after_the_turn(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Some words.\n"), hold, finish("stop", usage())))
    with repl(provider) as terminal:
        terminal.enter("talk")
        terminal.wait_for("Some words.")
        terminal.enter("/resume")
        terminal.wait_for("⧗ /resume")
        hold.release()
        terminal.wait_for("There is no other session yet.")
        leave(terminal)
