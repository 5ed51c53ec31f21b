"""What the keys do while a line is typed, and where a paste is not marked by the terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from prompt_toolkit import Application
from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

END_OF_PASTE = "\x1b[201~"
_IN_TEXT = (Keys.ControlM, Keys.ControlJ, Keys.ControlI)
"""Line ends and tabs."""


def line_keys(on_ctrl_c: Callable[[KeyPressEvent], None]) -> KeyBindings:
    """Enter sends, unless it came in the middle of pasted text: some terminals do not mark a paste."""
    ansi_escape_sequences.ANSI_SEQUENCES[END_OF_PASTE] = Keys.Ignore  # a second one: the paste had its own in it
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        if is_within_paste(event.app):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    keys.add("c-c")(on_ctrl_c)
    return keys


def is_within_paste(app: Application[Any]) -> bool:
    """Text that came together with this Enter stands behind it, and no keys that write nothing: those may be ahead of us."""
    behind = [pressed.key for pressed in app.key_processor.input_queue]
    return bool(behind) and (not isinstance(behind[0], Keys) or behind[0] in _IN_TEXT or behind[0] == Keys.Escape != behind[-1])


def suspend() -> None:
    """Back to the shell, until `fg`."""
    os.kill(os.getpid(), signal.SIGSTOP)
