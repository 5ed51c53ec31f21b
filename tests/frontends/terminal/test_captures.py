"""The captures of the docs are drawn by the terminal itself: `python -m tests.frontends.terminal.test_captures` renews them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import cast

import pytest
from prompt_toolkit.application.current import set_app

from tests.frontends.terminal.drawn_terminal import DrawnTerminal, drawn_terminal
from wolo.agent.events import ApprovalAsked, CallEnded, RequestStarted, SandboxState, TextStreamed
from wolo.commands.command import CommandContext, ShowText, dispatch
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.diagnostics.health_check import lines
from wolo.frontends.terminal.dialogs import first_run
from wolo.frontends.terminal.dialogs.viewer import Viewer
from wolo.frontends.terminal.display.transcript import draw_transcript
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.panels.approval_preview import proposal
from wolo.frontends.terminal.panels.choice_panels import ApprovalPanel
from wolo.guard.intents import Intent, RunIntent, WriteIntent
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ThinkingPart, ToolPart
from wolo.models.catalog_files import load
from wolo.models.http.server_lookup import ModelServer
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


REPORT = {
    "version": "1.0",
    "python": "3.12.4",
    "platform": "Linux 6.8 x86_64",
    "model": "anthropic/claude-sonnet-5",
    "answer": None,
    "keys": {"anthropic": "$ANTHROPIC_API_KEY", "groq": "keys.toml"},
    "sqlite": {
        "version": "3.46.0",
        "path": "~/.local/share/wolo/sessions.db",
        "integrity": "ok",
        "bytes": 4_200_000,
        "quarantine": [],
        "backups": [],
    },
    "checkpoints": {"bytes": 1_300_000, "workspaces": 2, "path": "~/.local/share/wolo/checkpoints", "damaged": []},
    "sandbox": {"backend": "namespaces", "whole": True, "covers": [], "not_covered": ["CPU time"], "tried": []},
    "environment": {"hidden": [{"reason": "looks like a secret", "name": "ANTHROPIC_API_KEY"}], "warnings": []},
    "hooks": [],
    "web_search": None,
    "language_servers": ["pyright"],
    "servers": ["Ollama at http://127.0.0.1:11434/v1: try -m ollama/qwen3:8b"],
    "mcp_servers": [{"name": "docs", "state": "failed", "source": "config.toml"}],
    "problems": ["~/.wolo/config.toml is no longer read."],
}


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


async def approval(
    drawn: DrawnTerminal,
    tool: str,
    arguments: Mapping[str, object],
    intent: Intent,
    *,
    reason: str = "This command needs an approval in mode ask.",
    before: str | None = None,
) -> str:
    region = drawn.screen.region
    assert isinstance(region, LiveRegion)
    verdict = {"decision": "ask", "reason": reason, "source": "mode ask"}
    part = ToolPart(
        tool=tool, input=dict(arguments), metadata={"verdict": verdict | ({} if "mode" in reason else {"source": ""})}
    )
    walls: SandboxState = "outside" if isinstance(intent, RunIntent) else ""
    asked = ApprovalAsked(id="1", part=part, intents=(intent,), reason=reason, rule="shell:git push", walls=walls)
    with set_app(region.app):
        edits = isinstance(intent, WriteIntent) and intent.inside
        panel = ApprovalPanel(asked, proposal(asked, before=before), lambda rule: "", may_accept_edits=edits)
    shown = asyncio.ensure_future(region.show_dialog(panel))
    await drawn.wait_until(lambda: "No, and" in drawn.visible)
    captured = rows_of(drawn)
    panel.dismiss()
    await asyncio.gather(shown, return_exceptions=True)
    return captured


async def short_approval(drawn: DrawnTerminal) -> str:
    return await approval(drawn, "shell", {"command": "git push"}, RunIntent("git push", Path("/w")))


async def long_approval(drawn: DrawnTerminal) -> str:
    return await approval(drawn, "shell", {"command": BUILD}, RunIntent(BUILD, Path("/w")))


async def explained_approval(drawn: DrawnTerminal) -> str:
    reason = "The command names src/settings/secrets.toml, which needs an approval by the rule ask read:**/secrets.toml."
    return await approval(drawn, "shell", {"command": BUILD}, RunIntent(BUILD, Path("/w")), reason=reason)


async def edit_approval(drawn: DrawnTerminal) -> str:
    before = "".join(f"value_{number} = {number}\n" for number in range(40))
    after = before.replace("value_7 = 7\n", "value_7 = 8\n").replace("value_20 = 20\n", "")
    intent = WriteIntent(Path("/w/src/values.py"), inside=True)
    return await approval(drawn, "write", {"path": "src/values.py", "content": after}, intent, before=before)


async def far_edit_approval(drawn: DrawnTerminal) -> str:
    content = "".join(f"value_{number} = {number}\n" for number in range(40))
    intent = WriteIntent(Path("/etc/values/a_folder/values.conf"), inside=False)
    reason = "Writing /etc/values/a_folder/values.conf needs an approval: it is outside the workspace."
    return await approval(drawn, "write", {"path": str(intent.path), "content": content}, intent, reason=reason)


async def viewer(drawn: DrawnTerminal) -> str:
    region = drawn.screen.region
    assert isinstance(region, LiveRegion)
    shell = ToolPart(id="c", tool="shell", input={"command": BUILD}, status="completed", output="step\n" * 29)
    parts = (ThinkingPart(text="First the build."), TextPart(text="I build it."), shell)
    history = [user("build it"), Message(role="assistant", parts=parts)]
    drawing, starts = draw_transcript(history, {"c": Output(BUILD, "step\n" * 29, 0, 1.5)}, drawn.screen.stdout)
    showing = asyncio.ensure_future(
        region.show_viewer(Viewer(drawing, drawn.terminal.state, at=0, stops=tuple(starts.values())).show)
    )
    await drawn.wait_for("q closes")
    drawn.type("/step 7\r")
    await drawn.wait_until(lambda: "step 7" in drawn.lines[0])
    captured = rows_of(drawn)
    drawn.type("q")
    await showing
    return captured


async def first_start(drawn: DrawnTerminal) -> str:
    ollama = ModelServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", ("ollama/qwen3:8b",))
    providers = tuple(load(name, environ={}) for name in ("anthropic", "openai", "openrouter"))
    drawn.screen.show_text(first_run.ABOUT_WOLO)
    offer = first_run.ModelOffer((ollama,), has_embedded=False, providers=providers)
    choosing = asyncio.ensure_future(first_run._choose_from_list(offer, drawn.terminal))
    await drawn.wait_for("Enter select")
    await drawn.wait_until(lambda: not any(line.endswith(" …") for line in drawn.lines))  # the hint has been loaded
    captured = rows_of(drawn)
    drawn.press("ctrl-c")
    await asyncio.gather(choosing, return_exceptions=True)
    return captured


async def help_page(drawn: DrawnTerminal) -> str:
    size = drawn.screen.stdout
    context = CommandContext(cast(Conversation, None), load_commands(), rows=size.rows, columns=size.columns)
    shown = await dispatch("/help", context)
    assert isinstance(shown, ShowText)
    drawn.screen.show_text(shown.text)
    drawn.screen.stdout.flush()
    await drawn.wait_for("explains a command")
    return every_row_of(drawn)


async def doctor(drawn: DrawnTerminal) -> str:
    drawn.screen.show_text("\n".join(lines(REPORT)))
    drawn.screen.stdout.flush()
    await drawn.wait_for("no longer read")
    return every_row_of(drawn)


def every_row_of(drawn: DrawnTerminal) -> str:
    """With what has scrolled away; without the composer."""
    rows = [row.rstrip() for row, _ in drawn._screen.gone] + [row.rstrip() for row in drawn._screen.display]
    composer = max(at for at, row in enumerate(rows) if row.startswith("›"))
    return "\n".join(rows[:composer]).strip("\n")


def rows_of(drawn: DrawnTerminal) -> str:
    return "\n".join(row.rstrip() for row in drawn._screen.display).strip("\n")


SCENES: dict[str, Callable[[DrawnTerminal], Awaitable[str]]] = {
    "Calls": calls,
    "A failed command": failure,
    "An answer": answer,
    "Approval of one line": short_approval,
    "Approval of thirty lines": long_approval,
    "Approval with a reason": explained_approval,
    "Approval of an edit": edit_approval,
    "Approval of a file elsewhere": far_edit_approval,
    "The viewer": viewer,
    "The first start": first_start,
    "Help": help_page,
    "Doctor": doctor,
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
    for name in (name for name in SCENES if name.startswith("Approval")):
        drawn = await capture(monkeypatch, name, 24, columns)
        most = 6 if name == "Approval of one line" else 9
        assert 5 < sum(row[:1] in set("╭│╰") for row in drawn.split("\n")) <= most, drawn
        assert ("no sandbox" in drawn) == ("lines" in name or "reason" in name or "one line" in name)


async def test_captures_show_wolo_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = await page(monkeypatch)
    assert drawn == PAGE.read_text(encoding="utf-8"), "renew them: python -m tests.frontends.terminal.test_captures"


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patch:
        PAGE.write_text(asyncio.run(page(patch)), encoding="utf-8")
