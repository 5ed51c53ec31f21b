"""The events of a run as typed values, by the names of the JSON stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.budget import add
from wolo.agent.events import ErrorInfo, StopCause
from wolo.errors import WoloError
from wolo.messages.message import Message, Usage

T = TypeVar("T")


class RunEvent(Struct, frozen=True, kw_only=True):
    """`output` joined over all events is the text of the run; `messages` joined are its new messages."""

    type: ClassVar[str] = ""
    output: str = ""
    """New text of the model."""
    messages: tuple[Message, ...] = ()
    """Messages that are complete now: answers together with the results of their calls."""


class TextDelta(RunEvent, frozen=True, kw_only=True):
    type: ClassVar[str] = "text_delta"

    @property
    def text(self) -> str:
        return self.output


class ThinkingDelta(RunEvent, frozen=True, kw_only=True):
    type: ClassVar[str] = "thinking_delta"
    thinking: str


class ToolInputDelta(RunEvent, frozen=True, kw_only=True):
    """The model writes the arguments of a call."""

    type: ClassVar[str] = "tool_input_delta"
    id: str
    """Id of the `ToolUse` that follows."""
    slot: int
    name: str
    partial_json: str


class ToolUse(RunEvent, frozen=True, kw_only=True):
    """A call of the model, before it is judged and run."""

    type: ClassVar[str] = "tool_use"
    id: str
    name: str
    input: Mapping[str, Any]


class ToolResult(RunEvent, frozen=True, kw_only=True):
    type: ClassVar[str] = "tool_result"
    tool_use_id: str
    content: str
    is_error: bool
    files_changed: tuple[str, ...] = ()
    """Absolute paths."""


class Denied(RunEvent, frozen=True, kw_only=True):
    """A call was not allowed to run."""

    type: ClassVar[str] = "denied"
    tool: str
    input: Mapping[str, Any]
    reason: str


class Retry(RunEvent, frozen=True, kw_only=True):
    """A request failed and is sent again. Text streamed since the last request is void."""

    type: ClassVar[str] = "retry"
    attempt: int
    delay_s: float
    error: ErrorInfo


class Fallback(RunEvent, frozen=True, kw_only=True):
    """Another model answers the rest of the run. Text streamed since the last request is void."""

    type: ClassVar[str] = "fallback"
    model: str
    error: ErrorInfo


class Compaction(RunEvent, frozen=True, kw_only=True):
    type: ClassVar[str] = "compaction"
    reason: str
    tokens_before: int
    tokens_after: int


class ModeSwitched(RunEvent, frozen=True, kw_only=True):
    """A plan was approved, which ended plan mode."""

    type: ClassVar[str] = "mode"
    mode: str


class Notice(RunEvent, frozen=True, kw_only=True):
    type: ClassVar[str] = "notice"
    text: str
    level: str


class MessagesCompleted(RunEvent, frozen=True, kw_only=True):
    """Only `messages`: the prompt, or answers whose calls have ended."""

    type: ClassVar[str] = "messages"


class FileChange(Struct, frozen=True, kw_only=True):
    """All changes that a run made to one file."""

    path: str
    """Relative to the workspace if inside."""
    diff: str = ""
    """Unified diffs without headers, one per change; empty for changes by commands."""
    created: bool = False


class RunResult(Struct, frozen=True, kw_only=True):
    """The outcome of one run."""

    output: str
    """All text of the model in this run."""
    answer: str
    """The text of its last answer, or the text so far when the run failed."""
    messages: tuple[Message, ...]
    """New messages only: the prompt, answers with their calls and results."""
    usage: Usage
    """Sum over the run."""
    cost_usd: float | None
    """None: unknown price."""
    session_id: str
    changes: tuple[FileChange, ...] = ()
    stop_reason: str = "stop"
    """The finish reason of the last answer (`stop`), or what ended the run before it was done: `max_turns`, `interrupted` …"""
    cause: StopCause = "done"
    error: ErrorInfo | None = None
    denials: tuple[Denied, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.cause != "done"


def join_results(first: RunResult, second: RunResult) -> RunResult:
    """Both runs as one; its answer is the second one's."""
    costs = (first.cost_usd, second.cost_usd)
    return replace(
        second,
        messages=first.messages + second.messages,
        usage=add(first.usage, second.usage),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        changes=first.changes + second.changes,
        denials=first.denials + second.denials,
    )


class RunError(WoloError):
    """The model or the session failed; `result` is what was done until then."""

    def __init__(self, result: RunResult) -> None:
        assert result.error is not None
        super().__init__(result.error.message, hint=result.error.hint)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return RunError, (self.result,)


class PartialOutput(RunEvent, frozen=True, kw_only=True):
    """The value of `Agent.run_stream_for` as far as it was streamed: JSON values, not checked yet."""

    type: ClassVar[str] = "partial_output"
    value: Any


class TypedResult(RunResult, Generic[T], frozen=True, kw_only=True):
    """The outcome of `Agent.run_for`."""

    output: T  # type: ignore[assignment]  # the value in place of its text


class Result(RunEvent, frozen=True, kw_only=True):
    """The last event of each run."""

    type: ClassVar[str] = "result"
    result: RunResult
