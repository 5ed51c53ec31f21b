"""Reads the keyboard: keys one by one, pastes as a whole whether the terminal marks them or not, and focus reports."""

from __future__ import annotations

import asyncio
import os
import re
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from prompt_toolkit import Application
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from wolo.frontends.terminal.io.prompt_toolkit_adapter import KeyInput, map_sequence

if TYPE_CHECKING:
    from wolo.frontends.terminal.io.terminal_output import Sender

BEGIN, END = "\x1b[200~", "\x1b[201~"
"""Marks around a paste, from terminals that send them."""
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
"""Sent by a terminal that gains or loses focus, once it was asked to report it."""
REPORT, NO_REPORT = "\x1b[?1004h", "\x1b[?1004l"
FULL_KEYS, PLAIN_KEYS = "\x1b[>1u\x1b[>4;1m", "\x1b[<u\x1b[>4;0m"
"""Ask for keys with their modifiers, by kitty's protocol and by xterm's modifyOtherKeys, and give that back."""
ASK_GROUND = "\x1b]11;?\x1b\\"
"""Asks for the colour of the background."""
GROUND_S = 2.0
"""Time after which an answer comes too late to be believed."""
_GROUND = r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})[0-9a-fA-F/]*(?:\x07|\x1b\\)"
_PARTIAL_GROUND = r"\x1b\](?:1(?:1(?:;[rgba:0-9A-Fa-f/]{0,30}\x1b?)?)?)?\Z"
MOST_READ_BYTES = 65_536
SAME_PASTE_S = 0.02
"""Input that follows sooner belongs to the same paste."""
LAST_LINE_S = 0.1
"""Wait after the last of several lines: nobody presses Enter sooner, so a line end is part of the paste."""
NEXT_LINE_S = 0.03
"""Wait after one line that came with its line end: more lines may follow."""
BURST_S = 0.1
"""A line end so soon after a paste may be followed by more of it."""
MOST_S = 1.0
"""Longest time that reading one paste blocks everything else."""
FASTEST_CHARS = 64
"""More characters at once were not typed."""

STOP = ("\x03", "\x1b[99;5u")
_FULL_KEY = r"\x1b\[(?:(\d+)(?::\d*)*(?:;(\d+)(?::\d+)?(?:;[\d:]*)?)?u|27;(\d+);(\d+)~)"
"""A key of either protocol: code and modifiers, or modifiers and code."""
_LOCKED_KEY = r"\x1b\[(\d+);(\d+)([A-HPQS~])"
"""A key that moves, perhaps with Caps Lock or Num Lock among its modifiers."""
_PARTIAL_KEY = r"\x1b\[[\d:;]{1,16}\Z"
_SHIFT, _ALT, _CONTROL, _LOCKS = 1, 2, 4, 64 | 128
_KEYPAD = {57399 + at: character for at, character in enumerate("0123456789./*-+\r=,")}
_UNFINISHED = re.compile(r"(?:\r|\x1b(?:\[[0-?]*[ -/]*)?)\Z")
"""End of a piece that the next piece may complete to a line end, a sequence or the end mark."""
_REPORT = re.compile(f"({re.escape(FOCUS_IN)}|{re.escape(FOCUS_OUT)})")
_IN_TEXT = (Keys.ControlM, Keys.ControlJ, Keys.ControlI)
"""Line ends and tabs."""


class Grounded(Protocol):
    theme: str
    ground: str
    """`dark` or `light`."""


class FocusTracker:
    """Tells whether the user looks at the terminal: from its focus reports, or else from the keys pressed."""

    def __init__(self, sender: Sender | None, grounded: Grounded | None = None) -> None:
        """Without a `sender` the terminal is never asked to report; `grounded` gets the background where its theme is `auto`."""
        self._sender, self._grounded = sender, grounded
        self._asked_at: float | None = None
        """Time of the question about the background."""
        self._is_in_front: bool | None = None
        """None: the terminal has not reported; many never do."""
        self._pressed_at = time.monotonic()
        self._changed = asyncio.Event()

    def report(self, enabled: bool) -> None:
        """Asks for reports and for keys with their modifiers, or gives both back."""
        if self._sender is not None:
            keys = (FULL_KEYS if enabled else PLAIN_KEYS) if _has_full_keys() else ""
            ground = ""
            if enabled and keys and self._asked_at is None and self._grounded is not None and self._grounded.theme == "auto":
                ground, self._asked_at = ASK_GROUND, time.monotonic()
            self._sender.send((REPORT if enabled else NO_REPORT) + keys + ground)
        self._is_in_front = None

    def on_key(self, data: str) -> bool:
        """True for a focus report; anything else was pressed by the user, who is here then."""
        if is_report := data in (FOCUS_IN, FOCUS_OUT):
            self._is_in_front = data == FOCUS_IN
        else:
            self._pressed_at = time.monotonic()
            self._is_in_front = True if self._is_in_front is not None else None
        self._changed.set()
        return is_report

    @property
    def expects_ground(self) -> bool:
        """The terminal may still answer the question about its background."""
        return self._asked_at is not None and time.monotonic() - self._asked_at < GROUND_S

    def without_ground(self, text: str) -> str:
        """Takes the answer about the background out of the text; one that came too late changes nothing."""
        if (answer := re.search(_GROUND, text)) is None:
            return text
        if self.expects_ground and self._grounded is not None:
            red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in answer.groups())
            self._grounded.ground = "light" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "dark"
        return text[: answer.start()] + text[answer.end() :]

    def is_away(self, after_s: float) -> bool:
        """Without focus reports: no key was pressed for so long."""
        if self._is_in_front is not None:
            return not self._is_in_front
        return time.monotonic() - self._pressed_at >= after_s

    async def until_away(self, after_s: float) -> None:
        while not self.is_away(after_s):
            self._changed.clear()
            left_s = None if self._is_in_front else self._pressed_at + after_s - time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()


class TerminalInput(KeyInput):
    def __init__(self, focus: FocusTracker) -> None:
        super().__init__()
        self._focus = focus
        for ignored in (FOCUS_IN, FOCUS_OUT, END):  # reports that came in pieces; an end mark that was pasted itself
            map_sequence(ignored, Keys.Ignore)
        map_sequence("\x1b[27u", Keys.Escape)
        self._held = ""
        """Input that may be the beginning of a mark."""
        self._escaped = False
        """The last input was an Escape that was given out as a key."""
        self._open: str | None = None
        """Text of a marked paste that has not ended and was not given out; None: there is none."""
        self._does_mark = False
        """The terminal has marked a paste or reported focus; terminals that do one do the other."""
        self._pasted_at = float("-inf")
        self._reported = ""
        """The last focus report, handled after all keys."""

    def read_keys(self) -> list[KeyPress]:
        if (come := self.read_text(MOST_READ_BYTES)) in STOP:
            self._open = None  # the end mark may be lost: Ctrl-C always works
        elif self._escaped and come.startswith(BEGIN[1:]):
            come = BEGIN[:1] + come
        text, self._held, self._escaped = self._held + come, "", False
        while text:
            text = self._parse(text)
        return self._pop()

    def parse_keys(self, text: str) -> None:
        if "\x1b[" in text:
            text = re.sub(_LOCKED_KEY, _without_locks, re.sub(_FULL_KEY, _as_plain_key, text))
        super().parse_keys(text)

    def flush_keys(self) -> list[KeyPress]:
        """Called after a moment without input: gives out a lone Escape, and an unfinished paste as far as it has come."""
        if self._held == BEGIN[:1]:
            self.parse_keys(self._held)
            self._held, self._escaped = "", True
        if self._open:
            unfinished = _UNFINISHED.search(self._open)
            at = unfinished.start() if unfinished else len(self._open)
            self._paste(self._open[:at])
            self._open = self._open[at:]
        return [*self._pop(), *super().flush_keys()]

    def _parse(self, text: str) -> str:
        """Parses the beginning, and returns the rest."""
        if self._open is not None:
            return self._read_marked_paste(text)
        text = self._without_reports(self._focus.without_ground(text))
        if self._focus.expects_ground and (partial := re.search(_PARTIAL_GROUND, text)):
            self._held = partial[0]
            more = self._more(SAME_PASTE_S)
            self._held = "" if more else self._held
            return text + more if more else self._read_unmarked_paste(text.removesuffix(self._held))
        before, mark, behind = text.partition(BEGIN)
        if mark:
            self.parse_keys(before)
            self._open, self._does_mark = "", True
            return self._read_marked_paste(behind)
        self._held = _beginning_of_mark(text)
        if self._held and (more := self._more(SAME_PASTE_S)):
            self._held = ""
            return text + more
        return self._read_unmarked_paste(text.removesuffix(self._held))

    def _read_marked_paste(self, text: str) -> str:
        """Reads a paste as far as it has come, and returns the text behind its end.

        An end mark that is followed by more text and another end mark was pasted itself.
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

    def _read_unmarked_paste(self, text: str) -> str:
        """Treats several lines at once, or one very long one, as a paste: its line ends do not send.

        Returns the rest, from the first escape sequence on.
        """
        if "\x1b" in text or not (_is_paste(text) or (text.endswith(("\r", "\n")) and not self._does_mark)):
            self.parse_keys(text)
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
            self.parse_keys("\r" if ends else "")
        else:
            self.parse_keys(text)
        return escape + rest

    def _patience_s(self, pieces: list[str]) -> float:
        if len(pieces) > 1 or _has_lines(pieces[0]):
            return LAST_LINE_S
        if len(pieces[0]) > 2:
            return NEXT_LINE_S if pieces[0].endswith(("\r", "\n")) else SAME_PASTE_S
        return SAME_PASTE_S if time.monotonic() - self._pasted_at < BURST_S else 0.0

    def _without_reports(self, text: str) -> str:
        """Takes out focus reports, which stand anywhere between keys. A key pressed after one means focus."""
        pieces = _REPORT.split(text)
        if reports := pieces[1::2]:
            self._does_mark, self._reported = True, reports[-1]
        if self._reported and pieces[-1] != _beginning_of_mark(pieces[-1]):
            self._reported = FOCUS_IN
        return "".join(pieces[::2])

    def _more(self, patience_s: float) -> str:
        """Input within this time; empty when there is none."""
        try:
            ready, _, _ = select.select([self.descriptor], [], [], patience_s)
        except (OSError, ValueError):
            return ""
        return self.read_text(MOST_READ_BYTES) if ready else ""

    def _paste(self, text: str) -> None:
        if text:
            self.add_key(KeyPress(Keys.BracketedPaste, text))

    def _pop(self) -> list[KeyPress]:
        keys = [key for key in self.pop_keys() if not self._focus.on_key(key.data)]
        if self._reported:
            self._focus.on_key(self._reported)
            self._reported = ""
        return keys

    @contextmanager
    def raw_mode(self) -> Iterator[None]:
        with super().raw_mode():
            self._focus.report(True)
            try:
                yield
            finally:
                self._focus.report(False)

    @contextmanager
    def cooked_mode(self) -> Iterator[None]:
        """Another program has the terminal while the block runs."""
        self._focus.report(False)
        try:
            with super().cooked_mode():
                yield
        finally:
            self._focus.report(True)


def is_within_paste(app: Application[Any]) -> bool:
    """Text that arrived together with this Enter follows it, so the Enter was pasted.

    Keys that write nothing do not count: the user may type ahead.
    """
    behind = [pressed.key for pressed in app.key_processor.input_queue]
    return bool(behind) and (not isinstance(behind[0], Keys) or behind[0] in _IN_TEXT or behind[0] == Keys.Escape != behind[-1])


def _has_full_keys() -> bool:
    """False for terminals that take the request for something else."""
    if os.environ.get("TERM_PROGRAM") == "Apple_Terminal" or os.environ.get("TERM", "") in ("linux", "dumb", ""):
        return False
    return not os.environ.get("STY")  # GNU screen


def _as_plain_key(key: re.Match[str]) -> str:
    """The key as terminals without these protocols send it; Shift-Enter and Escape stay as they are."""
    code, modifiers = (int(key[1]), int(key[2] or 1)) if key[1] else (int(key[4]), int(key[3]))
    held = (modifiers - 1) & ~_LOCKS
    if code == 27:
        return "\x1b[27u"
    if code == 13 and held == _SHIFT:
        return "\x1b[13;2u"
    code = ord(_KEYPAD.get(code, chr(code) if code < 0x110000 else "\0"))
    if code == 0 or 57344 <= code <= 63743 or held & ~(_SHIFT | _ALT | _CONTROL):
        return ""  # a key without a plain form
    if code == 9 and held & _SHIFT:
        return "\x1b[Z"
    letter = chr(code).upper() if held & _SHIFT and not held & _CONTROL else chr(code)
    if held & _CONTROL and ((letter.isascii() and letter.isalpha()) or letter in "@[\\]^_ /"):
        letter = "\x1f" if letter == "/" else chr(ord(letter) & 0x1F)
    return f"{chr(27) * bool(held & _ALT)}{letter}"


def _without_locks(key: re.Match[str]) -> str:
    held = (int(key[2]) - 1) & ~_LOCKS
    if not held:
        return f"\x1b[{key[1]}~" if key[3] == "~" else f"\x1b[{key[3]}"
    return f"\x1b[{key[1]};{held + 1}{key[3]}"


def _is_paste(text: str) -> bool:
    return _has_lines(text) or len(text) >= FASTEST_CHARS


def _has_lines(text: str) -> bool:
    """A line end is followed by more text."""
    lines = text.replace("\r", "\n").strip("\n")
    return "\n" in lines


def _beginning_of_mark(text: str) -> str:
    """The end of the text, if it may be the first part of a paste mark or of a key with modifiers."""
    if partial := re.search(_PARTIAL_KEY, text):
        return partial[0]
    return next((text[-size:] for size in range(len(BEGIN) - 1, 0, -1) if text.endswith(BEGIN[:size])), "")
