"""Makes the lines that the server sends beyond stream-json, numbers them, and lets listeners read them at their own pace."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from wolo.agent import events
from wolo.conversation.phrasing import describe_briefly
from wolo.frontends.stream_json import Line, assistant_message, denial, event_line, system_line, tool_result
from wolo.guard.intents import ReadIntent, WriteIntent
from wolo.messages.message import Message
from wolo.messages.parts import ImagePart, TextPart
from wolo.messages.terminal_text import exact
from wolo.messages.unicode import whole_throughout
from wolo.tools.todo import latest_todos
from wolo.tools.tool_values import Diff, TodoList

PASSING = (events.TextStreamed, events.ThinkingStreamed, events.CallStreamed, events.CallProgressed, events.RequestStarted)
"""Events whose lines a later one supersedes."""
COMPLETING = (events.AnswerEnded, events.CallEnded)


def lines_of(event: events.Event) -> Iterator[Line]:
    """All lines of an event, without the session id."""
    match event:
        case events.TurnStarted():
            yield _prompt_line(event.prompt)
        case events.MessageAdded():
            if event.message.is_from_user:
                yield user_line(event.message)
        case events.PromptRefused():
            yield user_line(event.prompt)
            yield system_line("notice", text=describe_briefly(event), level="warning")
        case events.RequestStarted():
            yield system_line("request", model=event.model, attempt=event.attempt, context_tokens=event.context_tokens)
        case events.CallStarted():
            yield system_line("tool_started", tool_use_id=event.part.id, name=event.part.tool)
        case events.CallProgressed():
            yield system_line("tool_output", tool_use_id=event.part_id, text=event.text)
        case events.CallEnded():
            yield tool_result(event.part) | ({"view": msgspec.to_builtins(event.view)} if event.view is not None else {})
            if isinstance(event.view, TodoList):
                yield todo_line(event.view.items)
        case events.ApprovalAsked():
            yield approval_line(event)
        case events.ApprovalGiven():
            yield system_line("approval_given", approval_id=event.id, allowed=event.allowed, scope=event.scope)
        case events.QuestionsAsked():
            questions = msgspec.to_builtins(event.questions)
            yield system_line("questions", question_id=event.id, call_id=event.call_id, questions=questions, task=event.task)
        case events.QuestionsAnswered():
            yield system_line("questions_answered", question_id=event.id, answers=msgspec.to_builtins(event.replies))
        case events.CallDenied():
            yield system_line("denied", tool_use_id=event.part.id, **denial(event))
        case events.Noticed():
            yield system_line("notice", text=describe_briefly(event), level=event.level)
        case events.CompactionStarted() | events.VerifyStarted():
            yield system_line("activity", text=describe_briefly(event))
        case _:
            if (line := event_line(event)) is not None:
                yield line


def _prompt_line(message: Message) -> Line:
    """Lines of a job are not the user's words."""
    return user_line(message) if message.is_from_user else system_line("notice", text=message.text, level="info")


def history_lines(messages: Iterable[Message]) -> Iterator[Line]:
    messages = tuple(messages)
    for message in messages:
        if message.is_from_user or message.is_prompt:
            yield _prompt_line(message)
        elif message.role == "assistant":
            yield {"type": "assistant", "message": assistant_message(message)}
            for part in message.calls:
                if part.status in ("completed", "failed"):
                    yield tool_result(part)
        elif message.role in ("compaction_summary", "branch_summary"):
            yield system_line("notice", text=message.text, level="info")
    if items := latest_todos(messages):
        yield todo_line(items)


def user_line(message: Message) -> Line:
    content: list[Line] = []
    for part in message.parts:
        if isinstance(part, TextPart) and part.is_notice:
            continue
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart):
            content.append({"type": "image", "media_type": part.media_type, "size_bytes": len(part.data)})
    return {"type": "user", "message": {"role": "user", "id": message.id, "content": content}}


def approval_line(asked: events.ApprovalAsked) -> Line:
    view = asked.view
    if isinstance(view, Diff):
        view = replace(view, path=exact(view.path), text=exact(view.text, keeps_tabs=True))
    arguments = whole_throughout(asked.part.input)
    decisions = ["once", "no"]
    if not asked.only_once:
        decisions[1:1] = ["session", "always"] if asked.rule else ["session"]
    if asked.denial:
        decisions.append("never")
    return system_line("approval", approval_id=asked.id, call_id=asked.part.id, name=asked.part.tool, input=arguments) | {
        "arguments": msgspec.to_builtins(asked.arguments),
        "reason": exact(asked.reason),
        "rule": asked.rule,
        "sandbox": asked.walls,
        "view": msgspec.to_builtins(view),
        "outside": [
            exact(str(each.path)) for each in asked.intents if isinstance(each, ReadIntent | WriteIntent) and not each.inside
        ],
        "agent": asked.agent,
        "task": asked.task,
        "never": asked.denial,
        "decisions": decisions,
    }


def todo_line(items: Any) -> Line:
    return system_line("todo", items=msgspec.to_builtins(items))


def notice_line(text: str) -> Line:
    return system_line("notice", text=text, level="warning")


KEPT_DELTAS = 500
"""Newest lines that are kept whole; older deltas are dropped once the complete message has been logged."""
BATCH_BYTES = 256 * 1024


class EventLog:
    """Lines in order. A listener has a position and no queue, so a slow one costs nothing and blocks nobody."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._lines: list[bytes] = []
        self._passing: list[bool] = []
        """Superseded once a later line is complete."""
        self._next = self._first = 0
        self._complete_to = 0
        """Passing lines below this id are superseded."""
        self._superseded = 0
        self._open = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self.is_closed = False
        self.listeners = 0
        self.reset(())

    @property
    def last_id(self) -> int:
        return self._next - 1

    def reset(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Begins anew with these lines; every listener gets them. Ids continue to grow, also after a restart of the process."""
        self._first = self._next = max(self._next + 1, time.time_ns() // 1000)
        self._ids, self._lines, self._passing = [], [], []
        self._superseded = self._open = 0
        for line in lines:
            self.add(line)

    def add(self, line: Mapping[str, Any], *, passing: bool = False, completes: bool = False) -> None:
        """`passing`: a delta, superseded by the next line that `completes`."""
        self._ids.append(self._next)
        self._lines.append(b"id: %d\ndata: %s\n\n" % (self._next, msgspec.json.encode(line, enc_hook=str)))
        self._passing.append(passing)
        self._next += 1
        self._open += passing
        if completes:
            self._superseded, self._open, self._complete_to = self._superseded + self._open, 0, self._next
            if self._superseded > 2 * KEPT_DELTAS:
                limit = min(self._complete_to, self._next - KEPT_DELTAS)
                kept = [at for at, id in enumerate(self._ids) if id >= limit or not self._passing[at]]
                self._superseded -= len(self._ids) - len(kept)
                self._ids = [self._ids[at] for at in kept]
                self._lines = [self._lines[at] for at in kept]
                self._passing = [self._passing[at] for at in kept]
        self._wake()

    def after(self, position: int) -> tuple[int, bytes]:
        """The lines after an id, at most about 256 kB, and the id of the last; an unknown id begins from the start."""
        at = bisect_right(self._ids, position) if self._first <= position < self._next else 0
        size, end = 0, at
        while end < len(self._lines) and size < BATCH_BYTES:
            size += len(self._lines[end])
            end += 1
        return (self._ids[end - 1] if end > at else position), b"".join(self._lines[at:end])

    async def wait(self) -> None:
        """Returns after the next line, or when the log is closed."""
        if self.is_closed:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def close(self) -> None:
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
