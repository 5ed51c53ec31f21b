"""Separate reasoning in think tags and tool calls written as text from the text of a response."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from wolo.messages.deltas import Delta, TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from wolo.formats.text_recovery.leaked_calls import LeakedCall, LeakedCalls

TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
CLOSERS = tuple(TAGS.values())
FIRST_LETTERS = "<[◁`"
"""Text without these contains no tag and no code quoting."""
FIELD = "text"
"""Field name of reasoning extracted from text; it is not replayed."""

MOST_BLANKS = 1_000
"""More blanks do not precede a tag: degenerate output may consist of endless blanks."""

MAY_OPEN, MAY_OPEN_AT_END = "{`~<[=", "to"
"""Text without these characters, or these at its end, contains no start of a call."""
_CALL_STARTS = ("{", "`", "~", "<", "[", "to=")
_TRIANGLE = "◁"  # in a pattern, a set with a letter beyond Latin-1 takes twenty times as long to compile
_MAY_CLOSE = re.compile(r"[<\[](?:/|\Z)")
_may_matter = re.compile(f"[{re.escape(FIRST_LETTERS.replace(_TRIANGLE, '') + MAY_OPEN)}]").search


class TextFilter:
    """Filters streamed text, however it is chunked. `finish` emits calls, since a native one may still arrive."""

    def __init__(self, offered: Mapping[str, Mapping[str, Any]], *, think_tags: bool, leaked_calls: bool) -> None:
        """`offered` maps tool names to argument schemas."""
        self._offered = offered
        self._tags = ThinkTags() if think_tags else None
        self._scanner = CallScanner(offered) if leaked_calls and offered else None
        self._held: list[str | LeakedCall] = []
        """Text from the first leaked call on, held until no native call can follow."""
        self._is_idle = False
        """Irrelevant text passes through unread."""

    @property
    def held_chars(self) -> int:
        """Characters read but not emitted yet."""
        return (self._scanner.held_chars if self._scanner is not None else 0) + (self._tags.held_chars if self._tags else 0)

    def feed(self, text: str, deltas: list[Delta]) -> None:
        if self._is_idle and not _may_matter(text) and _TRIANGLE not in text and text[-1:] not in MAY_OPEN_AT_END:
            deltas.append(TextDelta(text))
            if self._scanner is not None:
                self._scanner.follow(text)
            return
        for piece in self._tags.feed(text) if self._tags is not None else (TextDelta(text),):
            if isinstance(piece, TextDelta):
                self._scan_text(piece.text, deltas)
                continue
            if piece.takes_text and self._scanner is not None:  # calls inside what turned out to be reasoning are text
                for rest in self._scanner.flush():
                    self._emit(rest, deltas)
                held, self._held = self._held, []
                self._scanner = CallScanner(self._offered)
                deltas += (TextDelta(each if isinstance(each, str) else each.raw) for each in held)
            deltas.append(piece)
        self._is_idle = (
            (self._tags is None or self._tags.is_idle) and (self._scanner is None or self._scanner.is_idle) and not self._held
        )

    def stop_tags(self, deltas: list[Delta]) -> None:
        """Reasoning arrived separately: tags in the text are plain text."""
        self._flush_tags(deltas)
        self._tags = None

    def stop(self, deltas: list[Delta]) -> None:
        """A native call arrived: all further text is plain."""
        if self._tags is not None or self._scanner is not None:
            self._flush(deltas)
            self._tags = self._scanner = None

    def _flush_tags(self, deltas: list[Delta]) -> None:
        """Emit held text: it was not the start of a tag."""
        for piece in self._tags.flush() if self._tags is not None else ():
            if isinstance(piece, TextDelta):
                self._scan_text(piece.text, deltas)
            else:
                deltas.append(piece)

    def _flush(self, deltas: list[Delta]) -> None:
        self._flush_tags(deltas)
        for rest in self._scanner.flush() if self._scanner is not None else ():
            self._emit(rest, deltas)

    def finish(self, deltas: list[Delta], call: Callable[[LeakedCall], Sequence[Delta]]) -> None:
        """End of the response; `call` converts passages that look like calls.

        A passage that may be an example is also emitted as text, since the user decides about the call.
        """
        self._flush(deltas)
        held, self._held = self._held, []
        for piece in held:
            if isinstance(piece, str):
                deltas.append(TextDelta(piece))
            elif piece.in_fence:
                deltas += (TextDelta(piece.raw), *call(piece._replace(raw="")))
            else:
                deltas += call(piece)

    def _scan_text(self, text: str, deltas: list[Delta]) -> None:
        if self._scanner is None:
            deltas.append(TextDelta(text))
            return
        for piece in self._scanner.feed(text):
            self._emit(piece, deltas)

    def _emit(self, piece: str | LeakedCall, deltas: list[Delta]) -> None:
        if self._held or not isinstance(piece, str):
            self._held.append(piece)
        else:
            deltas.append(TextDelta(piece))


class CallScanner:
    """Splits text like `LeakedCalls`, which is loaded when a line begins like a call."""

    def __init__(self, offered: Mapping[str, Mapping[str, Any]]) -> None:
        self._offered = offered
        self._calls: LeakedCalls | None = None
        self._passed: list[str] = []
        """Text before a line began like a call."""
        self._is_line_start = True

    @property
    def is_idle(self) -> bool:
        """Text without `MAY_OPEN` and `MAY_OPEN_AT_END` would pass unchanged."""
        return self._calls is None or self._calls.is_idle

    @property
    def held_chars(self) -> int:
        return 0 if self._calls is None else self._calls.held_chars

    def follow(self, text: str) -> None:
        """Record text that was passed through unread."""
        if self._calls is not None:
            self._calls.follow(text)
            return
        self._passed.append(text)
        if "\n" in text:
            self._is_line_start = not text.rpartition("\n")[2].strip()
        elif self._is_line_start:
            self._is_line_start = not text.strip()

    def feed(self, text: str) -> Sequence[str | LeakedCall]:
        if self._calls is None:
            first, *others = (line.lstrip() for line in text.split("\n"))
            begun = (first, *others) if self._is_line_start else others
            if not any(line.startswith(_CALL_STARTS) or line in ("t", "to") for line in begun):
                self.follow(text)
                return (text,) if text else ()
            from wolo.formats.text_recovery.leaked_calls import LeakedCalls  # noqa: PLC0415  # many patterns, for few answers

            self._calls = LeakedCalls(self._offered)
            if self._passed:
                self._calls.follow("".join(self._passed))
        return self._calls.feed(text)

    def flush(self) -> Sequence[str | LeakedCall]:
        """The text ended, or something else arrived."""
        return () if self._calls is None else self._calls.flush()


class ThinkTags:
    """Splits streamed text into text and thinking, however it is chunked.

    A block counts at the start of the response or after another block. Some templates open the block themselves: then a lone
    closing tag turns all text before it into reasoning, unless it is inside quoted code.
    """

    def __init__(self, *, may_be_unopened: bool = True) -> None:
        """`may_be_unopened` False: ignore a lone closing tag."""
        self._state: Literal["start", "inside", "after", "text"] = "start"
        self._closer = ""
        self._held = ""
        """Text that may start a tag."""
        self._may_be_unopened = may_be_unopened
        self._backticks = 0

    @property
    def is_idle(self) -> bool:
        """Text without `FIRST_LETTERS` would pass unchanged."""
        return self._state == "text" and not self._held

    @property
    def held_chars(self) -> int:
        return len(self._held)

    def feed(self, text: str) -> Sequence[TextDelta | ThinkingDelta]:
        may_close = self._may_be_unopened and _MAY_CLOSE.search(text.replace(_TRIANGLE, "<"))
        if self._state == "text" and not self._held and not may_close:
            self._backticks += text.count("`") if self._may_be_unopened else 0
            return (TextDelta(text),)
        self._held += text
        return list(self._split())

    def release(self) -> Sequence[TextDelta]:
        """Emit held plain text because something else follows it; more text may come."""
        if self._state == "inside":
            return ()
        held, self._held = self._held, ""
        self._state = "text"
        return (TextDelta(held),) if held else ()

    def flush(self) -> Sequence[TextDelta | ThinkingDelta]:
        """Emit held text: it was not a tag."""
        held, self._held = self._held, ""
        if self._state == "inside":
            return (ThinkingDelta(held, FIELD),) if held else ()
        after, self._state = self._state == "after", "text"
        self._may_be_unopened = False
        held = held.lstrip() if after else held
        return (TextDelta(held),) if held else ()

    def _split(self) -> Iterator[TextDelta | ThinkingDelta]:
        while self._state in ("inside", "text") or self._begin():
            if self._state == "text":
                yield from self._split_text()
            else:
                thought, closed, rest = self._held.partition(self._closer)
                safe = len(thought) - (0 if closed else size_of_begun_tag(thought, (self._closer,)))
                self._state, self._held = ("after", rest) if closed else ("inside", thought[safe:])
                if safe:
                    yield ThinkingDelta(thought[:safe], FIELD)
            if self._state != "after":
                return

    def _begin(self) -> bool:
        """False while it is unknown whether a block starts."""
        begun = self._held.lstrip()
        is_blank = len(self._held) - len(begun) > MOST_BLANKS
        opener = None if is_blank else next((tag for tag in TAGS if begun.startswith(tag)), None)
        if opener is not None:
            self._state, self._closer, self._held = "inside", TAGS[opener], begun[len(opener) :]
            self._may_be_unopened = False
            return True
        if not is_blank and any(tag.startswith(begun) for tag in TAGS):
            return False
        self._held = begun if self._state == "after" and not is_blank else self._held
        self._state = "text"
        return True

    def _split_text(self) -> Iterator[TextDelta | ThinkingDelta]:
        held = self._held
        closers = CLOSERS if self._may_be_unopened else ()
        first = min(((at, tag) for tag in closers if (at := held.find(tag)) >= 0), default=None)
        if first is not None:
            at, closer = first
            self._may_be_unopened = False
            if (self._backticks + held.count("`", 0, at)) % 2 == 0:
                self._state, self._held = "after", held[at + len(closer) :]
                yield ThinkingDelta(held[:at], FIELD, takes_text=True)
                return
        safe = len(held) - (size_of_begun_tag(held, CLOSERS) if self._may_be_unopened else 0)
        self._held = held[safe:]
        self._backticks += held.count("`", 0, safe)
        if safe:
            yield TextDelta(held[:safe])


def size_of_begun_tag(text: str, tags: Sequence[str]) -> int:
    """Number of trailing characters that may start a tag."""
    longest = min(len(text), max(map(len, tags)) - 1)
    return next((size for size in range(longest, 0, -1) if any(tag.startswith(text[-size:]) for tag in tags)), 0)
