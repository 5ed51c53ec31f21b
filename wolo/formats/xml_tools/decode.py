"""Finds tool calls and bracketed thinking in streamed text, however it is split."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Literal

from wolo.formats.text_recovery import json_scanner, markdown_quoting, text_filter
from wolo.formats.xml_tools.call_blocks import CLOSE, MISSING_CLOSE, NOTHING_RUN, OPEN, CallBlock, failed_block, read_block
from wolo.messages.deltas import BreakDelta, TextDelta, ThinkingDelta

_ENDS_SPAN = re.compile(r"[`\n]")


class ToolBlocks:
    """Splits text into plain text and call blocks. Quoted blocks and blocks of unknown tools are text.

    A tag followed by a JSON object opens a block. The object is parsed to its own end because it may contain tags. An unparsable
    block is held until the response ends, when its extent can be determined.
    """

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = offered
        self._code = markdown_quoting.Quoting()
        self.follow = self._code.follow
        """Records text that was passed through unread."""
        self._state: Literal["text", "span", "object", "closing", "broken"] = "text"
        self._buffer = ""
        """Undecided text; inside a block, the text after the parsed part."""
        self._waiting: list[str] = []
        """Text received after the buffer that cannot decide anything alone."""
        self._head = ""
        """Opening tag of the current block, and the space after it."""
        self._object = json_scanner.JsonObject()
        self._is_all = False

    @property
    def is_idle(self) -> bool:
        """Text without `<` would pass unchanged."""
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
        self._is_all = True
        return self._advance_all()

    def _advance_all(self) -> list[str | CallBlock]:
        self._buffer = "".join([self._buffer, *self._waiting])
        self._waiting.clear()
        pieces: list[str | CallBlock] = []
        while (self._buffer or self._state != "text") and self._advance(pieces):
            pass
        return pieces

    def _advance(self, pieces: list[str | CallBlock]) -> bool:
        """Take one step; False when more text is needed."""
        match self._state:
            case "text":
                if (begin := self._buffer.find(OPEN)) < 0:
                    held = 0 if self._is_all else text_filter.size_of_begun_tag(self._buffer, (OPEN,))
                    self._let_through(len(self._buffer) - held, pieces)
                    return False
                self._let_through(begin, pieces)
                if self._code.is_fenced or self._code.is_quoted:
                    self._let_through(len(OPEN), pieces)
                elif self._code.open_backticks:
                    self._state = "span"
                else:
                    return self._begin(pieces)
                return True
            case "span":
                # Backticks before a tag quote it only if they are closed.
                end = markdown_quoting.find_closing(self._buffer, self._code.open_backticks, is_all=self._is_all)
                if end is None:
                    return False
                self._state = "text"
                if end < 0:
                    return self._begin(pieces)
                self._let_through(end, pieces)
                return True
            case "object":
                rest = self._object.take(self._buffer)
                self._buffer = rest or ""
                if rest is not None:
                    self._state = "closing"
                elif self._is_all:
                    self._break()
                return rest is not None or self._is_all
            case "closing":
                return self._read_closing(pieces)
            case "broken":
                return self._is_all and self._end_broken(pieces)

    def _begin(self, pieces: list[str | CallBlock]) -> bool:
        """A tag without an object is text, unless it starts a line and so is meant as a call."""
        if not (rest := self._buffer[len(OPEN) :].lstrip()) and not self._is_all:
            return False
        if rest.startswith("{"):
            self._head, self._buffer = self._buffer[: -len(rest)], rest
            self._object, self._state = json_scanner.JsonObject(), "object"
        elif rest and self._code.is_line_start:
            self._state = "broken"
        else:
            self._let_through(len(OPEN), pieces)
        return True

    def _read_closing(self, pieces: list[str | CallBlock]) -> bool:
        behind = self._buffer.lstrip()
        if behind.startswith(CLOSE):
            end = len(self._buffer) - len(behind) + len(CLOSE)
            raw = f"{self._head}{self._object.text}{self._buffer[:end]}"
            if (block := read_block(raw, self._offered)) is None or not block.problem:
                self._state, self._buffer = "text", self._buffer[end:]
                self._take(block or raw, pieces)
                return True
        elif CLOSE.startswith(behind) and not self._is_all:
            return False
        self._break()
        return True

    def _break(self) -> None:
        """Treat the block as broken; its extent is determined later."""
        self._buffer = f"{self._head}{self._object.text}{self._buffer}"
        self._state = "broken"

    def _end_broken(self, pieces: list[str | CallBlock]) -> bool:
        """The block ends at the last closing tag before the next block.

        If an opening tag comes first, it may be inside an unescaped string: then nothing after it can be separated and nothing
        may run.
        """
        text, whole = self._buffer, len(self._whole_object())
        begin = whole or len(OPEN)
        opens, closes = text.find(OPEN, begin), text.find(CLOSE, begin)
        if closes < 0 or 0 <= opens < closes:
            end = whole or (text.rfind(CLOSE) + len(CLOSE) if closes >= 0 else len(text))
        else:
            end = text.rfind(CLOSE, begin, opens if opens >= 0 else len(text)) + len(CLOSE)
        raw, rest = text[:end], text[end:]
        self._state, self._buffer = "text", rest
        if raw.endswith(CLOSE):
            self._take(read_block(raw, self._offered) or raw, pieces)
        elif not raw.removeprefix(OPEN).lstrip().startswith("{"):
            self._take(raw, pieces)
        else:
            block = read_block(raw + CLOSE, self._offered)
            may_end = not rest.strip() or rest.lstrip().startswith(OPEN)  # without a closing tag, only the next call may follow
            if block is None or block.problem or not may_end:
                block = failed_block(raw, f"{MISSING_CLOSE} {NOTHING_RUN}", self._offered)
            self._take(block or raw, pieces)
        return True

    def _whole_object(self) -> str:
        """The block up to the end of its object, if only the closing tag is missing."""
        begin = self._head + self._object.text
        if not self._buffer.startswith(begin) or not self._object.text:
            return ""
        try:
            json_scanner.read_members(self._object.text)
        except (ValueError, RecursionError):
            return ""
        return begin

    def _take(self, piece: str | CallBlock, pieces: list[str | CallBlock]) -> None:
        self._code.follow(piece if isinstance(piece, str) else ".")  # quotes inside a call do not affect later text
        pieces.append(piece)

    def _let_through(self, size: int, pieces: list[str | CallBlock]) -> None:
        if size:
            text, self._buffer = self._buffer[:size], self._buffer[size:]
            self._code.follow(text)
            pieces.append(text)


BRACKETS = "brackets"
"""Field name of bracketed reasoning; it is replayed in the text, in brackets."""

Piece = TextDelta | ThinkingDelta | BreakDelta

_BRACKET = re.compile(r"[\[\]]")
_LINE_ENDS = re.compile(r"[ \t]*\r?(?:\n|\Z)")
_NO_THOUGHT = re.compile(r"\s*(?:[xX]|\^[^\]\s]*|\d+)?\s*\Z|\s*(?:\"|\[?\{|[-+]?\d+(?:\.\d+)?\s*,)")
"""Task box, footnote, number, or the start of a JSON array."""


def in_brackets(thought: str) -> str:
    return f"[{thought}]\n"


class BracketThinking:
    """Splits streamed text into text and bracketed thoughts, however it is chunked.

    A thought starts a line and ends one, and is no list, link or task box. It may span lines, and is held until closed.
    """

    def __init__(self) -> None:
        self._code = markdown_quoting.CodeSpans()
        self._waiting: list[str] = []
        """Undecided text: blanks at the start of a line, and brackets."""
        self._depth = 0
        """Number of open brackets in the waiting text."""
        self._size = 0
        """Length of the waiting text already searched for brackets."""
        self._end = 0
        """Offset after the last closed bracket."""
        self._is_in_line = False
        """The line starts with other text."""
        self._was_thought = False

    def feed(self, text: str) -> Sequence[Piece]:
        self._waiting.append(text)
        if self._depth and not self._count(text):
            return ()
        return self._split(is_all=False)

    def flush(self) -> Sequence[Piece]:
        """Text after a call does not start a line."""
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
                    if self._was_thought:
                        pieces.append(BreakDelta())
                    pieces.append(ThinkingDelta(thought, BRACKETS))
                    self._was_thought = True
                    text = text[size:]
                    continue
            else:
                self._is_in_line, size = True, 0
                continue
            if not size:
                break
            self._was_thought = False
            self._code.follow(text[:size])
            pieces.append(TextDelta(text[:size]))
            text = text[size:]
        self._waiting = [text]
        return pieces

    def _look_at_brackets(self, text: str, *, is_all: bool) -> tuple[int, str]:
        """Length of the decided text, and the thought if it is one."""
        if not self._depth and not self._end:
            self._count(text)
        if not (end := self._end) and not is_all:
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
        """True when the brackets close in this text, which continues what was counted before."""
        for bracket in _BRACKET.finditer(text):
            self._depth += 1 if bracket[0] == "[" else -1
            if not self._depth:
                self._end = self._size + bracket.end()
                return True
        self._size += len(text)
        return False


def _is_data(inside: str) -> bool:
    if _NO_THOUGHT.match(inside):
        return True
    try:
        json.loads(f"[{inside}]")
    except (ValueError, RecursionError):
        return False
    return True
