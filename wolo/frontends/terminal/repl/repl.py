"""The REPL: a line is typed; `/…` goes to the commands, the rest to the model, also while it works."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial

from rich.text import Text

from wolo.agent.events import Event, PromptRefused
from wolo.commands.command import Command, Exit, RunEvents, SendPrompt, ShowText, SwitchConversation, dispatch, is_command
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.errors import WoloError
from wolo.frontends.terminal.composer.completion import Suggestions
from wolo.frontends.terminal.composer.composer import Composer, Leave, Said
from wolo.frontends.terminal.composer.input_area import KEYS_IN_TURNS, Turns, Writing, place_to_write
from wolo.frontends.terminal.composer.key_bindings import composer_keys
from wolo.frontends.terminal.composer.keymap import Keymap
from wolo.frontends.terminal.display.history_preview import recall
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.io.signals import AGAIN_WITHIN_S
from wolo.frontends.terminal.live.live_output import Activity, Paper
from wolo.frontends.terminal.live.live_region import Foot
from wolo.frontends.terminal.repl.background_tasks import Beside, told_beside
from wolo.frontends.terminal.repl.banner import complain, introduce, unfold
from wolo.frontends.terminal.repl.command_registry import Known
from wolo.frontends.terminal.repl.external_editor_task import Editing
from wolo.frontends.terminal.repl.message_queue import Waiting
from wolo.frontends.terminal.repl.notes import is_note
from wolo.frontends.terminal.repl.picker_commands import choose_ahead, is_chosen_ahead, mention_file, with_lists
from wolo.frontends.terminal.repl.prompt_building import answered_by, message_of, run_first, show_prompt
from wolo.frontends.terminal.repl.status_bar import FactsLine
from wolo.frontends.terminal.repl.todo_panel import TodoShown
from wolo.frontends.terminal.repl.turn_runner import run_turn, run_work, tell_jobs
from wolo.frontends.terminal.repl.user_commands import keep_note, next_mode, run_command
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean, show_hidden

LEAVING_WORDS = frozenset({"exit", "quit", ":q"})


class Repl:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self.conversation = conversation
        self._terminal = terminal
        self._screen = terminal.screen
        ui = conversation.facts.ui
        self._keymap = Keymap(ui.keymap)
        self._known = Known(self._table, lambda: self.conversation, self._screen)
        composer = self._composer = Composer(Suggestions(self._known.desk), conversation.cwd, stop=self._stop)
        keys = composer_keys(
            composer,
            self._keymap,
            {
                "expand": lambda: unfold(self.conversation, self._screen),
                "editor": self.open_editor,
                "files": self._choose_file,
                "mode": self._next_mode,
            },
        )
        self._facts = FactsLine(lambda: self.conversation)
        self._foot: Writing = place_to_write(composer, keys, self._facts.text, ui, terminal)
        composer.is_asking = lambda: self._foot.is_asking
        terminal.settle, terminal.stop = self._settle, self._stop
        self._waiting = Waiting(composer.pastes)
        composer.unsent = lambda: self._waiting.texts(self.conversation)
        self._screen.said_as = self._waiting.as_written
        self._composer.hint = self._hint
        self._todos = TodoShown()
        if isinstance(self._foot, Foot):
            self._foot.gone, self._foot.pinned = terminal.signals.hang_up, self._todos.lines
            self._foot.interrupted = composer.interrupted
            self._screen.folded.hint = " · Ctrl-O shows it"
        self._foot.waiting = lambda: self._waiting.lines(self.conversation)
        self._composer.retract = self._retract
        self._work: asyncio.Task[None] | None = None
        """The turn or the command that runs."""
        self._is_stopping, self._stopped_at = False, float("-inf")
        conversation.between, self._screen.also = self._screen.show, self._hear_event
        self._beside = Beside(self._screen)
        self._editing = Editing(composer, self._foot, terminal.signals)
        self._ran: list[str] = []
        """What the person's own commands have printed: the next prompt tells it."""

    async def run(self) -> int:
        """Until the person leaves; the exit status."""
        before = self._screen.stdout, self._screen.status
        if isinstance(self._foot, Foot):
            self._screen.stand_on(self._foot, Paper(self._foot), Activity(self._foot))
        introduce(self.conversation, self._screen)
        self._screen.say(f"{self._foot.keys_in_short}, /help shows the rest.", "dim")
        recall(self.conversation.history, self._screen)
        if self._composer.take_up_draft():
            self._screen.say("What you had not sent is back.", "dim")
        self._screen.space()
        self._look()
        self._foot.appear()
        try:
            with self._terminal.signals.during(self._signalled):
                return await self._live()
        finally:
            await self._end_work()
            self._composer.close()
            await self._foot.vanish()
            self._screen.stand_on(None, *before)

    async def _live(self) -> int:
        while True:
            try:
                said = await self._composer.read()
            except Leave:
                return 130 if time.monotonic() - self._stopped_at < AGAIN_WITHIN_S else 0
            except EOFError:
                return self._terminal.signals.exit_status
            if said.text.strip() in LEAVING_WORDS:
                self._composer.keep_draft()  # it was sent: nothing of it is left
                return 0
            self._hear(said)

    # What is said, and when its turn comes

    def _hear(self, said: Said) -> None:
        text = said.text.strip() if is_command(said.text.strip()) else said.text
        if self._may_run_beside(text):
            self._beside.run(self._glance(text))
        elif self._work is None:
            self._begin(text)
        elif is_chosen_ahead(text) and not said.later:
            self._beside.run(self._choose_ahead(text))
        elif said.later or is_command(text) or text.startswith("!") or is_note(text):
            self._waiting.later.append(text)
        else:
            self._steer(text)
        self._composer.keep_draft()
        self._foot.paint()

    def _may_run_beside(self, line: str) -> bool:
        """A command that only looks, while something else runs."""
        return self._work is not None and is_command(line) and self._known.only_looks(line)

    async def _choose_ahead(self, line: str) -> None:
        if chosen := await choose_ahead(line, self._known.desk(), self._terminal):
            self._hear(Said(chosen, later=True))

    def _stop_command(self, line: str) -> None:
        """One that opens another conversation comes to its end: there must always be one."""
        if self._work is not None and self._known.only_looks(line):
            self._work.cancel()

    async def _glance(self, line: str) -> None:
        self._screen.fresh()
        self._screen.print(Text.assemble(("› ", "bold"), clean(line)))
        with told_beside(self._known.doing(line), self._terminal):
            await self._command(line)

    def _begin(self, text: str) -> None:
        self._screen.fresh()
        if not self._foot.leaves_what_was_typed:
            self._screen.print(Text.assemble(("› ", "bold"), clean(self._composer.pastes.shown(text))))
        self._screen.status.start(self._known.doing(text) if is_command(text) else "getting ready")
        self._work = asyncio.ensure_future(self._take(text))
        self._work.add_done_callback(self._ended)
        self._composer.is_working, self._is_stopping = True, False

    def _ended(self, work: asyncio.Task[None]) -> None:
        self._work = None
        self._composer.is_working = False
        self._screen.status.stop()
        self._waiting.settle(self.conversation)
        if not work.cancelled() and (failure := work.exception()) is not None:
            self._composer.fail(failure)
        elif not self._terminal.signals.forgive():
            self._composer.leave()
        elif self._is_stopping:
            self._composer.give_back(self._waiting.give_up())
        self._screen.space()
        self._facts.look()
        if self._waiting.later and not (self._is_stopping or self._composer.is_over):
            self._begin(self._waiting.later.popleft())
        self._composer.keep_draft()
        self._foot.paint()

    def _steer(self, text: str) -> None:
        try:
            self._waiting.steer(self.conversation, self._compose(text), text)
        except WoloError as error:
            complain(error, self._screen)
            self._composer.give_back(text)

    def _retract(self) -> bool:
        """The newest of what waits goes back to where it was written. False: nothing waits."""
        if newest := self._waiting.take_newest(self.conversation):
            self._composer.give_back(newest)
        return bool(newest)

    def _stop(self) -> bool:
        """Ends what runs; False when nothing does, or it is being stopped already."""
        if self._work is None or self._is_stopping:
            return False
        self._is_stopping, self._stopped_at = True, time.monotonic()
        asyncio.get_running_loop().call_soon(self._terminal.signals.stop)  # what has just begun does not listen yet
        return True

    def _signalled(self) -> None:
        """While nothing runs a signal leaves; a key meant what has just come to its end."""
        if self._terminal.signals.exit_status:
            self._composer.leave()

    async def _end_work(self) -> None:
        await self._beside.end()
        if self._work is not None:
            self._work.remove_done_callback(self._ended)
            self._terminal.signals.stop()
            with suppress(asyncio.CancelledError):
                await self._work

    def _settle(self) -> None:
        self._composer.close()
        self._foot.drop()

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
            self._change_to(SwitchConversation(failed.conversation, text="Continuing this conversation."))
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

    def _table(self) -> tuple[Command, ...]:
        from wolo.commands.table import COMMANDS  # noqa: PLC0415  # forty files, and the first prompt needs none of them
        from wolo.frontends.terminal.repl.terminal_commands import own_commands  # noqa: PLC0415  # the same

        own = own_commands(self, self._foot.print if isinstance(self._foot, Foot) else None)
        return with_lists((*COMMANDS, *own), self._terminal)

    async def _command(self, line: str) -> None:
        jobs = self.conversation.jobs
        running = jobs.running if jobs is not None else ()
        outcome = await dispatch(line, self._known.desk(anew=True))
        match outcome:
            case ShowText(text=""):
                pass
            case ShowText(is_answer=True):
                self._screen.answer(outcome.text)
            case ShowText():
                self._screen.say(show_hidden(outcome.text))
            case SwitchConversation():
                self._change_to(outcome)
                if jobs is not None and self.conversation.jobs is not jobs:
                    tell_jobs(jobs, running, self._screen)
            case RunEvents():
                await run_work(self.conversation, outcome.events, self._terminal)
            case SendPrompt():
                show_prompt(outcome, self._screen)
                outcome = await run_first(outcome, self.conversation, self._terminal)
                async with answered_by(outcome.model, self.conversation, self._change_to, self._screen):
                    await self._prompt(outcome, line)
            case Exit():
                self._composer.leave()

    def _change_to(self, opened: SwitchConversation) -> None:
        is_other = opened.conversation.session_id != self.conversation.session_id
        self._waiting.settle(self.conversation)
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

    # What the person writes with

    def open_editor(self) -> None:
        self._beside.run(self._editing.run())

    def _choose_file(self) -> None:
        self._beside.run(mention_file(self.conversation.cwd, self._composer.buffer, self._terminal))

    def keys_listed(self) -> str:
        return KEYS_IN_TURNS if isinstance(self._foot, Turns) else self._keymap.listed()

    def use_theme(self, theme: str) -> None:
        self._screen.use_theme(theme)

    def _next_mode(self) -> None:
        try:
            next_mode(self.conversation)
        except WoloError as error:
            complain(error, self._screen)
        self._foot.paint()

    # What is shown

    def _hint(self, words: str) -> None:
        self._foot.hint = words
        self._foot.paint()

    def _look(self) -> None:
        """Anything may be different now."""
        self._facts.look()
        self._beside.run(self._look_at_todos())

    async def _look_at_todos(self) -> None:
        self._todos.take(await asyncio.to_thread(self.conversation.todos))
        self._foot.paint()

    def _hear_event(self, event: Event) -> None:
        self._facts.hear(event)
        self._todos.hear(event)
        if isinstance(event, PromptRefused) and event.reason and not event.prompt.is_prompt:
            self._composer.give_back(self._waiting.written(event.prompt))
