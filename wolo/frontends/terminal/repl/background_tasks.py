"""What goes on beside a turn: commands that only look, a list to choose from, an editor."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager

from wolo.errors import WoloError
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.spinner import SLOW_S
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.repl.banner import complain


class BackgroundTasks:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[None, None, None]) -> None:
        """What a person must hear of it when it fails is said."""
        task = asyncio.ensure_future(self._carry_out(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """All of it, wherever it stands."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except WoloError as error:
            complain(error, self._screen)


@contextmanager
def named_alongside(words: str, terminal: Terminal) -> Iterator[None]:
    """At the end of the line that says what is under way, once it is slow."""
    due = asyncio.get_running_loop().call_later(SLOW_S, terminal.state.background.append, words)
    try:
        yield
    finally:
        due.cancel()
        if words in terminal.state.background:
            terminal.state.background.remove(words)
