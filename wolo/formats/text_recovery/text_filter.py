"""The text of one answer, with what servers leave in it: reasoning between tags, and calls that were written out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wolo.formats.text_recovery.leaked_calls import MAY_OPEN, MAY_OPEN_AT_END, Leaked, LeakedCalls
from wolo.formats.text_recovery.think_tags import FIRST_LETTERS, ThinkTags
from wolo.messages.deltas import Delta, TextDelta

_may_matter = re.compile(f"[{re.escape(FIRST_LETTERS + MAY_OPEN)}]").search


class SpokenText:
    """Takes text as it streams; how it is cut changes nothing. Calls are given by `settle`: a real one may still come."""

    def __init__(self, offered: Mapping[str, Mapping[str, Any]], *, think_tags: bool, leaked_calls: bool) -> None:
        """`offered` holds the schema of every tool's arguments."""
        self._offered = offered
        self._tags = ThinkTags() if think_tags else None
        self._scanner = LeakedCalls(offered) if leaked_calls and offered else None
        self._behind_leak: list[str | Leaked] = []
        """From the first call written as text on: held until it is sure that no real call comes."""
        self._is_idle = False
        """Text that cannot matter goes through unread, as nearly all text does."""

    @property
    def held_chars(self) -> int:
        """How much was read and is not given yet: it may become a tag or a call."""
        return (self._scanner.held_chars if self._scanner is not None else 0) + (self._tags.held_chars if self._tags else 0)

    def feed(self, text: str, deltas: list[Delta]) -> None:
        if self._is_idle and not _may_matter(text) and text[-1:] not in MAY_OPEN_AT_END:
            deltas.append(TextDelta(text))
            if self._scanner is not None:
                self._scanner.follow(text)
            return
        self._read(text, deltas)
        self._is_idle = (
            (self._tags is None or self._tags.is_idle)
            and (self._scanner is None or self._scanner.is_idle)
            and not self._behind_leak
        )

    def expect_no_tags(self, deltas: list[Delta]) -> None:
        """Reasoning came by its own name: tags in the text are text. A call may still be followed by more text."""
        self._let_tags_go(deltas)
        self._tags = None

    def expect_plain(self, deltas: list[Delta]) -> None:
        """A real call came: all further text is just that."""
        if self._tags is not None or self._scanner is not None:
            self._flush(deltas)
            self._tags = self._scanner = None

    def _let_tags_go(self, deltas: list[Delta]) -> None:
        """What may have been the beginning of a tag was just text."""
        for piece in self._tags.expect_no_more() if self._tags is not None else ():
            if isinstance(piece, TextDelta):
                self._speak(piece.text, deltas)
            else:
                deltas.append(piece)

    def _flush(self, deltas: list[Delta]) -> None:
        """No more text comes in which a tag or a call could end."""
        self._let_tags_go(deltas)
        for rest in self._scanner.expect_no_more() if self._scanner is not None else ():
            self._pass_on(rest, deltas)

    def settle(self, deltas: list[Delta], call: Callable[[Leaked], Sequence[Delta]]) -> None:
        """The answer has ended: `call` says what a passage that looks like a call becomes.

        One that may be an example is text as well: a person decides about the call, and reads the answer as it was written.
        """
        self._flush(deltas)
        held, self._behind_leak = self._behind_leak, []
        for piece in held:
            if isinstance(piece, str):
                deltas.append(TextDelta(piece))
            elif piece.in_fence:
                deltas += (TextDelta(piece.raw), *call(piece._replace(raw="")))
            else:
                deltas += call(piece)

    def _read(self, text: str, deltas: list[Delta]) -> None:
        if self._tags is None:
            self._speak(text, deltas)
            return
        for piece in self._tags.feed(text):
            if isinstance(piece, TextDelta):
                self._speak(piece.text, deltas)
            else:
                deltas += self._unleaked() if piece.takes_text else ()
                deltas.append(piece)

    def _speak(self, text: str, deltas: list[Delta]) -> None:
        if self._scanner is None:
            deltas.append(TextDelta(text))
            return
        for piece in self._scanner.feed(text):
            self._pass_on(piece, deltas)

    def _pass_on(self, piece: str | Leaked, deltas: list[Delta]) -> None:
        if self._behind_leak or isinstance(piece, Leaked):
            self._behind_leak.append(piece)
        else:
            deltas.append(TextDelta(piece))

    def _unleaked(self) -> list[Delta]:
        """Calls written in what turned out to be reasoning are no calls."""
        deltas: list[Delta] = []
        for rest in self._scanner.expect_no_more() if self._scanner is not None else ():
            self._pass_on(rest, deltas)
        held, self._behind_leak = self._behind_leak, []
        self._scanner = LeakedCalls(self._offered) if self._scanner is not None else None
        return [*deltas, *(TextDelta(piece.raw if isinstance(piece, Leaked) else piece) for piece in held)]
