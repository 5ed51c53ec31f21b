"""The REPL: a line is typed; `/…` goes to the commands, the rest to the model."""

from __future__ import annotations

import time

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.text import Text

from wolo.commands.command import Desk, Left, Opened, Shown, dispatch
from wolo.commands.table import COMMANDS
from wolo.conversation.attachments import compose
from wolo.conversation.conversation import Conversation
from wolo.errors import WoloError
from wolo.frontends.terminal.clean import clean, clean_line
from wolo.frontends.terminal.screen import Screen, where
from wolo.frontends.terminal.start import run_turn
from wolo.places import find_places

LEAVE_WITHIN_S = 2.0
"""A second Ctrl-C on an empty line within this time leaves."""

LEAVING_WORDS = {"exit", "quit", ":q"}


class Repl:
    def __init__(self, conversation: Conversation, screen: Screen) -> None:
        self.conversation = conversation
        self._screen = screen
        self._session = _composer()

    async def run(self) -> int:
        """Until the person leaves; the exit status is 0 then, 129 or 143 after a signal."""
        self._greet()
        while (line := await self._read()) is not None:
            line = line.strip()
            if not line:
                continue
            if line in LEAVING_WORDS:
                return 0
            exit_code = await self._take(line)
            if exit_code is not None:
                return exit_code
        return 0

    def _greet(self) -> None:
        facts = self.conversation.facts
        head = Text.assemble(("wolo ", "bold"), (f"{facts.model} · {facts.mode} · {clean_line(where(facts.cwd))}", "dim"))
        self._screen.print(head)
        self._screen.print(Text("Enter sends, Alt-Enter makes a new line, /help shows the rest.", style="dim"))
        for message in self.conversation.history[-2:]:
            if message.text:
                self._screen.print(Text(f"{message.role}: {clean_line(message.text)[:200]}", style="dim"))

    async def _read(self) -> str | None:
        """None when the person leaves: Ctrl-D on an empty line, or Ctrl-C twice."""
        cleared_at = 0.0
        while True:
            try:
                with patch_stdout(raw=True):
                    return await self._session.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if time.monotonic() - cleared_at < LEAVE_WITHIN_S:
                    return None
                cleared_at = time.monotonic()
                self._screen.print(Text("Ctrl-C again leaves.", style="dim"))

    async def _take(self, line: str) -> int | None:
        try:
            if line.startswith("/") and not line.startswith("//"):
                return await self._command(line)
            message = compose(line, cwd=self.conversation.cwd)
        except WoloError as error:
            self._screen.print(Text(clean(f"{error.message} {error.hint}"), style="red"))
            return None
        exit_code = await run_turn(self.conversation, message, self._screen)
        return exit_code if exit_code in (129, 143) else None

    async def _command(self, line: str) -> int | None:
        outcome = await dispatch(line, Desk(self.conversation, COMMANDS))
        match outcome:
            case Shown():
                self._screen.print(Text(clean(outcome.text)))
            case Opened():
                self.conversation = outcome.conversation
                self._greet()
            case Left():
                return 0
        return None


def _composer() -> PromptSession[str]:
    state = find_places().state
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    history = state / "history"
    history.touch(mode=0o600)
    names = [f"/{command.name}" for command in COMMANDS]
    return PromptSession(
        "› ",
        history=FileHistory(str(history)),
        completer=WordCompleter(names, sentence=True),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="  ",
        enable_history_search=True,
    )


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def clear_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys
