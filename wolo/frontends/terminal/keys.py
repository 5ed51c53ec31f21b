"""What the keys do while a line is typed, and where a paste is not marked by the terminal."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from prompt_toolkit.input import ansi_escape_sequences
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

END_OF_PASTE = "\x1b[201~"
_BURST_S = 0.1
"""Lines of a paste follow each other faster than this; nobody types so fast."""
_LAST_LOOK_S = 0.02


def line_keys(on_ctrl_c: Callable[[KeyPressEvent], None]) -> KeyBindings:
    """Enter sends, unless it came in the middle of pasted text: some terminals do not mark a paste."""
    ansi_escape_sequences.ANSI_SEQUENCES[END_OF_PASTE] = Keys.Ignore  # a second one: the paste had its own in it
    keys = KeyBindings()
    watch = PasteWatch()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        if watch.goes_on(event):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    keys.add("c-c")(on_ctrl_c)
    return keys


class PasteWatch:
    """Tells at each Enter whether it was pressed, or is a line end in the middle of a paste."""

    def __init__(self) -> None:
        self._pasted_at = float("-inf")

    def goes_on(self, event: KeyPressEvent) -> bool:
        now = time.monotonic()
        patience_s = _LAST_LOOK_S if now - self._pasted_at < _BURST_S else 0.0
        if event.app.key_processor.input_queue or _more_is_coming(event, patience_s):
            self._pasted_at = now
            return True
        return False


def suspend() -> None:
    """Back to the shell, until `fg`."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _more_is_coming(event: KeyPressEvent, patience_s: float) -> bool:
    try:
        ready, _, _ = select.select([event.app.input.fileno()], [], [], patience_s)
    except (OSError, ValueError):
        return False
    return bool(ready)
