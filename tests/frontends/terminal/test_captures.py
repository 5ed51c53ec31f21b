"""The captures of the docs are drawn by the terminal itself: `python -m tests.frontends.terminal.test_captures` renews them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from prompt_toolkit.application.current import set_app

from tests.frontends.terminal.drawn_terminal import DrawnTerminal, drawn_terminal
from wolo.agent.events import ApprovalAsked, CallEnded, RequestStarted, TextStreamed
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.panels.approval_preview import proposal
from wolo.frontends.terminal.panels.choice_panels import ApprovalPanel
from wolo.guard.intents import RunIntent
from wolo.messages.parts import ToolPart
from wolo.tools.tool_values import Delegated, Output, TodoItem, TodoList, View

PAGE = Path(__file__).resolve().parents[3] / "docs/design/captures.md"
SIZES = ((24, 100), (24, 80), (24, 40), (5, 20))
BUILD = "python3 build.py --all\n" + "".join(f"echo step {number}\n" for number in range(29))
ANSWER = """A paragraph goes to the scrollback as one line, so that a copy of it has no breaks where the window ends.

1. Build:
   ```sh
   make -j2
   ```
- an item is wrapped below its mark, because it is read more often than copied

"""


async def show(drawn: DrawnTerminal, *calls: tuple[ToolPart, View]) -> None:
    for part, view in calls:
        drawn.screen.show(CallEnded(message_id="m", part=part, view=view))
    drawn.screen.stdout.flush()


async def calls(drawn: DrawnTerminal) -> str:
    items = (TodoItem("write it", "completed"), TodoItem("try it", "completed"), TodoItem("ship it", "in_progress"))
    task = {"agent": "explore", "prompt": "find tests"}
    await show(
        drawn,
        (ToolPart(tool="shell", input={"command": BUILD}, status="completed"), Output(BUILD, "step\n" * 29, 0, 1.5)),
        (
            ToolPart(tool="task", input=task, status="completed", output="There are nine.\nAll in tests/."),
            Delegated("explore", "s", "done", ("read a", "read b"), 1, 10_000, None, 2.0),
        ),
        (ToolPart(tool="todo", input={}, status="completed"), TodoList(items)),
    )
    await drawn.wait_for("todo 2 of 3")
    return rows_of(drawn)


async def failure(drawn: DrawnTerminal) -> str:
    output = "".join(f"test_{number} failed\n" for number in range(12))
    part = ToolPart(tool="shell", input={"command": "make test"}, status="completed")
    await show(drawn, (part, Output("make test", output, 2, 3.0)))
    await drawn.wait_for("test_11")
    return rows_of(drawn)


async def answer(drawn: DrawnTerminal) -> str:
    drawn.screen.show(RequestStarted(model="m", attempt=1, context_tokens=1))
    drawn.screen.show(TextStreamed(text=ANSWER))
    drawn.screen.status.stop()
    drawn.screen.show_text("1,234 tokens in · 56 out · $0.0123 · 4.0 s", "dim")
    await drawn.wait_for("4.0 s")
    return rows_of(drawn)


async def approval(drawn: DrawnTerminal, command: str) -> str:
    region = drawn.screen.region
    assert isinstance(region, LiveRegion)
    reason = "Running this needs an approval in ask."
    verdict = {"decision": "ask", "reason": reason, "source": "ask"}
    part = ToolPart(tool="shell", input={"command": command}, metadata={"verdict": verdict})
    intents = (RunIntent(command, Path("/w")),)
    asked = ApprovalAsked(id="1", part=part, intents=intents, reason=reason, rule="shell:git push", walls="outside")
    with set_app(region.app):
        panel = ApprovalPanel(asked, proposal(asked), lambda rule: "", may_accept_edits=False)
    shown = asyncio.ensure_future(region.show_dialog(panel))
    await drawn.wait_until(lambda: "› 3" in drawn.visible or "› n" in drawn.visible or drawn.shows("No, and"))
    captured = rows_of(drawn)
    panel.dismiss()
    await asyncio.gather(shown, return_exceptions=True)
    return captured


async def short_approval(drawn: DrawnTerminal) -> str:
    return await approval(drawn, "git push")


async def long_approval(drawn: DrawnTerminal) -> str:
    return await approval(drawn, BUILD)


def rows_of(drawn: DrawnTerminal) -> str:
    return "\n".join(row.rstrip() for row in drawn._screen.display).strip("\n")


SCENES: dict[str, Callable[[DrawnTerminal], Awaitable[str]]] = {
    "Calls": calls,
    "A failed command": failure,
    "An answer": answer,
    "Approval of one line": short_approval,
    "Approval of thirty lines": long_approval,
}


async def capture(monkeypatch: pytest.MonkeyPatch, name: str, rows: int, columns: int) -> str:
    async with drawn_terminal(monkeypatch, rows=rows, columns=columns) as drawn:
        drawn.screen.folded.hint = " · Ctrl-O expands"
        shown = await SCENES[name](drawn)
    return f"### {name}, {columns} × {rows}\n\n```text\n{shown}\n```\n"


async def page(monkeypatch: pytest.MonkeyPatch) -> str:
    head = "# Captures of the terminal\n\nDrawn by a test, columns × rows; see [terminal design](terminal.md).\n"
    parts = [await capture(monkeypatch, name, rows, columns) for name in SCENES for rows, columns in SIZES]
    return "\n".join([head, *parts])


@pytest.mark.parametrize("columns", [40, 80, 100])
async def test_approval_is_at_most_nine_rows(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    for name, most in (("Approval of one line", 6), ("Approval of thirty lines", 9)):
        drawn = await capture(monkeypatch, name, 24, columns)
        assert 5 < sum(row[:1] in set("╭│╰") for row in drawn.split("\n")) <= most
        assert "no sandbox" in drawn
    assert "29 more lines" in drawn


async def test_captures_show_wolo_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = await page(monkeypatch)
    assert drawn == PAGE.read_text(encoding="utf-8"), "renew them: python -m tests.frontends.terminal.test_captures"


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        PAGE.write_text(asyncio.run(page(patch)), encoding="utf-8")
