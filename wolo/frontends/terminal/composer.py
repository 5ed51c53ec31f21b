"""Where a person writes, at any time: several lines, with history, and pastes taken whole."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings

from wolo.frontends.terminal.keys import line_keys
from wolo.frontends.terminal.signals import AGAIN_WITHIN_S
from wolo.places import find_places

LEAVE_HINT = "Ctrl-C again leaves"


class Leave(Exception):
    """Ctrl-C twice on an empty line."""


class Said(NamedTuple):
    text: str
    later: bool = False
    """When the turn has ended, not in it."""


class Composer:
    """`stop` is told by Escape and Ctrl-C to end what is under way, and says whether there was something."""

    def __init__(self, completer: Completer, *, on_ctrl_o: Callable[[], None], stop: Callable[[], bool]) -> None:
        self.buffer = Buffer(
            history=_open_history(),
            completer=completer,
            complete_while_typing=False,
            multiline=True,
            enable_history_search=True,
            accept_handler=self._accept,
        )
        self.keys = merge_key_bindings([line_keys(self._ctrl_c, new_lines=True, on_ctrl_o=on_ctrl_o), self._more_keys()])
        self.is_working = False
        """A turn runs: what is sent joins it, or waits for its end."""
        self.hint: Callable[[str], None] = lambda words: None
        """Shows a word beside an empty line."""
        self.retract: Callable[[], bool] = lambda: False
        """Takes back the newest of what was sent and waits."""
        self._stop = stop
        self._said: asyncio.Queue[Said | BaseException] = asyncio.Queue()
        self._pressed_at = float("-inf")

    async def read(self) -> Said:
        """The next thing the person sends. Raises Leave, and EOFError for Ctrl-D on an empty line."""
        said = await self._said.get()
        if isinstance(said, BaseException):
            raise said
        return said

    def give_back(self, text: str) -> None:
        """Puts what was not heard before what is being written."""
        written = "\n".join(filter(None, [text, self.buffer.text]))
        self.buffer.set_document(Document(written), bypass_readonly=True)

    def leave(self) -> None:
        """Whoever reads learns that nothing more will come."""
        self._said.put_nowait(EOFError())

    def fail(self, failure: BaseException) -> None:
        self._said.put_nowait(failure)

    def _accept(self, buffer: Buffer) -> bool:
        self._send(later=False)
        return False

    def _send(self, *, later: bool) -> None:
        text = self.buffer.text
        if text.strip():
            self._said.put_nowait(Said(text, later))

    def _more_keys(self) -> KeyBindings:
        keys = KeyBindings()
        working = Condition(lambda: self.is_working)

        @keys.add("escape", "enter", filter=working)
        def send_later(event: KeyPressEvent) -> None:
            self._send(later=True)
            event.current_buffer.reset(append_to_history=True)

        @keys.add("escape", filter=~has_completions)
        def stop(event: KeyPressEvent) -> None:
            self._stop()

        @keys.add("c-d", filter=Condition(lambda: not self.buffer.text))
        def end(event: KeyPressEvent) -> None:
            self._said.put_nowait(EOFError())

        @keys.add("up", filter=Condition(lambda: not self.buffer.text and self.is_working))
        def take_back(event: KeyPressEvent) -> None:
            if not self.retract():
                event.current_buffer.history_backward()

        @keys.add("c-l")
        def redraw(event: KeyPressEvent) -> None:
            event.app.invalidate()

        return keys

    def _ctrl_c(self, event: KeyPressEvent) -> None:
        """Clears what is written, or stops what is under way, or leaves at the second time."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif self._stop():
            self._pressed_at = time.monotonic()
        elif time.monotonic() - self._pressed_at < AGAIN_WITHIN_S:
            self._said.put_nowait(Leave())
        else:
            self._pressed_at = time.monotonic()
            self.hint(LEAVE_HINT)
            asyncio.get_running_loop().call_later(AGAIN_WITHIN_S, self.hint, "")


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
