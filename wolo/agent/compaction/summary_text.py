"""Text around a summary: the transcript that the model summarizes, and the message that replaces omitted messages.

That message is saved as it was made, so that requests keep the same prefix until the next compaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec import Struct

from wolo.messages.message import Message
from wolo.messages.parts import AnyPart, TextPart, ThinkingPart, ToolPart, new_id
from wolo.messages.unicode import clean
from wolo.models.tokens import BYTES_PER_TOKEN, estimate_text
from wolo.sessions.loading import HINT
from wolo.tools.todo import PLAN_FILE, as_text, todos_of
from wolo.tools.tool_arguments import FILE_ALIASES

MOST_CHANGED, MOST_READ = 200, 60
"""Maximum number of listed files; the newest are kept."""
LONGEST_WORDS_CHARS = 4_000
"""Length of one user message; the middle of a longer one is omitted."""
LONGEST_TODO_CHARS = 2_000
READERS, WRITERS = ("read",), ("write", "edit", "apply_patch")

MOST_SAID_CHARS = 40_000
"""Length of all user messages; older ones are only counted."""
SUMMARY, UNTIL, FACTS = "summary", "until", "facts"
"""Metadata keys of a lead: the model's summary, the id of the last message it covers, and the `Facts`."""

OPENING = "[The conversation began earlier: {count} old messages were left out here to save space. The session keeps them all.]"
WORDS = "The user's messages among them, word for word:"
WORDS_LEFT_OUT = "[… {count} older ones are left out …]"


class Facts(Struct, frozen=True, omit_defaults=True):
    """Facts about omitted messages that code can extract; it grows, because omitted messages may no longer be loaded."""

    changed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """In order of last use."""
    said: tuple[tuple[str, str], ...] = ()
    """Newest user messages: id and text."""
    unsaid: int = 0
    """Number of older ones."""
    todo: str = ""
    plan_file: str = ""
    """Of the plan that the user approved last."""

    def with_more(self, gone: Iterable[Message]) -> Facts:
        changed, read, todo, plan_file = dict.fromkeys(self.changed), dict.fromkeys(self.read), self.todo, self.plan_file
        pieces = list(self.said)
        for message in gone:
            if message.is_from_user and message.text.strip():
                pieces.append((message.id, _clipped_message(message.id, message.text.strip(), LONGEST_WORDS_CHARS)))
            for part in (part for part in message.calls if part.outcome == "ok"):
                plan_file = str(part.metadata.get(PLAN_FILE, plan_file))
                items = todos_of(part)
                todo = todo if items is None else as_text(items)[:LONGEST_TODO_CHARS]
                into = changed if part.tool in WRITERS else read if part.tool in READERS else None
                if into is not None and (path := _path(part)):
                    into.pop(path, None)
                    into[path] = None
        unsaid = _excess(pieces)
        only_read = [path for path in read if path not in changed]
        return Facts(
            changed=tuple(changed)[-MOST_CHANGED:],
            read=tuple(only_read)[-MOST_READ:],
            said=tuple(pieces[unsaid:]),
            unsaid=self.unsaid + unsaid,
            todo=todo,
            plan_file=plan_file,
        )


def lead_for(left_out: Collection[str], facts: Facts, *, summary: str, until: str, words_tokens: int) -> Message:
    """`summary` covers all messages up to the id `until`; empty: no summary."""
    id = new_id("msg")
    pieces = [
        OPENING.format(count=len(left_out)),
        summary and f"What happened in them:\n\n{summary}",
        _files("changed", facts.changed),
        _files("read", facts.read),
        facts.plan_file and f"The plan that the user approved is in {facts.plan_file}: read it before you continue.",
        facts.todo and f"The todo list:\n{facts.todo}",
        _words(facts, words_tokens),
        HINT.format(id=id),
    ]
    text = "\n\n".join(filter(None, pieces))
    metadata = {"compressed": True, "compressed_content": text, SUMMARY: summary, UNTIL: until}
    metadata[FACTS] = msgspec.to_builtins(facts)
    return Message(id=id, role="compaction_summary", parts=(TextPart(text=text),), finished=True, metadata=metadata)


def summary_in(lead: Message | None) -> tuple[str, str]:
    """Returns the model's summary and the id of the last message it covers; empty: none."""
    found = lead.metadata if lead is not None else {}
    summary, until = found.get(SUMMARY), found.get(UNTIL)
    return (summary, until) if isinstance(summary, str) and isinstance(until, str) else ("", "")


def facts_in(lead: Message | None) -> Facts:
    try:
        return msgspec.convert(lead.metadata[FACTS], Facts) if lead is not None and FACTS in lead.metadata else Facts()
    except msgspec.ValidationError:
        return Facts()


def _excess(pieces: Sequence[tuple[str, str]]) -> int:
    room = MOST_SAID_CHARS
    for at in range(len(pieces) - 1, -1, -1):
        room -= len(pieces[at][1])
        if room < 0:
            return at + 1
    return 0


def _files(what: str, paths: Sequence[str]) -> str:
    return f"Files {what}: {', '.join(paths)}" if paths else ""


def _path(part: ToolPart) -> str:
    value = next((part.input[name] for name in ("path", *FILE_ALIASES) if name in part.input), "")
    return value if isinstance(value, str) else ""


def _words(facts: Facts, most_tokens: int) -> str:
    pieces: list[str] = []
    for id, words in reversed(facts.said):
        quoted = f"<user>\n{_clipped_message(id, words, most_tokens * BYTES_PER_TOKEN // 2)}\n</user>"
        most_tokens -= estimate_text(quoted)
        if most_tokens < 0:
            break
        pieces.insert(0, quoted)
    older = len(facts.said) - len(pieces) + facts.unsaid
    return "\n".join([WORDS, *([WORDS_LEFT_OUT.format(count=older)] if older else []), *pieces]) if pieces else ""


def _clipped_message(id: str, text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    middle = f'\n[… {len(text) - most_chars:,} characters: expand_message(id="{id}") shows them …]\n'
    return text[: most_chars // 2] + middle + text[len(text) - most_chars // 2 :]


CLIPS_CHARS = (4_000, 1_000, 300)
"""Lengths of each text and output; the first with which everything fits is used."""
MOST_PIECES = 3
LEFT_OUT = "[… {count} messages in between are not told here …]"


def pieces(messages: Sequence[Message], most_tokens: int) -> list[str]:
    """Splits a transcript into pieces of at most this many tokens; omits the middle when there would be too many pieces."""
    for clip in CLIPS_CHARS:
        lines, end = _fill(messages, clip, most_tokens)
        if end == len(messages):
            return ["\n\n".join(lines)]
    packed: list[list[str]] = []
    begin = 0
    while begin < len(messages) and len(packed) < MOST_PIECES:
        lines, count = _fill(messages[begin:], CLIPS_CHARS[-1], most_tokens)
        packed.append(lines)
        begin += count
    if begin < len(messages):
        packed = _both_ends(messages, packed[0], most_tokens)
    return ["\n\n".join(piece) for piece in packed]


def _both_ends(messages: Sequence[Message], first: list[str], most_tokens: int) -> list[list[str]]:
    """Gives the newest messages more room than the middle."""
    packed: list[list[str]] = []
    end = len(messages)
    while len(packed) < MOST_PIECES - 1 and end > len(first):
        lines, count = _fill(messages[len(first) : end][::-1], CLIPS_CHARS[-1], most_tokens)
        packed.insert(0, lines[::-1])
        end -= count
    packed[0] = [LEFT_OUT.format(count=end - len(first)), *packed[0]]
    return [first, *packed]


def _fill(messages: Sequence[Message], clip_chars: int, most_tokens: int) -> tuple[list[str], int]:
    filled: list[str] = []
    for message in messages:
        who = {"assistant": "assistant", "user": "user"}.get(message.role, "note")
        parts = [clean(line) for part in message.parts if (line := _part(part, clip_chars))]
        lines = f"## {who}\n" + ("\n".join(parts) or "(nothing)")
        most_tokens -= estimate_text(lines) + 1
        if most_tokens < 0 and filled:
            break
        if most_tokens < 0 and clip_chars > CLIPS_CHARS[-1]:
            return [], 0
        filled.append(lines if most_tokens >= 0 else _clip_text(lines, max(most_tokens + estimate_text(lines) + 1, 1)))
    return filled, len(filled)


def _part(part: AnyPart, clip_chars: int) -> str:
    match part:
        case TextPart():
            return _clip_text(part.text.strip(), clip_chars * 2)
        case ThinkingPart():
            return ""
        case ToolPart():
            arguments = _clip_text(json.dumps(part.input, ensure_ascii=False), clip_chars // 2)
            ended = "failed" if part.is_error else part.outcome or part.status
            return f"called {part.tool} {arguments}\n{ended}: {_clip_text(part.output.strip(), clip_chars)}"
        case _:
            return f"[{part.type}]"


def _clip_text(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    end = most_chars // 2
    return f"{text[:end]}\n[… {len(text) - 2 * end:,} characters …]\n{text[len(text) - end :]}"
