"""Finds tool calls that a model wrote as text, in its trained syntax or as bare JSON.

Tiny models and servers without a tool parser do this; `leaked_forms` lists the forms. A written call counts only as the last
thing said: it starts a line, is followed only by more calls, and is not quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from wolo.formats.text_recovery.json_scanner import JsonObject
from wolo.formats.text_recovery.leaked_forms import BARE, CANDIDATE, END_MARKS, NEVER, NOT_YET, Markup, Opening, Values, find_form
from wolo.formats.text_recovery.markdown_quoting import Quoting

NAMES = ("name", "tool", "tool_name", "function", "function_name", "action")
ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "params")
FIRST_KEYS = (*NAMES, *ARGUMENTS, "id", "type", "server_name")
"""A JSON object starting with another key is not a call and passes at once."""

PIECE_CHARS = 4_096
"""Longer texts are read in pieces because the buffer is copied with every line."""
MOST_BLANKS = 1_000
"""More blanks end a call: degenerate output may consist of endless blanks."""

FENCES = "`~"

_FENCE_LINE = re.compile(r"(`{3,200}(?=[^`\n]{0,200}\n)|~{3,200}(?=[^~\n][^\n]{0,200}\n|\n))[^\n]*\n")
_FENCE_LINE_BEGUN = re.compile(r"`{1,2}|~{1,2}|`{3,200}[^`\n]{0,200}|~{3,200}(?:[^~\n][^\n]{0,200})?")
_FENCE_END = re.compile(r"(`{1,200}|~{1,200})[ \t\r]{0,200}(\n|\Z)")
_BLANKS = re.compile(r"\s*")
_FIRST_KEY = re.compile(r'\{\s{0,1000}"([a-z_]*)("?)')
_FIRST_KEY_BEGUN = re.compile(r"\{\s{0,1000}")
_decoder = json.JSONDecoder(strict=False)  # tiny models write literal line breaks in strings


class LeakedCall(NamedTuple):
    tool: str
    arguments: str
    raw: str
    """The whole passage, in case it is plain text."""
    problem: str = ""
    """Reason why it cannot run, for the model."""
    in_fence: bool = False
    """It is in a code fence after other text, so it may be an example."""


class LeakedCalls:
    """Splits streamed text into text and calls of the offered tools.

    Text is emitted at once; calls are held until the end because later text decides about them.
    """

    def __init__(self, offered: Mapping[str, Mapping[str, Any]], *, may_be_bare: bool = True) -> None:
        """`offered` maps tool names to argument schemas. `may_be_bare` False: a bare object counts only after another call."""
        self._offered, self._may_be_bare = offered, may_be_bare
        self._state: Literal["text", "content", "closing", "fence"] = "text"
        self._buffer = ""
        """Undecided text."""
        self._opening = Opening(BARE, "", 0)
        self._head = ""
        """Text of the opening, including a fence before it."""
        self._content: JsonObject | Markup = JsonObject()
        self._content_chars = 0
        self._closers: tuple[str, ...] = ()
        """Closers of the last call."""
        self._calls: list[LeakedCall] = []
        """Calls at the end of the text so far, separated only by blanks and fences."""
        self._fence = ""
        """Opening marker of the current fence."""
        self._num_fences = 0
        """Number of fences that contain the calls."""
        self._quoting = Quoting()
        """Tracks emitted text."""
        self._has_text = False
        """Emitted text that is not blank."""

    @property
    def is_idle(self) -> bool:
        """Text without `MAY_OPEN` and `MAY_OPEN_AT_END` would pass unchanged."""
        return self._state == "text" and not self._buffer and not self._calls

    @property
    def held_chars(self) -> int:
        content = self._content_chars if self._state == "content" else 0
        return len(self._buffer) + content + sum(len(call.raw) for call in self._calls)

    def follow(self, text: str) -> None:
        """Record text that was passed through unread."""
        self._quoting.follow(text)
        if not self._has_text:
            self._has_text = not text.isspace()

    def feed(self, text: str) -> Sequence[str | LeakedCall]:
        pieces: list[str | LeakedCall] = []
        if self.is_idle and not CANDIDATE.search(text):
            self._let_through(text, pieces)
            return pieces
        for begin in range(0, len(text), PIECE_CHARS):
            self._buffer += text[begin : begin + PIECE_CHARS]
            while self._buffer and self._advance(pieces):
                pass
        return pieces

    def flush(self) -> Sequence[str | LeakedCall]:
        """The text ended, or something else arrived."""
        pieces: list[str | LeakedCall] = []
        if self._state == "fence" and (end := _FENCE_END.fullmatch(self._buffer.lstrip())) and end[1].startswith(self._fence):
            self._add_to_call(len(self._buffer))
        self._num_fences += bool(self._fence)
        if not self._calls or self._state == "content" or self._buffer.strip():
            self._release(pieces)
            self._let_through(self._buffer, pieces)
        else:
            self._add_to_call(len(self._buffer))
            in_fence = self._num_fences > 1 or (self._num_fences == 1 and self._has_text)
            pieces += [call._replace(in_fence=in_fence) for call in self._calls]
            self._calls = []
        self._state, self._buffer, self._fence, self._num_fences = "text", "", "", 0
        return pieces

    def _advance(self, pieces: list[str | LeakedCall]) -> bool:
        """Take one step; False when more text is needed."""
        match self._state:
            case "content":
                return self._read_content(pieces)
            case "closing":
                at = 0
                while True:
                    begin = _skip_space(self._buffer, at)
                    closer = next((each for each in self._closers if self._buffer.startswith(each, begin)), None)
                    if closer is None or begin - at > MOST_BLANKS:
                        break
                    at = begin + len(closer)
                behind = self._buffer[begin:]
                self._add_to_call(at)
                if begin - at <= MOST_BLANKS and any(each.startswith(behind) for each in ("", *self._closers)):
                    return False
                self._state = "fence" if self._fence else "text"
                return True
            case "fence":
                # Read more calls or the end of the fence; anything else makes it text.
                if (begin := _skip_space(self._buffer, 0)) > MOST_BLANKS:
                    self._release(pieces)
                    return True
                if begin == len(self._buffer):
                    return False
                if end := _FENCE_END.match(self._buffer, begin):
                    if not end[2]:
                        return False
                    if end[1].startswith(self._fence):
                        self._add_to_call(end.end())
                        self._state, self._fence = "text", ""
                        self._num_fences += 1
                        return True
                return self._continue_calls(begin, self._find_opening(begin), pieces)
            case "text":
                return self._read_behind_call(pieces) if self._calls else self._read_text(pieces)

    # Text

    def _read_text(self, pieces: list[str | LeakedCall]) -> bool:
        if self._quoting.indentation is None:
            self._pass_through(self._buffer.find("\n") + 1 or len(self._buffer), pieces)
            return True
        begin = len(self._buffer) - len(self._buffer.lstrip())
        if begin:
            self._pass_through(begin, pieces)
            return True
        opening = self._find_opening(0) if CANDIDATE.match(self._buffer) else NEVER
        if opening == NOT_YET:
            return False
        if isinstance(opening, int) or self._is_quoted():
            self._pass_through(1, pieces)
        else:
            self._open(opening)
        return True

    def _is_quoted(self) -> bool:
        """Text starting here would be an example: after other text a call is not even indented."""
        quoting = self._quoting
        is_indented = bool(quoting.indentation) and self._has_text
        return is_indented or quoting.continues_line or quoting.is_quoted or quoting.is_fenced or bool(quoting.open_backticks)

    def _read_behind_call(self, pieces: list[str | LeakedCall]) -> bool:
        """Read more calls of the same kind; other text turns the previous ones into text."""
        if (begin := _skip_space(self._buffer, 0)) > MOST_BLANKS:
            self._release(pieces)
            return True
        if begin == len(self._buffer):
            return False
        is_fence = self._buffer[begin] in FENCES
        return self._continue_calls(begin, self._find_opening(begin) if is_fence == bool(self._num_fences) else NEVER, pieces)

    def _continue_calls(self, begin: int, opening: Opening | int, pieces: list[str | LeakedCall]) -> bool:
        if opening == NOT_YET:
            return False
        if isinstance(opening, int):
            self._release(pieces)
        else:
            self._add_to_call(begin)
            self._open(opening._replace(end=opening.end - begin))
        return True

    def _find_opening(self, begin: int) -> Opening | int:
        """Opening at this fence, mark or brace; NEVER, or NOT_YET if more text is needed."""
        text, at = self._buffer, begin
        if text[at] in FENCES and self._state == "text":
            if (line := _FENCE_LINE.match(text, at)) is None:
                return NOT_YET if _FENCE_LINE_BEGUN.fullmatch(text, at) else NEVER
            at = _skip_space(text, line.end())
            if at - line.end() > MOST_BLANKS:
                return NEVER
            if at == len(text):
                return NOT_YET
        opening = Opening(BARE, "", at) if text.startswith("{", at) else find_form(text, at, self._offered)
        if isinstance(opening, int) or opening.form.content != "call":
            return opening
        known = _first_key_known(text, opening.end)
        return opening if known >= 0 else known

    def _open(self, opening: Opening) -> None:
        if self._state == "text" and (line := _FENCE_LINE.match(self._buffer)):
            self._fence = line[1]
        content = opening.form.content
        self._opening, self._state = opening, "content"
        self._head, self._buffer = self._buffer[: opening.end], self._buffer[opening.end :]
        self._content = Markup(content, self._offered.get(opening.tool, {})) if isinstance(content, Values) else JsonObject()
        self._content_chars = 0

    # Calls

    def _read_content(self, pieces: list[str | LeakedCall]) -> bool:
        self._content_chars += len(self._buffer)
        if (rest := self._content.take(self._buffer)) is None:
            self._buffer = ""
            return False
        if (call := self._as_call()) is None:
            self._release(pieces)
        else:
            self._calls.append(call)
            own = (*self._opening.form.closers, *END_MARKS)
            self._closers = own if self._opening.form is not BARE or len(self._calls) == 1 else self._closers
            self._state = "closing"
        self._buffer = rest
        return True

    def _add_to_call(self, size: int) -> None:
        last = self._calls[-1]
        self._calls[-1] = last._replace(raw=last.raw + self._buffer[:size])
        self._buffer = self._buffer[size:]

    def _as_call(self) -> LeakedCall | None:
        raw = self._head + self._content.text
        if isinstance(self._content, Markup):
            markup = self._content
            return None if markup.arguments is None else LeakedCall(self._opening.tool, markup.arguments, raw, markup.problem)
        if self._opening.form is BARE and not (self._may_be_bare or self._calls):
            return None
        try:
            value = _decoder.decode(self._content.text)
        except (ValueError, RecursionError):
            return None
        if self._opening.form.content == "arguments":
            return LeakedCall(self._opening.tool, self._content.text, raw)
        call = _name_and_arguments(value)
        return LeakedCall(*call, raw) if call is not None and call[0] in self._offered else None

    # Emitting text

    def _pass_through(self, size: int, pieces: list[str | LeakedCall]) -> None:
        text, self._buffer = self._buffer[:size], self._buffer[size:]
        self._let_through(text, pieces)

    def _release(self, pieces: list[str | LeakedCall]) -> None:
        read = self._head + self._content.text if self._state == "content" else ""
        self._let_through("".join(call.raw for call in self._calls) + read, pieces)
        self._state, self._calls, self._fence, self._num_fences = "text", [], "", 0

    def _let_through(self, text: str, pieces: list[str | LeakedCall]) -> None:
        if text:
            self.follow(text)
            pieces.append(text)


def find_calls_in_reasoning(reasoning: str, offered: Mapping[str, Mapping[str, Any]]) -> Sequence[LeakedCall]:
    """Find calls at the very end of the reasoning, for responses without other content.

    There the model forgot to close its reasoning; earlier mentions are only considerations.
    """
    scanner = LeakedCalls(offered, may_be_bare=False)
    pieces = (*scanner.feed(reasoning), *scanner.flush())
    return [piece for piece in pieces if isinstance(piece, LeakedCall) and not piece.in_fence]


def _first_key_known(text: str, at: int) -> int:
    if (key := _FIRST_KEY.match(text, at)) is None:
        return NOT_YET if _FIRST_KEY_BEGUN.fullmatch(text, at) else NEVER
    if key[2]:
        return at if key[1] in FIRST_KEYS else NEVER
    may_become = key.end() == len(text) and any(known.startswith(key[1]) for known in FIRST_KEYS)
    return NOT_YET if may_become else NEVER


def _name_and_arguments(value: Any) -> tuple[str, str] | None:
    """`{"name": …, "arguments": {…}}` and variants; `{"type": "function", "function": {…}}` nests one."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("function"), Mapping):
        return _name_and_arguments(value["function"])
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in ARGUMENTS if key in value), None)
    if name is None:
        return None
    if isinstance(arguments, Mapping):
        return name, json.dumps(arguments, ensure_ascii=False)
    return (name, arguments) if isinstance(arguments, str) else None


def _skip_space(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None  # may match the empty string
    return blanks.end()
