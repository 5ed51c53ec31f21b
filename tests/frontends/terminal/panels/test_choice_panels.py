"""Approval panels, drawn and answered by keys in this process."""

from __future__ import annotations

import asyncio
import re
import string
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prompt_toolkit.application.current import set_app
from rich.text import Text

from tests.frontends.terminal.drawn_terminal import DrawnTerminal, drawn_terminal
from wolo.agent.events import ApprovalAsked
from wolo.frontends.terminal.dialogs.limit_dialog import LimitPanel
from wolo.frontends.terminal.panels import key_guard
from wolo.frontends.terminal.panels.approval_preview import PreviewAnswer, proposal
from wolo.frontends.terminal.panels.choice_panels import ApprovalPanel, ChoicePanel, PanelChoice, PlanPanel
from wolo.frontends.terminal.panels.panel import Panel
from wolo.frontends.terminal.panels.questions import QuestionsPanel
from wolo.guard.intents import Intent, RunIntent, WriteIntent
from wolo.messages.parts import ToolPart
from wolo.tools.tool_values import AnswerOption, Question

READY = "› 3"
TOUCH = "touch made"


def approval(part: ToolPart, intent: Intent) -> ApprovalAsked:
    return ApprovalAsked(id="ask_1", part=part, intents=(intent,), reason="It needs an approval.", rule=f"shell:{TOUCH}")


def running(command: str = TOUCH) -> ApprovalAsked:
    return approval(ToolPart(tool="shell", input={"command": command}), RunIntent(command, Path("/w")))


class Asked:
    def __init__(self, drawn: DrawnTerminal, answer: asyncio.Task[PreviewAnswer]) -> None:
        self.drawn, self.answer = drawn, answer

    async def scope(self) -> str:
        """What was allowed; empty for a no."""
        given = (await asyncio.wait_for(self.answer, 30)).approval
        return given.scope if given.allowed else ""


@asynccontextmanager
async def asked(
    monkeypatch: pytest.MonkeyPatch, question: ApprovalAsked, *, rows: int = 24, columns: int = 100
) -> AsyncIterator[Asked]:
    """A person in front of a panel whose keys count."""
    async with drawn_terminal(monkeypatch, rows=rows, columns=columns) as drawn:
        assert drawn.screen.region is not None
        panel = ApprovalPanel(question, proposal(question), lambda rule: "", may_accept_edits=False)
        answer = asyncio.ensure_future(drawn.screen.region.show_dialog(panel))
        await drawn.wait_until(lambda: READY in drawn.visible)
        yield Asked(drawn, answer)
        if not answer.done():
            panel.escape()
        await asyncio.wait({answer})


@pytest.mark.parametrize("key", ["n", "\x04"])
async def test_every_way_to_say_nothing_is_a_no(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    async with asked(monkeypatch, running()) as here:
        assert "$ touch made" in here.drawn.visible
        here.drawn.type(key)
        assert await here.scope() == ""
        await here.drawn.wait_until(lambda: "touch made" not in here.drawn.text)  # the panel is gone


@pytest.mark.parametrize("pasted", ["yes, do it", "y\ry\r", "yy", "ya", "\x1b[200~y\x1b[201~", "\x1b[200~y\r\x1b[201~"])
async def test_a_paste_is_no_yes(monkeypatch: pytest.MonkeyPatch, pasted: str) -> None:
    async with asked(monkeypatch, running()) as here:
        here.drawn.type(pasted)
        while READY in here.drawn.visible:  # arrows that come with the paste belong to it
            assert not here.answer.done()
            here.drawn.press("right")
            await asyncio.wait({here.answer}, timeout=0.1)
        assert not here.answer.done()
        assert "touch made" in here.drawn.visible


async def test_arrows_select_and_enter_takes_the_selected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, running()) as here:
        while "› 1 Yes, once" not in here.drawn.visible:
            before = here.drawn.visible
            here.drawn.press("up")
            await here.drawn.wait_until(lambda before=before: here.drawn.visible != before)  # type: ignore[misc]
        here.drawn.press("enter")
        assert await here.scope() == "once"


@pytest.mark.parametrize(("number", "scope"), [("1", "once"), ("2", "session")])
async def test_digits_allow_as_printed(monkeypatch: pytest.MonkeyPatch, number: str, scope: str) -> None:
    async with asked(monkeypatch, running()) as here:
        here.drawn.type(number)
        assert await here.scope() == scope


@pytest.mark.parametrize("key", ["3", "r", "\r"])
async def test_third_answer_asks_for_a_reason(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    async with asked(monkeypatch, running()) as here:
        here.drawn.type(key)
        await here.drawn.wait_for("why not ›")
        here.drawn.type("use the other one\r")
        given = (await asyncio.wait_for(here.answer, 30)).approval
        assert (given.allowed, given.scope, given.reason) == (False, "once", "use the other one")


async def test_rules_stand_behind_one_more_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, running()) as here:
        assert "lways" not in here.drawn.visible
        here.drawn.type("a")
        await here.drawn.wait_for("h Always here")
        assert "“Always” adds the rule shell:touch made" in here.drawn.visible
        here.drawn.type("h")
        assert await here.scope() == "always"


async def test_escape_leaves_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, running()) as here:
        here.drawn.type("a")
        await here.drawn.wait_for("h Always here")
        here.drawn.press("escape")
        await here.drawn.wait_for(READY)
        assert not here.answer.done()


def every_panel() -> dict[str, tuple[Callable[[], Panel[Any]], str]]:
    """Panels by name, with the key that leads to the page in question."""
    edit = approval(ToolPart(tool="write", input={"path": "a", "content": "x"}), WriteIntent(Path("/w/a"), inside=True))
    lines = [Text("Go on?"), Text("about it")]
    options = (AnswerOption("One"), AnswerOption("Two"))
    confirmation = [PanelChoice("1", "Yes", "y"), PanelChoice("3", "No", "n")]
    trust = [PanelChoice("1", "Yes, trust it", "y"), PanelChoice("3", "Not now", "n"), PanelChoice("d", "No, never")]

    def approving(question: ApprovalAsked, *, may_accept_edits: bool = False) -> Callable[[], Panel[Any]]:
        return lambda: ApprovalPanel(question, proposal(question), lambda rule: "", may_accept_edits=may_accept_edits)

    return {
        "command": (approving(running()), ""),
        "rules": (approving(replace(running(), denial="shell:touch *")), "a"),
        "edit": (approving(edit, may_accept_edits=True), ""),
        "outside": (approving(replace(running(), walls="again")), ""),
        "restored": (approving(replace(running(), walls="restored")), ""),
        "confirmation": (lambda: ChoicePanel(lines, confirmation), ""),
        "trust": (lambda: ChoicePanel(lines, trust), ""),
        "plan": (lambda: PlanPanel(["auto", "edit", "keep", "revise"]), ""),
        "question": (lambda: QuestionsPanel([Question(text="Which?", options=options)]), ""),
        "limit": (lambda: LimitPanel(time.time() + 999), ""),
    }


@pytest.mark.parametrize(("name", "columns"), [*((name, 80) for name in every_panel()), ("command", 40), ("rules", 40)])
async def test_every_key_does_what_is_printed(monkeypatch: pytest.MonkeyPatch, name: str, columns: int) -> None:
    """Types each character there is: one that is not drawn as a key answers nothing and changes nothing."""
    make, lead = every_panel()[name]
    works, drawn_keys = set(), set()
    async with drawn_terminal(monkeypatch, columns=columns) as drawn:
        assert drawn.screen.region is not None
        with monkeypatch.context() as patch, set_app(drawn.screen.region.app):
            patch.setattr(key_guard, "READING_S", 0.0)
            for key in f"{string.digits}{string.ascii_lowercase}?!/. ":
                panel = make()
                answer = asyncio.ensure_future(drawn.screen.region.show_dialog(panel))
                await asyncio.sleep(0)
                panel.handle_keys([lead] if lead else [])
                before, drawn_keys = page(panel, columns), keys_on(panel, columns)
                panel.handle_keys([key])
                if panel.answer.done() or panel.is_writing or page(panel, columns) != before:
                    works.add(key)
                panel.dismiss()
                await asyncio.wait({answer})
                answer.exception()
    if name == "question":  # other characters go to "Other"
        works &= {"1", "2"}
    assert works == drawn_keys


def page(panel: Panel[Any], columns: int) -> str:
    return "\n".join(f"{line.plain}{line.spans}" for line in [*panel.content(), *panel.choices(columns)])


def keys_on(panel: Panel[Any], columns: int) -> set[str]:
    """Keys as they are drawn: at the beginning or the end of a row, and in key hints."""
    lines = [line.plain.strip("› ") for line in [*panel.content(), *panel.choices(columns)]]
    return {first or last for first, last in re.findall(r"(?:^|· )(\w)(?= )|(?<=  )(\w)$", "\n".join(lines), re.MULTILINE)}


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (5, 20), (8, 30)])
async def test_long_command_is_readable_in_any_window(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    command = "\n".join(f"echo {number:03} \u202e\u200b" for number in range(60))
    async with asked(monkeypatch, running(command), rows=rows, columns=columns) as here:
        if rows == 24:
            assert "echo 001" in here.drawn.visible
            assert "echo 002" not in here.drawn.visible
            here.drawn.press("home")
            await here.drawn.wait_for("echo 002")
        seen, place = here.drawn.visible, scrolled(here.drawn)
        while place[1] < place[2]:
            here.drawn.press("page-down")
            await here.drawn.wait_until(lambda place=place: scrolled(here.drawn) > place)  # type: ignore[misc]
            assert scrolled(here.drawn)[0] <= place[1] + 1
            seen, place = f"{seen}\n{here.drawn.visible}", scrolled(here.drawn)
        assert all(f"echo {number:03}" in seen for number in range(60))
        assert "\\u{202e}" in seen.replace("\n", "")


def scrolled(drawn: DrawnTerminal) -> tuple[int, ...]:
    """First and last line that are shown, and how many there are."""
    found = re.search(r"(\d+)-(\d+) of (\d+)", drawn.visible)
    return tuple(map(int, found.groups())) if found else (0, 0, 0)


async def test_a_whole_file_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "".join(f"line {number:04}\n" for number in range(300))
    part = ToolPart(tool="write", input={"path": "a.txt", "content": content})
    async with asked(monkeypatch, approval(part, WriteIntent(Path("/w/a.txt")))) as here:
        here.drawn.press("end")
        await here.drawn.wait_for("+ line 0299")


async def test_the_first_yes_unfolds_a_long_command(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "\n".join(f"touch file{number}" for number in range(60))
    async with asked(monkeypatch, running(command)) as here:
        assert not here.drawn.shows("file59")
        here.drawn.type("y")
        await here.drawn.wait_for("touch file59")
        await here.drawn.wait_for("Yes counts now")
        assert not here.answer.done()
        here.drawn.type("y")
        assert await here.scope() == "once"


async def test_the_first_yes_unfolds_five_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, running("\n".join(f"touch file{number}" for number in range(5)))) as here:
        await here.drawn.wait_for("3 more lines")
        assert not here.drawn.shows("file4")
        here.drawn.type("1")
        await here.drawn.wait_for("touch file4")
        assert not here.answer.done()
        here.drawn.type("1")
        assert await here.scope() == "once"


async def test_small_window_says_when_yes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "\n".join(f"touch file{number}" for number in range(60))
    async with asked(monkeypatch, running(command), rows=5, columns=20) as here:
        here.drawn.type("y")
        await here.drawn.wait_for("Yes counts now")
        assert not here.answer.done()


@pytest.mark.parametrize(("rows", "columns"), [(24, 100), (24, 40)])
async def test_first_yes_unfolds_a_change(monkeypatch: pytest.MonkeyPatch, rows: int, columns: int) -> None:
    content = "".join(f"line {number:02}\n" for number in range(60))
    part = ToolPart(tool="write", input={"path": "a.txt", "content": content})
    question = approval(part, WriteIntent(Path.cwd() / "a.txt", inside=True))
    async with asked(monkeypatch, question, rows=rows, columns=columns) as here:
        assert "Write a.txt?" in here.drawn.visible
        assert not here.drawn.shows("line 03")
        here.drawn.type("1")
        await here.drawn.wait_for("Yes counts now")
        assert "line 00" in here.drawn.visible
        assert "line 05" in here.drawn.visible
        assert not here.answer.done()
        here.drawn.type("1")
        assert await here.scope() == "once"


async def test_title_names_only_harmless_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    part = ToolPart(tool="write", input={"path": "a", "content": "x"})
    for name in ("a? · sandboxed", "a\u202eb"):
        async with asked(monkeypatch, approval(part, WriteIntent(Path.cwd() / name, inside=True))) as here:
            assert "╭─ Write this file?" in here.drawn.visible


async def test_risk_fits_the_title_or_stands_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    question = replace(running(), walls="again", reason="sandbox denied: a connection to packages.example.com")
    async with asked(monkeypatch, question, columns=40) as here:
        shown = " ".join(here.drawn.visible.replace("│", " ").split())
        assert "The sandbox stopped this command. Run it outside?" in shown
        assert "all your rights" in shown
        assert "a connection to packages.example.com" in shown
    async with asked(monkeypatch, replace(running(), walls="inside", reason="")) as here:
        assert "╭─ Run this command? · sandboxed" in here.drawn.visible


async def test_a_long_command_that_was_scrolled_is_unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "\n".join(f"touch file{number}" for number in range(60))
    async with asked(monkeypatch, running(command)) as here:
        here.drawn.press("end")
        await here.drawn.wait_for("touch file59")
        here.drawn.type("y")
        assert await here.scope() == "once"


async def test_no_to_a_long_command_counts_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(monkeypatch, running("\n".join(["touch made"] * 60))) as here:
        here.drawn.type("n")
        assert await here.scope() == ""
