"""Work that may write in one folder only: the kernel holds it, and every process it starts, to that (Landlock, Linux 5.13 on).

The restriction belongs to a thread and to what comes of it. So the work gets a thread of its own, and whoever waits for it can
still clean up.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Generic, TypeVar

from wolo.workspace import landlock

T = TypeVar("T")

_POLL_S = 0.1


class Confined(Generic[T]):
    """Runs a coroutine on a loop and a thread of its own. `is_held` says whether the kernel holds it to the folder."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]], folder: Path) -> None:
        self.is_held = False
        self._work = work
        self._folder = folder
        self._results: list[T] = []
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None

    def run(self) -> T:
        """Raises what the work raises. A signal that ends the caller ends the work first."""
        thread = threading.Thread(target=self._play, name="wolo-confined")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_POLL_S)
        finally:
            self._cancel()
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self._results[0]

    def _play(self) -> None:
        self.is_held = confine(self._folder)
        try:
            self._results.append(asyncio.run(self._main()))
        except BaseException as error:  # told to whoever waits
            self._failure = error

    async def _main(self) -> T:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._work())
        return await self._task

    def _cancel(self) -> None:
        if self._loop is not None and self._task is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._task.cancel)
            except RuntimeError:
                return  # it has just come to its end


def confine(folder: Path) -> bool:
    """From now on this thread changes files below `folder` only, and devices. False: this system cannot do that."""
    if landlock.version() < 1:
        return False
    handled = landlock.changes()
    try:
        ruleset = landlock.make_ruleset(handled, ((str(folder), handled), ("/dev", landlock.WRITE_FILE | landlock.TRUNCATE)))
    except OSError:
        return False
    try:
        landlock.restrict(ruleset)
    except OSError:
        return False
    finally:
        os.close(ruleset)
    return True
