"""Slash commands as a person types them: in any window, while a turn runs, in huge sessions and where nothing is kept."""

from __future__ import annotations

import pytest

from tests.end_to_end.test_repl import leave, prompts, repl, wait_for_choice, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, text
from tests.fakes.screen import Terminal, pty_wolo
from wolo.commands.table import load_commands
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart
from wolo.places import find_places
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store

COMMANDS = load_commands()

LOOKING = [command.name for command in COMMANDS if command.while_working and not command.usage]


def run_all(terminal: Terminal, names: list[str], cells: int = 80) -> None:
    """One after the other; each must leave an empty line to write in."""
    for name in names:
        terminal.enter(f"/{name}")
        terminal.wait_until(lambda name=name: terminal.shows(f"› /{name}"[:cells]), complaint=f"/{name} was not taken")  # type: ignore[misc]
        terminal.wait_until(lambda: any(line.strip() == "›" for line in terminal.lines), 20, f"/{name} does not end")
        assert not terminal.shows("broke")
        assert not terminal.shows("Traceback")


def test_looking_commands_fit_a_tiny_window_without_locale(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags, rows=5, columns=20, env={"LC_ALL": "C"}) as terminal:
        terminal.wait_until(lambda: any(line.strip() == "›" for line in terminal.lines))
        run_all(terminal, LOOKING)
        assert leave(terminal) == 0


def test_every_command_that_looks_where_nothing_is_kept(provider: ProviderServer) -> None:
    provider.script(text("Answer."))
    with repl(provider, "--no-session") as terminal:
        terminal.enter("hello")
        terminal.wait_for("Answer.")
        wait_for_prompt(terminal)
        run_all(terminal, [*LOOKING, "rewind", "branch", "model x/", "export", "title x", "label x", "search x", "resume"])
        terminal.wait_for("This session is not saved")
        assert leave(terminal) == 0


def test_commands_in_a_huge_session(provider: ProviderServer) -> None:
    said = [
        MessageEntry(message=message)
        for number in range(3000)
        for message in (
            user(f"question {number} {'x' * 200}"),
            Message(role="assistant", parts=(TextPart(text=f"answer {number} " * 20),), finished=True),
        )
    ]
    with Store.open(find_places().data) as store:
        session = store.create(".", model="custom/test-model", mode="ask", name=None)
        store.append(session.id, said)
    with repl(provider, "-r", session.id) as terminal:
        run_all(terminal, ["tree", "context", "cost", "debug", "search question"])
        terminal.enter("/rewind")
        wait_for_choice(terminal, "3000", "1 of 3000")
        terminal.type("question 2917")
        wait_for_choice(terminal, "2918", "1 of 2")
        terminal.press("escape")
        terminal.wait_until(lambda: "Enter select" not in "".join(terminal.lines))
        assert leave(terminal) == 0


def test_asking_aside_while_the_model_works(provider: ProviderServer) -> None:
    hold = Hold()
    provider.aside = text("It is **seventeen**.")
    provider.script(sse(delta("Work"), hold, delta("ing.\n"), finish("stop")), text("Later."))
    with repl(provider) as terminal:
        terminal.enter("work")
        assert hold.reached.wait(60)
        terminal.enter("/btw how many?")
        terminal.wait_for("It is seventeen.")
        terminal.enter("/mode plan")
        terminal.wait_for("Mode plan: reads only")
        hold.released.set()
        terminal.wait_for("ing.")
        wait_for_prompt(terminal)
        terminal.enter("and now?")
        terminal.wait_for("Later.")
        leave(terminal)
    last = provider.requests[-1].body.decode()
    assert "how many?" not in last
    assert "seventeen" not in last


def test_escape_ends_a_question_aside_and_wolo_stays(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("Never"), hold, finish("stop")), text("Here."))
    with repl(provider) as terminal:
        terminal.enter("/btw how many?")
        assert hold.reached.wait(60)
        terminal.wait_for("asking a side question" if terminal.is_narrow else "Esc stops")
        terminal.press("escape")
        wait_for_prompt(terminal)
        terminal.enter("hello")
        terminal.wait_for("Here.")
        assert leave(terminal) == 0


def test_slow_command_reports_its_work(provider: ProviderServer) -> None:
    turn, aside = Hold(), Hold()
    provider.script(sse(delta("Never"), aside, finish("stop")), sse(delta("Slowly.\n"), turn, finish("stop")))
    with repl(provider) as terminal:
        terminal.enter("/btw how many?")
        terminal.wait_for("asking a side question · 1 s" if terminal.is_narrow else "asking a side question · 1 s · Esc stops")
        aside.release()
        terminal.wait_for("Never")
        wait_for_prompt(terminal)
        terminal.enter("work")
        terminal.wait_for("Slowly.")
        held = Hold()
        provider.script(sse(delta("At last."), held, finish("stop")))
        terminal.enter("/btw how many?")
        if not terminal.is_narrow:  # there is room for one of them
            terminal.wait_until(lambda: any("writing" in line and "asking a side question" in line for line in terminal.lines))
        held.wait_until_reached()
        held.release()
        terminal.wait_for("At last.")
        terminal.wait_until(lambda: "asking a side question" not in "\n".join(terminal.lines))
        turn.release()
        wait_for_prompt(terminal)
        assert leave(terminal) == 0


def test_prompt_from_a_command_is_shown_and_sent(provider: ProviderServer) -> None:
    provider.script(text("Committed."))
    with repl(provider) as terminal:
        terminal.enter("/commit only the docs")
        terminal.wait_for("Committed.")
        wait_for_prompt(terminal)
        assert "Do not push" in terminal.text.replace("\n", " ")
        leave(terminal)
    (asked,) = prompts(provider)
    assert asked.endswith("only the docs")


def test_theme_persists_and_wrong_one_is_refused(provider: ProviderServer) -> None:
    with repl(provider) as terminal:
        terminal.enter("/theme light")
        terminal.wait_for("Theme set to light")
        wait_for_prompt(terminal)
        terminal.enter("/theme pink")
        terminal.wait_for("There is no theme pink.")
        wait_for_prompt(terminal)
        leave(terminal)
    assert 'theme = "light"' in (find_places().config / "config.toml").read_text()
    assert '"light"' in run_wolo("config", "show", "--json").stdout


@pytest.mark.parametrize(("typed", "meant"), [("/hlep", "/help"), ("/sesions", "/sessions"), ("/coppy", "/copy")])
def test_a_slip_of_the_fingers_names_the_nearest(provider: ProviderServer, typed: str, meant: str) -> None:
    with repl(provider) as terminal:
        terminal.enter(typed)
        terminal.wait_for(f"Did you mean {meant}? /help lists all commands.")
        leave(terminal)


def test_a_diff_is_drawn_in_its_colours(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "new.md", "content": "```\ncode\n```\n"}), text("Written."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("write it")
        terminal.wait_for("Written.")
        wait_for_prompt(terminal)
        terminal.enter("/diff")
        terminal.wait_for("1 file changed in this session.")
        terminal.wait_for("+++ b/new.md")
        terminal.wait_for("+code")
        leave(terminal)


def test_file_names_and_contents_cannot_paint_the_screen(provider: ProviderServer) -> None:
    evil = "\x1b[2J\x1b]52;c;AAAA\x07evil"
    provider.script(call("write", {"path": "a`\x1b]0;x\x07b.txt", "content": f"{evil}\n"}), text("Written."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("write it")
        terminal.wait_for("Written.")
        for line, answer in (
            ("/diff", "1 file changed"),
            (f"/title {evil}", "Title: "),
            (f"/search {evil}", "/resume ID opens one"),
            ("/sessions", "the current session"),
            ("/rewind", "Enter select"),
        ):
            wait_for_prompt(terminal)
            terminal.paste(line)
            terminal.wait_for(line.split()[0])
            terminal.press("enter")
            terminal.wait_for(answer)
        terminal.press("escape")
        terminal.wait_until(lambda: "Enter select" not in "".join(terminal.lines))
        wait_for_prompt(terminal)
        leave(terminal)
    for sequence in (b"\x1b[2J", b"\x1b]52", b"\x1b]0;"):
        assert sequence not in terminal.raw
