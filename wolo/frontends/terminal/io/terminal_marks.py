"""Marks for the terminal: the window title with the state, progress (OSC 9;4), where prompts and output begin (OSC 133)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from wolo.config.schema import Ui
from wolo.frontends.terminal.io.terminal_output import Sender
from wolo.messages.terminal_text import clean_line

State = Literal["idle", "working", "asking"]

PROMPT_BEGINS, OUTPUT_BEGINS, OUTPUT_ENDS = (f"\x1b]133;{mark}\x1b\\" for mark in "ACD")
_SIGNS: Mapping[State, str] = {"idle": "", "working": "● ", "asking": "? "}
_PROGRESS: Mapping[State, str] = {"idle": "0;0", "working": "3;0", "asking": "4;100"}
"""None, without a known end, and waiting (yellow), in the words of ConEmu."""
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
_SINCE = {"iterm.app": (3, 6, 6), "wezterm": (20240204,), "ghostty": (1, 2)}
"""The first versions that show progress; older ones take it for a notification."""
LONGEST_TITLE = 80


class TerminalMarks:
    def __init__(self, ui: Ui, sender: Sender, place: str, environment: Mapping[str, str]) -> None:
        self._sender, self._place = sender, clean_line(place)
        is_capable = not environment.get("TERM", "").startswith(("linux", "vt", "cons"))
        self._has_title, self._has_progress = ui.title and is_capable, ui.progress and shows_progress(environment)
        self.has_prompts = ui.prompt_marks and is_capable and "STY" not in environment
        self._state: State | None = None

    def show(self, state: State) -> None:
        if state == self._state:
            return
        begin = _SAVE_TITLE if self._state is None else ""
        title = f"{begin}\x1b]2;{f'{_SIGNS[state]}wolo · {self._place}'[:LONGEST_TITLE]}\x1b\\" if self._has_title else ""
        is_new = self._state is not None or state != "idle"
        self._send(title + (f"\x1b]9;4;{_PROGRESS[state]}\x1b\\" if self._has_progress and is_new else ""))
        self._state = state

    def close(self) -> None:
        """Restores the title and removes the progress."""
        if self._state is not None:
            progress = "\x1b]9;4;0;0\x1b\\" if self._has_progress and self._state != "idle" else ""
            self._send((_RESTORE_TITLE if self._has_title else "") + progress)
            self._state = None

    def _send(self, sequence: str) -> None:
        if sequence:
            self._sender.send(sequence)


def shows_progress(environment: Mapping[str, str]) -> bool:
    """True for terminals known to show OSC 9;4; others take OSC 9 for a notification."""
    if {"TMUX", "STY"} & environment.keys():
        return False
    if "WT_SESSION" in environment or environment.get("ConEmuANSI") == "ON":
        return True
    least = _SINCE.get(environment.get("TERM_PROGRAM", "").lower())
    version = tuple(int(number) for number in re.findall(r"\d+", environment.get("TERM_PROGRAM_VERSION", ""))[:3])
    return least is not None and version >= least
