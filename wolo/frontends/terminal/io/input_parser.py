"""What comes from the keyboard: keys one by one, and pastes as a whole, whether the terminal marks them or not."""

from __future__ import annotations

import re
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from wolo.frontends.terminal.io.focus_tracking import FOCUS_IN, FOCUS_OUT, Presence
from wolo.frontends.terminal.io.pastes import readable

BEGIN, END = "\x1b[200~", "\x1b[201~"
"""How terminals mark a paste, those that do."""
MOST_READ_BYTES = 65_536
SAME_PASTE_S = 0.02
"""What comes sooner after the piece before belongs to the same paste."""
LAST_LINE_S = 0.1
"""Nor does anyone press Enter so soon after the last of several lines: it is one more line end of the paste, or its last one."""
NEXT_LINE_S = 0.03
"""A line that came with its end is waited on for so long: it may be the first of several."""
BURST_S = 0.1
"""A line end so soon after a paste is looked behind for as long as after any piece of it."""
MOST_S = 1.0
"""Nothing else is done while a paste is taken in; so it is for so long at a time."""
FASTEST_CHARS = 64
"""More at once than fingers type: it was pasted."""

STOP = "\x03"
_UNFINISHED = re.compile(r"(?:\r|\x1b(?:\[[0-?]*[ -/]*)?)\Z")
"""The end of a piece of a paste, where the next one may make a line end, a sequence or the mark of the end of it."""
_REPORT = re.compile(f"({re.escape(FOCUS_IN)}|{re.escape(FOCUS_OUT)})")


class Incoming(Vt100Input):
    def __init__(self, presence: Presence) -> None:
        """The `presence` hears of every key, and of what the terminal says of itself, which is no key."""
        super().__init__(sys.stdin)
        self._presence = presence
        for report in (FOCUS_IN, FOCUS_OUT):
            ansi_escape_sequences.ANSI_SEQUENCES[report] = Keys.Ignore  # one that came in pieces
        self.stdin_reader = PosixStdinReader(self._fileno, encoding="utf-8")
        self._held = ""
        """What may be the beginning of a mark."""
        self._escaped = False
        """What came last was an Escape, and nothing for so long that it counts as the key."""
        self._open: str | None = None
        """What has come of a marked paste that has not ended, and is not given out; None: there is none."""
        self._does_mark = False
        """The terminal is known to mark pastes, because it did. Those that report whether one looks at them do so, too."""
        self._pasted_at = float("-inf")
        self._reported = ""
        """What the terminal has said of itself, behind all keys."""

    def read_keys(self) -> list[KeyPress]:
        come = self._read()
        if come == STOP:
            self._open = None  # its end may be lost on the way: nobody shall be shut out
        elif self._escaped and come.startswith(BEGIN[1:]):
            come = BEGIN[:1] + come
        text, self._held, self._escaped = self._held + come, "", False
        while text:
            text = self._take(text)
        return self._taken()

    def _take(self, text: str) -> str:
        """Takes in its beginning, and returns what has to be looked at anew."""
        if self._open is not None:
            return self._marked(text)
        text = self._without_reports(text)
        before, mark, behind = text.partition(BEGIN)
        if mark:
            self._keys(before)
            self._open, self._does_mark = "", True
            return self._marked(behind)
        self._held = _beginning_of_mark(text)
        if self._held and (more := self._more(SAME_PASTE_S)):
            self._held = ""
            return text + more
        return self._unmarked(text.removesuffix(self._held))

    def flush_keys(self) -> list[KeyPress]:
        """Nothing has come for a moment: a lone Escape is the key, and a paste shows as far as it has come."""
        if self._held == BEGIN[:1]:
            self._keys(self._held)
            self._held, self._escaped = "", True
        if self._open:
            unfinished = _UNFINISHED.search(self._open)
            at = unfinished.start() if unfinished else len(self._open)
            self._paste(self._open[:at])
            self._open = self._open[at:]
        return [*self._taken(), *super().flush_keys()]

    def _marked(self, text: str) -> str:
        """Takes a paste as far as it has come, and returns what stands behind its end.

        An end mark with more behind it, and another end mark behind that, was pasted itself.
        """
        pieces, began = [self._open or "", text], time.monotonic()
        while (more := self._more(SAME_PASTE_S)) and time.monotonic() - began < MOST_S:
            pieces.append(more)
        whole = "".join(pieces)
        if (end := whole.find(END)) < 0:
            self._open = whole
            return ""
        next_one = whole.find(BEGIN, end)  # one before the first end was pasted, too
        pasted, following = (whole, "") if next_one < 0 else (whole[:next_one], whole[next_one:])
        within, _, behind = pasted.rpartition(END)
        self._open = None
        self._paste(within)
        return behind + following

    def _unmarked(self, text: str) -> str:
        """Several lines at once, or very much of one, were pasted, too: a line end in them does not send.

        Returns what came behind it and is no text.
        """
        if "\x1b" in text or not self._may_go_on(text):
            self._keys(text)
            return ""
        began = time.monotonic()
        pieces = [text]
        while not self._held and time.monotonic() - began < MOST_S and (more := self._more(self._patience_s(pieces))):
            pieces.append(more := self._without_reports(more))
            if "\x1b" in more:
                break
        text, escape, rest = "".join(pieces).partition("\x1b")
        if _is_paste(text):
            ends = text.endswith(("\r", "\n")) and not escape
            self._pasted_at = time.monotonic()
            self._paste(text[:-1] if ends else text)
            self._keys("\r" if ends else "")
        else:
            self._keys(text)
        return escape + rest

    def _may_go_on(self, text: str) -> bool:
        """Fingers press Enter by itself; and where pastes are marked, it ends what was typed before it."""
        return _is_paste(text) or (text.endswith(("\r", "\n")) and not self._does_mark)

    def _patience_s(self, pieces: list[str]) -> float:
        if len(pieces) > 1 or _has_lines(pieces[0]):
            return LAST_LINE_S
        if len(pieces[0]) > 2:
            return NEXT_LINE_S if pieces[0].endswith(("\r", "\n")) else SAME_PASTE_S
        return SAME_PASTE_S if time.monotonic() - self._pasted_at < BURST_S else 0.0

    def _without_reports(self, text: str) -> str:
        """What the terminal says of itself stands anywhere between the keys. Whoever has pressed one since then looks at it."""
        pieces = _REPORT.split(text)
        if reports := pieces[1::2]:
            self._does_mark, self._reported = True, reports[-1]
        if self._reported and pieces[-1] != _beginning_of_mark(pieces[-1]):
            self._reported = FOCUS_IN
        return "".join(pieces[::2])

    def _more(self, patience_s: float) -> str:
        """What comes in this time; empty when nothing does."""
        try:
            ready, _, _ = select.select([self._fileno], [], [], patience_s)
        except (OSError, ValueError):
            return ""
        return self._read() if ready else ""

    def _read(self) -> str:
        """Bytes that are no text become a sign for that at once: halves of characters can be neither shown nor kept."""
        return readable(self.stdin_reader.read(MOST_READ_BYTES))

    def _paste(self, text: str) -> None:
        if text:
            self._buffer.append(KeyPress(Keys.BracketedPaste, text))

    def _keys(self, text: str) -> None:
        self.vt100_parser.feed(text)

    def _taken(self) -> list[KeyPress]:
        taken, self._buffer = self._buffer, []
        keys = [key for key in taken if not self._presence.hear(key.data)]
        if self._reported:
            self._presence.hear(self._reported)
            self._reported = ""
        return keys

    @contextmanager
    def raw_mode(self) -> Iterator[None]:
        with super().raw_mode():
            self._presence.report(True)
            try:
                yield
            finally:
                self._presence.report(False)

    @contextmanager
    def cooked_mode(self) -> Iterator[None]:
        """While the terminal is another's."""
        self._presence.report(False)
        try:
            with super().cooked_mode():
                yield
        finally:
            self._presence.report(True)


def _is_paste(text: str) -> bool:
    return _has_lines(text) or len(text) >= FASTEST_CHARS


def _has_lines(text: str) -> bool:
    """A line end with something behind it."""
    lines = text.replace("\r", "\n").strip("\n")
    return "\n" in lines


def _beginning_of_mark(text: str) -> str:
    """The end of a text, where it may be the first half of the mark of a paste."""
    return next((text[-size:] for size in range(len(BEGIN) - 1, 0, -1) if text.endswith(BEGIN[:size])), "")
