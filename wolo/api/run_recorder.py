"""Turns the events of a turn into those of the Python API, and sums them up as a result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

from wolo.agent import events
from wolo.agent.budget import add
from wolo.api import run_events
from wolo.conversation.conversation import Conversation
from wolo.messages.message import Message, Usage
from wolo.tools.tool_values import Diff


class RunRecorder:
    """Follows one run of a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._known = {message.id for message in conversation.history}
        self._messages: list[Message] = []
        self._waiting: list[Message] = []
        """Messages of the run since the last request; their calls may be running."""
        self._text: list[str] = []
        self._streamed: list[str] = []
        """Text since the last request, which a retry makes void."""
        self._diffs: dict[str, list[Diff]] = {}
        """By path, in order of the first change; empty for a file that a command changed."""
        self._denials: list[run_events.Denied] = []
        self._ended: events.TurnEnded | None = None

    def on_event(self, event: events.Event) -> Iterator[run_events.RunEvent]:
        match event:
            case events.TextStreamed():
                self._streamed.append(event.text)
                yield run_events.TextDelta(output=event.text)
            case events.ThinkingStreamed():
                yield run_events.ThinkingDelta(thinking=event.text)
            case events.CallStreamed():
                yield run_events.ToolInputDelta(id=event.id, slot=event.slot, name=event.tool, partial_json=event.fragment)
            case events.RequestStarted():
                self._streamed.clear()
                if complete := self._complete(self._waiting):
                    yield run_events.MessagesCompleted(messages=complete)
            case events.TurnStarted():
                self._waiting.append(event.prompt)
            case events.MessageAdded():
                self._waiting.append(event.message)
            case events.AnswerEnded():
                self._waiting.append(event.message)
                yield from self._answer(event.message)
            case events.CallEnded():
                self._waiting = [
                    each.with_parts((event.part,)) if each.id == event.message_id else each for each in self._waiting
                ]
                yield self._call_ended(event)
            case events.CallDenied():
                denied = run_events.Denied(tool=event.part.tool, input=event.part.input, reason=event.reason)
                self._denials.append(denied)
                yield denied
            case events.AttemptFailed():
                yield run_events.Retry(attempt=event.attempt, delay_s=event.delay_s, error=event.error)
            case events.ModelReplaced():
                yield run_events.Fallback(model=event.model, error=event.error)
            case events.Compacted():
                yield run_events.Compaction(
                    reason=event.reason, tokens_before=event.tokens_before, tokens_after=event.tokens_after
                )
            case events.ModeChanged():
                yield run_events.ModeSwitched(mode=event.mode)
            case events.Noticed():
                yield run_events.Notice(text=event.text, level=event.level)
            case events.TurnEnded():
                self._ended = event

    def rest(self) -> tuple[Message, ...]:
        """The messages of the run that no event had, after its end."""
        return self._complete(self._conversation.history)

    def _complete(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        new = tuple(message for message in messages if message.id not in self._known)
        self._known.update(message.id for message in new)
        self._messages += new
        self._waiting = []
        return new

    def result(self, nested: Sequence[Usage]) -> run_events.RunResult:
        """`nested`: usage of other agents, which functions of the run have asked."""
        ended = self._ended
        assert ended is not None  # every turn ends with TurnEnded
        usage = reduce(add, nested, ended.usage)
        info = self._conversation.info
        return run_events.RunResult(
            output="".join(self._text),
            answer=ended.answer,
            messages=tuple(self._messages),
            usage=usage,
            cost_usd=usage.cost.total if usage.cost else None,
            session_id=info.session_id if info.saves_session else "",
            changes=tuple(_change(path, diffs, info.root) for path, diffs in self._diffs.items()),
            stop_reason=(ended.finish_reason or "stop") if ended.cause == "done" else ended.cause,
            cause=ended.cause,
            error=ended.error,
            denials=tuple(self._denials),
        )

    def _answer(self, message: Message) -> Iterator[run_events.RunEvent]:
        """Adds text that did not come in pieces, so that the events have all of it."""
        streamed = "".join(self._streamed)
        self._streamed.clear()
        self._text.append(message.text)
        if message.text.startswith(streamed) and (rest := message.text[len(streamed) :]):
            yield run_events.TextDelta(output=rest)
        for part in message.calls:
            yield run_events.ToolUse(id=part.id, name=part.tool, input=part.input)

    def _call_ended(self, event: events.CallEnded) -> run_events.ToolResult:
        for path in event.files_changed:
            self._diffs.setdefault(path, [])
        if isinstance(event.view, Diff) and len(event.files_changed) == 1:
            self._diffs[event.files_changed[0]].append(event.view)
        part = event.part
        return run_events.ToolResult(
            tool_use_id=part.id, content=part.output, is_error=part.is_error, files_changed=tuple(event.files_changed)
        )


def _change(path: str, diffs: Sequence[Diff], root: Path) -> run_events.FileChange:
    real = Path(path)
    shown = str(real.relative_to(root)) if real.is_relative_to(root) else path
    return run_events.FileChange(
        path=shown, diff="\n".join(diff.text for diff in diffs), created=any(diff.created for diff in diffs[:1])
    )
