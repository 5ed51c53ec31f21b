"""Signals outside a turn end wolo with the documented exit status."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Protocol

from wolo.errors import WoloError
from wolo.operating_system import EXIT_BY_SIGNAL, on_signal

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    class Stoppable(Protocol):
        stopped_by: int
        """Exit code of the signal that stopped it; 0 without one."""

        def stop(self, exit_code: int) -> None: ...

        def kill(self) -> None: ...


class InterruptedBySignal(WoloError):
    kind = "interrupted"

    def __init__(self, exit_code: int) -> None:
        super().__init__("Interrupted.")
        self.exit_code = exit_code


def is_answered(number: signal.Signals) -> bool:
    """False for a signal that was ignored when wolo started, as under nohup."""
    return signal.getsignal(number) is not signal.SIG_IGN


def answer_signals(answer: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in EXIT_BY_SIGNAL:
        if is_answered(number):
            signal.signal(number, answer)


def stop_on_signals(work: Stoppable) -> None:
    """The first signal stops the work of the running loop, the second one ends the process."""
    import asyncio

    def stop(number: signal.Signals) -> None:
        if work.stopped_by:
            work.kill()
            os._exit(work.stopped_by)
        work.stop(EXIT_BY_SIGNAL[number])

    for number in filter(is_answered, EXIT_BY_SIGNAL):
        on_signal(asyncio.get_running_loop(), number, stop, number)


def note_signals() -> list[int]:
    """Collects signals in the returned list: an exception in the middle of an import could get lost."""
    came: list[int] = []
    answer_signals(lambda number, frame: came.append(number))
    return came


def leave_on_signals(came: list[int]) -> None:
    answer_signals(leave)
    leave_if(came)


def leave_if(came: list[int]) -> None:
    if came:
        leave(came[0], None)


def leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(EXIT_BY_SIGNAL[signal.Signals(number)])
