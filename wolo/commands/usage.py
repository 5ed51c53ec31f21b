"""/context, /compact, /uncompact, /cost: what fills the context window, and what it has cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import reduce

from wolo.agent.budget import NOTHING, add
from wolo.agent.compaction_run import NOTHING_TO_COMPACT, CompactionPreview, ContextUsage
from wolo.commands.command import Command, CommandContext, Outcome, RunEvents, ShowText
from wolo.conversation.conversation import Conversation
from wolo.conversation.phrasing import in_words
from wolo.errors import UsageError
from wolo.messages.call_arguments import call_line
from wolo.messages.message import Message, Usage, UsageCost, task_usage
from wolo.messages.parts import SEARCH
from wolo.messages.terminal_text import quantity
from wolo.models.tokens import estimate_part

PREVIEW = "--preview"


async def _context(context: CommandContext, rest: str) -> Outcome:
    usage = context.conversation.context_usage()
    lines = _table({"tokens": usage})
    unknown = "context window unknown (set it in providers.NAME.models of your config.toml)"
    room = f"{usage.total / usage.most:.0%} of ~{usage.most:,}" if usage.most else unknown
    lines += ["", f"{quantity(usage.num_messages, 'message')} sent; {room}."]
    if usage.shortened or usage.left_out:
        lines.append(
            f"Compacted: {quantity(usage.left_out, 'message')} omitted, {quantity(usage.shortened, 'output')} shortened; "
            "the session keeps them in full."
        )
    return ShowText("\n".join(lines))


def _table(columns: Mapping[str, ContextUsage]) -> list[str]:
    """A line per source; estimates carry a ~."""
    sources = list(dict.fromkeys(source for usage in columns.values() for source in usage.tokens))
    rows = [("", *columns)]
    rows += [(source, *(f"~{usage.tokens.get(source, 0):,}" for usage in columns.values())) for source in sources]
    rows.append(("total", *(f"~{usage.total:,}" for usage in columns.values())))
    first, other = max(len(row[0]) for row in rows), max(len(cell) for row in rows for cell in row[1:])
    return [(row[0].ljust(first) + "".join(cell.rjust(other + 2) for cell in row[1:])).rstrip() for row in rows]


async def _compact(context: CommandContext, rest: str) -> Outcome:
    """All words but options tell the summary what to keep."""
    options = [word for word in rest.split() if word.startswith("--")]
    if unknown := next((word for word in options if word != PREVIEW), ""):
        raise UsageError(f"/compact has no option {unknown}.", hint=f"/compact [FOCUS], or /compact {PREVIEW}.")
    if options:
        return ShowText(_preview(context.conversation.preview()))
    return RunEvents(context.conversation.compact(rest))


def _preview(preview: CompactionPreview) -> str:
    before, after = preview.before, preview.after
    if after.total >= before.total and not preview.num_requests:
        return NOTHING_TO_COMPACT
    requests = f"{preview.num_requests} requests" if preview.num_requests > 1 else "one request"
    summary = f"The model would write a summary of at most {preview.summary_tokens:,} more tokens, in {requests}."
    return "\n".join(
        [
            *_table({"now": before, "then": after}),
            "",
            f"Outputs shortened: {max(after.shortened - before.shortened, 0)}. "
            f"Messages omitted: {max(after.left_out - before.left_out, 0)}.",
            summary if preview.num_requests else "No summary is needed.",
            "Nothing was changed; /compact does it.",
        ]
    )


async def _uncompact(context: CommandContext, rest: str) -> Outcome:
    return RunEvents(context.conversation.uncompact())


TURN = "turn"
MOST_SHOWN = 3
"""Kinds and single calls in a receipt."""


LEAST_SHARE = 0.02
"""Of a request, from which a single call is worth a name."""


MOST_CHARS = 60


async def _cost(context: CommandContext, rest: str) -> Outcome:
    if rest:
        if rest != TURN:
            raise UsageError(f"/cost does not know {rest!r}.", hint="/cost is for the session, /cost turn for the last turn.")
        return ShowText(_receipt(context.conversation))
    unloaded = await asyncio.to_thread(context.conversation.session.stored.read_unloaded)
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


COMMANDS = (
    Command("context", "what fills the context window", _context, doing="counting tokens", group="Model", while_working=True),
    Command(
        "compact",
        "summarize the conversation to free context",
        _compact,
        doing="counting tokens",
        usage="[FOCUS] [--preview]",
        more="FOCUS names what the summary must keep. --preview shows what would happen.",
        group="Model",
        arguments=lambda _: [(PREVIEW, "only show what it would do")],
    ),
    Command("uncompact", "restore compacted messages that fit", _uncompact, doing="restoring messages", group="Model"),
    Command(
        "cost",
        "tokens and cost of this session",
        _cost,
        usage="[turn]",
        more="turn: fresh, cached, written and output tokens of the last turn with their prices, and what fills a request.",
        group="Model",
        arguments=lambda _: [(TURN, "the receipt of the last turn")],
        while_working=True,
    ),
)
