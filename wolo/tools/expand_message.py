"""The `expand_message` tool: returns messages and results that were omitted from the conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ThinkingPart, ToolKind, ToolPart
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult

MOST_CHARS = 12_000
"""Maximum length of one result."""
MOST_PASSAGES = 20
AROUND = 2
"""Lines shown before and after a match."""
LONGEST_LINE_CHARS = 400
"""Maximum length of a line in a passage or list; `id` and `offset` show the rest."""
LISTED = 60

Unit = Literal["lines", "characters"]


class ExpandMessageArgs(Struct, frozen=True):
    id: Annotated[str, Meta(description="id of a message or tool result, given where it was omitted")] = ""
    query: Annotated[str, Meta(description="words to search for; shows the passages with all of them")] = ""
    offset: Annotated[int, Meta(ge=1, description="first unit to show, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, description="how much to show")] | None = None
    unit: Annotated[Unit, Meta(description="what offset and limit count")] = "lines"


class ExpandMessage:
    """Show what was omitted from this conversation to save space: one message or tool result by its id, whole or a range of it;
    passages by a query, in that one or everywhere; or, without id and query, a list of all messages with their ids."""

    name: ClassVar[str] = "expand_message"
    Args: ClassVar[type[Struct]] = ExpandMessageArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("message_id", "part_id", "tool_call_id", "message"), "id"),
        **dict.fromkeys(("search", "pattern", "q"), "query"),
        **dict.fromkeys(("start", "start_line", "from"), "offset"),
        **dict.fromkeys(("count", "max_lines", "length"), "limit"),
    }
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "read"

    def intents(self, args: ExpandMessageArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: ExpandMessageArgs, call: CallContext) -> CallResult:
        messages = call.services.recall()
        if not args.id:
            return CallResult(text=_passages(messages, args) if args.query.strip() else _contents(messages, args))
        matches = _find(messages, args.id.strip())
        if isinstance(matches[0], Message) and _is_lead(matches[0]) and not args.query.strip():
            return CallResult(text=_contents(messages, args))  # the lead itself is sent already; list what it replaces
        if args.query.strip():
            return CallResult(text=_passages(matches, args))
        whole = "\n\n".join(text for each in matches for text in _whole_texts(each))
        return CallResult(text=_range(whole, args))


def _find(messages: Sequence[Message], id: str) -> list[Message | ToolPart]:
    """Finds a message, part or call by id. Raises ToolError."""
    for message in messages:
        if message.id == id:
            return [message]
        for part in message.calls:
            if id in (part.id, part.wire_id):
                return [part]
    raise ToolError(f"expand_message: there is no message and no result {id!r}. Without arguments all of them are listed.")


def _is_lead(message: Message) -> bool:
    """True for the message that replaces omitted messages."""
    return message.role == "compaction_summary" and bool(message.metadata.get("compressed"))


def _whole_texts(each: Message | ToolPart) -> Iterator[str]:
    if isinstance(each, ToolPart):
        yield each.output
        return
    for part in each.parts:
        if isinstance(part, TextPart | ThinkingPart):
            yield part.text
        elif isinstance(part, ToolPart):
            yield f"[called {part.tool}, id {part.id}: {json.dumps(part.input, ensure_ascii=False)}]"
            yield part.output
        else:
            yield f"[{part.type} {part.media_type}]"


def _range(whole: str, args: ExpandMessageArgs) -> str:
    units: Sequence[str] = whole if args.unit == "characters" else whole.splitlines(keepends=True)
    if args.offset > len(units):
        raise (
            ToolError(f"expand_message: there are only {len(units):,} {args.unit}.")
            if units
            else ToolError("expand_message: it is empty.")
        )
    begin = args.offset - 1
    end = len(units) if args.limit is None else min(begin + args.limit, len(units))
    shown = units[begin:end]
    if args.unit == "lines":
        sizes = accumulate(map(len, shown))
        shown = shown[: sum(1 for size in sizes if size <= MOST_CHARS)]
        if not shown:
            at = sum(map(len, units[:begin])) + 1
            return f"[Line {args.offset} is {len(units[begin]):,} characters long: use unit characters, from offset {at}.]"
    shown = shown[:MOST_CHARS]
    last = begin + len(shown)
    text = "".join(shown)
    if begin == 0 and last == len(units):
        return text
    more = "" if last == len(units) else f"; offset {last + 1} continues"
    return f"{text.rstrip(chr(10))}\n[{args.unit} {args.offset:,}–{last:,} of {len(units):,}{more}]"


def _passages(sources: Sequence[Message | ToolPart], args: ExpandMessageArgs) -> str:
    """Newest first, because the latest statement is the valid one."""
    words = args.query.lower().split()
    passages: list[str] = []
    size = count = 0
    for id, lines in _texts(sources):
        for at, line in enumerate(lines):
            if not all(word in line.lower() for word in words):
                continue
            count += 1
            if count < args.offset or len(passages) >= min(args.limit or MOST_PASSAGES, MOST_PASSAGES) or size > MOST_CHARS:
                continue
            around = lines[max(at - AROUND, 0) : at + AROUND + 1]
            passages.append(f"[{id}, line {at + 1}]\n" + "\n".join(_short(each, words) for each in around))
            size += len(passages[-1])
    if not count:
        return f"No line has all of these words: {args.query}. Try fewer or other words."
    if not passages:
        return f"There are only {count:,} passages."
    more = f"; offset {args.offset + len(passages)} continues" if args.offset - 1 + len(passages) < count else ""
    return "\n\n".join([*passages, f"[{len(passages)} of {count:,} passages, newest first{more}]"])


def _texts(sources: Sequence[Message | ToolPart]) -> Iterator[tuple[str, list[str]]]:
    """Skips earlier results of this tool."""
    for each in reversed(sources):
        if isinstance(each, ToolPart):
            yield each.id, each.output.splitlines()
            continue
        for part in each.calls:
            if part.tool != ExpandMessage.name:
                yield part.id, [json.dumps(part.input, ensure_ascii=False), *part.output.splitlines()]
        yield each.id, each.text.splitlines()


def _short(line: str, words: Sequence[str]) -> str:
    """Shortens a long line around the first match."""
    if len(line) <= LONGEST_LINE_CHARS:
        return line
    at = max(min((line.lower().find(word) for word in words if word in line.lower()), default=0) - LONGEST_LINE_CHARS // 2, 0)
    return f"{'…' if at else ''}{line[at : at + LONGEST_LINE_CHARS]}…"


def _contents(messages: Sequence[Message], args: ExpandMessageArgs) -> str:
    """Lists one message per line."""
    messages = [message for message in messages if not _is_lead(message)]
    begin = args.offset - 1
    listed = messages[begin : begin + min(args.limit or LISTED, LISTED)]
    lines: list[str] = []
    for message in listed:
        calls = ", ".join(f"{part.tool} ({part.id}, {len(part.output):,} characters)" for part in message.calls)
        head = " · ".join(filter(None, (" ".join(message.text.split())[:80], calls)))[:LONGEST_LINE_CHARS]
        lines.append(f"{message.id} {message.role}: {head or '(nothing)'}")
    last = begin + len(listed)
    more = f"; offset {last + 1} continues" if last < len(messages) else ""
    return "\n".join([*lines, f"[messages {args.offset:,}–{last:,} of {len(messages):,}{more}]"])
