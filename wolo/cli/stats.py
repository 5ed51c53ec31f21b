"""`wolo stats`: shows usage by model, tool, project and day."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, cut, in_short, money, pad, print_json
from wolo.cli.sessions.list import from_home
from wolo.cli.sessions.lookup import open_store, reading_progress
from wolo.errors import UsageError
from wolo.frontends.streams import print_line
from wolo.frontends.wrapping import cells
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from wolo.sessions.search.usage_stats import Stats, ToolUsage, UsageTotals

KINDS = ("model", "tool", "project", "day")
SHOWN = 8
"""Rows of each kind where all kinds are shown."""
DAYS_SHOWN = 14
BAR_COLUMNS = 16
NAME_COLUMNS = 34
WIDEST = 100


def stats(
    days: Annotated[int | None, typer.Option("--days", metavar="N", help="Of the last N days; of all time if not given.")] = None,
    by: Annotated[str, typer.Option("--by", metavar="KIND", help="Only by model, tool, project or day.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show turns, tokens, cache use, cost and tool calls of all sessions."""
    from wolo.sessions.search import index_update
    from wolo.sessions.search.usage_stats import count

    if by and by not in KINDS:
        raise UsageError(f"--by {by} is not known.", hint=f"Use {', '.join(KINDS)}.")
    if days is not None and not 0 < days < 36_500:
        raise UsageError(f"--days {days} makes no sense.", hint="Give a number of days above 0.")
    since = 0.0
    if days:
        from datetime import datetime, time, timedelta

        first = datetime.now().date() - timedelta(days=days - 1)  # today is one of the days
        since = datetime.combine(first, time()).timestamp()
    with open_store(only_to_read=True) as store:
        sessions = store.list(with_tasks=True)
        totals = index_update.ask(store, lambda index: count(index, sessions, since), reading_progress())
    if as_json:
        from wolo.sessions.listing import iso

        kinds = {
            "model": [_row(each) for each in totals.models],
            "tool": [{"name": each.name, "calls": each.calls, "failed": each.failed} for each in totals.tools],
            "project": [_row(each) for each in totals.projects],
            "day": [_row(each) for each in totals.days],
        }
        total = _row(totals.total)
        del total["name"]
        head = {"since": iso(since) if since else None, "sessions": totals.sessions}
        print_json(head | total | {f"{kind}s": rows for kind, rows in kinds.items() if by in ("", kind)})
    else:
        print_line("\n".join(_text(totals, days, by)))


def _row(totals: UsageTotals) -> dict[str, Any]:
    names = ("input", "cache_read", "cache_write", "output", "reasoning")
    return {
        "name": totals.name,
        "turns": totals.turns,
        "answers": totals.answers,
        "tokens": {f"{name}_tokens": getattr(totals, name) for name in names},
        "cache_share": totals.cache_share,
        "cost_usd": totals.cost,
        "known_cost_usd": totals.known_cost,
        "unpriced_answers": totals.unpriced,
    }


def _text(stats: Stats, days: int | None, by: str) -> list[str]:
    if not stats.total.turns and not stats.total.answers:
        return ["Nothing was asked yet." if days is None else "Nothing was asked in that time."]
    most = None if by else SHOWN
    sections: dict[str, Callable[[], list[str]]] = {
        "model": lambda: _used("Models", stats.models, most),
        "tool": lambda: _tools(stats.tools, most),
        "project": lambda: _used("Projects", stats.projects, most),
        "day": lambda: _used("Days", stats.days if by else stats.days[-DAYS_SHOWN:], None),
    }
    total = stats.total
    share = total.cache_share
    cached = f"{share:.0%} of the prompt tokens came from a cache" if share is not None else "no prompt tokens"
    reasoning = f", {in_short(total.reasoning)} of them reasoning" if total.reasoning else ""
    lines = [
        " · ".join(
            (
                quantity(stats.sessions, "session"),
                quantity(total.turns, "turn"),
                quantity(total.answers, "answer"),
                _tokens_and_cost(total),
            )
        ),
        f"{in_short(total.input)} fresh · {in_short(total.cache_read)} cache read · {in_short(total.cache_write)} cache write · "
        f"{in_short(total.output)} out{reasoning}",
        cached,
    ]
    for kind, section in sections.items():
        drawn = section() if by in ("", kind) else []
        lines += ["", *drawn] if len(drawn) > 1 else []
    return lines


def _tokens_and_cost(totals: UsageTotals) -> str:
    """Names answers of unknown price; they do not count as free."""
    if not totals.unpriced:
        return money(totals.known_cost)
    if totals.unpriced == totals.answers:
        return "price unknown"
    return f"{money(totals.known_cost)} + {totals.unpriced:,} of unknown price"


def _used(heading: str, rows: Sequence[UsageTotals], most: int | None) -> list[str]:
    shown = rows[:most]
    table = [(heading, "TURNS" if heading != "Models" else "ANSWERS", "TOKENS", "CACHED", "COST")]
    for each in shown:
        share = each.cache_share
        count = each.answers if heading == "Models" else each.turns
        cached = "-" if share is None else f"{share:.0%}"
        table.append(
            (
                from_home(each.name),
                f"{count:,}",
                in_short(each.tokens),
                cached,
                f"{money(each.known_cost)}+?" if each.unpriced and each.known_cost else money(each.cost),
            )
        )
    return _draw(table, [each.tokens for each in shown]) + _more(len(rows) - len(shown))


def _tools(rows: Sequence[ToolUsage], most: int | None) -> list[str]:
    shown = rows[:most]
    table = [("Tools", "CALLS", "FAILED")]
    table += [(each.name, f"{each.calls:,}", f"{each.failed:,}" if each.failed else "-") for each in shown]
    return _draw(table, [each.calls for each in shown]) + _more(len(rows) - len(shown))


def _draw(table: Sequence[tuple[str, ...]], sizes: Sequence[int]) -> list[str]:
    """Draws a table: names left, numbers right, then a bar."""
    columns = min(shutil.get_terminal_size().columns, WIDEST) - 1 if sys.stdout.isatty() else WIDEST
    widths = [max(cells(row[at]) for row in table) for at in range(len(table[0]))]
    free = columns - sum(width + 2 for width in widths[1:]) - BAR_COLUMNS - 2
    widths[0] = min(widths[0], max(min(free, NAME_COLUMNS), 10))
    largest = max([*sizes, 1])
    lines = []
    for row, size in zip(table, (0, *sizes), strict=True):
        name = pad(cut(row[0], widths[0], keep_end="/" in row[0]), widths[0])
        numbers = [pad(text, width, right=True) for text, width in zip(row[1:], widths[1:], strict=True)]
        eighths = round(size / largest * BAR_COLUMNS * 8)
        whole, part = divmod(eighths or bool(size), 8)
        lines.append("  ".join([name, *numbers, "█" * whole + " ▏▎▍▌▋▊▉"[part].strip()]).rstrip())
    return lines


def _more(num_more: int) -> list[str]:
    return [f"… and {num_more:,} more"] if num_more > 0 else []
