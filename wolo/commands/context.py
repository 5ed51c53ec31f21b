"""/context: what fills the model's window, by source."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.agent.compaction.context_usage import Filling
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.messages.terminal_text import counted


async def run(desk: CommandContext, rest: str) -> Outcome:
    filling = desk.conversation.filling()
    lines = table({"tokens": filling})
    room = f"{filling.total / filling.most:.0%} of ~{filling.most:,}" if filling.most else "nobody knows the model's window"
    lines += ["", f"{counted(filling.messages, 'message')} {'is' if filling.messages == 1 else 'are'} sent ({room})."]
    if filling.shortened or filling.left_out:
        lines.append(
            f"{filling.left_out:,} are left out and the outputs of {filling.shortened:,} shortened; the session keeps all."
        )
    return ShowText("\n".join(lines))


def table(columns: Mapping[str, Filling]) -> list[str]:
    """One line a source; estimates, so with a ~."""
    sources = list(dict.fromkeys(source for filling in columns.values() for source in filling.tokens))
    rows = [("", *columns)]
    rows += [(source, *(f"~{filling.tokens.get(source, 0):,}" for filling in columns.values())) for source in sources]
    rows.append(("all", *(f"~{filling.total:,}" for filling in columns.values())))
    first, other = max(len(row[0]) for row in rows), max(len(cell) for row in rows for cell in row[1:])
    return [(row[0].ljust(first) + "".join(cell.rjust(other + 2) for cell in row[1:])).rstrip() for row in rows]
