"""/cost: the tokens and the money of this session so far."""

from __future__ import annotations

import asyncio
from functools import reduce

from wolo.agent.budget import NOTHING, add
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.messages.message import Usage, used_by_task
from wolo.messages.terminal_text import counted


async def run(desk: CommandContext, rest: str) -> Outcome:
    unread = await asyncio.to_thread(desk.conversation.unread)
    said = (*unread.messages, *desk.conversation.history)
    used = [message.usage for message in said if message.usage is not None]
    summaries = (*unread.summed_up, *desk.conversation.summed_up)
    asides = (*unread.asked_aside, *desk.conversation.asked_aside)
    tasks = [usage for message in said for part in message.calls if (usage := used_by_task(part)) is not None]
    if not (used or summaries or asides):
        return ShowText("Nothing was asked in this session yet.")
    kinds = [
        *((len(used), "answer", ""), (len(tasks), "task", " of other agents")),
        *((len(summaries), "compaction", ""), (len(asides), "question", " aside")),
    ]
    told = [f"{counted(count, what)}{more}" for count, what, more in kinds if count]
    total = reduce(add, (*used, *tasks, *summaries, *asides), NOTHING)
    return ShowText(f"{in_words(total)} · {' and '.join(told)} in this session")


def in_words(usage: Usage, *, tells_unknown: bool = True) -> str:
    """`1,234 in (900 cached) · 56 out · $0.0012`; a guess carries a ~. `tells_unknown`: that the price is not known."""
    about = "~" if usage.estimated else ""
    into = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    used = f"{about}{into:,} in{cached} · {about}{usage.output_tokens:,} out"
    if usage.cost is None:
        return f"{used} · price unknown" if tells_unknown else used
    return f"{used} · {f'${usage.cost.total:.4f}' if usage.cost.total else 'free'}"
