"""Runs one session for a program that speaks the protocol: opens it, runs its prompts, obeys its control requests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from wolo.agent.events import ApprovalAsked, Event, ModeChanged, QuestionsAsked, TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.history.turn_undo import FORGOTTEN, Undoing
from wolo.conversation.prompt_attachments import write_prompt
from wolo.conversation.resources.startup import ConversationChange, StartOptions
from wolo.conversation.structured_output import OutputForm, read_schema
from wolo.errors import UsageError, WoloError
from wolo.frontends.claude_protocol.can_use_tool import ToolPermissions
from wolo.frontends.claude_protocol.channel import Channel, ProgramGone, ProgramRefused
from wolo.frontends.claude_protocol.session_options import (
    SessionOptions,
    Values,
    add_initialize,
    read_agents,
    read_hooks,
    to_level,
)
from wolo.frontends.claude_protocol.wire_messages import VERSION, MessageWriter, failure, mcp_servers
from wolo.frontends.prompt_lines import to_prompt
from wolo.frontends.streams import OutputLost, error_text, print_message, watch_reader
from wolo.messages.message import UserPrompt
from wolo.messages.parts import TextPart
from wolo.places import Notices

AddRules = Callable[[Values, str, Any], None]
MOST_MODELS = 100


class ClaudeSession:
    def __init__(self, options: SessionOptions, add_rules: AddRules, *, reports_state: bool) -> None:
        """`add_rules` adds rules in Claude Code's form to options; `reports_state`: the SDK reads `session_state_changed`."""
        self._options = options
        self._add_rules = add_rules
        self._reports_state = reports_state
        self._channel = Channel(self._on_request)
        self._answers = ToolPermissions(self._channel, may_bypass=options.may_bypass, asks=not options.dont_ask)
        self._conversation: Conversation | None = None
        self._writer: MessageWriter | None = None
        self._form: OutputForm | None = None
        self._opening = asyncio.Lock()
        self._running = asyncio.Lock()
        """Held by a turn, and while the conversation is replaced."""
        self._prompts: dict[str, str] = {}
        """Ids of prompts by the program's UUIDs."""
        self._failure: WoloError | None = None
        """Why the session could not be opened."""
        self._initialize: Mapping[str, Any] | None = None
        self._model: str | None = None
        """Model of the next turn, when it was changed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopped_by = 0
        """Exit code of the signal that ended the session."""
        self._is_abandoned = False

    async def run(self) -> int:
        """Returns the exit code: that of the last turn, or of the failure that ended the session."""
        exit_code = 0
        watch_reader(self._leave)
        try:
            while (line := await self._channel.prompts.get()) is not None and not self._is_abandoned:
                async with self._running:
                    exit_code = await self._turn(line, await self._open())
            if self._channel.mistake is not None:
                raise self._channel.mistake
            if self._failure is not None:
                raise self._failure
        except OutputLost as lost:
            exit_code = lost.exit_code
        except WoloError as error:
            exit_code = self._fail(error)
        finally:
            self._channel.end()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._conversation is not None:
                await self._conversation.close()
        return self.stopped_by or exit_code

    def stop(self, exit_code: int) -> None:
        """Ends the session after its turn, which is interrupted."""
        self.stopped_by = exit_code
        self._leave()

    def _leave(self) -> None:
        """Interrupts the turn: the program is gone, and nobody reads what it would still say, or wolo is stopped."""
        self._is_abandoned = True
        if self._conversation is not None:
            self._conversation.interrupt()
        self._channel.end()

    def kill(self) -> None:
        if self._conversation is not None:
            self._conversation.kill()

    def _fail(self, error: WoloError) -> int:
        print_message(error.message, hint=error.hint)
        try:
            self._channel.send(failure(error_text(error), self._session_id if self._conversation else ""))
        except OutputLost as lost:
            return lost.exit_code
        return error.exit_code

    # Opening

    async def _open(self) -> Conversation:
        """The conversation, opened with the first request. Raises WoloError."""
        async with self._opening:
            if self._failure is not None:
                raise self._failure
            if self._conversation is None:
                try:
                    options = self._options
                    self._form = read_schema(options.schema) if options.schema else None
                    callbacks = read_hooks(options.hooks, self._ask_hook)
                    start = StartOptions(
                        flags=options.values,
                        attended=False,
                        answers_approvals=options.asks_program,
                        answers_questions=options.asks_program,
                        hook_callbacks=callbacks,
                        hosted_servers={name: partial(self._exchange, name) for name in options.hosted},
                        agents=read_agents(options.agents),
                        on_task_event=self._on_task_event,
                    )
                    self._conversation = conversation = await open_conversation(start)
                    if options.hosted:
                        await conversation.servers.wait_known()
                    if options.title and not conversation.session.has_title:
                        conversation.session.set_title(options.title)
                    self._writer = MessageWriter(conversation, self._session_id, partial=options.partial)
                except WoloError as error:
                    self._failure = error
                    raise
            assert self._conversation is not None  # it was just opened
            return self._conversation

    @property
    def _session_id(self) -> str:
        assert self._conversation is not None  # only an open session has one
        return self._options.session_id or self._conversation.info.session_id

    def _on_task_event(self, event: Event, call_id: str) -> None:
        """Output that is lost ends the turn with its next message."""
        with suppress(OutputLost):
            for message in self._writer.on_task_event(event, call_id, with_text=self._options.with_text) if self._writer else ():
                self._channel.send(message)

    async def _ask_hook(self, id: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        payload = {name: value for name, value in event.items() if not name.startswith("wolo_")}
        more = {"tool_use_id": event["tool_use_id"]} if "tool_use_id" in event else {}
        try:
            return await self._channel.request("hook_callback", callback_id=id, input=payload, **more)
        except (ProgramGone, ProgramRefused) as error:
            raise UsageError(f"{error}") from error

    async def _exchange(self, server: str, message: Mapping[str, Any]) -> Any:
        is_call = message.get("method") == "tools/call"
        timeout_s = self._options.timeouts.get(server) if is_call else None
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._channel.request("mcp_message", server_name=server, message=message)
        except TimeoutError as error:
            raise ProgramRefused(f"it did not answer within {timeout_s:g} s") from error
        return answer.get("mcp_response")

    # Turns

    async def _turn(self, line: Mapping[str, Any], conversation: Conversation) -> int:
        """Raises OutputLost and WoloError."""
        prompt = to_prompt(line)
        if self._model is not None:
            model, self._model = self._model, None
            if model != conversation.info.model:
                conversation = self._conversation = await conversation.reopen(ConversationChange(model=model))
        assert self._writer is not None  # it was made with the conversation
        self._writer.conversation = conversation
        match prompt.parts:
            case [TextPart(text=text)] if "@" in text and line.get("client_composed") is not True:
                prompt = await asyncio.to_thread(write_prompt, text, conversation, origin="file", notify=print_message)
        self._send_state("running")
        self._channel.send(self._writer.init())
        name = str(line.get("uuid") or prompt_uuid(prompt.id))
        self._prompts[name] = prompt.id
        if self._options.replays:
            self._channel.send({**self._writer.replay(line["message"]), "uuid": name})
        structured: Mapping[str, Any] = {}
        if self._form is None:
            ended = await self._run_prompt(conversation, self._writer, prompt)
        else:
            ended, value = await self._form.ask(partial(self._run_prompt, conversation, self._writer), prompt)
            structured = {} if value is None else {"structured_output": value.value}
        self._channel.send(self._writer.result(ended, structured))
        if self._channel.prompts.empty():
            self._send_state("idle")
        return ended.exit_code

    async def _run_prompt(self, conversation: Conversation, writer: MessageWriter, prompt: UserPrompt) -> TurnEnded:
        ended: TurnEnded | None = None
        asking: set[asyncio.Task[None]] = set()
        try:
            async with aclosing(cast("Any", conversation.prompt(prompt))) as events:
                async for event in events:
                    if isinstance(event, TurnEnded):
                        ended = event
                    elif isinstance(event, ApprovalAsked):
                        asking.add(asyncio.create_task(self._answers.approve(event, conversation)))
                    elif isinstance(event, QuestionsAsked):
                        asking.add(asyncio.create_task(self._answers.answer(event, conversation)))
                    else:
                        if isinstance(event, ModeChanged) and (mode := self._answers.mode_after_plan):
                            self._answers.mode_after_plan = ""
                            conversation.set_mode(mode)
                            event = replace(event, mode=mode)
                        for message in writer.on_event(event):
                            self._channel.send(message)
        finally:
            for task in asking:
                task.cancel()  # its call was interrupted
            await asyncio.gather(*asking, return_exceptions=True)
        assert ended is not None  # every turn ends with TurnEnded
        return ended

    def _send_state(self, state: str) -> None:
        if self._reports_state and self._writer is not None:
            self._channel.send(self._writer.state(state))

    # Control requests

    def _on_request(self, id: str, request: Mapping[str, Any]) -> None:
        task = asyncio.create_task(self._obey(id, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _obey(self, id: str, request: Mapping[str, Any]) -> None:
        try:
            response = await self._response(request)
        except WoloError as error:
            self._channel.refuse(id, error_text(error))
            if self._failure is not None:
                self._channel.end()  # the session cannot begin
        else:
            self._channel.respond(id, response)

    async def _response(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises WoloError."""
        subtype = request["subtype"]
        if subtype == "initialize":
            return await self._on_initialize(request)
        if subtype not in _SUPPORTED:
            raise UsageError(f"wolo does not support the control request {subtype}.", hint=f"It has: {', '.join(_SUPPORTED)}.")
        conversation = await self._open()
        match subtype:
            case "interrupt":
                conversation.interrupt()
                return {"still_queued": []}
            case "set_permission_mode":
                self._answers.set_mode(str(request.get("mode")), conversation)
                return {"mode": request.get("mode")}
            case "set_model":
                self._set_model(request.get("model"), conversation)
            case "set_max_thinking_tokens":
                if (tokens := request.get("max_thinking_tokens")) is not None:
                    conversation.think(to_level(tokens))
            case "mcp_status":
                return {"mcpServers": mcp_servers(conversation)}
            case "mcp_reconnect":
                await conversation.servers.restart(str(request.get("serverName")))
            case "stop_task":
                conversation.subagents.interrupt(str(request.get("task_id")))
            case "rewind_files":
                return await self._rewind(str(request.get("user_message_id")), is_preview=bool(request.get("dry_run")))
        return {}

    async def _on_initialize(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        is_first, hooks = self._initialize is None and self._conversation is None, request.get("hooks")
        if is_first:
            self._initialize = request
            try:
                add_initialize(self._options, request, self._add_rules)
            except WoloError as error:
                self._failure = error
                raise
        elif hooks and (self._initialize or {}).get("hooks") != hooks:
            raise UsageError("initialize: the hooks of a session cannot be changed.")
        conversation = await self._open()
        from wolo.diagnostics.model_info import usable_in_brief  # noqa: PLC0415  # not before a session is opened

        config, model = conversation.permissions.config, conversation.info.model
        models = await asyncio.to_thread(usable_in_brief, config, model, MOST_MODELS)
        applied = {"settings": "settings_applied", "disallowedTools": "disallowed_tools_applied"}
        applied |= {"mcpServers": "mcp_servers_applied", "hooks": "hooks_applied"}
        return {
            "commands": [],
            "agents": [{"name": each.name, "description": each.description} for each in conversation.subagents.agents.offers],
            "models": [{"value": label, "displayName": label, "description": text} for label, text in models.items()],
            "output_style": config.settings.output_style or "default",
            "available_output_styles": ["default", *(each.name for each in conversation.user_files.output_styles(Notices()))],
            "account": {},
            "hook_on_failure_supported": True,
            "claude_code_version": f"{VERSION} (wolo)",
            **{told: True for name, told in applied.items() if request.get(name)},
        }

    async def _rewind(self, name: str, *, is_preview: bool) -> Mapping[str, Any]:
        """Raises WoloError."""
        if self._running.locked():
            raise UsageError("A turn runs: its files cannot be rewound.", hint="Interrupt it, or wait for its result.")
        async with self._running:
            conversation = await self._open()
            self._conversation, response = await rewind_files(conversation, self._prompts, name, is_preview=is_preview)
        return response

    def _set_model(self, model: Any, conversation: Conversation) -> None:
        """For the next turn. Raises WoloError for a model that cannot be used."""
        from wolo.conversation.resources.model_selection import choose_other  # noqa: PLC0415  # few sessions change it

        if model in (None, "", "default"):
            self._model = str(self._options.values.get("model") or conversation.info.model)
            return
        other = choose_other(conversation.permissions.config, conversation.info.cwd, conversation.choice, str(model))
        self._model = conversation.info.model if other is None else other.label


_SUPPORTED = (
    *("initialize", "interrupt", "set_permission_mode", "set_model", "set_max_thinking_tokens"),
    *("mcp_status", "mcp_reconnect", "stop_task", "rewind_files"),
)


def prompt_uuid(message_id: str) -> str:
    """The name of a prompt to which the program gave none; the same in every process."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, message_id))


async def rewind_files(
    conversation: Conversation, names: Mapping[str, str], name: str, *, is_preview: bool
) -> tuple[Conversation, dict[str, Any]]:
    """The files are as before that prompt; the conversation stays, and the model is told. Returns the one that continues it.

    `names` are the program's own, with the ids of their prompts. Raises WoloError.
    """
    ids = [message.id for message in conversation.history if message.is_prompt]
    number = next((at for at, id in enumerate(reversed(ids), 1) if name == prompt_uuid(id) or names.get(name) == id), 0)
    undoing = Undoing.of(conversation)
    whole = await asyncio.to_thread(undoing.undo, number) if number else None
    if whole is None or FORGOTTEN in whole.report.not_covered:
        why = FORGOTTEN if whole else f"There is no prompt {name} in this session."
        if is_preview:
            return conversation, {"canRewind": False, "error": why}
        raise UsageError(why)
    paths = [step.path for step in whole.plan.steps]
    response: dict[str, Any] = {"canRewind": True, "filesChanged": paths}
    if conflicts := [each.path for each in whole.report.conflicts]:
        response["error"] = f"Not restored, because they were changed since: {', '.join(conflicts)}."
    if paths and not is_preview:
        done = await asyncio.to_thread(lambda: undoing.carry_out(undoing.undo(number, map(Path, paths))))
        conversation = await conversation.reopen(done.change)
        if (store := conversation.files.tracker.store) is not None:
            store.end_step(done.step)
    return conversation, response
