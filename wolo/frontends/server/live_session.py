"""One session of the server: its conversation while it is open, its lines, and what a client can do with it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo.agent.events import ErrorInfo, Event, ModeChanged, TurnEnded, TurnStarted
from wolo.commands.expansion import expand, switch_model
from wolo.commands.table import load_commands
from wolo.commands.user_commands import load_user_commands
from wolo.config import layers
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.history.turn_undo import PreparedUndo, Undoing, as_row
from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.diagnostics.model_info import usable_in_brief
from wolo.errors import WoloError
from wolo.frontends.server import request_bodies as bodies
from wolo.frontends.server.http_errors import HttpError, as_http
from wolo.frontends.server.session_lines import COMPLETING, PASSING, EventLog, history_lines, lines_of, notice_line
from wolo.frontends.stream_json import Line, RunTotals, init_line, result_head, system_line, usage_object
from wolo.guard.modes import MODES
from wolo.messages.message import Message, Origin, Usage, UserPrompt, user
from wolo.messages.parts import ImagePart
from wolo.places import Places
from wolo.tools.todo import latest_todos
from wolo.tools.tool_values import Replies, TodoItem
from wolo.workspace.root import find_site

log = logging.getLogger(__name__)


class LiveSession:
    """All methods run in the event loop."""

    def __init__(
        self, session_id: str, cwd: Path, history: Sequence[Message], *, mode: str, model: str, unsent: Sequence[str] = ()
    ) -> None:
        """`unsent`: words that were saved for a turn which was killed before it got them."""
        self.id, self.cwd, self.mode, self.model = session_id, cwd, _lasting(mode), model
        self.log = EventLog()
        self.conversation: Conversation | None = None
        self.is_busy = False
        self.title = self.thinking = ""
        """Given by a client; saved sessions keep theirs."""
        self.options: Mapping[str, str | bool | list[str]] = {}
        """With which it is opened again."""
        self.on_line: Callable[[Line], None] | None = None
        """Gets each line that is no delta."""
        self.settled: set[str] = set()
        """Ids of answered approvals and questions, and of their calls."""
        self.used = time.monotonic()
        """Time of the latest request, or of the end of a turn or a listener."""
        self._turn: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._saved = tuple(history)
        """Messages of a session that is not open."""
        self._length = 0
        self._unsent = tuple(unsent)
        self._show(history)

    # Its lines

    def _show(self, history: Sequence[Message]) -> None:
        self._length = len(history)
        unsent = (notice_line(f"The server ended before the model got this: {text}") for text in self._unsent)
        if self.conversation is not None:
            init = init_line(self.conversation)
        else:
            known = {"model": self.model, "cwd": str(self.cwd), "mode": self.mode, "tools": [], "mcp_servers": []}
            init = {"type": "system", "subtype": "init", **known}
        lines = (init, *history_lines(history), *unsent, self._status())
        self.log.reset({**line, "session_id": self.id} for line in lines)

    def _status(self) -> Line:
        if self.conversation is not None:
            self.mode, self.model = self.conversation.info.mode, self.conversation.info.model
            self.thinking = self.conversation.thinking_used or ""
        return system_line("status", busy=self.is_busy, mode=self.mode, model=self.model, thinking=self.thinking)

    def emit(self, line: Line, *, passing: bool = False, completes: bool = False) -> None:
        self.log.add({**line, "session_id": self.id}, passing=passing, completes=completes)
        if self.on_line is not None and not passing:
            self.on_line(line)

    @property
    def _messages(self) -> Sequence[Message]:
        """Also during a turn."""
        if self.conversation is None:
            return self._saved
        return self.conversation.agent.services.history.messages or self.conversation.history

    def messages(self, limit: int | None = None, before: str = "") -> list[Line]:
        """The complete messages as lines: the last `limit` before the one with the id `before`. Raises HttpError."""
        messages = self._messages
        if before:
            end = next((at for at, each in enumerate(messages) if each.id == before), None)
            if end is None:
                raise HttpError(422, f"There is no message {before!r} in this session.", "Begin again without `before`.")
            messages = messages[:end]
        return [{**line, "session_id": self.id} for line in history_lines(messages[-limit:] if limit else messages)]

    def todos(self) -> Sequence[TodoItem]:
        return latest_todos(self._messages) or ()

    # Turns

    async def open(self) -> Conversation:
        """Raises WoloError, also when another process has the session open."""
        async with self._opening:
            if self.conversation is None:
                conversation = await open_conversation(start_options(self.cwd, {**self.options, "resume": self.id}))
                order = list(MODES)
                if self.mode in MODES and order.index(self.mode) < order.index(conversation.info.mode):
                    conversation.set_mode(self.mode)
                self.adopt(conversation)
            assert self.conversation is not None
            return self.conversation

    def adopt(self, conversation: Conversation) -> None:
        """Continues with this conversation; shows it anew if another process has changed it."""
        self.conversation, self._saved = conversation, ()
        conversation.wake_with(self._on_wake)
        if len(conversation.history) != self._length or not self._length:
            self._show(conversation.history)
        else:
            self.emit(self._status())

    async def prompt(self, text: str, images: Sequence[ImagePart], origin: Origin) -> None:
        """Starts a turn and returns once the prompt is saved. Raises HttpError and WoloError; then nothing was sent."""
        self._require_idle()
        self.is_busy = True
        try:
            conversation = await self.open()
            message = await self._message(conversation, text, images, origin)
        except BaseException:
            self._end_work()
            raise
        if message is None:
            self._end_work()
            return
        saved = asyncio.get_running_loop().create_future()
        self._turn = asyncio.create_task(self._run(message, saved))
        if refusal := await asyncio.shield(saved):  # a client that hangs up changes nothing
            raise refusal

    def _on_wake(self) -> None:
        """Runs a turn for lines of background jobs; those that come while something runs are looked for after it."""
        if self.is_busy or self.conversation is None or (prompt := self.conversation.wake_prompt()) is None:
            return
        self.is_busy = True
        self._turn = asyncio.create_task(self._run(prompt, asyncio.get_running_loop().create_future()))

    def _end_work(self) -> None:
        """Lines that jobs printed meanwhile may start a turn, also in a conversation that has followed."""
        self.is_busy = False
        if self.conversation is not None:
            self.conversation.wake_with(self._on_wake)
            self.conversation.look_for_lines()

    async def _message(
        self, conversation: Conversation, text: str, images: Sequence[ImagePart], origin: Origin
    ) -> UserPrompt | None:
        """None: a command has shown its text, and makes no prompt."""
        typed = None
        if text.startswith("/") and (made := await expand(text, conversation, self._on_event, origin)):
            text, typed = made.text, made.typed
            self.conversation = conversation = await switch_model(made.model, conversation, lambda it: self.emit(notice_line(it)))
            self._notify(made.notices)
            if not text:
                return None
        unread: list[str] = []
        message = await asyncio.to_thread(write_prompt, text, conversation, origin=origin, notify=unread.append, typed=typed)
        self._notify(unread)
        return must_be_sent(conversation.choice, replace(message, parts=(*message.parts, *images))) if images else message

    def _notify(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.emit(notice_line(text))

    async def _run(self, message: UserPrompt | None, saved: asyncio.Future[HttpError | None]) -> None:
        """Runs turns until no steering message is left. `saved` gets None, or the reason why the first one did not begin."""
        assert self.conversation is not None
        refusal = HttpError(500, "wolo failed before the turn began.", "The log file has the details.")
        try:
            while message is not None:
                self.emit(self._status())
                refusal = await self._run_turn(self.conversation, message, saved)
                left = self.conversation.steering.take_all()
                origin = message.origin if message.is_from_user else "network"
                message = UserPrompt.from_message(user("\n\n".join(each.text for each in left)), origin) if left else None
        finally:
            self._end_work()
            self._length, self.used = len(self.conversation.history), time.monotonic()
            self.emit(self._status())
            if not saved.done():
                saved.set_result(refusal)

    async def _run_turn(
        self, conversation: Conversation, message: UserPrompt, saved: asyncio.Future[HttpError | None]
    ) -> HttpError:
        """Returns the answer to a prompt with which no turn began."""
        totals, ended = RunTotals(conversation), None
        try:
            async for event in conversation.prompt(message):
                totals.on_event(event)
                self._on_event(event)
                ended = event if isinstance(event, TurnEnded) else ended
                if isinstance(event, TurnStarted) and not saved.done():
                    saved.set_result(None)
            assert ended is not None  # every turn ends with TurnEnded
            self.emit(totals.result(ended, ended.exit_code or (4 if totals.denials else 0)), completes=True)
            if ended.error is None or ended.cause == "interrupted":
                return HttpError(409, "The turn was interrupted before it began.")
            return HttpError(507 if ended.cause == "session_error" else 422, ended.error.message, ended.error.hint)
        except WoloError as error:
            return self._report_failure(error)
        except Exception as error:
            log.exception("a turn failed")
            return self._report_failure(WoloError(f"wolo failed: {type(error).__name__}.", hint="The log file has the details."))

    def _report_failure(self, error: WoloError) -> HttpError:
        head = result_head("model_error", error.exit_code, ErrorInfo.of(error), denied=False)
        self.emit(head | {"result": "", "num_turns": 0, "usage": usage_object(Usage()), "total_cost_usd": None}, completes=True)
        return as_http(error)

    def _on_event(self, event: Event) -> None:
        for line in lines_of(event):
            self.emit(line, passing=isinstance(event, PASSING), completes=isinstance(event, COMPLETING))
        if isinstance(event, ModeChanged):
            self.emit(self._status())

    async def steer(self, text: str) -> None:
        """Returns once the message is saved. Raises HttpError and SessionError."""
        message = UserPrompt.from_message(user(text), "network")
        await self._require_busy().save_steering(message)
        self._require_busy().steer(message)
        self.emit({"type": "system", "subtype": "steered", "text": text})

    def _require_busy(self) -> Conversation:
        if not self.is_busy or self.conversation is None:
            raise HttpError(409, "No turn is running.", "Send it to /prompt.")
        return self.conversation

    def interrupt(self) -> bool:
        """False: nothing was running."""
        if self.conversation is not None and self.is_busy:
            self.conversation.interrupt()
            return True
        return False

    def resume(self, model: str) -> None:
        """Ends the wait for a limit. Raises HttpError and UsageError."""
        if not self._require_busy().resume_now(model):
            raise HttpError(409, "This session does not wait for a limit.", "A retry line with is_limit says that it does.")

    # What a client decides, changes and undoes

    def approve(self, call_id: str, decision: str, reason: str) -> None:
        waiting = self.conversation.approvals.waiting if self.conversation else {}
        asked = next((asked for id, (asked, _) in waiting.items() if call_id in (id, asked.part.id)), None)
        if asked is None or self.conversation is None:
            raise self._not_waiting("approval", call_id)
        if asked.only_once and decision in ("session", "always"):
            raise HttpError(422, "This call can only be approved once.", "It may be an example in a text.")
        if decision == "always" and not asked.rule:
            raise HttpError(422, "No rule can be saved for this call.", "Decide “once” or “session”.")
        if decision == "never" and not asked.denial:
            raise HttpError(422, "No deny rule can be saved for this call.", "Decide “no”.")
        self.settled |= {asked.id, asked.part.id}
        allowed = decision not in ("no", "never")
        scope: Any = {"no": "once", "never": "always"}.get(decision, decision)
        self.conversation.answer(asked.id, allowed=allowed, scope=scope, reason=reason)

    def answer(self, call_id: str, replies: Replies | None) -> None:
        waiting = self.conversation.questions.waiting if self.conversation else {}
        asked = next((asked for id, (asked, _) in waiting.items() if call_id in (id, asked.call_id)), None)
        if asked is None or self.conversation is None:
            raise self._not_waiting("question", call_id)
        if replies is not None and len(replies) != len(asked.questions):
            raise HttpError(
                422, f"There are {len(asked.questions)} questions and {len(replies)} answers.", "Send one answer each."
            )
        self.settled |= {asked.id, asked.call_id}
        self.conversation.questions.answer(asked.id, replies)

    def _not_waiting(self, what: str, call_id: str) -> HttpError:
        if call_id in self.settled:
            return HttpError(409, f"The {what} of {call_id} was answered already.")
        return HttpError(404, f"No {what} of {call_id!r} is pending.", "The call_id is in the event that asks.")

    async def change(self, model: str, mode: str) -> Line:
        """Chooses another model, when no turn runs, or mode. Returns the new status. Raises HttpError and WoloError."""
        if model and model != self.model:
            self._require_idle()
            self.is_busy = True
            try:
                self.conversation = await (await self.open()).reopen(ConversationChange(model=model))
            except HandoverFailed as failed:
                self.conversation = failed.conversation
                raise
            finally:
                self._end_work()
        if mode and (notice := (await self.open()).set_mode(mode)):
            self.emit(notice_line(notice))
        self.emit(self._status())
        return self._status()

    async def commands(self) -> list[dict[str, str]]:
        """Slash commands that make prompts. Raises WoloError."""
        return await asyncio.to_thread(commands_of, await self.open())

    async def undo(self, undo: bodies.Undo) -> Line:
        """Raises HttpError 409 with the conflicts, and WoloError."""
        paths = [self.cwd / path for path in undo.paths]
        return await self._revert(lambda undoing: undoing.undo(undo.count, paths), undo)

    async def redo(self, redo: bodies.Redo) -> Line:
        """Raises as `undo` does, and UsageError where nothing can be redone."""
        return await self._revert(Undoing.redo, redo)

    async def _revert(self, plan: Callable[[Undoing], PreparedUndo], options: bodies.Redo) -> Line:
        self._require_idle()
        self.is_busy = True
        try:
            undoing = Undoing.of(conversation := await self.open())
            planned = await asyncio.to_thread(plan, undoing)
            if options.preview:
                return as_row(planned.report) | {"draft": planned.draft}
            if planned.report.conflicts and not options.anyway:
                paths = ", ".join(each.path for each in planned.report.conflicts)
                raise HttpError(409, f"Changed since by another program: {paths}.", "“anyway” leaves them alone.")
            done = await asyncio.to_thread(undoing.carry_out, planned)
            try:
                self.conversation = await conversation.reopen(done.change)
            except HandoverFailed as failed:
                self.conversation = failed.conversation
                raise
            if (store := self.conversation.files.tracker.store) is not None:
                store.end_step(done.step)
        finally:
            self._end_work()
        self._show(self.conversation.history)
        row = as_row(done.report)
        self.emit(system_line("reverted", **row))
        return row | {"draft": planned.draft, "last_event_id": self.log.last_id}

    def _require_idle(self) -> None:
        if self.is_busy:
            raise HttpError(409, "A turn is running in this session.", "Wait for its end, /steer it or /interrupt it.")

    # Its end

    @property
    def can_be_dropped(self) -> bool:
        return self.conversation is None and not self.is_busy and not self.log.listeners

    @property
    def can_be_let_go(self) -> bool:
        """Nobody uses it, and it is saved."""
        return self.conversation is not None and bool(self._length) and not self.is_used

    @property
    def is_used(self) -> bool:
        """Somebody listens, or something runs or waits."""
        if self.is_busy or self.log.listeners or (open := self.conversation) is None:
            return bool(self.is_busy or self.log.listeners)
        return bool(open.jobs is not None and open.jobs.running) or open.is_asking or open.subagents.is_running

    async def let_go(self) -> None:
        """Closes the conversation, so that another process can continue the session; the next prompt opens it again."""
        async with self._opening:
            if not self.can_be_let_go:
                return
            conversation, self.conversation = self.conversation, None
            assert conversation is not None
            self._saved, self.mode = tuple(conversation.history), _lasting(self.mode)
            self.emit(self._status())
            await conversation.close()

    async def close(self) -> None:
        """Interrupts the turn; the session is saved."""
        self.log.close()
        if self.conversation is not None:
            self.conversation.interrupt()
            if self._turn is not None:
                with suppress(asyncio.CancelledError):
                    await self._turn
            await self.conversation.close()

    def kill(self) -> None:
        if self.conversation is not None:
            self.conversation.kill()


def _lasting(mode: str) -> str:
    """The mode in which a session can be opened again: yolo ends with the conversation."""
    return "auto" if mode == "yolo" else mode


def start_options(cwd: Path, flags: dict[str, str | bool | list[str]]) -> StartOptions:
    return StartOptions(flags=flags, attended=False, cwd=cwd, answers_approvals=True, answers_questions=True)


MOST_MODELS = 200


def choices_in(cwd: Path, places: Places, *, has_yolo: bool) -> dict[str, Any]:
    """The folder's defaults, the modes and the usable models. Raises ConfigError."""
    config = layers.load(replace(find_site(cwd), places=places))
    return {
        "cwd": str(cwd),
        "model": config.settings.model,
        "mode": config.settings.mode,
        "modes": [{"name": mode.name, "about": mode.about} for mode in MODES.values() if has_yolo or mode.name != "yolo"],
        "models": [
            {"name": label, "about": " ".join(about.split())}
            for label, about in usable_in_brief(config, most=MOST_MODELS).items()
        ],
    }


def commands_of(conversation: Conversation) -> list[dict[str, str]]:
    builtin = load_commands()
    return [
        {"name": each.name, "usage": each.usage, "about": each.help}
        for each in (*builtin, *load_user_commands(conversation, builtin))
        if each.makes_prompt
    ]
