"""The types of the event stream, for the OpenAPI document: one for each line that the server sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from msgspec import UNSET, Struct, UnsetType, defstruct

from wolo.agent.events import CompactionReason, ErrorInfo, GoalReport, SandboxState, ShownArgument
from wolo.tools.tool_values import Question, Reply, TodoItem, View


class EventType(Struct, frozen=True, kw_only=True):
    session_id: str


class TextBlock(Struct, frozen=True, tag="text"):
    text: str


class ThinkingBlock(Struct, frozen=True, tag="thinking"):
    thinking: str


class ToolUseBlock(Struct, frozen=True, tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class ImageBlock(Struct, frozen=True, tag="image"):
    """An image of a prompt, without its data."""

    media_type: str
    size_bytes: int


class ToolResultBlock(Struct, frozen=True, tag="tool_result"):
    tool_use_id: str
    content: str | list[dict[str, Any]]
    """A list where the tool returned images."""
    is_error: bool


class TokenUsage(Struct, frozen=True):
    input_tokens: int
    """Without those read from and written to the cache."""
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class UserContent(Struct, frozen=True, kw_only=True):
    role: Literal["user"]
    id: str | UnsetType = UNSET
    """Of a prompt."""
    content: list[TextBlock | ImageBlock | ToolResultBlock]


class AssistantContent(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"]
    id: str
    content: list[TextBlock | ThinkingBlock | ToolUseBlock]
    usage: TokenUsage
    model: str | UnsetType = UNSET
    """The model that answered, where the provider names another one than it was asked for."""


class UserEvent(EventType, frozen=True, kw_only=True):
    """A prompt, or the result of a call."""

    type: Literal["user"]
    message: UserContent
    view: View | UnsetType = UNSET
    """The result as a value to draw."""


class AssistantEvent(EventType, frozen=True, kw_only=True):
    """A complete answer."""

    type: Literal["assistant"]
    message: AssistantContent


class StreamedText(Struct, frozen=True, tag="text_delta"):
    text: str


class StreamedThinking(Struct, frozen=True, tag="thinking_delta"):
    thinking: str


class StreamedInput(Struct, frozen=True, tag="tool_input_delta"):
    id: str
    slot: int
    name: str
    partial_json: str


class StreamEvent(EventType, frozen=True, kw_only=True):
    """A piece of an answer; the complete one follows."""

    type: Literal["stream_event"]
    event: StreamedText | StreamedThinking | StreamedInput


class PermissionDenial(Struct, frozen=True, kw_only=True):
    tool: str
    input: dict[str, Any]
    reason: str
    agent: str | UnsetType = UNSET


class ResultEvent(EventType, frozen=True, kw_only=True):
    """The end of a turn. Fields that are missing belong to turns that began."""

    type: Literal["result"]
    subtype: str
    """`success`, or `error_…`."""
    is_error: bool
    exit_code: int
    error: ErrorInfo | None
    result: str
    num_turns: int
    usage: TokenUsage
    total_cost_usd: float | None
    duration_ms: int | UnsetType = UNSET
    duration_api_ms: int | UnsetType = UNSET
    model: str | UnsetType = UNSET
    stop_reason: str | UnsetType | None = UNSET
    permission_denials: list[PermissionDenial] | UnsetType = UNSET
    files_changed: list[str] | UnsetType = UNSET
    verification: dict[str, Any] | UnsetType = UNSET
    goal: GoalReport | UnsetType = UNSET


class SystemEvent(EventType, frozen=True, kw_only=True):
    type: Literal["system"]


class McpServerState(Struct, frozen=True):
    name: str
    status: str


class InitEvent(SystemEvent, frozen=True, kw_only=True):
    """The stream begins anew: forget all lines before. Fields that are missing belong to open sessions."""

    subtype: Literal["init"]
    model: str
    thinking: str | UnsetType | None = UNSET
    prefix_hash: str | UnsetType = UNSET
    """Of the system prompt and the tools: equal for the same agent elsewhere."""
    cwd: str
    mode: str
    sandbox: str | UnsetType = UNSET
    tools: list[str]
    mcp_servers: list[McpServerState]


class StatusEvent(SystemEvent, frozen=True, kw_only=True):
    subtype: Literal["status"]
    busy: bool
    mode: str
    model: str
    thinking: str
    """Level; empty: as the provider has it, or not known before the session is open."""


class ApprovalEvent(SystemEvent, frozen=True, kw_only=True):
    """A call waits for `/approve`."""

    subtype: Literal["approval"]
    approval_id: str
    call_id: str
    name: str
    input: dict[str, Any]
    arguments: list[ShownArgument]
    reason: str
    rule: str
    """That “always” saves."""
    never: str
    """The deny rule that “never” saves."""
    sandbox: SandboxState
    view: View | None
    outside: list[str]
    """Paths outside of the workspace."""
    agent: str
    task: str
    decisions: list[Literal["once", "session", "always", "no", "never"]]


class QuestionsEvent(SystemEvent, frozen=True, kw_only=True):
    """The model waits for `/answer`."""

    subtype: Literal["questions"]
    question_id: str
    call_id: str
    questions: list[Question]
    task: str


class DeniedEvent(SystemEvent, frozen=True, kw_only=True):
    subtype: Literal["denied"]
    tool_use_id: str
    tool: str
    input: dict[str, Any]
    reason: str
    agent: str | UnsetType = UNSET


class RetryEvent(SystemEvent, frozen=True, kw_only=True):
    subtype: Literal["retry"]
    attempt: int
    delay_s: float
    error: ErrorInfo | None
    is_limit: bool | UnsetType = UNSET
    """`/resume` ends this wait."""


class TaskEvent(SystemEvent, frozen=True, kw_only=True):
    """A subagent has started or ended."""

    subtype: Literal["task"]
    status: Literal["started", "ended"]
    tool_use_id: str
    agent: str
    task_session_id: str
    model: str | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    background: bool | UnsetType = UNSET
    ended: str | UnsetType = UNSET
    num_turns: int | UnsetType = UNSET
    num_calls: int | UnsetType = UNSET
    usage: TokenUsage | UnsetType = UNSET
    total_cost_usd: float | UnsetType | None = UNSET
    duration_ms: int | UnsetType = UNSET
    files_changed: list[str] | UnsetType = UNSET


class RevertedEvent(SystemEvent, frozen=True, kw_only=True):
    """An undo or redo; the lines before it are those of the conversation now."""

    subtype: Literal["reverted"]
    kind: str
    session: str
    done: bool
    turns: list[str]
    restored: list[str]
    removed: list[str]
    conflicts: list[str]
    reasons: dict[str, str]
    not_covered: list[str]
    conversation: bool


_PLAIN: Mapping[str, Mapping[str, Any]] = {
    "request": {"model": str, "attempt": int, "context_tokens": int},
    "tool_started": {"tool_use_id": str, "name": str},
    "tool_output": {"tool_use_id": str, "text": str},
    "todo": {"items": list[TodoItem]},
    "approval_given": {"approval_id": str, "allowed": bool, "scope": str},
    "questions_answered": {"question_id": str, "answers": list[Reply] | None},
    "notice": {"text": str, "level": Literal["info", "warning"]},
    "activity": {"text": str},
    "fallback": {"model": str, "error": ErrorInfo | None},
    "compaction": {
        "reason": CompactionReason,
        "tokens_before": int,
        "tokens_after": int,
        "outputs_shortened": int,
        "messages_left_out": int,
        "is_summarised": bool,
    },
    "verification": {
        "command": str,
        "when": Literal["before", "after"],
        "exit_code": int | None,
        "failures": list[str],
        "duration_s": float,
        "timed_out": bool,
        "new_failures": list[str],
    },
    "job_started": {"id": int, "command": str, "pid": int},
    "job_ended": {"id": int, "command": str, "cause": str, "exit_code": int, "duration_s": float},
    "mode": {"mode": str, "text": str},
    "hook_awaited": {"hook": str, "commands": list[str]},
    "steered": {"text": str},
}
"""Fields of system lines that need no words, by subtype."""


def _plain_type(subtype: str, fields: Mapping[str, Any]) -> type[EventType]:
    name = "".join(word.capitalize() for word in subtype.split("_"))
    own = [("subtype", Literal[subtype]), *fields.items()]
    return cast("type[EventType]", defstruct(f"{name}Event", own, bases=(SystemEvent,), frozen=True, kw_only=True))


EVENT_TYPES: tuple[type[EventType], ...] = (
    *(UserEvent, AssistantEvent, StreamEvent, ResultEvent, InitEvent, StatusEvent, ApprovalEvent, QuestionsEvent, DeniedEvent),
    *(RetryEvent, TaskEvent, RevertedEvent),
    *(_plain_type(subtype, fields) for subtype, fields in _PLAIN.items()),
)
