"""The types of responses and of the lines of the event stream, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, defstruct

from wolo.agent.events import CompactionReason, ErrorInfo, GoalReport, SandboxState, ShownArgument
from wolo.tools.tool_values import Question, Reply, TodoItem, View


def _shape(name: str, base: type[Struct] = Struct, about: str | None = None, /, **fields: Any) -> Any:
    """A type whose fields need no words; a pair is the type and the default."""
    own = [(field, *(kind if isinstance(kind, tuple) else (kind,))) for field, kind in fields.items()]
    return defstruct(name, own, bases=(base,), frozen=True, kw_only=True, namespace={"__doc__": about})


ErrorAnswer = _shape("ErrorAnswer", error=_shape("ErrorText", status=int, message=str, hint=str))


class SessionSummary(Struct, frozen=True, kw_only=True):
    id: str
    name: str | None
    title: str
    cwd: str
    model: str
    created: str
    """ISO 8601 in UTC, like `updated`."""
    updated: str
    turns: int
    tokens: int
    cost_usd: float | None
    live: bool
    """A process has it open."""
    busy: bool
    """A turn runs on this server."""
    open: bool
    """On this server."""
    mode: str
    agent: str | UnsetType = UNSET
    """Of a subagent's session."""
    task_of: str | UnsetType = UNSET
    """Its parent session."""


class SessionMessages(SessionSummary, frozen=True, kw_only=True):
    last_event_id: int
    """After which `/events` continues."""
    messages: list[Any]
    """As lines of the stream."""


class Named(Struct, frozen=True):
    name: str
    about: str


class SessionChoices(Struct, frozen=True):
    cwd: str
    model: str
    mode: str
    modes: list[Named]
    models: list[Named]


class SlashCommand(Struct, frozen=True):
    name: str
    usage: str
    about: str


SessionStatus = _shape(
    "SessionStatus", type=Literal["system"], subtype=Literal["status"], busy=bool, mode=str, model=str, thinking=str
)
PromptSaved = _shape("PromptSaved", session_id=str, last_event_id=int)
SteeringSaved = _shape("SteeringSaved", queued=bool)
InterruptAnswer = _shape("InterruptAnswer", interrupted=bool)
"""False: no turn was running."""
ResumeAnswer = _shape("ResumeAnswer", resumed=bool)
DecisionTaken = _shape("DecisionTaken", decision=str)
AnswerTaken = _shape("AnswerTaken", answered=bool)
SessionDeleted = _shape("SessionDeleted", deleted=str)
"""Has its id."""
_REVERTED: Mapping[str, Any] = {
    **{"kind": str, "session": str, "done": bool, "turns": list[str], "restored": list[str], "removed": list[str]},
    **{"conflicts": list[str], "reasons": dict[str, str], "not_covered": list[str], "conversation": bool},
}
Reverted = _shape("Reverted", **_REVERTED, draft=str, last_event_id=(int | UnsetType, UNSET))
"""`draft`: the prompt that was undone."""
TaskItems = _shape("TaskItems", items=list[TodoItem])
ServerHealth = _shape("ServerHealth", status=Literal["ok"], version=str)


class FilePatch(Struct, frozen=True):
    path: str
    patch: str


SessionDiff = _shape("SessionDiff", files=list[FilePatch], patch=str)


class SearchHit(Struct, frozen=True):
    id: str
    title: str
    entry: int
    snippet: str
    at: str


class FolderEntry(Struct, frozen=True):
    name: str
    type: Literal["file", "folder", "other"]
    size_bytes: int


class FileAnswer(Struct, frozen=True, kw_only=True):
    """A folder has `entries`, a file `text`; both are empty where the file is binary."""

    path: str
    """Relative to the workspace."""
    type: Literal["file", "folder"]
    entries: list[FolderEntry] = []
    text: str = ""
    """Secrets are placeholders."""
    size_bytes: int = 0
    is_binary: bool = False
    total_lines: int | None = None
    is_cut: bool = False
    """There is more: `offset` continues."""


class FindAnswer(Struct, frozen=True, kw_only=True):
    matches: list[str]
    incomplete: str = ""
    """Why there may be more."""


class BatchOverview(Struct, frozen=True, kw_only=True):
    name: str
    folder: str
    states: dict[str, int]
    tokens: int
    cost_usd: float | None


class BatchTasks(BatchOverview, frozen=True, kw_only=True):
    tasks: list[dict[str, Any]]
    left_out: int


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


def _event(subtype: str, about: str | None = None, /, **fields: Any) -> Any:
    name = "".join(word.capitalize() for word in subtype.split("_"))
    return _shape(f"{name}Event", SystemEvent, about, subtype=Literal[subtype], **fields)


EVENT_TYPES: tuple[type[EventType], ...] = (
    *(UserEvent, AssistantEvent, StreamEvent, ResultEvent, InitEvent, StatusEvent, ApprovalEvent, RetryEvent, TaskEvent),
    _event("questions", "The model waits for `/answer`.", question_id=str, call_id=str, questions=list[Question], task=str),
    _event("denied", tool_use_id=str, tool=str, input=dict[str, Any], reason=str, agent=(str | UnsetType, UNSET)),
    _event("reverted", "An undo or redo; the lines before it are those of the conversation now.", **_REVERTED),
    *(_event(subtype, **fields) for subtype, fields in _PLAIN.items()),
)
