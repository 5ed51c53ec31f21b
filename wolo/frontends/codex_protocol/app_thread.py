"""A thread of the app server: runs its turns, makes their items, and asks the client about commands and file changes."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from wolo.agent.budget import add
from wolo.agent.events import ApprovalAsked, AttemptFailed, QuestionsAsked, TurnEnded
from wolo.conversation.conversation import Conversation
from wolo.conversation.prompt_attachments import must_be_sent, write_prompt
from wolo.conversation.structured_output import OutputForm
from wolo.errors import UsageError
from wolo.frontends.codex_protocol.exec_run import CAUSES
from wolo.frontends.codex_protocol.json_rpc import ClientGone, JsonRpc, RpcError, settle
from wolo.frontends.codex_protocol.thread_items import EDITS, ItemEvent, ItemWriter, ThreadItem, wire_usage
from wolo.frontends.streams import error_text, print_message
from wolo.messages.message import Usage, UserPrompt
from wolo.messages.parts import ImagePart, new_id

NOT_ASKED = "The client could not be asked, so the call was denied: {error}."
OTHER_CALL = "Clients of the app server decide about commands and file changes only, so this call was denied."


class AppThread:
    def __init__(self, conversation: Conversation, rpc: JsonRpc, hidden: frozenset[str], params: Mapping[str, Any]) -> None:
        """`hidden`: notifications that the client does not want; `params`: those that opened the thread."""
        self.conversation = conversation
        self.params = params
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

    def start(self, prompt: UserPrompt, content: list[Any], form: OutputForm | None, review: str | None = None) -> dict[str, Any]:
        """Begins a turn and returns it. `review`: what it reviews; empty: the uncommitted changes. Raises UsageError."""
        if self.turn_id:
            raise UsageError("A turn of this thread is running.")
        self.turn_id = new_id("turn")
        self._running = asyncio.create_task(self._run(self.turn_id, prompt, content, form, review))
        return turn_object(self.turn_id, "inProgress")

    async def close(self) -> None:
        self.conversation.interrupt()
        if self._running is not None:
            await asyncio.wait({self._running})
        await self.conversation.close()

    async def _run(
        self, turn_id: str, prompt: UserPrompt, content: list[Any], form: OutputForm | None, review: str | None
    ) -> None:
        self.notify("thread/status/changed", status={"type": "active", "activeFlags": []})
        self.notify("turn/started", turn=turn_object(turn_id, "inProgress"))
        self._item(turn_id, "userMessage", new_id("item"), content=content)
        if review is not None:
            self._item(turn_id, "enteredReviewMode", turn_id, review=review or "current changes")
        try:
            if form is None:
                ended = await self._turn(turn_id, prompt)
            else:
                ended, _ = await form.ask(lambda each: self._turn(turn_id, each), prompt)
        finally:
            self.turn_id = ""
        if review is not None:
            self._item(turn_id, "exitedReviewMode", turn_id, review=ended.answer)
        error = None
        status = "completed" if ended.cause == "done" and ended.error is None else "failed"
        if ended.cause == "interrupted":
            status = "interrupted"
        elif status == "failed":
            text = error_text(ended.error) if ended.error else CAUSES[ended.cause]
            error = {"message": text, "codexErrorInfo": "other", "additionalDetails": None}
            self.notify("error", turnId=turn_id, error=error, willRetry=False)
        self._total = add(self._total, ended.usage)
        usage = token_usage(ended.usage, self._total, self.conversation.choice.model.context)
        self.notify("thread/tokenUsage/updated", turnId=turn_id, tokenUsage=usage)
        self.notify("turn/completed", turn=turn_object(turn_id, status, error))
        self.notify("thread/status/changed", status={"type": "idle"})

    def _item(self, turn_id: str, type: str, id: str, **fields: Any) -> None:
        for phase in ("started", "completed"):
            self.notify(f"item/{phase}", turnId=turn_id, item={"type": type, "id": id, **fields})

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


Notification = tuple[str, dict[str, Any]]
"""Method and parameters, without the ids of thread and turn."""
_DELTAS = {
    "agent_message": "item/agentMessage/delta",
    "reasoning": "item/reasoning/textDelta",
    "command_execution": "item/commandExecution/outputDelta",
}


def notifications(event: ItemEvent, cwd: Path) -> Iterator[Notification]:
    phase, item = event
    if item.type == "error":
        yield "warning", {"message": item.fields["message"]}
    elif item.type == "todo_list":
        steps = [
            {"step": each["text"], "status": "completed" if each["completed"] else "pending"} for each in item.fields["items"]
        ]
        if phase != "completed":
            yield "turn/plan/updated", {"explanation": None, "plan": steps}
    elif phase == "delta":
        more = {"contentIndex": 0} if item.type == "reasoning" else {}
        yield _DELTAS[item.type], {"itemId": item.id, "delta": item.fields["delta"], **more}
    else:
        yield f"item/{phase}", {"item": to_app_item(item, cwd)}


def to_app_item(item: ThreadItem, cwd: Path) -> dict[str, Any]:
    fields, status = item.fields, {"in_progress": "inProgress"}.get(item.fields.get("status", ""), item.fields.get("status"))
    match item.type:
        case "agent_message":
            more: dict[str, Any] = {"type": "agentMessage", "text": fields["text"], "phase": None, "memoryCitation": None}
        case "reasoning":
            more = {"type": "reasoning", "summary": [], "content": [fields["text"]] if fields["text"] else []}
        case "command_execution":
            more = {
                "type": "commandExecution",
                "command": fields["command"],
                "cwd": str(cwd),
                "processId": None,
                "source": "agent",
                "status": status,
                "commandActions": [],
                "aggregatedOutput": fields["aggregated_output"] or None,
                "exitCode": fields.get("exit_code"),
                "durationMs": None,
            }
        case "file_change":
            kinds = {kind: {"type": kind, **({"move_path": None} if kind == "update" else {})} for kind in _KINDS}
            changes = [{**each, "kind": kinds[each["kind"]]} for each in fields["changes"]]
            more = {"type": "fileChange", "changes": changes, "status": status}
        case "mcp_tool_call":
            result = fields.get("result")
            more = {
                "type": "mcpToolCall",
                "server": fields["server"],
                "tool": fields["tool"],
                "status": "failed" if status == "declined" else status,
                "arguments": fields["arguments"],
                "result": result and {"content": result["content"], "structuredContent": None},
                "error": fields.get("error"),
                "durationMs": None,
            }
        case _:
            more = {"type": "webSearch", "query": fields.get("query", ""), "action": None}
    return {"id": item.id, **more}


_KINDS = ("add", "delete", "update")


def token_usage(usage: Usage, total: Usage, window: int | None) -> dict[str, Any]:
    return {"total": _breakdown(total), "last": _breakdown(usage), "modelContextWindow": window}


def _breakdown(usage: Usage) -> dict[str, int]:
    counts = wire_usage(usage)
    return {
        "totalTokens": counts["input_tokens"] + counts["output_tokens"],
        "inputTokens": counts["input_tokens"],
        "cachedInputTokens": counts["cached_input_tokens"],
        "outputTokens": counts["output_tokens"],
        "reasoningOutputTokens": counts["reasoning_output_tokens"],
    }


async def read_prompt(params: Mapping[str, Any], conversation: Conversation) -> UserPrompt:
    """Raises UsageError for input that wolo does not take."""
    texts, files, pictures = [], [], []
    entries = params.get("input")
    for entry in entries if isinstance(entries, list) else ():
        match entry:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "localImage", "path": str(path)}:
                files.append(Path(path))
            case {"type": "image", "url": str(url)}:
                try:
                    pictures.append(ImagePart.from_url(url))
                except ValueError as error:
                    raise UsageError(f"input: {error}.") from error
            case _:
                kind = entry.get("type") if isinstance(entry, dict) else entry
                raise UsageError(f"input: wolo does not take {kind!r}.", hint="It takes text, image and localImage.")
    if not (texts or files or pictures):
        raise UsageError("input is empty.")
    text = "\n\n".join(texts)
    prompt = await asyncio.to_thread(write_prompt, text, conversation, origin="network", notify=print_message, files=tuple(files))
    prompt = replace(prompt, parts=(*prompt.parts, *pictures))
    return must_be_sent(conversation.choice, prompt) if files or pictures else prompt


def review_target(target: Mapping[str, Any]) -> str:
    """What is reviewed, in words for the model; empty: the uncommitted changes. Raises UsageError."""
    match target:
        case {"type": "uncommittedChanges"}:
            return ""
        case {"type": "baseBranch", "branch": str(branch)} if branch:
            return f"this branch against {branch}, from their merge base on (`git merge-base HEAD {shlex.quote(branch)}`)"
        case {"type": "commit", "sha": str(sha)} if sha:
            return " ".join(filter(None, (f"the commit {sha}", str(target.get("title") or ""))))
        case {"type": "custom", "instructions": str(instructions)} if instructions.strip():
            return instructions
    raise UsageError(f"target: wolo does not review {target.get('type')!r} without its fields.")
