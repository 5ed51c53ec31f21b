"""The user's terminal: screen, keyboard, signals and the state they share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.keyboard import make_keyboard
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.io.terminal_signals import Signals


class Abandonable(Protocol):
    def abandon(self) -> None:
        """Saves the draft and restores the terminal's modes: the process exits at once."""


class Terminal:
    def __init__(self) -> None:
        self.state = TerminalState()
        self.keyboard = make_keyboard()
        self.input_area: Abandonable | None = None
        """The place to write in, while there is one."""
        self._stdout = Stdout()
        self.screen = Screen(self._stdout, self.state)
        self.signals = Signals(self)

    @property
    def has_panels(self) -> bool:
        return self.state.is_interactive and self.screen.stdout.can_move

    def stop(self) -> bool:
        """Stops the running turn or command, and the loop. False: nothing runs, or it is being stopped already."""
        state = self.state
        if is_loop_stopped := state.stop_loop():
            self.screen.show_text("The loop is stopped.", "dim")
        if not state.is_working or state.is_stopping:
            return is_loop_stopped
        state.is_stopping, state.stopped_at = True, time.monotonic()
        asyncio.get_running_loop().call_soon(self.signals.stop)  # work that has just begun does not listen yet
        return True

    def restore(self) -> None:
        self.screen.status.stop()
        self.keyboard.release()

    # Signals

    @property
    def needs_terminal(self) -> bool:
        return self.state.is_interactive

    def on_hang_up(self) -> None:
        self._stdout.let_go()

    def on_end(self) -> None:
        """Closes what is open: nobody answers any more, and what waits for the answer must not wait for ever."""
        self.state.is_ending = True
        for dialog in self.state.dialogs:
            dialog.dismiss()

    def on_suspend(self) -> None:
        self.screen.status.pause()
        self.keyboard.pause()

    def on_resume(self) -> None:
        self.keyboard.resume()

    def on_kill(self) -> None:
        """Saves the draft, ends the conversation's processes and restores the terminal."""
        if self.input_area is not None:
            self.input_area.abandon()
        if self.state.conversation is not None:
            self.state.conversation.kill()
        self.restore()


@contextmanager
def hold_terminal() -> Iterator[Terminal]:
    """Restores the terminal, however the block ends."""
    terminal = Terminal()
    terminal.keyboard.hush()
    try:
        with terminal.signals:
            yield terminal
    finally:
        terminal.restore()
