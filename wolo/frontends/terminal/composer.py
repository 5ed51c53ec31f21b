"""Where a person writes: several lines, with history, and pastes taken whole."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyPressEvent
from prompt_toolkit.styles import Style

from wolo.frontends.terminal.keys import line_keys
from wolo.frontends.terminal.question import make_output
from wolo.frontends.terminal.signals import AGAIN_WITHIN_S
from wolo.places import find_places

_STYLE = Style.from_dict({"prompt": "bold", "hint": "ansibrightblack"})
_HINT = FormattedText([("class:hint", "Ctrl-C again leaves")])


class Leave(Exception):
    """Ctrl-C twice on an empty line."""


class Composer:
    def __init__(self, command_names: Sequence[str], on_ctrl_o: Callable[[], None], aside: Callable[[], str]) -> None:
        """`aside` stands at the right end of the line."""
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", "› ")],
            history=_open_history(),
            completer=WordCompleter(list(command_names), sentence=True),
            complete_while_typing=False,
            multiline=True,
            prompt_continuation="  ",
            key_bindings=line_keys(self._ctrl_c, new_lines=True, on_ctrl_o=on_ctrl_o),
            enable_history_search=True,
            output=make_output(),
            style=_STYLE,
            rprompt=lambda: [("class:hint", aside())],
        )
        self.draft = ""
        """What stands there already when the next line is read."""
        self._pressed_at = float("-inf")
        self._reading: asyncio.Task[str] | None = None

    async def read(self) -> str:
        """What was written. Raises Leave, EOFError for Ctrl-D on an empty line, and CancelledError after `stop`."""
        draft, self.draft = self.draft, ""
        self._reading = asyncio.ensure_future(
            self._session.prompt_async(default=draft, handle_sigint=False, set_exception_handler=False)
        )
        try:
            return await self._reading
        finally:
            self._reading = None
            self._unhint()

    def above(self, show: Callable[[], None]) -> None:
        """Calls what prints something while a person may be writing: their line stays below it."""
        if self._reading is None:
            show()
        else:
            run_in_terminal(show)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def count_ctrl_c(self) -> None:
        """One was pressed elsewhere, just now."""
        self._pressed_at = time.monotonic()

    def _ctrl_c(self, event: KeyPressEvent) -> None:
        """Clears what is written, if anything is."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif time.monotonic() - self._pressed_at < AGAIN_WITHIN_S:
            event.app.exit(exception=Leave(), style="class:aborting")
        else:
            self.count_ctrl_c()
            self._session.placeholder = _HINT
            asyncio.get_running_loop().call_later(AGAIN_WITHIN_S, self._unhint)

    def _unhint(self) -> None:
        self._session.placeholder = None
        self._session.app.invalidate()


class _PrivateHistory(FileHistory):
    """What cannot be written is still remembered until the end."""

    def load_history_strings(self) -> Iterable[str]:
        with suppress(OSError):
            yield from super().load_history_strings()

    def store_string(self, string: str) -> None:
        with suppress(OSError, UnicodeError):
            super().store_string(string)


def _open_history() -> History:
    """Of this user and for this user's eyes."""
    path = find_places().state / "history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return _PrivateHistory(str(path))
