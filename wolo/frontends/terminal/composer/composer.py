"""Where a person writes, at any time: several lines, with history, drafts that survive, and pastes taken whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from wolo.frontends.terminal.composer.completion import is_command_name, takes_up
from wolo.frontends.terminal.composer.drafts import Drafts
from wolo.frontends.terminal.composer.dropped_files import as_mentions
from wolo.frontends.terminal.composer.history import DirectoryHistory
from wolo.frontends.terminal.io.pastes import Pastes, cleaned, readable
from wolo.frontends.terminal.io.signals import AGAIN_WITHIN_S
from wolo.places import find_places

GO_BACK = "/rewind"
CONTINUES = "\\"
"""Before Enter, or at the end of a typed line: what is written goes on in a new line."""
TWICE_S = 0.8
"""Two presses of a key that mean one thing follow each other within this time."""
LEAVE_HINT = "Ctrl-C again leaves"
SAME_PASTE_S = 0.3
"""Pieces of a paste that the terminal did not mark follow each other faster than this."""


class Leave(Exception):
    """Ctrl-C twice on an empty line."""


class Said(NamedTuple):
    text: str
    """As it was written: what was pasted is one character (`Pastes`)."""
    later: bool = False
    """When the turn has ended, not in it."""


class _Pasted(NamedTuple):
    text: str
    shown: str
    end: int
    at_s: float


class Composer:
    """`stop` is told by Escape and Ctrl-C to end what is under way, and says whether there was something."""

    def __init__(self, completer: Completer, directory: Path, *, stop: Callable[[], bool]) -> None:
        state = find_places().state
        self._completer = completer
        self.pastes = Pastes()
        self.buffer = Buffer(
            history=DirectoryHistory(state / "history", directory, self.pastes),
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: takes_up(self.buffer.document) and not self.is_asking()),
            multiline=True,
            enable_history_search=True,
            accept_handler=self._accept,
            on_text_changed=lambda _: self.keep_draft(),
        )
        self.is_working = False
        """A turn runs: what is sent joins it, or waits for its end."""
        self.hint: Callable[[str], None] = lambda words: None
        """Shows a word beside an empty line."""
        self.retract: Callable[[], bool] = lambda: False
        """Takes back the newest of what was sent and waits."""
        self.is_asking: Callable[[], bool] = lambda: False
        """What is written answers a question just now."""
        self.unsent: Callable[[], list[str]] = list
        """What was sent and has not been heard: it belongs to the draft."""
        self.is_over = False
        """Whoever reads has learnt that nothing more will come, or is about to."""
        self._directory = directory
        self._drafts = Drafts(state / "drafts", directory, self.pastes)
        self._stop = stop
        self._said: asyncio.Queue[Said | BaseException] = asyncio.Queue()
        self._pressed_at = self._escaped_at = float("-inf")
        self._pasted = _Pasted("", "", 0, float("-inf"))

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

    def take_up_draft(self) -> bool:
        """What a process before this one had not sent stands there again. False: there is none."""
        left = self._drafts.left_behind()
        if left:
            self.give_back(left)
        return bool(left)

    def keep_draft(self) -> None:
        if not self.is_asking():
            self._drafts.keep("\n".join(filter(None, [*self.unsent(), self.buffer.text])))

    def close(self) -> None:
        self._drafts.close()

    def leave(self) -> None:
        """Whoever reads learns that nothing more will come."""
        self.fail(EOFError())

    def fail(self, failure: BaseException) -> None:
        self.is_over = True
        self._said.put_nowait(failure)

    # What the keys do

    def enter(self) -> None:
        """Sends what is written, unless Enter takes what a menu offers or a backslash before it makes it a new line."""
        if self.is_choosing:
            self.buffer.complete_state = None
        elif only := self._only_match():
            self.buffer.apply_completion(only)
        elif self.buffer.document.char_before_cursor == CONTINUES:
            if not self.buffer.text.startswith("!"):  # a shell reads its own
                self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        else:
            self.buffer.validate_and_handle()

    def _only_match(self) -> Completion | None:
        """What a menu offers when that is one thing, and more than what is written already."""
        state = self.buffer.complete_state
        if state is None:
            offered = self._matching_commands()
        elif state.original_document != self.buffer.document:
            return None
        else:
            offered = state.completions
        if len(offered) != 1 or self.buffer.document.text_before_cursor.endswith(offered[0].text):
            return None
        return offered[0]

    def _matching_commands(self) -> list[Completion]:
        """Whoever types fast does not see the menu of commands in time."""
        document = self.buffer.document
        if not is_command_name(document) or self.is_asking():
            return []
        return list(self._completer.get_completions(document, CompleteEvent(completion_requested=True)))

    @property
    def is_choosing(self) -> bool:
        """Something that a menu offers is selected."""
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None

    def send_later(self) -> None:
        self._send(later=True)
        self.buffer.reset(append_to_history=True)

    def escape(self, *, may_go_back: bool = True) -> None:
        """Closes a menu, or stops what is under way; the second time on an empty line it asks where to go back to."""
        before, self._escaped_at = self._escaped_at, float("-inf")
        if self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif self._stop() or self.is_working or self.buffer.text or not may_go_back:
            pass
        elif time.monotonic() - before < TWICE_S:
            self._said.put_nowait(Said(GO_BACK))
        else:
            self._escaped_at = time.monotonic()

    def cancel(self) -> None:
        """Clears what is written, or stops what is under way, or leaves at the second time."""
        if self.buffer.text:
            self.buffer.reset(append_to_history=True)
            self.keep_draft()
        elif self._stop():
            self.interrupted()
        elif time.monotonic() - self._pressed_at < AGAIN_WITHIN_S:
            self.fail(Leave())
        else:
            self.interrupted()
            self.hint(LEAVE_HINT)
            asyncio.get_running_loop().call_later(AGAIN_WITHIN_S, self.hint, "")

    def interrupted(self) -> None:
        """Ctrl-C was pressed, here or as the answer to a question: a second one leaves."""
        self._pressed_at = time.monotonic()

    def end(self) -> None:
        self.leave()

    def take_back(self) -> None:
        if not self.retract():
            self.buffer.history_backward()

    def paste(self, data: str) -> None:
        """Text in one go: it sends nothing, whatever line ends are in it."""
        text = cleaned(data)
        if self.is_asking():
            self.buffer.insert_text(" ".join(text.split("\n")))
            return
        if mentions := as_mentions(text, self._directory):
            self.buffer.insert_text(mentions)
            return
        before, now = self._pasted, time.monotonic()
        if now - before.at_s < SAME_PASTE_S and self.buffer.cursor_position == before.end and self._ends_with(before.shown):
            self.buffer.delete_before_cursor(len(before.shown))
            text = before.text + text
        shown = self.pastes.fold(text)
        self.buffer.insert_text(shown)
        self._pasted = _Pasted(text, shown, self.buffer.cursor_position, now)

    def _ends_with(self, shown: str) -> bool:
        return bool(shown) and self.buffer.document.text_before_cursor.endswith(shown)

    def _accept(self, buffer: Buffer) -> bool:
        self._send(later=False)
        return False

    def _send(self, *, later: bool) -> None:
        text = readable(self.buffer.text)
        if text.strip():
            self._said.put_nowait(Said(text, later))
