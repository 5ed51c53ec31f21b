"""/cost: tokens and cost of the session."""

from __future__ import annotations

import asyncio
from functools import reduce

from wolo.agent.budget import NOTHING, add
from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.messages.message import Usage, task_usage
from wolo.messages.terminal_text import quantity


async def _run(context: CommandContext, rest: str) -> Outcome:
    unloaded = await asyncio.to_thread(context.conversation.session.read_unloaded)
    messages = (*unloaded.messages, *context.conversation.history)
    used = [message.usage for message in messages if message.usage is not None]
    summaries = (*unloaded.summary_usage, *context.conversation.events.summary_usage)
    asides = (*unloaded.side_question_usage, *context.conversation.side_question_usage)
    tasks = [usage for message in messages for part in message.calls if (usage := task_usage(part)) is not None]
    if not (used or summaries or asides):
        return ShowText("No request has been sent in this session yet.")
    kinds = ((used, "answer"), (tasks, "subagent task"), (summaries, "compaction"), (asides, "side question"))
    counts = [quantity(len(usages), kind) for usages, kind in kinds if usages]
    total = reduce(add, (*used, *tasks, *summaries, *asides), NOTHING)
    return ShowText(f"{in_words(total)} · {' and '.join(counts)} in this session")


def in_words(usage: Usage, *, tells_unknown: bool = True) -> str:
    """`1,234 tokens in (900 cached) · 56 out · $0.0012`; estimates carry a ~. `tells_unknown`: mention an unknown price."""
    about = "~" if usage.estimated else ""
    into = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    used = f"{about}{into:,} tokens in{cached} · {about}{usage.output_tokens:,} out"
    if usage.cost is None:
        return f"{used} · price unknown" if tells_unknown else used
    return f"{used} · {f'${usage.cost.total:.4f}' if usage.cost.total else 'free'}"


COMMANDS = (Command("cost", "tokens and cost of this session", _run, group="Model", while_working=True),)
