"""The types of responses, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from wolo.tools.tool_values import TodoItem


class ErrorText(Struct, frozen=True):
    status: int
    message: str
    hint: str


class ErrorAnswer(Struct, frozen=True):
    error: ErrorText


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


class SessionStatus(Struct, frozen=True, kw_only=True):
    type: Literal["system"]
    subtype: Literal["status"]
    busy: bool
    mode: str
    model: str
    thinking: str


class PromptSaved(Struct, frozen=True):
    session_id: str
    last_event_id: int


class SteeringSaved(Struct, frozen=True):
    queued: bool


class InterruptAnswer(Struct, frozen=True):
    interrupted: bool
    """False: no turn was running."""


class ResumeAnswer(Struct, frozen=True):
    resumed: bool


class DecisionTaken(Struct, frozen=True):
    decision: str


class AnswerTaken(Struct, frozen=True):
    answered: bool


class SessionDeleted(Struct, frozen=True):
    deleted: str
    """Its id."""


class Reverted(Struct, frozen=True, kw_only=True):
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
    draft: str
    """The prompt that was undone."""
    last_event_id: int | UnsetType = UNSET


class FilePatch(Struct, frozen=True):
    path: str
    patch: str


class SessionDiff(Struct, frozen=True):
    files: list[FilePatch]
    patch: str


class SearchHit(Struct, frozen=True):
    id: str
    title: str
    entry: int
    snippet: str
    at: str


class TaskItems(Struct, frozen=True):
    items: list[TodoItem]


class ServerHealth(Struct, frozen=True):
    status: Literal["ok"]
    version: str


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
