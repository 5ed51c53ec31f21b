"""A tool call as lines: what it was asked, what came of it."""

from __future__ import annotations

from typing import assert_never

from rich.text import Text

from wolo.frontends.terminal.clean import clean, clean_line
from wolo.messages.parts import ToolPart
from wolo.tools.tool import Diff, Listing, Output, View

MAX_DIFF_LINES = 40
MAX_OUTPUT_LINES = 8
MAX_ARGUMENT_CHARS = 160

_SUBJECTS = ("path", "command", "pattern", "url", "query", "prompt")


def headline(part: ToolPart) -> Text:
    """`● write calculator.py`, red when it failed."""
    style = "red" if part.is_error else "green" if part.status == "completed" else "yellow"
    return Text.assemble(("● ", style), (part.tool, "bold"), " ", clean_line(subject(part))[:MAX_ARGUMENT_CHARS])


def subject(part: ToolPart) -> str:
    for name in _SUBJECTS:
        if isinstance(value := part.input.get(name), str):
            return value
    return ", ".join(f"{name}={value}" for name, value in part.input.items())


def details(part: ToolPart, view: View | None) -> Text:
    """What is worth seeing below the headline; empty when there is nothing."""
    if part.is_error and not isinstance(view, Output):
        return _tail(part.output, MAX_OUTPUT_LINES, "red")
    match view:
        case None:
            return Text()
        case Diff():
            return diff(view)
        case Listing():
            return Text(f"  {view.total} found", style="dim")
        case Output():
            return _output(view)
        case _:
            assert_never(view)


def diff(view: Diff) -> Text:
    text = Text.assemble("  ", (f"+{view.added}", "green"), " ", (f"−{view.removed}", "red"))
    lines = view.text.splitlines()
    for line in lines[:MAX_DIFF_LINES]:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
        text.append(f"\n  {clean(line)}", style)
    if len(lines) > MAX_DIFF_LINES:
        text.append(f"\n  … {len(lines) - MAX_DIFF_LINES} more lines", "dim")
    return text


def _output(view: Output) -> Text:
    text = _tail(view.text, MAX_OUTPUT_LINES, "dim")
    if view.exit_code:
        text.append(f"\n  exit {view.exit_code}" if text else f"  exit {view.exit_code}", "red")
    return text


def _tail(output: str, limit: int, style: str) -> Text:
    lines = clean(output).rstrip().splitlines()
    text = Text()
    if len(lines) > limit:
        text.append(f"  … {len(lines) - limit} lines above\n", "dim")
    text.append("\n".join(f"  {line}" for line in lines[-limit:]), style)
    return text
