"""A session of a client: runs its prompts and asks it for permissions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from wolo.agent.events import ApprovalAsked, Event, ModeChanged, QuestionsAsked, Scope, TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.phrasing import argument_lines
from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
from wolo.errors import UsageError, WoloError
from wolo.frontends.acp import acp_sdk as sdk
from wolo.frontends.acp import choices
from wolo.frontends.acp.acp_sdk import helpers, schema
from wolo.frontends.acp.contents import GivenPrompt, read_prompt, readable
from wolo.frontends.acp.updates import Updates, content_of, places, title
from wolo.frontends.question_forms import form_properties, form_text, limit_modes, replies_of
from wolo.frontends.streams import error_text
from wolo.messages.message import UserPrompt, user
from wolo.messages.parts import MediaPart
from wolo.messages.unicode import whole_throughout
from wolo.tools.tool_values import UNASKED, Diff, Question, Reply

_STOP_REASONS = {"max_turns": "max_turn_requests", "max_tokens": "max_tokens", "interrupted": "cancelled", "blocked": "refusal"}
_FINISH_REASONS = {"length": "max_tokens", "refused": "refusal"}
_FAILED = frozenset(("model_error", "unavailable", "session_error"))
_SKIP = "skip"
log = logging.getLogger(__name__)


class Session:
    """Runs one prompt at a time; another one steers its turn. A cancellation ends it."""

    def __init__(self, conversation: Conversation, client: sdk.AcpClient) -> None:
        self.conversation, self._client = conversation, client
        self._updates = Updates(_window(conversation))
        self._running = asyncio.Lock()
        self._cancelled = 0
        """Number of cancellations so far."""
        self._turn: asyncio.Future[Any] | None = None
        """Gets the response to the running prompt, once its turn takes messages."""
        self._asking: set[asyncio.Task[None]] = set()
        self._announcing: set[asyncio.Task[None]] = set()
        self.notices: list[str] = []
        """About its opening; sent with the slash commands."""

    @property
    def id(self) -> str:
        return self.conversation.info.session_id

    async def prompt(self, blocks: list[Any]) -> Any:
        """Returns the response. Raises WoloError when the model or the session fails."""
        request, cancelled = read_prompt(blocks), self._cancelled
        if self._running.locked() and (turn := self._turn) is not None and await self._steer(request):
            return await asyncio.shield(turn)
        async with self._running:
            if self._cancelled == cancelled and request.text.startswith("/") and await self._command(request.text, cancelled):
                return schema.PromptResponse(stop_reason="end_turn" if self._cancelled == cancelled else "cancelled")
            message = await self._message(request) if self._cancelled == cancelled else None
            if self._cancelled != cancelled:
                return schema.PromptResponse(stop_reason="cancelled")
            if message is None:
                return schema.PromptResponse(stop_reason="end_turn")
            turn = self._turn = asyncio.get_running_loop().create_future()
            try:
                response = await self._run(message, cancelled)
                turn.set_result(response)
                return response
            except BaseException as error:
                turn.set_exception(error if isinstance(error, Exception) else UsageError("The turn was interrupted."))
                turn.exception()  # often nobody waits for it
                raise
            finally:
                self._turn = None

    async def _steer(self, request: GivenPrompt) -> bool:
        """Sends a prompt into the running turn. False: it has ended. Raises UsageError for what cannot go into one."""
        turn, conversation = self._turn, self.conversation
        if request.text.startswith("/") or request.files or request.parts or not request.text.strip():
            hint = "Cancel it, or wait for its end."
            raise UsageError("A prompt is running: only text can be sent into its turn.", hint=hint)
        message = UserPrompt.from_message(user(request.text), "keyboard")
        await conversation.save_steering(message)
        if self._turn is not turn or self.conversation is not conversation:
            return False
        conversation.steer(message)
        return True

    async def _run(self, message: UserPrompt, cancelled: int) -> Any:
        """Runs turns until no steering message is left."""
        while True:
            ended: TurnEnded | None = None
            async with aclosing(cast("Any", self.conversation.prompt(message))) as events:
                async for event in events:
                    if self._cancelled != cancelled:
                        self.conversation.interrupt()  # it came before there was anything to interrupt
                    if isinstance(event, TurnEnded):
                        ended = event
                    await self._on_event(event)
                    if isinstance(event, ModeChanged):
                        await self._send_options()
            assert ended is not None  # every turn ends with TurnEnded
            for task in tuple(self._asking):
                task.cancel()  # its call was interrupted
            left = self.conversation.steering.take_all() if self._cancelled == cancelled else []
            if not left:
                if ended.cause in _FAILED:
                    assert ended.error is not None
                    raise WoloError(ended.error.message, hint=ended.error.hint)
                reason = _STOP_REASONS.get(ended.cause) or _FINISH_REASONS.get(ended.finish_reason, "end_turn")
                usage = ended.usage
                counted = schema.Usage(
                    total_tokens=usage.context_tokens,
                    input_tokens=usage.input_tokens,
                    output_tokens=usage.output_tokens,
                    thought_tokens=usage.reasoning_tokens,
                    cached_read_tokens=usage.cache_read_tokens,
                    cached_write_tokens=usage.cache_write_tokens,
                )
                return schema.PromptResponse(stop_reason=cast("Any", reason), usage=counted)
            message = UserPrompt.from_message(user("\n\n".join(each.text for each in left)), "keyboard")

    async def _on_event(self, event: Event) -> None:
        if isinstance(event, ApprovalAsked):
            self._ask(self._approve(event), partial(self.conversation.dismiss, event.id))
        elif isinstance(event, QuestionsAsked):
            self._ask(self._answer(event), partial(self.conversation.questions.answer, event.id, None))
        else:
            await self._send(self._updates.on_event(event))

    def _ask(self, work: Coroutine[Any, Any, None], give_up: Callable[[], None]) -> None:
        """Runs beside the turn. An exception is logged, and `give_up` ends the wait for the answer."""

        async def run() -> None:
            try:
                await work
            except Exception:
                log.exception("the client could not be asked")
                give_up()

        task = asyncio.create_task(run())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def cancel(self) -> None:
        self._cancelled += 1
        self.conversation.interrupt()

    async def set_mode(self, mode: str) -> None:
        """Raises UsageError."""
        if notice := choices.set_mode(self.conversation, mode):
            await self.update(helpers.update_agent_thought_text(f"{notice}\n"))
        await self.update(helpers.update_current_mode(self.conversation.info.mode))

    async def set_option(self, option: str, value: str) -> list[Any]:
        """Returns all options. Raises WoloError."""
        match option:
            case "mode":
                await self.set_mode(value)
            case "model":
                if self._running.locked():
                    if self.conversation.resume_now("" if value == self.conversation.info.model else value):
                        return await asyncio.to_thread(choices.config_options, self.conversation)
                    raise UsageError("The model cannot be changed while a prompt is running.")
                async with self._running:
                    try:
                        self._continue_as(await choices.choose_model(self.conversation, value))
                    except HandoverFailed as failed:
                        if failed.conversation is not None:
                            self._continue_as(failed.conversation)
                        raise
            case "thinking":
                choices.choose_thinking(self.conversation, value)
            case _:
                raise UsageError(f"There is no option {option}.", hint="There are: mode, model, thinking.")
        return await asyncio.to_thread(choices.config_options, self.conversation)

    async def update(self, update: Any) -> None:
        await self._client.update(self.id, update)

    async def replay(self) -> None:
        await self._send(self._updates.replay(self.conversation.history))

    def announce_soon(self) -> None:
        """Sends notices and the slash commands, after the answer to the client's request."""
        task = asyncio.create_task(self._announce())
        self._announcing.add(task)
        task.add_done_callback(self._announcing.discard)

    async def _announce(self) -> None:
        from wolo.frontends.acp.slash_commands import available  # noqa: PLC0415  # all commands

        for notice in self.notices:
            await self.update(helpers.update_agent_thought_text(f"{notice}\n"))
        try:
            await self.update(helpers.update_available_commands(await asyncio.to_thread(available, self.conversation)))
        except Exception as error:
            log.exception("the slash commands could not be announced")
            reason = error_text(error) if isinstance(error, WoloError) else type(error).__name__
            await self.update(helpers.update_agent_thought_text(f"The slash commands cannot be listed: {reason}\n"))

    async def close(self) -> None:
        self.cancel()
        for task in (*self._asking, *self._announcing):
            task.cancel()
        await self.conversation.close()

    async def _message(self, request: GivenPrompt) -> UserPrompt | None:
        """None: a command has shown its text, and makes no prompt."""
        unread: list[str] = []
        conversation, typed, text = self.conversation, request.typed, request.text
        if text.startswith("/"):
            from wolo.commands.expansion import expand, switch_model  # noqa: PLC0415  # all commands, which few prompts need

            notices: list[str] = []
            if made := await expand(text, conversation, lambda event: None, "keyboard"):
                self.conversation = conversation = await switch_model(made.model, conversation, notices.append)
                text, typed = made.text, text if made.typed is None else made.typed
                for notice in (*made.notices, *notices):
                    await self.update(helpers.update_agent_thought_text(f"{notice}\n"))
                if not text:
                    return None
        message = await asyncio.to_thread(
            write_prompt,
            text,
            conversation,
            origin="keyboard",
            notify=unread.append,
            typed=typed,
            files=readable(request.files, conversation.files.allow_attachment),
        )
        for notice in unread:
            await self.update(helpers.update_agent_thought_text(f"{notice}\n"))
        whole = replace(message, parts=(*message.parts, *request.parts))
        return must_be_sent(conversation.choice, whole) if any(isinstance(part, MediaPart) for part in request.parts) else whole

    async def _command(self, line: str, cancelled: int) -> bool:
        """Runs a command that makes no prompt; False: the line is no such command. Raises WoloError."""
        from wolo.frontends.acp import slash_commands  # noqa: PLC0415  # all commands, which few prompts need

        found = await asyncio.to_thread(slash_commands.find_command, line, self.conversation)
        if found is None:
            return False
        command, rest = found
        if command.name == "mode" and rest:
            await self.set_mode(rest)
            rest = ""
        try:
            async with aclosing(slash_commands.run_command(command, rest, self.conversation)) as outcomes:
                async for outcome in outcomes:
                    if self._cancelled != cancelled:
                        self.conversation.interrupt()
                    if isinstance(outcome, str):
                        await self.update(helpers.update_agent_message_text(outcome))
                    elif isinstance(outcome, Conversation):
                        self._continue_as(outcome)
                    else:
                        await self._on_event(outcome)
        except HandoverFailed as failed:
            if failed.conversation is not None:
                self._continue_as(failed.conversation)
            raise
        if command.name in ("mode", "model", "thinking"):
            await self._send_options()
        return True

    async def _send_options(self) -> None:
        options = await asyncio.to_thread(choices.config_options, self.conversation)
        await self.update(schema.ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    def _continue_as(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._updates.window = _window(conversation)

    async def _send(self, updates: Iterator[Any]) -> None:
        for update in updates:
            await self.update(update)

    async def _approve(self, asked: ApprovalAsked) -> None:
        conversation = self.conversation
        options = [_option("once", "Allow once", "allow_once")]
        if not asked.only_once:
            options.append(_option("session", "Allow for this session", "allow_always"))
            if asked.rule:
                options.append(_option("always", f"Always allow {asked.rule}", "allow_always"))
        options.append(_option("reject", "Reject", "reject_once"))
        if asked.denial:
            options.append(_option("never", f"Never allow {asked.denial}", "reject_always"))
        chosen = await self._choose(call_to_approve(asked), options)
        if chosen not in {each.option_id for each in options}:
            conversation.dismiss(asked.id)
        elif chosen in ("reject", "never"):
            conversation.answer(asked.id, allowed=False, scope="always" if chosen == "never" else "once")
        else:
            conversation.answer(asked.id, allowed=True, scope=cast("Scope", chosen))

    async def _answer(self, asked: QuestionsAsked) -> None:
        """Asks with a form, or each question as a choice of its options; modes that the client may not choose are left out."""
        questions = limit_modes(asked.questions, choices.modes_of(self.conversation))
        if self._client.shows_forms:
            try:
                content = await self._client.ask_form(self.id, asked.call_id, form_text(questions), form_properties(questions))
                replies = replies_of(questions, content) or []
            except ConnectionError:
                self.cancel()
                replies = []
            except (sdk.RequestError, ValueError):
                replies = []
        else:
            replies = [await self._reply(asked, number, question) for number, question in enumerate(questions)]
        answered = any(reply.chosen or reply.text for reply in replies)
        self.conversation.questions.answer(asked.id, tuple(replies) if answered else None)

    async def _reply(self, asked: QuestionsAsked, number: int, question: Question) -> Reply:
        if not question.options:
            return UNASKED
        if question.is_plan:
            # Without a field for text a plan cannot be edited, and words to keep planning come with the next prompt
            kinds: dict[str, Any] = {"auto": "allow_always", "edit": "allow_once", "keep": "reject_once"}
            labels = {each.label: each.label for each in question.options if each.label in kinds}
            titles = {each.label: each.description.partition(",")[0].capitalize() for each in question.options}
            options = [_option(label, titles[label], kinds[label]) for label in labels]
            call = _question_call(f"{asked.id}_plan", "Start with this plan?", "switch_mode", question.text)
        else:
            labels = {str(at): option.label for at, option in enumerate(question.options)}
            options = [_option(at, label, "allow_once") for at, label in labels.items()]
            options.append(_option(_SKIP, "Skip", "reject_once"))
            described = "\n".join(f"{each.label}: {each.description}" for each in question.options if each.description)
            call = _question_call(f"{asked.id}_{number}", question.text, "other", described)
        chosen = await self._choose(call, options)
        return Reply((labels[chosen],)) if chosen in labels else Reply()

    async def _choose(self, call: Any, options: list[Any]) -> str | None:
        """None: the client cancelled, or cannot ask."""
        try:
            return await self._client.ask_permission(self.id, call, options)
        except ConnectionError:
            self.cancel()  # nobody has decided
            return None
        except (sdk.RequestError, ValueError):
            return None


def _option(id: str, name: str, kind: Any) -> schema.PermissionOption:
    return schema.PermissionOption(option_id=id, name=name, kind=kind)


def _question_call(id: str, title: str, kind: Any, text: str) -> Any:
    content: list[Any] = [helpers.tool_content(helpers.text_block(text))] if text else []
    return schema.ToolCallUpdate(tool_call_id=id, title=title, kind=kind, status="pending", content=content)


def _window(conversation: Conversation) -> int:
    """In tokens; 0: unknown."""
    return conversation.permissions.config.settings.context.window_of(conversation.choice.model.context) or 0


def call_to_approve(asked: ApprovalAsked) -> Any:
    """The call with its change, and as text every argument that the client's drawing of the change does not show."""
    part = asked.part
    content = content_of(part, asked.view)
    is_whole = isinstance(asked.view, Diff) and not any(each.is_excerpt for each in asked.view.changes)
    drawn = [  # without a character that cannot be seen
        each for each in asked.arguments if each.is_in_view and is_whole and "⟨" not in each.text.replace("⟨U+0009⟩", "")
    ]
    written = argument_lines(each for each in asked.arguments if each not in drawn)
    content += [helpers.tool_content(helpers.text_block(text)) for text in (written, asked.reason) if text]
    return schema.ToolCallUpdate(
        tool_call_id=part.id,
        title=title(part),
        kind=part.kind or "other",
        status="pending",
        content=content,
        locations=places(asked.locations),
        raw_input=whole_throughout(part.input),
    )
