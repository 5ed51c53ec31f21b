"""A thread of the app server: runs its turns, and asks the client about commands and file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any, cast

from wolo.agent.budget import add
from wolo.agent.events import ApprovalAsked, AttemptFailed, QuestionsAsked, TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.conversation.structured_output import OutputForm
from wolo.frontends.codex_protocol.app_items import notifications, to_app_item, token_usage
from wolo.frontends.codex_protocol.exec_run import CAUSES
from wolo.frontends.codex_protocol.json_rpc import ClientGone, JsonRpc, RpcError, settle
from wolo.frontends.codex_protocol.thread_items import EDITS, ItemWriter
from wolo.messages.message import Usage, UserPrompt
from wolo.messages.parts import new_id

NOT_ASKED = "The client could not be asked, so the call was denied: {error}."
OTHER_CALL = "Clients of the app server decide about commands and file changes only, so this call was denied."


class AppThread:
    def __init__(self, conversation: Conversation, rpc: JsonRpc, hidden: frozenset[str]) -> None:
        """`hidden`: notifications that the client does not want."""
        self.conversation = conversation
        self.asks = True
        """False: the approval policy is never."""
        self.turn_id = ""
        """Of the running turn; empty: none runs."""
        self._rpc = rpc
        self._hidden = hidden
        self._items = ItemWriter()
        self._total = Usage()
        self._running: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.conversation.info.session_id

    def notify(self, method: str, **params: Any) -> None:
        if method not in self._hidden:
            self._rpc.notify(method, {"threadId": self.id, **params})

    def start(self, prompt: UserPrompt, content: list[Any], form: OutputForm | None) -> dict[str, Any]:
        """Begins a turn and returns it."""
        self.turn_id = new_id("turn")
        self._running = asyncio.create_task(self._run(self.turn_id, prompt, content, form))
        return turn_object(self.turn_id, "inProgress")

    async def close(self) -> None:
        self.conversation.interrupt()
        if self._running is not None:
            await asyncio.wait({self._running})
        await self.conversation.close()

    async def _run(self, turn_id: str, prompt: UserPrompt, content: list[Any], form: OutputForm | None) -> None:
        self.notify("thread/status/changed", status={"type": "active", "activeFlags": []})
        self.notify("turn/started", turn=turn_object(turn_id, "inProgress"))
        message = {"type": "userMessage", "id": new_id("item"), "content": content}
        for phase in ("started", "completed"):
            self.notify(f"item/{phase}", turnId=turn_id, item=message)
        try:
            if form is None:
                ended = await self._turn(turn_id, prompt)
            else:
                ended, _ = await form.ask(lambda each: self._turn(turn_id, each), prompt)
        finally:
            self.turn_id = ""
        error = None
        status = "completed" if ended.cause == "done" and ended.error is None else "failed"
        if ended.cause == "interrupted":
            status = "interrupted"
        elif status == "failed":
            text = " ".join(filter(None, (ended.error.message, ended.error.hint))) if ended.error else CAUSES[ended.cause]
            error = {"message": text, "codexErrorInfo": "other", "additionalDetails": None}
            self.notify("error", turnId=turn_id, error=error, willRetry=False)
        self._total = add(self._total, ended.usage)
        usage = token_usage(ended.usage, self._total, self.conversation.choice.model.context)
        self.notify("thread/tokenUsage/updated", turnId=turn_id, tokenUsage=usage)
        self.notify("turn/completed", turn=turn_object(turn_id, status, error))
        self.notify("thread/status/changed", status={"type": "idle"})

    async def _turn(self, turn_id: str, prompt: UserPrompt) -> TurnEnded:
        ended: TurnEnded | None = None
        asking: set[asyncio.Task[None]] = set()
        cwd = self.conversation.info.cwd
        try:
            async with aclosing(cast("Any", self.conversation.prompt(prompt))) as events:
                async for event in events:
                    match event:
                        case TurnEnded():
                            ended = event
                        case ApprovalAsked():
                            asking.add(asyncio.create_task(self._approve(turn_id, event)))
                        case QuestionsAsked():
                            self.conversation.questions.answer(event.id, None)
                        case AttemptFailed():
                            error = {"message": event.error.message, "codexErrorInfo": "other", "additionalDetails": None}
                            self.notify("error", turnId=turn_id, error=error, willRetry=True)
                            continue
                    for item_event in self._items.on_event(event):
                        for method, params in notifications(item_event, cwd):
                            self.notify(method, turnId=turn_id, **params)
        finally:
            await settle(asking)
        assert ended is not None  # every turn ends with TurnEnded
        return ended

    async def _approve(self, turn_id: str, asked: ApprovalAsked) -> None:
        """Answers the approval. Without an understandable answer of the client the call is denied."""
        conversation, part = self.conversation, asked.part
        if not self.asks or (part.tool != "shell" and part.tool not in EDITS):
            reason = OTHER_CALL if self.asks else "The approval policy is never."
            conversation.answer(asked.id, allowed=False, reason=reason)
            return
        for _, item in self._items.begin(part, asked.view):
            self.notify("item/started", turnId=turn_id, item=to_app_item(item, conversation.info.cwd))
        params: dict[str, Any] = {"threadId": self.id, "turnId": turn_id, "itemId": self._items.item_of(part)}
        params["reason"] = asked.reason or None
        method = "item/fileChange/requestApproval"
        if part.tool == "shell":
            method = "item/commandExecution/requestApproval"
            params |= {"command": str(part.input.get("command", "")), "cwd": str(conversation.info.cwd), "commandActions": None}
        try:
            request_id, answer = await self._rpc.request(method, params)
        except (ClientGone, RpcError) as error:
            conversation.answer(asked.id, allowed=False, reason=NOT_ASKED.format(error=error))
            return
        self.notify("serverRequest/resolved", requestId=request_id)
        conversation = self.conversation
        match answer.get("decision") if isinstance(answer, Mapping) else None:
            case "accept":
                conversation.answer(asked.id, allowed=True)
            case "acceptForSession":
                conversation.answer(asked.id, allowed=True, scope="once" if asked.only_once else "session")
            case "cancel":
                conversation.answer(asked.id, allowed=False)
                conversation.interrupt()
            case "decline":
                conversation.answer(asked.id, allowed=False)
            case other:
                reason = NOT_ASKED.format(error=f"its decision {other!r:.80} is not understood")
                conversation.answer(asked.id, allowed=False, reason=reason)


def turn_object(id: str, status: str, error: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"id": id, "items": [], "status": status, "error": error}
