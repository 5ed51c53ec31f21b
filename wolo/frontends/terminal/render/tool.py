"""A tool call as lines: what it was asked, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, assert_never

from rich.text import Text

from wolo.agent.tool_execution import NO_REASON
from wolo.frontends.terminal.render.diff import diff_lines
from wolo.frontends.wrapping import wrapped
from wolo.messages.call_arguments import arguments_line
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean, clean_line, counted, spelled_line
from wolo.tools.tool_values import Answered, Delegated, Diff, Fetched, Listing, Output, TodoItem, TodoList, TodoStatus, View

MAX_DIFF_LINES = 40
MAX_OUTPUT_LINES = 8
MAX_TASK_LINES = 4
MAX_LINE_CHARS = 500
MAX_ARGUMENT_CHARS = 2000
"""Of a call on its line; the rest is counted and can be unfolded."""

_BAD_ENDS = {
    "denied_by_person": "you said no",
    "denied_by_rule": "not allowed",
    "interrupted": "interrupted",
    "never_started": "not started",
    "cut_off": "cut off",
}
_MARKS: Mapping[TodoStatus, tuple[str, str]] = {
    "pending": ("☐", ""),
    "in_progress": ("▶", "bold cyan"),
    "completed": ("☑", "dim"),
    "cancelled": ("☒", "dim strike"),
}


def headline(part: ToolPart, view: View | None = None, *, reason: str = "", whole: bool = False) -> Text:
    """`● write calculator.py +12`; the dot is red when it failed.

    `reason`: why the call was refused, when it was. `whole`: no argument is shortened.
    """
    good = part.status == "completed"
    stopped = part.outcome in _BAD_ENDS
    asked = arguments_line(part) if whole else arguments_line(part, most_chars=MAX_ARGUMENT_CHARS, most_of_change=0)
    text = Text.assemble(("● ", "green" if good else "yellow" if stopped else "red"), (spelled_line(part.tool), "bold"))
    text.append(f" {asked}" if asked else "")
    if part.outcome in _BAD_ENDS:
        why = "" if reason in ("", NO_REASON) else f": {' '.join(clean(reason).split())}"
        text.append(f" · {_BAD_ENDS[part.outcome]}{why}", "yellow")
    return text.append_text(_in_short(view))


class Room(NamedTuple):
    """For a change of a file."""

    rows: int
    columns: int


ROOM = Room(MAX_DIFF_LINES, 80)


class Details(NamedTuple):
    text: Text
    """Each line with its newline; empty when there is nothing to see."""
    is_folded: bool = False
    """There is more of it."""


def details(part: ToolPart, view: View | None, *, hint: str = "", whole: bool = False, room: Room = ROOM) -> Details:
    """What is worth seeing below the headline; `whole`: all of it. `hint`: how the rest can be seen."""
    if part.outcome in ("denied_by_person", "denied_by_rule"):
        return Details(Text())
    if isinstance(view, Delegated):
        return _task(part, view, hint, whole)
    if part.is_error and not isinstance(view, Output):
        return _tail(part.output, "red", hint, whole, 0 if whole else room.columns)
    match view:
        case None | Listing() | Fetched():
            return Details(Text())
        case Diff():
            lines, left = diff_lines(view, None if whole else room.rows, room.columns)
            return Details(Text("\n").join([*lines, Text()]).append_text(_rest(left, hint)), left > 0)
        case Output():
            return _tail(view.text, "dim", hint, whole)
        case Answered():
            return _head(clean(view.text).strip("\n"), MAX_OUTPUT_LINES, hint, whole)
        case TodoList():
            return Details(todo_list(view))
        case _:
            assert_never(view)


def whole(part: ToolPart, view: View | None) -> Text:
    """A call with all its arguments and all that came of it."""
    return headline(part, view, whole=not isinstance(view, Diff)).append("\n").append_text(details(part, view, whole=True).text)


def todo_list(view: TodoList) -> Text:
    return Text().join(map(_todo_item, view.items))


def _todo_item(item: TodoItem) -> Text:
    mark, style = _MARKS[item.status]
    return Text.assemble((f"  {mark} ", style), (f"{_short(clean_line(item.text))}\n", style))


def _in_short(view: View | None) -> Text:
    match view:
        case Diff():
            counts = [(f" +{view.added}", "green")] * bool(view.added) + [(f" −{view.removed}", "red")] * bool(view.removed)
            return Text.assemble(*counts)
        case Fetched():
            size = f"{view.size_bytes / 1000:,.1f} kB" if view.size_bytes >= 1000 else counted(view.size_bytes, "byte")
            return Text.assemble((f" · {view.status} · {size}", "red" if view.status >= 400 else "dim"))
        case Listing():
            incomplete = f" · incomplete: {view.incomplete}" if view.incomplete else ""
            return Text.assemble((f" · {view.total} found", "dim"), (incomplete, "yellow"))
        case TodoList():
            done = sum(item.status == "completed" for item in view.items)
            return Text.assemble((f" {done} of {len(view.items)} done" if view.items else " cleared", "dim"))
        case Output():
            ended = f" · exit {view.exit_code}" if view.exit_code is not None else ""
            return Text.assemble((ended, "red" if view.exit_code else "dim"), (f" · {view.seconds:.1f} s", "dim"))
        case Answered():
            return Text.assemble((f" · {view.seconds:.1f} s", "dim"))
        case Delegated():
            calls = counted(len(view.calls), "call")
            used = f" · {calls} · {view.tokens:,} tokens · {view.seconds:.1f} s"
            stopped = "" if view.ended in ("done", "interrupted") else f" · {view.ended}"
            return Text.assemble((stopped, "yellow"), (used, "dim"))
        case None:
            return Text()
        case _:
            assert_never(view)


def _task(part: ToolPart, view: Delegated, hint: str, whole: bool) -> Details:
    """What another agent said; unfolded, what it did comes first."""
    said = clean(part.output).strip("\n").split("\n")
    did = [f"● {clean_line(line)}" for line in view.calls]
    lines = [*did, *said] if whole else said[:MAX_TASK_LINES]
    text = Text.assemble(("".join(f"  {_short(line)}\n" for line in lines), "dim"))
    left = 0 if whole else len(said) - len(lines) + len(did)
    return Details(text.append_text(_rest(left, hint)), left > 0)


def _head(shown: str, limit: int, hint: str, whole: bool) -> Details:
    """The first lines: that is where an answer begins."""
    lines = shown.split("\n") if shown.strip() else []
    left = 0 if whole else max(len(lines) - limit, 0)
    text = Text.assemble(("".join(f"  {_short(line)}\n" for line in lines[: len(lines) - left]), "dim"))
    return Details(text.append_text(_rest(left, hint)), left > 0)


def _tail(output: str, style: str, hint: str, whole: bool, columns: int = 0) -> Details:
    """The last lines: that is where commands say how it went. `columns`: wrap them at spaces; 0: leave that to the terminal."""
    shown = clean(output).strip("\n")
    if not shown.strip():
        return Details(Text())
    lines = shown.split("\n")
    left = 0 if whole else max(len(lines) - MAX_OUTPUT_LINES, 0)
    text = Text.assemble((f"  … {counted(left, 'line')} above{hint}\n" if left else "", "dim"))
    seen = "".join(f"  {_short(line)}\n" for line in lines[left:])
    return Details(text.append(wrapped(seen, columns) if columns else seen, style), left > 0)


def _rest(number: int, hint: str = "") -> Text:
    if number <= 0:
        return Text()
    return Text.assemble((f"  … {counted(number, 'more line')}{hint}\n", "dim"))


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"
