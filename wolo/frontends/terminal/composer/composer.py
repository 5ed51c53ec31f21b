"""The input: several lines with history, completion, folded pastes and drafts that survive a crash."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, vi_insert_mode, vi_mode
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.search import SearchDirection, start_search

from wolo.agent.events import Event, PromptRefused
from wolo.commands.command import is_command
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.composer.completion import offers_completions
from wolo.frontends.terminal.composer.pastes import Pastes, as_mentions, clean_paste, readable
from wolo.frontends.terminal.composer.prompt_storage import DirectoryHistory, Drafts
from wolo.frontends.terminal.display.terminal import AGAIN_WITHIN_S, Terminal, suspend
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.input_parser import is_within_paste
from wolo.frontends.terminal.io.prompt_toolkit_adapter import typed_part
from wolo.frontends.terminal.live.component import Row
from wolo.messages.message import Message, UserPrompt
from wolo.messages.terminal_text import clean_line
from wolo.places import find_places


class MessageQueue:
    """Texts are as they were typed, with their pastes folded."""

    def __init__(self, state: TerminalState, pastes: Pastes) -> None:
        self.later: deque[str] = deque()
        """Sent one by one after the turn."""
        self._state, self._pastes = state, pastes
        self._steered: dict[str, str] = {}
        """Typed text by message id."""

    def rows(self) -> Sequence[Row]:
        steered = (f"  ↪ {self._line(self.editable(message))}" for message in self._conversation.steering.waiting)
        return [[("class:dim", line)] for line in (*steered, *(f"  ⧗ {self._line(text)}" for text in self.later))]

    def steer(self, message: UserPrompt, typed: str) -> None:
        self._steered[message.id] = typed
        self._state.typed_texts[message.id] = self._pastes.with_labels(typed)
        self._conversation.steer(message)

    def texts(self) -> list[str]:
        """All that waits, in the order of sending."""
        steered = self._conversation.steering.waiting if self._state.conversation is not None else ()
        return [*(self.editable(message) for message in steered), *self.later]

    def pop_newest(self) -> str:
        """Withdraws the newest message. Empty when none waits."""
        if self.later:
            return self.later.pop()
        for message in reversed(self._conversation.steering.waiting):
            if self._conversation.steering.withdraw(message.id):
                return self.editable(message)
        return ""

    def end_turn(self) -> None:
        """Moves steered messages that the turn ended without to the front of the queue."""
        self.later.extendleft(self.editable(message) for message in reversed(self._conversation.steering.take_all()))

    def pop_all(self) -> str:
        text = "\n".join(self.later)
        self.later.clear()
        return text

    def editable(self, message: Message) -> str:
        return self._steered.get(message.id) or self._pastes.fold(message.text)

    @property
    def _conversation(self) -> Conversation:
        assert self._state.conversation is not None  # the REPL opens one before it reads
        return self._state.conversation

    def _line(self, text: str) -> str:
        return clean_line(self._pastes.with_labels(text))


GO_BACK, KEYS_COMMAND = "/rewind", "/keys"
CONTINUES = "\\"
"""Before Enter, or at the end of a typed line: the text continues on a new line."""
TWICE_S = 0.8
"""Time between two presses of Esc that open /rewind."""
LINES = {
    "model": "/model",
    "tasks": "/todo",
    "thinking": "/thinking",
    "new": "/new",
    "resume": "/resume",
    "undo": "/undo",
    "redo": "/redo",
    "status": "/status",
    "copy": "/copy",
    "theme": "/theme",
    "background": "/jobs",
}
"""Commands by the action that submits them."""
QUIT_HINT = "Ctrl-C again quits"
SAME_PASTE_S = 0.3
"""Pieces of a paste that the terminal did not mark arrive faster than this."""
SAVE_AFTER_S = 0.3
"""Delay between a key and saving the draft."""


class Quit(Exception):
    """Ctrl-C was pressed twice on an empty line."""


class Submission(NamedTuple):
    text: str
    """As typed: a folded paste is one character (`Pastes`)."""
    later: bool = False
    """Queued until the turn has ended."""


class InsertionBuffer(Buffer):
    """With the keys of vi, all that is typed between two commands is undone at once; an emptied line is typed into."""

    def __init__(self, **given: Any) -> None:
        self._has_saved = False
        super().__init__(**given)

    def save_to_undo_stack(self, clear_redo_stack: bool = True) -> None:
        if not (self._has_saved and vi_insert_mode()):
            self._has_saved = True
            super().save_to_undo_stack(clear_redo_stack)

    def reset(self, document: Document | None = None, append_to_history: bool = False) -> None:
        self._has_saved = False
        super().reset(document, append_to_history)
        if vi_mode():
            get_app().vi_state.input_mode = InputMode.INSERT


class _Pasted(NamedTuple):
    text: str
    shown: str
    end: int
    at_s: float


class Composer:
    """Reads what the user sends, and performs the actions of the keymap that edit, send, stop and quit."""

    most_rows = 5
    least_window_rows = 0

    def __init__(
        self,
        terminal: Terminal,
        completer: Completer,
        directory: Path,
        needs_argument: Callable[[str], bool] = lambda line: False,
    ) -> None:
        """`needs_argument`: the line is a command that lacks its argument."""
        places = find_places().state
        self._needs_argument = needs_argument
        self._terminal, self._state = terminal, terminal.state
        self._completer = completer
        self.pastes = Pastes()
        self.queue = MessageQueue(terminal.state, self.pastes)
        self.buffer = InsertionBuffer(
            history=DirectoryHistory(places / "history", directory, self.pastes),
            completer=ThreadedCompleter(completer),
            complete_while_typing=Condition(lambda: offers_completions(self.buffer.document)),
            multiline=True,
            enable_history_search=True,
            accept_handler=self._accept,
            on_text_changed=lambda _: self._on_edit(),
        )
        self._stash: list[str] = []
        """Texts kept aside."""
        self.is_over = False
        """Nothing more will be read."""
        self._directory = directory
        self._drafts = Drafts(places / "drafts", directory, self.pastes)
        self._save_due: asyncio.TimerHandle | None = None
        self._submitted: asyncio.Queue[Submission | BaseException] = asyncio.Queue()
        self._escaped_at = float("-inf")
        self._is_cancel = False
        """The key that is handled is a Ctrl-C that asked for a second one."""
        self._pasted = _Pasted("", "", 0, float("-inf"))

    async def read(self) -> Submission:
        """The next submission. Raises Quit, and EOFError for Ctrl-D on an empty line."""
        submitted = await self._submitted.get()
        if isinstance(submitted, BaseException):
            raise submitted
        return submitted

    def submit_line(self, line: str) -> None:
        """Submits a command for a key; the typed text stays."""
        self._submitted.put_nowait(Submission(line))

    def give_back(self, text: str) -> None:
        """Puts unsent text before what is being typed."""
        self.replace("\n".join(filter(None, [text, self.buffer.text])))

    def replace(self, text: str) -> None:
        self.buffer.set_document(Document(text), bypass_readonly=True)

    def restore_draft(self) -> bool:
        """Restores the text that an earlier process had not sent. False: there is none."""
        if left := self._drafts.left_behind():
            self.give_back(left)
        return bool(left)

    def save_draft_soon(self) -> None:
        if self._save_due is None:
            self._save_due = asyncio.get_running_loop().call_later(SAVE_AFTER_S, self._save_draft)

    def close(self) -> None:
        self._save_draft()
        self._drafts.close()

    # Parts of the live region

    def render(self, width: int) -> Sequence[Row]:
        return self.queue.rows()

    def on_event(self, event: Event) -> None:
        """Gives back a steered message that a hook refused."""
        if isinstance(event, PromptRefused) and event.reason and not event.prompt.is_prompt:
            self.give_back(self.queue.editable(event.prompt))

    def quit(self) -> None:
        """Makes `read` raise EOFError."""
        self.fail(EOFError())

    def fail(self, failure: BaseException) -> None:
        self.is_over = True
        self._submitted.put_nowait(failure)

    # Actions of the keymap

    def accepts(self, action: str) -> bool:
        """False: the key keeps its usual meaning for now."""
        match action:
            case "send_later":
                return self._state.is_working
            case "stop":
                return not vi_mode() or not vi_insert_mode() or not self.buffer.text
            case "leave" | "undo" | "redo":
                return not self.buffer.text
            case "take_back" | "background":
                return self._state.is_working and not self.buffer.text
            case _:
                return True

    def handle_key(self, action: str) -> bool:
        if action != "cancel":
            self.forget_cancel()
        match action:
            case "new_line":
                self.buffer.insert_text("\n")
            case "send" if is_within_paste(get_app()) and not self.is_choosing:
                self.buffer.insert_text("\n")
            case "send":
                self.enter()
            case "send_later":
                self._submit(later=True)
                self.buffer.reset(append_to_history=True)
            case "stop":
                # Closes the menu or stops what runs; pressed twice on an empty line, opens /rewind.
                before, self._escaped_at = self._escaped_at, float("-inf")
                if self.buffer.complete_state is not None:
                    self.buffer.cancel_completion()
                elif self._terminal.stop() or self._state.is_working or self.buffer.text or vi_mode():
                    pass
                elif time.monotonic() - before < TWICE_S:
                    self.submit_line(GO_BACK)
                else:
                    self._escaped_at = time.monotonic()
                if vi_mode() and not self._state.is_working:
                    get_app().vi_state.input_mode = InputMode.NAVIGATION
            case "cancel":
                self.cancel()
            case "leave":
                self.quit()
            case "take_back":
                if newest := self.queue.pop_newest():
                    self.give_back(newest)
                    if (region := self._terminal.screen.region) is not None:
                        region.paint()
                else:
                    self.buffer.history_backward()
            case "stash":
                self.stash()
            case _ if action in LINES:
                self.submit_line(LINES[action])
            case "search":
                start_search(direction=SearchDirection.BACKWARD)
            case "redraw":
                get_app().invalidate()
            case "suspend":
                run_in_terminal(suspend)
            case _:
                return False
        return True

    def enter(self) -> None:
        """Sends, unless Enter takes the highlighted entry of the menu, or a backslash before it asks for a new line.

        A command that needs no argument is sent with its entry.
        """
        if self.is_choosing:
            self.buffer.complete_state = None
            if self._is_whole_command():
                self.buffer.validate_and_handle()
        elif (entry := self._first_entry()) is not None:
            self.buffer.apply_completion(entry)
            if self._is_whole_command():
                self.buffer.validate_and_handle()
        elif self.buffer.document.char_before_cursor == CONTINUES:
            if not self.buffer.text.startswith("!"):  # a shell reads its own
                self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        else:
            self.buffer.validate_and_handle()

    def cancel(self) -> None:
        """Clears the text, or stops what runs, or quits at the second press; while a stop takes its time, at the next one."""
        if self.buffer.text:
            self.forget_cancel()
            self.buffer.reset(append_to_history=True)
            self.save_draft_soon()
        elif self._terminal.stop():
            pass
        elif self._state.is_working or time.monotonic() - self._state.interrupted_at < AGAIN_WITHIN_S:
            self.fail(Quit())
        else:
            self._state.interrupted_at, self._is_cancel = time.monotonic(), True
            self._hint(QUIT_HINT)
            asyncio.get_running_loop().call_later(AGAIN_WITHIN_S, self._hint, "")

    def stash(self) -> None:
        """Keeps the text aside; with an empty line brings the newest one back."""
        if self.buffer.text:
            self._stash.append(self.buffer.text)
            self.buffer.reset()
            self._hint("kept aside · Ctrl-S brings it back")
        elif self._stash:
            self._hint("")
            self.replace(self._stash.pop())
        self.save_draft_soon()

    def after_key(self) -> None:
        """Any key but the Ctrl-C itself ends the wait for a second one."""
        if not self._is_cancel:
            self.forget_cancel()
        self._is_cancel = False

    def forget_cancel(self) -> None:
        self._state.interrupted_at = float("-inf")
        if self._state.hint == QUIT_HINT:
            self._hint("")

    def paste(self, data: str) -> None:
        """Inserts text as a whole: line ends in it send nothing."""
        text = clean_paste(data)
        if mentions := as_mentions(text, self._directory):
            self.buffer.insert_text(mentions)
            return
        before, now = self._pasted, time.monotonic()
        if (
            now - before.at_s < SAME_PASTE_S
            and self.buffer.cursor_position == before.end
            and before.shown
            and self.buffer.document.text_before_cursor.endswith(before.shown)
        ):
            self.buffer.delete_before_cursor(len(before.shown))
            text = before.text + text
        shown = self.pastes.fold(text)
        self.buffer.insert_text(shown)
        self._pasted = _Pasted(text, shown, self.buffer.cursor_position, now)

    @property
    def is_choosing(self) -> bool:
        state = self.buffer.complete_state
        return state is not None and state.current_completion is not None

    def _first_entry(self) -> Completion | None:
        """The first entry of the menu, once a letter is typed; None: the typed text is already one of its entries."""
        state, document = self.buffer.complete_state, self.buffer.document
        if re.fullmatch(r"/[^\s/]+", document.text) and document.is_cursor_at_the_end:
            # Commands for a user who types faster than the menu opens or fills
            offered = list(self._completer.get_completions(document, CompleteEvent(completion_requested=True)))
        elif state is None or state.original_document != document:  # no menu, or one of an earlier text
            offered = []
        else:
            offered = state.completions
        typed = [typed_part(document, each) for each in offered]
        is_entry = any(part == each.text for part, each in zip(typed, offered, strict=True))
        return offered[0] if offered and typed[0].strip('@"') and not is_entry else None

    def _is_whole_command(self) -> bool:
        """The text is a command, with all that it needs."""
        return is_command(self.buffer.text) and not self._needs_argument(self.buffer.text)

    def _on_edit(self) -> None:
        self.save_draft_soon()
        self.forget_cancel()

    def _hint(self, text: str) -> None:
        self._state.hint = text
        get_app().invalidate()

    def _accept(self, buffer: Buffer) -> bool:
        self._submit(later=False)
        return False

    def _submit(self, *, later: bool) -> None:
        text = readable(self.buffer.text)
        if text.strip():
            self._submitted.put_nowait(Submission(text, later))

    def _save_draft(self) -> None:
        if self._save_due is not None:
            self._save_due.cancel()
            self._save_due = None
        self._drafts.save("\n".join(filter(None, [*self.queue.texts(), *self._stash, self.buffer.text])))
