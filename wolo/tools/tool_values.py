"""Values that tools exchange with the agent and the front ends: results, views, questions, offered subagents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct

from wolo.messages.parts import MediaPart, Outcome


class Diff(Struct, frozen=True, tag="diff"):
    """A changed file, as a unified diff without the two header lines."""

    path: str
    """Relative to the workspace root where it is inside."""
    text: str
    added: int
    removed: int
    created: bool = False


class Listing(Struct, frozen=True, tag="listing"):
    """Names or lines that were found."""

    title: str
    lines: tuple[str, ...]
    total: int
    incomplete: str = ""
    """Why there may be more, in a few words; empty when this is all."""


class Output(Struct, frozen=True, tag="output"):
    """What a command printed (both ends, when it was long)."""

    command: str
    text: str
    exit_code: int | None
    seconds: float


class Answered(Struct, frozen=True, tag="answered"):
    """What a tool from elsewhere answered (both ends, when it was long)."""

    text: str
    seconds: float


TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]


class TodoItem(Struct, frozen=True):
    text: str
    """One line."""
    status: TodoStatus


class TodoList(Struct, frozen=True, tag="todo_list"):
    """What is to be done, as it stands now."""

    items: tuple[TodoItem, ...]


class Fetched(Struct, frozen=True, tag="fetched"):
    """A page of the web."""

    url: str
    """Where it was in the end."""
    status: int
    size_bytes: int


class Delegated(Struct, frozen=True, tag="delegated"):
    """What another agent did for a task; the result is what it said in the end."""

    agent: str
    session_id: str
    """Of its own conversation."""
    ended: str
    """`done`, `timed out`, `interrupted`, or what else stopped it."""
    calls: tuple[str, ...]
    """A line for each."""
    answers: int
    tokens: int
    cost_usd: float | None
    """None: not known."""
    seconds: float


View = Diff | Listing | Output | Answered | TodoList | Fetched | Delegated
"""What a front end may draw; the model reads `Result.text`."""


@dataclass(frozen=True, slots=True)
class Result:
    text: str
    """What the model reads."""
    view: View | None = None
    is_error: bool = False
    outcome: Outcome | None = None
    """Only where `ok`/`error` is not precise enough."""
    media: tuple[MediaPart, ...] = ()
    terminate: bool = False
    files_changed: tuple[str, ...] = ()
    """Absolute paths this call changed on disk."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Interrupted(asyncio.CancelledError):
    """A call was cancelled and has cleaned up after itself; `result` says how far it came.

    Catch it around the call itself: `asyncio.timeout` in Python 3.11 and 3.12 does not know subclasses of CancelledError.
    """

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


DEFAULT = "general"
MOST_DESCRIPTION = 240
"""Characters of what one agent says of itself; models read it with every request."""
MOST_OFFERED = 24
"""Agents that are described; of more only the names are told."""
MOST_NAMED = 100


class SubagentOffer(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    only_reads: bool = False
    """It is given no tool that changes anything."""
    is_hidden: bool = False
    """The model is not told of it; a person may name it."""


BUILTIN = (
    SubagentOffer(name=DEFAULT, description="all tools but `task`, for a task of several steps"),
    SubagentOffer(name="explore", description="only reads: to find out where and how something is done", only_reads=True),
)


def describe_subagents(offers: Sequence[SubagentOffer]) -> str:
    """What the model reads; the same bytes for the same agents."""
    shown = sorted((offer for offer in offers if not offer.is_hidden), key=lambda offer: offer.name)
    lines = [f"- {offer.name}: {_short(offer.description)}".rstrip(": ") for offer in shown[:MOST_OFFERED]]
    more = [offer.name for offer in shown[MOST_OFFERED:MOST_NAMED]]
    return "\n".join(["Agents:", *lines, *([f"- and {', '.join(more)}"] if more else [])])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_DESCRIPTION else f"{line[: MOST_DESCRIPTION - 1].rstrip()}…"


class Option(Struct, frozen=True):
    label: str
    """One line."""
    description: str = ""


class Question(Struct, frozen=True, kw_only=True):
    text: str
    header: str = ""
    """A word or two that say what it is about."""
    options: tuple[Option, ...] = ()
    """A person may always say something else."""
    several: bool = False
    """More than one option may be chosen."""


class Reply(Struct, frozen=True):
    chosen: tuple[str, ...] = ()
    """Labels of options."""
    text: str = ""
    """The person's own words; both empty: this question was passed over."""


Replies = tuple[Reply, ...]
AskQuestions = Callable[[str, Sequence[Question]], Awaitable[Replies | None]]
"""With the id of the call; one reply to each question, or None when the person answers none of them."""


class PutQuestions(Protocol):
    """The same, which can be told for which call of `task` another agent asks."""

    def __call__(self, call_id: str, questions: Sequence[Question], task: str = "") -> Awaitable[Replies | None]: ...
