"""The REPL: a line is typed; `/…` goes to the commands, the rest to the model, also while it works."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial

from rich.text import Text

from wolo.commands.command import Exit, RunEvents, SendPrompt, ShowText, SwitchConversation, dispatch, is_command
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.errors import WoloError
from wolo.frontends.terminal.composer.completion import Suggestions
from wolo.frontends.terminal.composer.composer import Composer, Quit, Submission
from wolo.frontends.terminal.composer.keymap import Keymap, composer_keys
from wolo.frontends.terminal.composer.line_mode import KEYS, LineMode
from wolo.frontends.terminal.composer.pastes import Chips
from wolo.frontends.terminal.display.history_preview import recall
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.io.signals import AGAIN_WITHIN_S
from wolo.frontends.terminal.io.terminal_output import Sender
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.repl.background_tasks import BackgroundTasks, named_alongside
from wolo.frontends.terminal.repl.banner import complain, introduce, unfold
from wolo.frontends.terminal.repl.command_registry import CommandRegistry
from wolo.frontends.terminal.repl.external_editor import edit
from wolo.frontends.terminal.repl.notes import is_note
from wolo.frontends.terminal.repl.picker_commands import choose_ahead, is_chosen_ahead, mention_file
from wolo.frontends.terminal.repl.prompt_building import answered_by, message_of, run_first, show_prompt
from wolo.frontends.terminal.repl.status_bar import StatusBar
from wolo.frontends.terminal.repl.todo_panel import TodoPanel
from wolo.frontends.terminal.repl.turn_runner import run_turn, run_work, tell_jobs
from wolo.frontends.terminal.repl.user_commands import keep_note, next_mode, run_command
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean, escape_hidden

LEAVING_WORDS = frozenset({"exit", "quit", ":q"})


class Repl:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self._terminal, self._screen, self._state = terminal, terminal.screen, terminal.state
        self.conversation = conversation
        conversation.between = self._screen.show
        ui = conversation.facts.ui
        self._keymap = Keymap(ui.keymap)
        self._registry = CommandRegistry(terminal, self)
        composer = self._composer = Composer(terminal, Suggestions(self._registry.desk), conversation.cwd)
        self._queue = composer.queue
        self._status_bar = StatusBar(terminal.state)
        self._todos = TodoPanel()
        self._input: LiveRegion | LineMode
        if self._screen.stdout.can_move:
            self._input = LiveRegion(
                terminal,
                composer.buffer,
                composer_keys(composer, self._keymap, self),
                above=(self._todos, composer),
                below=self._status_bar,
                processors=[Chips(composer.pastes)],
                uses_vi=ui.keys == "vi",
            )
            self._screen.folded.hint = " · Ctrl-O expands"
        else:
            self._input = LineMode(composer, terminal)
        terminal.input_area = self
        self._work: asyncio.Task[None] | None = None
        """The turn or the command that runs."""
        self._background = BackgroundTasks(self._screen)
        self._is_editing = False
        """The text is open in an external editor."""
        self._ran: list[str] = []
        """Output of the user's own commands, for the next prompt."""

    @property
    def conversation(self) -> Conversation:
        assert self._state.conversation is not None  # set when the REPL begins
        return self._state.conversation

    @conversation.setter
    def conversation(self, opened: Conversation) -> None:
        self._state.conversation = opened

    async def run(self) -> int:
        """Until the person leaves; the exit status."""
        if isinstance(self._input, LiveRegion):
            self._screen.attach(self._input)
        introduce(self.conversation, self._screen)
        self._screen.say(f"{self._input.keys_in_short}, /help shows the rest.", "dim")
        recall(self.conversation.history, self._screen)
        if self._composer.restore_draft():
            self._screen.say("What you had not sent is back.", "dim")
        self._screen.space()
        self._look()
        self._input.appear()
        try:
            with self._terminal.signals.during(self._signalled):
                return await self._live()
        finally:
            await self._end_work()
            self._composer.close()
            await self._input.vanish()
            if isinstance(self._input, LiveRegion):
                self._screen.detach()

    async def _live(self) -> int:
        while True:
            try:
                said = await self._composer.read()
            except Quit:
                return 130 if time.monotonic() - self._state.stopped_at < AGAIN_WITHIN_S else 0
            except EOFError:
                return self._terminal.signals.exit_status
            if said.text.strip() in LEAVING_WORDS:
                return 0
            self._hear(said)

    # What is said, and when its turn comes

    def _hear(self, said: Submission) -> None:
        text = said.text.strip() if is_command(said.text.strip()) else said.text
        if self._may_run_beside(text):
            self._background.run(self._glance(text))
        elif self._work is None:
            self._begin(text)
        elif is_chosen_ahead(text) and not said.later:
            self._background.run(self._choose_ahead(text))
        elif said.later or is_command(text) or text.startswith("!") or is_note(text):
            self._queue.later.append(text)
        else:
            self._steer(text)
        self._composer.save_draft_soon()
        self._input.paint()

    def _may_run_beside(self, line: str) -> bool:
        """A command that only looks, while something else runs."""
        return self._work is not None and is_command(line) and self._registry.may_run_alongside(line)

    async def _choose_ahead(self, line: str) -> None:
        if chosen := await choose_ahead(line, self._registry.desk(), self._terminal):
            self._hear(Submission(chosen, later=True))

    def _stop_command(self, line: str) -> None:
        """One that opens another conversation comes to its end: there must always be one."""
        if self._work is not None and self._registry.may_run_alongside(line):
            self._work.cancel()

    async def _glance(self, line: str) -> None:
        self._screen.fresh()
        self._screen.print(Text.assemble(("› ", "bold"), clean(line)))
        with named_alongside(self._registry.doing(line), self._terminal):
            await self._command(line)

    def _begin(self, text: str) -> None:
        self._screen.fresh()
        if not self._input.echoes_input:
            self._screen.print(Text.assemble(("› ", "bold"), clean(self._composer.pastes.shown(text))))
        self._screen.status.start(self._registry.doing(text) if is_command(text) else "getting ready")
        self._work = asyncio.ensure_future(self._take(text))
        self._work.add_done_callback(self._ended)
        self._state.is_working, self._state.is_stopping = True, False

    def _ended(self, work: asyncio.Task[None]) -> None:
        self._work = None
        self._state.is_working = False
        self._screen.status.stop()
        self._queue.end_turn()
        if not work.cancelled() and (failure := work.exception()) is not None:
            self._composer.fail(failure)
        elif not self._terminal.signals.forgive():
            self._composer.quit()
        elif self._state.is_stopping:
            self._composer.give_back(self._queue.pop_all())
        self._screen.space()
        self._status_bar.refresh()
        if self._queue.later and not (self._state.is_stopping or self._composer.is_over):
            self._begin(self._queue.later.popleft())
        self._composer.save_draft_soon()
        self._input.paint()

    def _steer(self, text: str) -> None:
        try:
            self._queue.steer(self._compose(text), text)
        except WoloError as error:
            complain(error, self._screen)
            self._composer.give_back(text)

    def _signalled(self) -> None:
        """While nothing runs a signal leaves; a key meant what has just come to its end."""
        if self._terminal.signals.exit_status:
            self._composer.quit()

    async def _end_work(self) -> None:
        await self._background.end()
        if self._work is not None:
            self._work.remove_done_callback(self._ended)
            self._terminal.signals.stop()
            with suppress(asyncio.CancelledError):
                await self._work

    def abandon(self) -> None:
        self._composer.close()
        if isinstance(self._input, LiveRegion):
            self._input.abandon()

    async def _take(self, line: str) -> None:
        self._screen.fresh()
        try:
            if is_command(line):
                with self._terminal.signals.during(partial(self._stop_command, line)):
                    await self._command(line)
            elif line.startswith("!"):
                if told := await run_command(line, self.conversation, self._terminal):
                    self._ran.append(told)
            elif not is_note(line) or await keep_note(line, self.conversation, self._terminal):
                await self._prompt(line, line)
        except HandoverFailed as failed:
            if failed.conversation is None:
                raise  # there is nothing left to talk with
            complain(failed, self._screen)
            self.change_to(SwitchConversation(failed.conversation, text="Continuing this conversation."))
        except WoloError as error:
            complain(error, self._screen)

    async def _prompt(self, said: str | SendPrompt, line: str) -> None:
        message = None
        try:
            message = self._compose(said)
            await run_turn(self.conversation, message, self._terminal)
        finally:  # it could not be sent, or a hook kept it back
            if message is None or all(each.id != message.id for each in reversed(self.conversation.history)):
                self._composer.give_back(line)

    def _compose(self, said: str | SendPrompt) -> Message:
        message = message_of(said, self.conversation, self._composer.pastes, self._ran)
        self._ran.clear()
        return message

    async def _command(self, line: str) -> None:
        jobs = self.conversation.jobs
        running = jobs.running if jobs is not None else ()
        outcome = await dispatch(line, self._registry.desk(anew=True))
        match outcome:
            case ShowText(text=""):
                pass
            case ShowText(is_answer=True):
                self._screen.answer(outcome.text)
            case ShowText():
                self._screen.say(escape_hidden(outcome.text))
            case SwitchConversation():
                self.change_to(outcome)
                if jobs is not None and self.conversation.jobs is not jobs:
                    tell_jobs(jobs, running, self._screen)
            case RunEvents():
                await run_work(self.conversation, outcome.events, self._terminal)
            case SendPrompt():
                show_prompt(outcome, self._screen)
                outcome = await run_first(outcome, self.conversation, self._terminal)
                async with answered_by(outcome.model, self.conversation, self, self._screen):
                    await self._prompt(outcome, line)
            case Exit():
                self._composer.quit()

    def change_to(self, opened: SwitchConversation) -> None:
        is_other = opened.conversation.session_id != self.conversation.session_id
        self._queue.end_turn()
        self.conversation = opened.conversation
        self.conversation.between = self._screen.show
        if opened.text:
            self._screen.say(opened.text, "dim")
        else:
            introduce(self.conversation, self._screen)
        if is_other:
            self._ran.clear()
            recall(self.conversation.history, self._screen)
        if opened.draft:
            self._composer.give_back(opened.draft)

    # Actions of keys and commands

    def handle_key(self, action: str) -> bool:
        match action:
            case "expand":
                unfold(self.conversation, self._screen)
            case "editor":
                self.open_editor()
            case "files":
                self._background.run(mention_file(self.conversation.cwd, self._composer.buffer, self._terminal))
            case "mode":
                self._next_mode()
            case _:
                return False
        return True

    def open_editor(self) -> None:
        if not self._is_editing:
            self._is_editing = True
            self._background.run(self._edit())

    async def _edit(self) -> None:
        """Replaces the typed text by what an external editor makes of it; running work continues."""
        pastes = self._composer.pastes
        try:
            with self._terminal.signals.aside():
                async with self._input.aside():
                    text = await edit(pastes.unfold(self._composer.buffer.text))
            self._composer.replace(pastes.fold_again(text))
        finally:
            self._is_editing = False

    @property
    def sender(self) -> Sender | None:
        return self._input if isinstance(self._input, LiveRegion) else None

    def keys_listed(self) -> str:
        return KEYS if isinstance(self._input, LineMode) else self._keymap.listed()

    def use_theme(self, theme: str) -> None:
        self._screen.use_theme(theme)

    def _next_mode(self) -> None:
        try:
            next_mode(self.conversation)
        except WoloError as error:
            complain(error, self._screen)
        self._input.paint()

    def _look(self) -> None:
        """Refreshes the status bar and the todo list."""
        self._status_bar.refresh()
        self._background.run(self._look_at_todos())

    async def _look_at_todos(self) -> None:
        self._todos.items = await asyncio.to_thread(self.conversation.todos)
        self._input.paint()
