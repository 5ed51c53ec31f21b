"""The REPL: runs commands and turns for what the user submits, also while something runs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TypeVar

from wolo.agent.events import ApprovalAsked, Event, QuestionsAsked
from wolo.commands.command import EditFile, Exit, RunEvents, SendPrompt, ShowText, SwitchConversation, dispatch, is_command
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.errors import UsageError, WoloError
from wolo.frontends.terminal.composer.completion import Suggestions, mention
from wolo.frontends.terminal.composer.composer import Composer, Quit, Submission
from wolo.frontends.terminal.composer.keymap import Keymap, composer_keys
from wolo.frontends.terminal.composer.line_mode import KEYS, LineMode
from wolo.frontends.terminal.composer.pastes import Chips
from wolo.frontends.terminal.dialogs.external_editor import edit, edit_file
from wolo.frontends.terminal.display.activity import SLOW_S
from wolo.frontends.terminal.display.history_preview import recall
from wolo.frontends.terminal.display.terminal import AGAIN_WITHIN_S, Terminal
from wolo.frontends.terminal.io.terminal_marks import TerminalMarks
from wolo.frontends.terminal.io.terminal_output import Sender
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.prompt_loop import PromptLoop
from wolo.frontends.terminal.repl import submissions
from wolo.frontends.terminal.repl.command_registry import CommandRegistry
from wolo.frontends.terminal.repl.status_bar import StatusBar, TodoPanel, print_banner
from wolo.frontends.terminal.repl.turn_runner import ask_for_tasks, print_jobs_left, run_turn, run_work
from wolo.messages.message import UserPrompt
from wolo.messages.terminal_text import escape_hidden

MODES = ("plan", "ask", "edit", "auto")
"""Modes that Shift-Tab switches between; `yolo` has no key."""
WORDS = {"exit": "/exit", "quit": "/exit", ":q": "/exit", "help": "/help", "clear": "/clear", "?": "/keys"}
"""Lines that are commands although no slash begins them."""
T = TypeVar("T")


class Repl:
    def __init__(self, conversation: Conversation, terminal: Terminal) -> None:
        self._terminal, self._screen, self._state = terminal, terminal.screen, terminal.state
        self.conversation = conversation
        self._listen(conversation)
        ui = conversation.info.ui
        self._keymap = Keymap(ui.keymap)
        self._registry = CommandRegistry(terminal, self)
        composer = self._composer = Composer(
            terminal, Suggestions(self._registry.context), conversation.info.cwd, self._registry.needs_argument
        )
        self._queue = composer.queue
        self._status_bar = StatusBar(terminal.state)
        self._todos = TodoPanel()
        self._input: LiveRegion | LineMode
        self._region: LiveRegion | None = None
        """The input, where the cursor can move."""
        if self._screen.stdout.can_move:
            self._input = self._region = LiveRegion(
                terminal,
                composer.buffer,
                composer_keys(composer, self._keymap, self.handle_key),
                above=(self._todos, composer),
                below=self._status_bar,
                processors=[Chips(composer.pastes)],
                uses_vi=ui.keys == "vi",
            )
            self._region.app.key_processor.after_key_press += lambda _: composer.after_key()
            self._screen.folded.hint = " · Ctrl-O expands"
            self._region.marks = TerminalMarks(ui, self._region, conversation.info.cwd.name, os.environ)
            self._screen.has_marks = self._region.marks.has_prompts
        else:
            self._input = LineMode(composer, terminal)
        terminal.abandon_input = self.abandon
        self._work: asyncio.Task[None] | None = None
        """The turn or the command that runs."""
        self._background: set[asyncio.Task[None]] = set()
        """Commands, lists and editors that run alongside it."""
        self.loop = PromptLoop(self._send_again)
        self._state.stop_loop = self.loop.stop
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
        """Runs until the user quits. Returns the exit status."""
        if self._region is not None:
            self._screen.attach(self._region)
        print_banner(self.conversation, self._screen)
        self._screen.show_text(f"{self._input.keys_in_short}, /help shows the rest.", "dim")
        recall(self.conversation.history, self._screen)
        if self._composer.restore_draft():
            self._screen.show_text("Restored your unsent draft.", "dim")
        self._screen.space()
        self._refresh_status()
        self._run_in_background(self._refresh_todos())
        self._input.appear()
        self._mark_state()
        try:
            with self._terminal.signals.during(self._on_signal):
                while True:
                    try:
                        submission = await self._composer.read()
                    except Quit:
                        return 130 if time.monotonic() - self._state.stopped_at < AGAIN_WITHIN_S else 0
                    except EOFError:
                        return self._terminal.signals.exit_status
                    text = WORDS.get(submission.text.strip().lower(), submission.text)
                    if text == "/exit":
                        return 0
                    self._receive(submission._replace(text=text))
        finally:
            self.loop.stop()
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            if self._work is not None:
                self._work.remove_done_callback(self._on_work_done)
                self._terminal.signals.stop()
                with suppress(asyncio.CancelledError):
                    await self._work
            self._composer.close()
            if self._region is not None and self._region.marks is not None:
                self._region.marks.close()
            await self._input.vanish()
            if self._region is not None:
                self._screen.detach()

    # Submissions

    def _receive(self, submission: Submission) -> None:
        text = submission.text.strip() if is_command(submission.text.strip()) else submission.text
        if self._work is not None and is_command(text) and self._registry.may_run_alongside(text):
            self._run_in_background(self._run_alongside(text))
        elif self._work is None:
            self._start_work(text)
        elif self._registry.is_chosen_ahead(text) and not submission.later:
            self._run_in_background(self._choose_ahead(text))
        elif submission.later or is_command(text) or text.startswith("!") or submissions.is_note(text):
            self._queue.later.append(text)
        else:
            try:
                self._queue.steer(self._compose(text), text)
            except WoloError as error:
                self._screen.show_error(error)
                self._composer.give_back(text)
        self._composer.save_draft_soon()
        self._input.paint()

    async def _choose_ahead(self, line: str) -> None:
        from wolo.frontends.terminal.repl.picker_commands import choose_ahead  # noqa: PLC0415  # the first prompt needs no lists

        if chosen := await choose_ahead(line, self._registry.context(), self._terminal):
            self._receive(Submission(chosen, later=True))

    def _send_again(self, prompt: str) -> None:
        """Sends the prompt of the loop, after what runs."""
        if self._work is not None:
            if prompt not in self._queue.later:
                self._queue.later.append(prompt)
        elif not self._composer.is_over:
            if self._input.echoes_input:
                self._screen.show_user_text(prompt)
            self._start_work(prompt)
        self._input.paint()

    def _stop_command(self, line: str) -> None:
        """Cancels a command that only shows something; one that switches conversations must not be cut off."""
        if self._work is not None and self._registry.may_run_alongside(line):
            self._work.cancel()

    async def _run_alongside(self, line: str) -> None:
        """Runs a command beside the turn; slow work stands at the end of the status line."""
        self._screen.fresh()
        self._screen.show_user_text(line)
        background, text = self._state.background, self._registry.doing(line)
        due = asyncio.get_running_loop().call_later(SLOW_S, background.append, text)
        try:
            await self._run_command(line)
        finally:
            due.cancel()
            if text in background:
                background.remove(text)

    def _start_work(self, text: str) -> None:
        self._screen.fresh()
        if not (self._input.echoes_input or self._opens_list(text)):
            self._screen.show_user_text(self._composer.pastes.with_labels(text))
        self._screen.status.start(self._registry.doing(text) if is_command(text) else "getting ready")
        self._start(self._perform(text))

    def _mark_state(self) -> None:
        if self._region is not None:
            self._region.mark_state()

    def _opens_list(self, line: str) -> bool:
        return self._region is not None and is_command(line) and self._registry.opens_list(line)

    def _listen(self, conversation: Conversation) -> None:
        conversation.listen_while_idle(self._on_idle_event)
        conversation.wake_with(self._on_wake)
        if conversation.extensions is not None:
            conversation.extensions.on_status = lambda: self._input.paint()

    def _on_idle_event(self, event: Event) -> None:
        """Shows what happens between turns; a background task that waits for the user is work."""
        if not isinstance(event, ApprovalAsked | QuestionsAsked):
            self._screen.show(event)
            self._status_bar.on_event(event)
            self._input.paint()
        elif self._work is None:
            self._start_asking()

    def _on_wake(self) -> None:
        """Runs a turn for lines of background jobs; those that come while something runs are looked for after it."""
        if self._work is None and not self._composer.is_over and (prompt := self.conversation.wake_prompt()) is not None:
            self._screen.show_text(escape_hidden(prompt.text.partition("\n")[2]), "dim")  # the first line is for the model
            self._screen.fresh()
            self._start(self._show_errors_of(run_turn(self.conversation, prompt, self._terminal)))
            self._input.paint()

    def _start_asking(self) -> None:
        self._screen.fresh()
        self._start(ask_for_tasks(self.conversation, self._terminal))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._work = asyncio.ensure_future(work)
        self._work.add_done_callback(self._on_work_done)
        self._state.is_working, self._state.is_stopping = True, False
        self._mark_state()

    def _on_work_done(self, work: asyncio.Task[None]) -> None:
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
        self._refresh_status()
        self._mark_state()
        if self._queue.later and not (self._state.is_stopping or self._composer.is_over):
            self._start_work(self._queue.later.popleft())
        elif self.conversation.is_asking and not self._composer.is_over:
            self._start_asking()
        else:
            self.conversation.look_for_lines()
        self._composer.save_draft_soon()
        self._input.paint()

    def _on_signal(self) -> None:
        """A signal quits while nothing runs; Ctrl-C was meant for work that has just ended."""
        if self._terminal.signals.exit_status:
            self._composer.quit()

    def abandon(self) -> None:
        self._composer.close()
        if self._region is not None:
            self._region.abandon()

    async def _perform(self, line: str) -> None:
        try:
            if is_command(line):
                with self._terminal.signals.during(partial(self._stop_command, line)):
                    await self._run_command(line)
            elif line.startswith("!"):
                if output := await submissions.run_command(line, self.conversation, self._terminal):
                    self._ran.append(output)
            elif not submissions.is_note(line) or await submissions.save_note(line, self.conversation, self._terminal):
                await self._send(line, line)
        except HandoverFailed as failed:
            if failed.conversation is None:
                raise  # no conversation is left
            self._screen.show_error(failed)
            self.change_to(SwitchConversation(failed.conversation, text="Continuing this conversation."))
        except WoloError as error:
            self._screen.show_error(error)

    async def _send(self, submitted: str | SendPrompt, line: str) -> None:
        message = None
        try:
            message = self._compose(submitted)
            await run_turn(self.conversation, message, self._terminal)
        finally:  # it was not sent, or a hook refused it
            if message is None or all(each.id != message.id for each in reversed(self.conversation.history)):
                self._composer.give_back(line)

    def _compose(self, submitted: str | SendPrompt) -> UserPrompt:
        message = submissions.make_message(submitted, self.conversation, self._composer.pastes, self._ran, self._screen)
        self._ran.clear()
        return message

    async def _run_command(self, line: str) -> None:
        jobs = self.conversation.jobs
        running = jobs.running if jobs is not None else ()
        outcome = await dispatch(line, self._registry.context(anew=True))
        if self._opens_list(line) and outcome != ShowText(""):
            self._screen.show_user_text(line)
        match outcome:
            case ShowText(text=""):
                pass
            case ShowText(is_answer=True):
                self._screen.answer(outcome.text)
            case ShowText():
                self._screen.show_text(escape_hidden(outcome.text))
            case SwitchConversation():
                self.change_to(outcome)
                if jobs is not None and self.conversation.jobs is not jobs:
                    print_jobs_left(jobs, running, self._screen)
                if outcome.sends is not None:
                    await self._send_made(outcome.sends, line)
            case RunEvents():
                await run_work(self.conversation, outcome.events, self._terminal)
            case SendPrompt():
                await self._send_made(outcome, line)
            case EditFile():
                if not self._is_editing:
                    self._is_editing = True
                    self._run_in_background(self._in_editor(edit_file(outcome.path)))
            case Exit():
                self._composer.quit()

    async def _send_made(self, prompt: SendPrompt, line: str) -> None:
        """Sends the prompt that the command `line` makes."""
        from wolo.commands.expansion import run_embedded  # noqa: PLC0415  # few prompts come from commands

        submissions.show_prompt(prompt, self._screen)
        with self._terminal.signals.during(self.conversation.interrupt):
            prompt = await run_embedded(prompt, self.conversation, self._screen.show)
        async with submissions.answering_with(prompt.model, self.conversation, self.change_to, self._screen):
            await self._send(prompt, line)

    def change_to(self, opened: SwitchConversation) -> None:
        keys = opened.conversation.info.ui.keys
        if self._region is not None and keys != self.conversation.info.ui.keys:
            self._region.use_vi(keys == "vi")
        is_other = opened.conversation.info.session_id != self.conversation.info.session_id
        self._queue.end_turn()
        self.conversation = opened.conversation
        self._listen(self.conversation)
        if opened.text:
            self._screen.show_text(opened.text, "dim")
        else:
            print_banner(self.conversation, self._screen)
        if is_other:
            self.loop.stop()
            self._ran.clear()
            recall(self.conversation.history, self._screen)
        if opened.draft:
            self._composer.give_back(opened.draft)

    def _run_in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(self._show_errors_of(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _show_errors_of(self, work: Awaitable[object]) -> None:
        try:
            await work
        except WoloError as error:
            self._screen.show_error(error)

    # Actions of keys and commands

    def handle_key(self, action: str) -> None:
        """Performs an action of the keymap that is not the composer's."""
        match action:
            case "expand":
                self._run_in_background(self._view())
            case "editor":
                self.open_editor()
            case "paste_image":
                self._run_in_background(self._paste_image())
            case "files":
                from wolo.frontends.terminal.repl.picker_commands import mention_file  # noqa: PLC0415  # as above

                self._run_in_background(mention_file(self.conversation.info.cwd, self._composer.buffer, self._terminal))
            case "mode":
                before = self.conversation.info.mode
                at = MODES.index(before) if before in MODES else -1
                try:
                    managed = self.conversation.permissions.config.settings.managed
                    for step in range(1, len(MODES)):
                        if not managed.modes.has(name := MODES[(at + step) % len(MODES)]):
                            continue
                        self.conversation.set_mode(name)
                        if self.conversation.info.mode != before:
                            break
                except WoloError as error:
                    self._screen.show_error(error)
                self._input.paint()

    async def _view(self) -> None:
        """Shows the whole conversation, from the newest folded output on; what is printed waits."""
        from wolo.frontends.terminal.dialogs.viewer import Viewer  # noqa: PLC0415  # the first prompt needs none
        from wolo.frontends.terminal.display.transcript import draw_transcript  # noqa: PLC0415  # the same

        region, folded = self._region, self._screen.folded
        if region is None or self._is_editing:
            return
        self._is_editing = True
        try:
            history, views = tuple(self.conversation.history), dict(folded.views)
            lines, calls = await asyncio.to_thread(draw_transcript, history, views, self._screen.stdout)
            if not lines:
                self._screen.show_text("Nothing to expand.", "dim")
                return
            viewer = Viewer(lines, self._state, at=calls.get(folded.newest, len(lines)), stops=tuple(calls.values()))
            with self._terminal.signals.aside():
                await region.show_viewer(viewer.show)
        finally:
            self._is_editing = False

    async def _paste_image(self) -> None:
        """Mentions the image of the clipboard at the cursor."""
        from wolo.frontends.terminal.composer.clipboard_images import save_clipboard_image  # noqa: PLC0415  # few prompts have one

        path = await save_clipboard_image(self.conversation.permissions.workspace)
        self._composer.buffer.insert_text(f"{mention(str(path))} ")
        self._input.paint()

    def open_editor(self) -> None:
        if not self._is_editing:
            self._is_editing = True
            self._run_in_background(self._edit())

    async def _edit(self) -> None:
        """Opens the typed text in an external editor; running work continues."""
        pastes = self._composer.pastes
        text = await self._in_editor(edit(pastes.unfold(self._composer.buffer.text)))
        self._composer.replace(pastes.fold_again(text))

    async def _in_editor(self, editing: Awaitable[T]) -> T:
        try:
            with self._terminal.signals.aside():
                async with self._input.aside():
                    return await editing
        finally:
            self._is_editing = False

    @property
    def sender(self) -> Sender | None:
        return self._region

    def keys_listed(self) -> str:
        return KEYS if self._region is None else self._keymap.table(self._screen.stdout.columns - 1)

    def use_theme(self, theme: str) -> None:
        self._screen.use_theme(theme)

    @property
    def uses_vi(self) -> bool:
        return self._region is not None and self._region.uses_vi

    def use_vi(self, enabled: bool) -> None:
        """Raises UsageError where the terminal edits the line itself."""
        if self._region is None:
            raise UsageError("The keys of vi need a terminal whose cursor moves.", hint="Start without --plain, or set TERM.")
        self._region.use_vi(enabled)

    def _refresh_status(self) -> None:
        self._status_bar.refresh()
        if self.conversation.info.ui.status_command and self._region is not None:
            self._run_in_background(self._status_bar.run_command(self._input.paint))

    async def _refresh_todos(self) -> None:
        self._todos.items = await asyncio.to_thread(self.conversation.todos)
        self._input.paint()
