"""Arguments and results of the server's tools, and their JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from wolo.api.run_events import RunResult
from wolo.errors import UsageError

Id = Annotated[str, Meta(description="Session id, as the results of tasks and list_sessions have it.")]
Prompt = Annotated[str, Meta(min_length=1, description="What to do.")]


class RunTask(Struct, forbid_unknown_fields=True, kw_only=True):
    """Give a task to the coding agent wolo: it reads and changes files, runs commands, and answers when it is done."""

    prompt: Prompt
    cwd: Annotated[str, Meta(description="Directory to work in; default: where the server was started.")] = ""
    mode: Annotated[
        str,
        Meta(description="What runs without asking: plan (reads only), ask, edit, auto or yolo, as far as the server allows."),
    ] = ""


class ContinueTask(Struct, forbid_unknown_fields=True, kw_only=True):
    """Give one more prompt to an earlier session; it knows everything before."""

    session_id: Id
    prompt: Prompt


class ListSessions(Struct, forbid_unknown_fields=True, kw_only=True):
    """List saved sessions, newest first, with what is running now."""

    cwd: Annotated[str, Meta(description="Only sessions of this directory.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="Most sessions to list.")] = 50


class ReadSession(Struct, forbid_unknown_fields=True, kw_only=True):
    """Read the messages and tool calls of a session."""

    session_id: Id
    last: Annotated[int, Meta(ge=1, description="Number of messages from the end.")] = 50


class Cancel(Struct, forbid_unknown_fields=True, kw_only=True):
    """Stop the running task of a session. What it did is kept, and it can be continued."""

    session_id: Id


class Denied(Struct, kw_only=True):
    tool: str
    input: dict[str, Any]
    reason: str


class Tokens(Struct, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class TaskError(Struct, kw_only=True):
    kind: str
    message: str
    hint: str = ""
    resets_at: str | None = None


class TaskResult(Struct, kw_only=True):
    text: str
    """The final answer."""
    session_id: str
    stop_reason: str
    files_changed: list[str]
    usage: Tokens
    cost_usd: float | None
    denials: list[Denied]
    error: TaskError | None


class SessionRow(Struct, kw_only=True):
    id: str
    name: str | None
    title: str
    cwd: str
    model: str
    created: str
    updated: str
    turns: int
    tokens: int
    cost_usd: float | None
    live: bool
    """Some process has it open."""
    running: bool
    """A task of this server is running in it."""


class SessionList(Struct, kw_only=True):
    sessions: list[SessionRow]


class CallText(Struct, kw_only=True):
    tool: str
    input: dict[str, Any]
    status: str
    output: str


class MessageText(Struct, kw_only=True):
    role: str
    text: str
    calls: list[CallText] | UnsetType = UNSET


class SessionContent(Struct, kw_only=True):
    session: SessionRow
    messages: list[MessageText]
    omitted: int
    """Number of earlier messages that were left out."""


class CancelResult(Struct, kw_only=True):
    session_id: str
    cancelled: bool


TOOLS: Mapping[str, tuple[type[Struct], type[Struct]]] = {
    "run_task": (RunTask, TaskResult),
    "continue_task": (ContinueTask, TaskResult),
    "list_sessions": (ListSessions, SessionList),
    "read_session": (ReadSession, SessionContent),
    "cancel": (Cancel, CancelResult),
}
"""Name to arguments and result."""
TITLES = {
    "run_task": "Run a task",
    "continue_task": "Continue a session",
    "list_sessions": "List sessions",
    "read_session": "Read a session",
    "cancel": "Cancel a task",
}
READING = frozenset({"list_sessions", "read_session"})


def schema_of(type: type[Struct]) -> dict[str, Any]:
    """The JSON schema with the object itself at the root, as clients of older revisions need it."""
    made = msgspec.json.schema(type)
    definitions = made["$defs"]
    root = definitions.pop(type.__name__)
    root.pop("title", None)
    root.pop("description", None)
    return {**root, **({"$defs": definitions} if definitions else {})}


def read_arguments(tool: str, arguments: Mapping[str, Any] | None) -> Any:
    """Raises UsageError with the place of the mistake."""
    try:
        return msgspec.convert(dict(arguments or {}), TOOLS[tool][0])
    except msgspec.ValidationError as error:
        raise UsageError(f"{tool}: {error}.", hint=f"It takes {', '.join(TOOLS[tool][0].__struct_fields__)}.") from error


def as_result(run: RunResult, session_id: str) -> TaskResult:
    usage, error = run.usage, run.error
    return TaskResult(
        text=run.answer,
        session_id=session_id,
        stop_reason=run.stop_reason,
        files_changed=sorted(change.path for change in run.changes),
        usage=Tokens(**{name: getattr(usage, name) or 0 for name in Tokens.__struct_fields__}),
        cost_usd=run.cost_usd,
        denials=[Denied(tool=each.tool, input=dict(each.input), reason=each.reason) for each in run.denials],
        error=error if error is None else TaskError(**{name: getattr(error, name) for name in TaskError.__struct_fields__}),
    )


def as_json(value: Struct) -> dict[str, Any]:
    made: dict[str, Any] = to_builtins(value)
    return made
