"""Compare messages by roles, texts, calls and results, ignoring ids and times."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import unified_diff

from wolo.messages.line_numbers import number_every_line
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.messages.terminal_text import quantity

Normalize = Callable[[str], str]
"""Removes from a text what changes between runs."""

DIFF_LINES = 40
AROUND_CHARS = 600
"""Characters of a long text shown on each side of the first difference."""

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CHANGING = (
    (re.compile(rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {_MONTH} +\d+ \d\d:\d\d:\d\d [\w+-]+ \d{{4}}"), "<time>"),
    (re.compile(rf"\b{_MONTH} +\d{{1,2}} +(?:\d\d:\d\d(?::\d\d)?(?: \d{{4}}(?: [+-]\d{{4}})?)?|\d{{4}})(?![\w:])"), "<time>"),
    (re.compile(r"^d[rwxsStT-]{9}\S? .* \.\.$", re.MULTILINE), "<folder above>"),
    (re.compile(r"\bcommit [0-9a-f]{40}\b"), "commit <id>"),
    (re.compile(r"^(\[[^\]\n]* )[0-9a-f]{7,12}\]", re.MULTILINE), r"\1<id>]"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|\s?[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?)\b"), "<duration>"),
    (re.compile(r"\b\d+m\d+(?:\.\d+)?s\b"), "<duration>"),
    (re.compile(r"\b(?:pid|PID|process)[ =:]+\d+"), "<process>"),
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "<address>"),
    (re.compile(r"/(?:private/)?(?:var/)?tmp/(?:[\w.+-]*[_.-])?[A-Za-z0-9_]{6,}(?=[/\s\"'`:,)]|$)"), "/tmp/<name>"),
    (re.compile(r"[^\s\"'`]*/(?:blobs|unkept-[0-9a-f]+|outputs|jobs)/[0-9a-f]{12,}[\w.]*"), "<kept output>"),
)


def without_changing_values(text: str) -> str:
    """Replace times, durations, process ids, memory addresses and temporary file names."""
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text


def comparable_text(message: Message, of: Normalize, unfinished: Collection[str] = ()) -> str:
    """Also readable for users. Results of `unfinished` calls are omitted because they depend on when they were stopped."""
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, ToolPart):
            ended = "[stopped]" if part.id in unfinished else comparable_result(part, of)
            texts.append(f"→ {comparable_call(part, of)}\n{ended}")
        elif isinstance(part, TextPart):
            texts.append(of(part.text))
        elif not isinstance(part, ThinkingPart):  # thinking is not compared
            texts.append(_attachment(part))
    return "\n".join(filter(None, texts))


def comparable_result(part: ToolPart, of: Normalize) -> str:
    attached = [_attachment(each) for each in part.output_parts]
    output = number_every_line(part.output) if part.tool == "read" else part.output
    return "\n".join(filter(None, (f"[{part.outcome}]", of(output), *attached)))


def comparable_call(part: ToolPart, of: Normalize) -> str:
    return f"{part.tool} {of(json.dumps(part.input, ensure_ascii=False, sort_keys=True) if part.input else part.raw_input)}"


def difference(expected: str, got: str) -> str:
    lines = list(unified_diff(expected.splitlines(), got.splitlines(), "expected", "got", lineterm="", n=2))
    more = [f"… {quantity(len(lines) - DIFF_LINES, 'more line')}"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *more])


def around_difference(expected: str, got: str) -> tuple[str, str]:
    """Both texts; long ones are reduced to the part around the first difference."""
    if max(len(expected), len(got)) <= 2 * AROUND_CHARS:
        return expected, got
    pairs: Iterable[tuple[str, str]] = zip(expected, got, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(got)))
    return _stretch(expected, at), _stretch(got, at)


def first_different(expected: Sequence[Message], got: Sequence[Message], same: Callable[[Message, Message], bool]) -> int | None:
    pairs = enumerate(zip(expected, got, strict=False))
    differing = next((at for at, (one, other) in pairs if not same(one, other)), None)
    if differing is None and len(expected) != len(got):
        return min(len(expected), len(got))
    return differing


def _attachment(part: ImagePart | AudioPart | FilePart) -> str:
    where = "" if isinstance(part, AudioPart) else part.url
    return f"[{part.type} {part.media_type} {where or hashlib.sha256(part.data).hexdigest()[:12]}]"


def _stretch(text: str, at: int) -> str:
    begin, end = max(0, at - AROUND_CHARS), at + AROUND_CHARS
    return ("… " if begin else "") + text[begin:end] + (" …" if end < len(text) else "")
