"""/context, /compact, /uncompact: show and change what fills the context window."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.agent.compaction_run import NOTHING_TO_COMPACT, CompactionPreview, ContextUsage
from wolo.commands.command import Command, CommandContext, Outcome, RunEvents, ShowText
from wolo.errors import UsageError
from wolo.messages.terminal_text import quantity

PREVIEW = "--preview"


async def _show(context: CommandContext, rest: str) -> Outcome:
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


COMMANDS = (
    Command("context", "what fills the context window", _show, doing="counting tokens", group="Model", while_working=True),
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
)
