"""/cost: tokens and cost of the session, and the receipt of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import reduce

from wolo.agent.budget import NOTHING, add
from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Message, Usage, UsageCost, task_usage
from wolo.messages.parts import SEARCH
from wolo.messages.terminal_text import quantity
from wolo.models.tokens import estimate_part

TURN = "turn"


MOST_SHOWN = 3
"""Kinds and single calls in a receipt."""
LEAST_SHARE = 0.02
"""Of a request, from which a single call is worth a name."""
MOST_CHARS = 60


async def _run(context: CommandContext, rest: str) -> Outcome:
    if rest:
        if rest != TURN:
            raise UsageError(f"/cost does not know {rest!r}.", hint="/cost is for the session, /cost turn for the last turn.")
        return ShowText(_receipt(context.conversation))
    unloaded = await asyncio.to_thread(context.conversation.session.read_unloaded)
    messages = (*unloaded.messages, *context.conversation.history)
    used = [message.usage for message in messages if message.usage is not None]
    summaries = (*unloaded.summary_usage, *context.conversation.events.summary_usage)
    asides = (*unloaded.side_question_usage, *context.conversation.side_question_usage)
    tasks, searches = _call_usages(messages)
    if not (used or summaries or asides):
        return ShowText("No request has been sent in this session yet.")
    kinds = (
        (used, "answer"),
        (tasks, "subagent task"),
        (searches, "web search"),
        (summaries, "compaction"),
        (asides, "side question"),
    )
    counts = [quantity(len(usages), kind) for usages, kind in kinds if usages]
    total = reduce(add, (*used, *tasks, *searches, *summaries, *asides), NOTHING)
    return ShowText(f"{in_words(total)} · {' and '.join(counts)} in this session")


def _receipt(conversation: Conversation) -> str:
    """What the newest turn has used so far, and what fills its requests."""
    history = conversation.agent.services.history.messages or conversation.history
    begin = next((at for at in reversed(range(len(history))) if history[at].is_prompt), 0)
    messages = history[begin:]
    used = [message.usage for message in messages if message.usage is not None]
    tasks, searches = _call_usages(messages)
    summaries, asides = conversation.usage_beside_turn
    if not (used or tasks or summaries or asides):
        return "No request of this turn has been answered yet."
    total = reduce(add, (*used, *tasks, *searches, *summaries, *asides), NOTHING)
    costs = total.cost or UsageCost()
    about = "~" if total.estimated else ""
    rows = (
        ("fresh", total.input_tokens, costs.input),
        ("cached", total.cache_read_tokens, costs.cache_read),
        ("written", total.cache_write_tokens, costs.cache_write),
        ("output", total.output_tokens, costs.output),
    )
    lines = [
        f"{name:<8}{f'{about}{tokens:,}':>12}{f'${dollars:.4f}' if total.cost else '':>10}".rstrip()
        for name, tokens, dollars in rows
    ]
    if total.reasoning_tokens:
        lines[-1] += f", {total.reasoning_tokens:,} of it reasoning"
    beside = ((tasks, "subagent task"), (searches, "web search"), (summaries, "compaction"), (asides, "side question"))
    lines += [
        f"of it {quantity(len(usages), kind)}: {in_words(reduce(add, usages, NOTHING))}" for usages, kind in beside if usages
    ]
    price = "price unknown" if total.cost is None else f"${total.cost.total:.4f}"
    counts = [quantity(len(usages), kind) for usages, kind in ((used, "answer"), *beside) if usages]
    lines.append(f"{price} · {' and '.join(counts)} in this turn")
    filling = conversation.agent.context_usage(history)
    largest = sorted(filling.tokens.items(), key=lambda item: -item[1])[:MOST_SHOWN]
    lines += ["", f"A request is now ~{filling.total:,} tokens: {' · '.join(f'{kind} ~{tokens:,}' for kind, tokens in largest)}"]
    parts = [(estimate_part(part), part) for message in history for part in message.calls]
    named = [(tokens, part) for tokens, part in parts if tokens >= max(filling.total * LEAST_SHARE, 1)]
    named.sort(key=lambda item: -item[0])
    if named:
        calls = " · ".join(f"{call_line(part, most_chars=MOST_CHARS)} ~{tokens:,}" for tokens, part in named[:MOST_SHOWN])
        lines.append(f"Largest calls: {calls}")
    return "\n".join(lines)


def _call_usages(messages: Iterable[Message]) -> tuple[list[Usage], list[Usage]]:
    """Of tasks, and of searches by the provider."""
    parts = [(part, usage) for message in messages for part in message.calls if (usage := task_usage(part)) is not None]
    searches = [usage for part, usage in parts if SEARCH in part.metadata]
    return [usage for part, usage in parts if SEARCH not in part.metadata], searches


def in_words(usage: Usage, *, tells_unknown: bool = True) -> str:
    """`1,234 tokens in (900 cached) · 56 out · $0.0012`; estimates carry a ~. `tells_unknown`: mention an unknown price."""
    about = "~" if usage.estimated else ""
    into = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    used = f"{about}{into:,} tokens in{cached} · {about}{usage.output_tokens:,} out"
    if usage.cost is None:
        return f"{used} · price unknown" if tells_unknown else used
    return f"{used} · {f'${usage.cost.total:.4f}' if usage.cost.total else 'free'}"


COMMANDS = (
    Command(
        "cost",
        "tokens and cost of this session",
        _run,
        usage="[turn]",
        more="turn: fresh, cached, written and output tokens of the last turn with their prices, and what fills a request.",
        group="Model",
        arguments=lambda _: [(TURN, "the receipt of the last turn")],
        while_working=True,
    ),
)
