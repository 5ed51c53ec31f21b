"""Find tool calls and bracketed thinking in streamed text, however it is split."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Literal

from wolo.formats.text_recovery.json_scanner import JsonObject, read_members
from wolo.formats.text_recovery.markdown_quoting import CodeSpans, Quoting, find_closing
from wolo.formats.xml_tools.call_blocks import CLOSE, MISSING_CLOSE, NOTHING_RUN, OPEN, CallBlock, failed_block, read_block
from wolo.messages.deltas import BreakDelta, TextDelta, ThinkingDelta

_ENDS_SPAN = re.compile(r"[`\n]")


class ToolBlocks:
    """Splits text into text and blocks. What is quoted is text, and so is a block about a tool that is not offered.

    A tag opens a block where a JSON object follows it. The object is read to its own end, for what it holds may well contain
    tags. One that cannot be read is held until the answer has ended: only then can it be told how far it goes.
    """

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = offered
        self._code = Quoting()
        self.follow = self._code.follow
        """Told of text that was let through unread."""
        self._state: Literal["text", "span", "object", "closing", "broken"] = "text"
        self._buffer = ""
        """What is not decided yet; in a block what follows the part of it that was read."""
        self._waiting: list[str] = []
        """What came after the buffer and cannot decide anything alone."""
        self._head = ""
        """The tag of the block that is being read, and the space behind it."""
        self._object = JsonObject()
        self._is_all = False

    @property
    def is_idle(self) -> bool:
        """Text without `<` would come out as it went in, if it is followed."""
        return self._state == "text" and not self._buffer

    def feed(self, text: str) -> Sequence[str | CallBlock]:
        if self._state == "text" and not self._buffer and "<" not in text:
            self._code.follow(text)
            return (text,) if text else ()
        self._waiting.append(text)
        if self._state == "broken" or (self._state == "span" and not _ENDS_SPAN.search(text)):
            return ()
        return self._advance_all()

    def flush(self) -> Sequence[str | CallBlock]:
        """The answer has ended."""
        self._is_all = True
        return self._advance_all()

    def _advance_all(self) -> list[str | CallBlock]:
        self._buffer = "".join([self._buffer, *self._waiting])
        self._waiting.clear()
        found: list[str | CallBlock] = []
        while (self._buffer or self._state != "text") and self._advance(found):
            pass
        return found

    def _advance(self, found: list[str | CallBlock]) -> bool:
        """One step; False when more text is needed."""
        match self._state:
            case "text":
                return self._look_for_tag(found)
            case "span":
                return self._look_for_end_of_span(found)
            case "object":
                return self._read_object()
            case "closing":
                return self._read_closing(found)
            case "broken":
                return self._is_all and self._end_broken(found)

    def _look_for_tag(self, found: list[str | CallBlock]) -> bool:
        begin = self._buffer.find(OPEN)
        if begin < 0:
            held = 0 if self._is_all else _begun_at_end(self._buffer)
            self._let_through(len(self._buffer) - held, found)
            return False
        self._let_through(begin, found)
        if self._code.is_fenced or self._code.is_quoted:
            self._let_through(len(OPEN), found)
        elif self._code.open_backticks:
            self._state = "span"
        else:
            return self._begin(found)
        return True

    def _look_for_end_of_span(self, found: list[str | CallBlock]) -> bool:
        """The backticks before the tag quote it if others close them; otherwise they meant nothing."""
        end = find_closing(self._buffer, self._code.open_backticks, is_all=self._is_all)
        if end is None:
            return False
        self._state = "text"
        if end < 0:
            return self._begin(found)
        self._let_through(end, found)
        return True

    def _begin(self, found: list[str | CallBlock]) -> bool:
        """A tag that no object follows is a word of the text, unless it begins a line and so is meant to be a call."""
        rest = self._buffer[len(OPEN) :].lstrip()
        if not rest and not self._is_all:
            return False
        if rest.startswith("{"):
            self._head, self._buffer = self._buffer[: -len(rest)], rest
            self._object, self._state = JsonObject(), "object"
        elif rest and self._code.is_line_start:
            self._state = "broken"
        else:
            self._let_through(len(OPEN), found)
        return True

    def _read_object(self) -> bool:
        rest = self._object.take(self._buffer)
        self._buffer = rest or ""
        if rest is not None:
            self._state = "closing"
        elif self._is_all:
            self._break()
        return rest is not None or self._is_all

    def _read_closing(self, found: list[str | CallBlock]) -> bool:
        behind = self._buffer.lstrip()
        if behind.startswith(CLOSE):
            end = len(self._buffer) - len(behind) + len(CLOSE)
            raw = f"{self._head}{self._object.text}{self._buffer[:end]}"
            block = read_block(raw, self._offered)
            if block is None or not block.problem:
                self._state, self._buffer = "text", self._buffer[end:]
                self._take(block or raw, found)
                return True
        elif CLOSE.startswith(behind) and not self._is_all:
            return False
        self._break()
        return True

    def _break(self) -> None:
        """The text since the tag is no call as it must be; how far it goes must be told by what follows."""
        self._buffer = f"{self._head}{self._object.text}{self._buffer}"
        self._state = "broken"

    def _end_broken(self, found: list[str | CallBlock]) -> bool:
        raw, rest = self._split_broken()
        self._state, self._buffer = "text", rest
        if raw.endswith(CLOSE):
            self._take(read_block(raw, self._offered) or raw, found)
        elif not raw.removeprefix(OPEN).lstrip().startswith("{"):
            self._take(raw, found)
        elif (block := read_block(raw + CLOSE, self._offered)) is None or block.problem or not _may_end(rest):
            problem = f"{MISSING_CLOSE} {NOTHING_RUN}"
            self._take(failed_block(raw, problem, self._offered) or raw, found)
        else:
            self._take(block, found)
        return True

    def _split_broken(self) -> tuple[str, str]:
        """The block, and what follows it.

        It goes to the last closing tag before the next block. Where the next opening tag comes first, it may stand inside of
        what the model failed to quote: then nothing behind it can be told apart, and nothing of it may run.
        """
        text, whole = self._buffer, len(self._whole_object())
        begin = whole or len(OPEN)
        opens, closes = text.find(OPEN, begin), text.find(CLOSE, begin)
        if closes < 0 or 0 <= opens < closes:
            end = whole or (text.rfind(CLOSE) + len(CLOSE) if closes >= 0 else len(text))
        else:
            end = text.rfind(CLOSE, begin, opens if opens >= 0 else len(text)) + len(CLOSE)
        return text[:end], text[end:]

    def _whole_object(self) -> str:
        """The block up to the end of its object, if that can be read: all that is missing is the closing tag."""
        begin = self._head + self._object.text
        if not self._buffer.startswith(begin) or not self._object.text:
            return ""
        try:
            read_members(self._object.text)
        except (ValueError, RecursionError):
            return ""
        return begin

    def _take(self, piece: str | CallBlock, found: list[str | CallBlock]) -> None:
        self._code.follow(piece if isinstance(piece, str) else ".")  # what a call writes quotes nothing behind it
        found.append(piece)

    def _let_through(self, size: int, found: list[str | CallBlock]) -> None:
        if size:
            text, self._buffer = self._buffer[:size], self._buffer[size:]
            self._code.follow(text)
            found.append(text)


def _may_end(rest: str) -> bool:
    """Behind a call without a closing tag: nothing more, or the next call."""
    return not rest.strip() or rest.lstrip().startswith(OPEN)


def _begun_at_end(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    longest = min(len(text), len(OPEN) - 1)
    return next((size for size in range(longest, 0, -1) if OPEN.startswith(text[-size:])), 0)


BRACKETS = "brackets"
"""What such reasoning names as its field: it goes back into the text, between brackets."""

Piece = TextDelta | ThinkingDelta | BreakDelta

_BRACKET = re.compile(r"[\[\]]")
_LINE_ENDS = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_NO_THOUGHT = re.compile(r"\s*(?:[xX]|\^[^\]\s]*|\d+)?\s*\Z|\s*(?:\"|\[?\{|[-+]?\d+(?:\.\d+)?\s*,)")
"""A task box, a footnote, a number; or the beginning of a JSON array."""


def in_brackets(thought: str) -> str:
    return f"[{thought}]\n"


class BracketThinking:
    """Splits streamed text; how it is cut changes nothing.

    Brackets hold a thought when they open a line and end one, and what they hold is no list, no link and no task box. They may
    span lines; until they are closed what they hold is held back.
    """

    def __init__(self) -> None:
        self._code = CodeSpans()
        self._waiting: list[str] = []
        """What is not decided yet: the blanks a line begins with, and brackets from there on."""
        self._depth = 0
        """How many brackets are open in what waits."""
        self._size = 0
        """How much of it was searched for brackets."""
        self._end = 0
        """Where the last of them was closed."""
        self._is_in_line = False
        """The line has begun with something else."""
        self._was_thought = False

    def feed(self, text: str) -> Sequence[Piece]:
        self._waiting.append(text)
        if self._depth and not self._count(text):
            return ()
        return self._split(is_all=False)

    def flush(self) -> Sequence[Piece]:
        """Something other than text comes, or the end; what follows a call does not begin a line."""
        pieces = self._split(is_all=True)
        self._is_in_line, self._was_thought = True, False
        return pieces

    def _split(self, *, is_all: bool) -> list[Piece]:
        text, pieces = "".join(self._waiting), list[Piece]()
        while text:
            if self._is_in_line:
                size = text.find("\n") + 1
                self._is_in_line = not size
                size = size or len(text)
            elif text.isspace() and "\n" not in text:
                size = len(text) if is_all else 0
            elif text.lstrip(" \t").startswith("[") and not self._code.is_fenced:
                size, thought = self._look_at_brackets(text, is_all=is_all)
                if thought:
                    self._emit_thought(thought, pieces)
                    text = text[size:]
                    continue
            else:
                self._is_in_line, size = True, 0
                continue
            if not size:
                break
            self._emit_text(text[:size], pieces)
            text = text[size:]
        self._waiting = [text]
        return pieces

    def _look_at_brackets(self, text: str, *, is_all: bool) -> tuple[int, str]:
        """How much of the text is decided, and the thought if it is one."""
        if not self._depth and not self._end:
            self._count(text)
        end = self._end
        if not end and not is_all:
            return 0, ""
        line_end = _LINE_ENDS.match(text, end) if end else None
        if line_end is not None and line_end.end() == len(text) and not text.endswith("\n") and not is_all:
            return 0, ""
        self._depth = self._size = self._end = 0
        thought = text[:end].strip()[1:-1]
        if line_end is not None and not _is_data(thought):
            return line_end.end(), thought
        self._is_in_line = True
        return end or len(text), ""

    def _count(self, text: str) -> bool:
        """Whether the brackets are closed in this text, which continues what was counted before."""
        for bracket in _BRACKET.finditer(text):
            self._depth += 1 if bracket[0] == "[" else -1
            if not self._depth:
                self._end = self._size + bracket.end()
                return True
        self._size += len(text)
        return False

    def _emit_thought(self, thought: str, pieces: list[Piece]) -> None:
        if self._was_thought:
            pieces.append(BreakDelta())
        pieces.append(ThinkingDelta(thought, BRACKETS))
        self._was_thought = True

    def _emit_text(self, text: str, pieces: list[Piece]) -> None:
        self._was_thought = False
        self._code.follow(text)
        pieces.append(TextDelta(text))


def _is_data(inside: str) -> bool:
    if _NO_THOUGHT.match(inside):
        return True
    try:
        json.loads(f"[{inside}]")
    except (ValueError, RecursionError):
        return False
    return True
