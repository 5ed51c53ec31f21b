"""The user's terminal: screen, keyboard, signals and the state they share.

The first Ctrl-C, or another signal, stops the running work, the second one quits at once.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.keyboard import make_keyboard
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.operating_system import EXIT_BY_SIGNAL, forget_signal, on_signal


class Terminal:
    def __init__(self) -> None:
        self.state = TerminalState()
        self.keyboard = make_keyboard()
        self.abandon_input: Callable[[], None] = lambda: None
        """Saves the draft and restores the modes of the live region: the process exits at once."""
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

    def on_hang_up(self) -> None:
        self._stdout.let_go()

    def on_end(self) -> None:
        """Closes what is open: nobody answers any more, and what waits for the answer must not wait for ever."""
        self.state.is_ending = True
        for dialog in self.state.dialogs:
            dialog.dismiss()

    def on_kill(self) -> None:
        """Saves the draft, ends the conversation's processes and restores the terminal."""
        self.abandon_input()
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


AGAIN_WITHIN_S = 2.0
"""A second Ctrl-C within this time quits."""
_HANG_UP, _SUSPENDED, _RESUMED = (getattr(signal, name, None) for name in ("SIGHUP", "SIGTSTP", "SIGCONT"))
"""None on Windows."""
LOOK_S = 0.5
"""How often a terminal is looked at that nothing reads from; its end may come without a signal."""


class Signals:
    """Handles signals while its `with` block runs; running work registers with `during` how it is stopped."""

    def __init__(self, terminal: Terminal) -> None:
        self.exit_status = 0
        """Exit status for the first signal; 0 before it, and once it is forgiven."""
        self._terminal = terminal
        self._stop: Callable[[], object] = lambda: None
        self._is_aside = False
        self._look_due: asyncio.TimerHandle | None = None
        self._ending: select.epoll | None = None

    def __enter__(self) -> Self:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # a running loop runs a task
        self._stop = task.cancel
        for number in EXIT_BY_SIGNAL:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                on_signal(loop, number, self.on_signal, number)
        if _SUSPENDED and _RESUMED:
            loop.add_signal_handler(_SUSPENDED, self._suspend)
            loop.add_signal_handler(_RESUMED, self._resume)
        if sys.stdin.isatty() and _HANG_UP:
            if sys.platform == "linux":  # the kernel says when the terminal ends; elsewhere it is looked at again and again
                self._ending = select.epoll()
                self._ending.register(sys.stdin.fileno(), 0)  # for nothing but its end
                loop.add_reader(self._ending.fileno(), self._on_ending)
            else:
                self._look_due = loop.call_later(LOOK_S, self._look)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._look_due is not None:
            self._look_due.cancel()
        loop = asyncio.get_running_loop()
        if self._ending is not None:
            loop.remove_reader(self._ending.fileno())
            self._ending.close()
        for number in filter(None, (*EXIT_BY_SIGNAL, _SUSPENDED, _RESUMED)):
            forget_signal(loop, number)
        if _HANG_UP and self.exit_status == EXIT_BY_SIGNAL[_HANG_UP]:
            signal.signal(_HANG_UP, signal.SIG_IGN)  # the shell's own may come while wolo exits

    @contextmanager
    def during(self, stop: Callable[[], object]) -> Iterator[None]:
        """While the block runs, a first signal calls `stop`."""
        before, self._stop = self._stop, stop
        try:
            yield
        finally:
            self._stop = before

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Ignores Ctrl-C and leaves the modes alone while another program has the keyboard."""
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False

    def on_signal(self, number: signal.Signals = signal.SIGINT) -> None:
        if self._is_aside and number == signal.SIGINT:
            return
        if number == _HANG_UP:
            if self.exit_status == EXIT_BY_SIGNAL[number]:
                return  # a shell passes it on before the kernel sends one
            self._terminal.on_hang_up()
        if self.exit_status:
            self._terminal.on_kill()
            os._exit(self.exit_status)
        self.exit_status = EXIT_BY_SIGNAL[number]
        self._stop()
        if number != signal.SIGINT:
            self._terminal.on_end()

    def hang_up(self) -> None:
        """Handles a closed terminal, with or without a signal."""
        self.on_signal(_HANG_UP or signal.SIGTERM)

    def _on_ending(self) -> None:
        assert self._ending is not None
        asyncio.get_running_loop().remove_reader(self._ending.fileno())
        self._look()

    def _look(self) -> None:
        terminal = select.poll()
        terminal.register(sys.stdin.fileno(), 0)  # for nothing but its end
        is_answered = _HANG_UP is None or signal.getsignal(_HANG_UP) is not signal.SIG_IGN  # a task goes on under nohup
        if terminal.poll(0) and (is_answered or self._terminal.state.is_interactive):
            self.hang_up()
        else:
            self._look_due = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def stop(self) -> None:
        self._stop()

    def _suspend(self) -> None:
        if not self._is_aside:
            self._terminal.screen.status.pause()
            self._terminal.keyboard.pause()
        suspend()

    def _resume(self) -> None:
        if not self._is_aside:
            self._terminal.keyboard.resume()

    def forgive(self) -> bool:
        """Resets the exit status after Ctrl-C. False: another signal ends wolo."""
        if self.exit_status not in (0, EXIT_BY_SIGNAL[signal.SIGINT]):
            return False
        self.exit_status = 0
        return True


def suspend() -> None:
    """Stops the process until `fg`."""
    os.kill(os.getpid(), signal.SIGSTOP)
