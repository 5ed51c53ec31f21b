"""Draws a tool call in two rows: a state mark with the call, and the end of its result; failures and changes take more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, assert_never

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from wolo.agent.tool_execution import NO_REASON, NOT_ANSWERED, READ_ONLY
from wolo.frontends.terminal.render.file_diffs import diff_lines
from wolo.frontends.wrapping import wrap
from wolo.messages.call_arguments import arguments_line, shorten
from wolo.messages.parts import ToolPart
from wolo.messages.terminal_text import clean, clean_line, escaped_line, in_short, quantity
from wolo.tools.tool_values import Answered, Delegated, Diff, Fetched, Listing, Output, TodoItem, TodoList, TodoStatus, View

MAX_DIFF_LINES = 40
MAX_OUTPUT_LINES = 8
MAX_TASK_LINES = 4
MAX_LINE_CHARS = 500
MAX_ARGUMENT_CHARS = 2000
"""Characters of a call on its line; the rest is counted, and shown when the call is expanded."""
INDENT, RAIL = "  ", "  │ "
TODO_INDENT = "  "
"""Indent of the further rows of an item, below its text."""
RAIL_FROM_COLUMNS = 40
LINE_BREAK = escaped_line("\n")
MOST_LINES = 3
"""Lines of a command that a folded call shows side by side; of a longer one it shows the first."""
LEAST_CELLS = 12
"""Of the arguments of a folded call, and of the line of a result beside the key hint."""

DONE, FAILED, STOPPED = ("● ", "added"), ("✗ ", "error"), ("⊘ ", "warning")
IN_WORDS = {"●": "done:", "✗": "failed:", "⊘": "stopped:", "☐": "to do:", "▶": "doing:", "☑": "done:", "☒": "cancelled:"}
"""Marks for a screen reader."""
_STOPPED = {
    "denied_by_person": "you said no",
    "denied_by_rule": "denied",
    "interrupted": "interrupted",
    "never_started": "not started",
    "cut_off": "cut off",
}
_JOB = re.compile(r"^\[job (\d+)", re.MULTILINE)
_TODO_MARKS: Mapping[TodoStatus, tuple[str, str]] = {
    "pending": ("☐", ""),
    "in_progress": ("▶", "bold accent"),
    "completed": ("☑", "dim"),
    "cancelled": ("☒", "dim"),
}


class ResultLayout(NamedTuple):
    """Layout of results in this terminal."""

    columns: int = 80
    diff_rows: int = MAX_DIFF_LINES
    has_rail: bool = False
    hint: str = ""
    """Key hint beside a folded result; empty where no keys are read."""
    is_brief: bool = False
    """The results of successful calls take one row."""
    has_signs: bool = True
    """False for a screen reader: marks are words."""
    is_whole: bool = False
    """Nothing is folded, and there is no rail, so that a copy has the result alone."""

    @property
    def indent(self) -> str:
        return RAIL if self.has_rail and not self.is_whole else INDENT


class DrawnResult(NamedTuple):
    text: Text
    """Each line with its newline; empty when there is nothing to see."""
    is_folded: bool = False


def headline(
    part: ToolPart,
    view: View | None = None,
    *,
    reason: str = "",
    is_whole: bool = False,
    room: int | None = None,
    has_signs: bool = True,
) -> Text:
    """`● write calculator.py +12`.

    `reason`: why the call was denied. `is_whole`: no argument is shortened. `room`: cells for the line, whose arguments are cut.
    """
    text = Text()
    if part.outcome in _STOPPED:
        why = "" if reason in ("", NO_REASON, NOT_ANSWERED) else f": {' '.join(clean(reason).split())}"
        by_mode = part.output.startswith(READ_ONLY.partition("{reason}")[0])
        stopped = "not answered" if part.output.startswith(NOT_ANSWERED) else "plan mode" if by_mode else _STOPPED[part.outcome]
        text.append(f" · {stopped}{why}", "warning")
    end = text.append_text(_summary(view))
    name, arguments = escaped_line(part.tool), arguments_line(part, most_of_change=None if is_whole else 0)
    if isinstance(view, Delegated):
        name, arguments = f"{escaped_line(view.agent)}:", escaped_line(str(part.input.get("prompt", "")).strip())
    elif part.input.get("background") is True and (job := _JOB.search(part.output)):
        name, arguments = f"job {job[1]} started:", escaped_line(str(part.input.get("command", "")).strip())
    if not has_signs:
        end = Text(without_dots(end.plain))
    text = Text.assemble(_mark(part) if has_signs else f"{IN_WORDS[_mark(part)[0].strip()]} ", (name, "bold"))
    if room is not None:
        arguments = _fold(arguments, max(room - text.cell_len - end.cell_len - 1, LEAST_CELLS))
    elif not is_whole:
        arguments = shorten(arguments, MAX_ARGUMENT_CHARS)
    return text.append(f" {arguments}" if arguments else "").append_text(end)


def without_dots(text: str) -> str:
    """Facts as a screen reader reads them well: with commas."""
    return text.replace(" · ", ", ").replace("−", "-")


def _fold(arguments: str, room: int) -> str:
    """`python3 build.py … 29 more lines`: the first line, if there are many or they do not fit."""
    first, _, rest = arguments.rstrip(LINE_BREAK).partition(LINE_BREAK)
    more = rest.count(LINE_BREAK) + bool(rest)
    if more < MOST_LINES and cell_len(arguments) <= room:
        return arguments
    end = f"… {quantity(more, 'more line')}" if more else "…"
    if cell_len(first) + cell_len(end) < room:
        return f"{first.rstrip()} {end}"
    return f"{set_cell_size(first, max(room - cell_len(end), LEAST_CELLS)).rstrip()}{end}"


def _mark(part: ToolPart) -> tuple[str, str]:
    if part.outcome in _STOPPED:
        return STOPPED
    return DONE if part.status == "completed" else FAILED


def result(part: ToolPart, view: View | None, layout: ResultLayout | None = None) -> DrawnResult:
    layout = layout or ResultLayout()
    if part.outcome in ("denied_by_person", "denied_by_rule"):
        return DrawnResult(Text())
    if isinstance(view, Delegated):
        # The answer of a subagent; expanded, its calls come first
        answer = clean(part.output).strip("\n").split("\n")
        calls = [f"● {clean_line(line)}" for line in view.calls]
        if layout.is_whole:
            return DrawnResult(_on_rail(_lines([*calls, *answer], "dim", layout)[0], layout))
        if layout.is_brief and not part.is_error:
            return _one_row(answer[0], len(answer) - 1 + len(calls), layout)
        shown, _ = _lines(answer[:MAX_TASK_LINES], "dim", layout)
        left = len(answer) - len(shown) + len(calls)
        return DrawnResult(_on_rail([*shown, *_more(left, layout)], layout), left > 0)
    if part.is_error and not isinstance(view, Output):
        return _end_of(part.output, "error", layout, wraps=True)
    match view:
        case None | Listing() | Fetched():
            return DrawnResult(Text())
        case Diff():
            rows = None if layout.is_whole else layout.diff_rows
            lines, left = diff_lines(view, rows, layout.columns - len(layout.indent))
            return DrawnResult(_on_rail([*lines, *_more(left, layout)], layout), left > 0)
        case Output():
            is_brief = layout.is_brief and not part.is_error and not view.exit_code
            return _end_of(view.text, "dim", layout._replace(is_brief=is_brief))
        case Answered():
            text = clean(view.text).strip("\n")
            written = text.split("\n") if text.strip() else []
            if layout.is_brief and written:
                return _one_row(written[0], len(written) - 1, layout)
            left = 0 if layout.is_whole else max(len(written) - MAX_OUTPUT_LINES, 0)
            seen, is_cut = _lines(written[: len(written) - left], "dim", layout)
            return DrawnResult(_on_rail([*seen, *_more(left, layout, is_cut=is_cut)], layout), left > 0 or is_cut)
        case TodoList() if layout.is_brief:
            return DrawnResult(Text(), bool(view.items))
        case TodoList():
            return DrawnResult(_on_rail((row for item in view.items for row in _todo_rows(item, layout)), layout))
        case _:
            assert_never(view)


def whole_call(part: ToolPart, view: View | None) -> Text:
    """A call with all its arguments and its whole result; what the model got, where there is no view of it."""
    line = Text("\n    ").join(headline(part, view, is_whole=not isinstance(view, Diff)).split(LINE_BREAK)).append("\n")
    layout = ResultLayout(is_whole=True)
    below = result(part, view, layout).text or _end_of(part.output, "dim", layout).text
    line.append_text(below).no_wrap = True
    return line


def _summary(view: View | None) -> Text:
    match view:
        case Diff():
            counts = [(f" +{view.added}", "added")] * bool(view.added) + [(f" −{view.removed}", "removed")] * bool(view.removed)
            return Text.assemble(*counts)
        case Fetched():
            size = f"{view.size_bytes / 1000:,.1f} kB" if view.size_bytes >= 1000 else quantity(view.size_bytes, "byte")
            return Text.assemble((f" · {view.status} · {size}", "error" if view.status >= 400 else "dim"))
        case Listing():
            incomplete = f" · incomplete: {view.incomplete}" if view.incomplete else ""
            return Text.assemble((f" · {view.total} found", "dim"), (incomplete, "warning"))
        case TodoList():
            done = sum(item.status == "completed" for item in view.items)
            return Text.assemble((f" {done} of {len(view.items)} done" if view.items else " cleared", "dim"))
        case Output():
            ended = f" · exit {view.exit_code}" if view.exit_code is not None else ""
            return Text.assemble((ended, "error" if view.exit_code else "dim"), (f" · {view.seconds:.1f} s", "dim"))
        case Answered():
            return Text.assemble((f" · {view.seconds:.1f} s", "dim"))
        case Delegated():
            calls = quantity(len(view.calls), "call")
            used = f" · {calls} · {in_short(view.tokens)} tokens · {view.seconds:.1f} s"
            stopped = "" if view.ended in ("done", "interrupted") else f" · {view.ended}"
            return Text.assemble((stopped, "warning"), (used, "dim"))
        case None:
            return Text()
        case _:
            assert_never(view)


def _end_of(output: str, style: str, layout: ResultLayout, *, wraps: bool = False) -> DrawnResult:
    """The last lines, where commands report their result. `wraps`: at spaces; otherwise the terminal wraps them."""
    shown = clean(output).strip("\n")
    if not shown.strip():
        return DrawnResult(Text())
    lines = shown.split("\n")
    if layout.is_brief and not wraps and not layout.is_whole:
        return _one_row(lines[-1], len(lines) - 1, layout)
    left = 0 if layout.is_whole else max(len(lines) - MAX_OUTPUT_LINES, 0)
    seen = lines[left:]
    if wraps and not layout.is_whole:
        seen = wrap("\n".join(map(_shorten, seen)), max(layout.columns - len(layout.indent), 1)).split("\n")
    drawn, is_cut = _lines(seen, style, layout)
    return DrawnResult(_on_rail([*_more(left, layout, is_cut=is_cut), *drawn], layout), left > 0 or is_cut)


def _one_row(line: str, num_more: int, layout: ResultLayout) -> DrawnResult:
    """One line of a result, and how many others there are."""
    room = layout.columns - len(layout.indent)
    more = f"… {quantity(num_more, 'more line')}" if num_more else ""
    if cell_len(line) + bool(more) + cell_len(more) + cell_len(layout.hint) > room or (num_more and layout.hint):
        more = f"{more or '…'}{layout.hint}"
        if room - cell_len(more) < LEAST_CELLS:
            more = more.removesuffix(layout.hint)
    if room - cell_len(more) < LEAST_CELLS and num_more:
        more = f"… {num_more:,} more"
    is_cut = cell_len(line) + 2 * bool(more) + cell_len(more) > room
    if is_cut:
        line = set_cell_size(line, max(room - cell_len(more) - 2, 1)).rstrip()
    text = Text.assemble((line, "dim"), ("  " if more and line else "", ""), (more, "dim"))
    return DrawnResult(_on_rail([text], layout), is_cut or num_more > 0)


def _todo_rows(item: TodoItem, layout: ResultLayout) -> list[Text]:
    mark, style = _TODO_MARKS[item.status]
    mark = mark if layout.has_signs else IN_WORDS[mark]
    words = _shorten(clean_line(item.text))
    if not layout.is_whole:
        words = wrap(words, max(layout.columns - len(layout.indent) - len(TODO_INDENT), 1))
    first, *others = words.split("\n")
    return [Text(f"{mark} {first}", style), *(Text(f"{TODO_INDENT}{row}", style) for row in others)]


def _lines(lines: Iterable[str], style: str, layout: ResultLayout) -> tuple[list[Text], bool]:
    """The lines, and whether one was cut: a line that would leave the rail is, where it can be expanded."""
    room = layout.columns - len(layout.indent) if layout.has_rail and layout.hint and not layout.is_whole else MAX_LINE_CHARS
    given = list(lines)
    drawn = [line if cell_len(line) <= room else f"{set_cell_size(line, room - 1).rstrip()}…" for line in given]
    return [Text(line, style) for line in drawn], drawn != given


def _more(number: int, layout: ResultLayout, *, is_cut: bool = False) -> Sequence[Text]:
    if number > 0:
        return [Text(f"… {quantity(number, 'more line')}{layout.hint}", "dim")]
    return [Text(f"… long lines are cut{layout.hint}", "dim")] if is_cut else []


def _on_rail(lines: Iterable[Text], layout: ResultLayout) -> Text:
    text = Text()
    for line in lines:
        text.append(layout.indent, "dim").append_text(line).append("\n")
    return text


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"
