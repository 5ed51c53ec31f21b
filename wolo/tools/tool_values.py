"""Values that tools exchange with the agent and the front ends: results, views, questions, offered subagents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from wolo.messages.parts import MediaPart, Outcome


class Location(Struct, frozen=True):
    """A place that a call reads or changes, for editors that follow the agent."""

    path: str
    """Absolute."""
    line: int | None = None
    """From 1."""


class TextChange(Struct, frozen=True):
    """The text of a file before and after a change; of a large file (over 100,000 characters) only the passage that changed."""

    path: str
    """Absolute."""
    before: str | None
    """None: the file did not exist."""
    after: str | None
    """None: the file is deleted."""
    line: int | None = None
    """First changed line, from 1."""
    is_excerpt: bool = False
    """Both texts are passages of a large file, cut at 100,000 characters each."""


class Diff(Struct, frozen=True, tag="diff"):
    """Changed files, as a unified diff without the two header lines, and with the texts before and after."""

    path: str
    """Relative to the workspace root if inside."""
    text: str
    added: int
    removed: int
    created: bool = False
    changes: tuple[TextChange, ...] = ()
    """One for each file; a moved file has two."""


class Listing(Struct, frozen=True, tag="listing"):
    """Names or lines found by a search."""

    title: str
    lines: tuple[str, ...]
    total: int
    incomplete: str = ""
    """Short reason why there may be more; empty: complete."""


class Output(Struct, frozen=True, tag="output"):
    """Output of a command; long output is cut in the middle."""

    command: str
    text: str
    exit_code: int | None
    seconds: float


class Answered(Struct, frozen=True, tag="answered"):
    """Answer of an external tool; a long answer is cut in the middle."""

    text: str
    seconds: float


TodoStatus = Literal["pending", "in_progress", "completed", "cancelled"]


class TodoItem(Struct, frozen=True):
    text: str
    status: TodoStatus


class TodoList(Struct, frozen=True, tag="todo_list"):
    """The current task list."""

    items: tuple[TodoItem, ...]


class Fetched(Struct, frozen=True, tag="fetched"):
    url: str
    """After redirects."""
    status: int
    size_bytes: int


class Delegated(Struct, frozen=True, tag="delegated"):
    """Work of a subagent; the result holds its final answer."""

    agent: str
    session_id: str
    """Session of the subagent."""
    ended: str
    """`done`, `timed out`, `interrupted`, or another stop cause."""
    calls: tuple[str, ...]
    """A line each."""
    answers: int
    tokens: int
    cost_usd: float | None
    """None: unknown."""
    seconds: float


View = Diff | Listing | Output | Answered | TodoList | Fetched | Delegated
"""For display; the model reads `CallResult.text`."""


class CallResult(Struct, frozen=True):
    text: str
    """For the model."""
    view: View | None = None
    is_error: bool = False
    outcome: Outcome | None = None
    """Set only if `ok` and `error` are not precise enough."""
    media: tuple[MediaPart, ...] = ()
    terminate: bool = False
    files_changed: tuple[str, ...] = ()
    """Absolute paths."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Interrupted(asyncio.CancelledError):
    """A cancelled call has cleaned up; `result` holds its partial result.

    Catch it around the call itself: `asyncio.timeout` in Python 3.11 and 3.12 does not know subclasses of CancelledError.
    """

    def __init__(self, result: CallResult) -> None:
        super().__init__()
        self.result = result


DEFAULT = "general"
MOST_DESCRIPTION = 240
"""Maximum length of a description; models read it with every request."""
MOST_OFFERED = 24
"""Maximum number of described subagents; others are only named."""
MOST_NAMED = 100


class SubagentOffer(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    only_reads: bool = False
    """Has no tool that changes anything."""
    is_hidden: bool = False
    """Not offered to the model; the user may name it."""


BUILTIN = (
    SubagentOffer(name=DEFAULT, description="all tools except `task`, for tasks with several steps"),
    SubagentOffer(name="explore", description="read-only: finds out where and how something is done", only_reads=True),
)


class TaskRequest(Struct, frozen=True, kw_only=True):
    agent: str
    prompt: str
    background: bool = False
    """Return at once; the result comes as a message."""
    resume: str = ""
    """Id of the ended task to continue; empty: a new one."""


def describe_subagents(offers: Sequence[SubagentOffer]) -> str:
    """Returns the text for the model; identical for the same subagents."""
    shown = sorted((offer for offer in offers if not offer.is_hidden), key=lambda offer: offer.name)
    lines: list[str] = []
    for offer in shown[:MOST_OFFERED]:
        about = " ".join(offer.description.split())
        about = about if len(about) <= MOST_DESCRIPTION else f"{about[: MOST_DESCRIPTION - 1].rstrip()}…"
        lines.append(f"- {offer.name}: {about}".rstrip(": "))
    more = [offer.name for offer in shown[MOST_OFFERED:MOST_NAMED]]
    return "\n".join(["Agents:", *lines, *([f"- and {', '.join(more)}"] if more else [])])


class AnswerOption(Struct, frozen=True):
    label: str
    """A single line."""
    description: str = ""


class Question(Struct, frozen=True, kw_only=True):
    text: str
    header: str = ""
    """At most two words."""
    options: tuple[AnswerOption, ...] = ()
    """The user may always answer something else."""
    several: bool = False
    """Allows more than one option."""
    is_plan: bool = False
    """The text is a plan in Markdown, and the options decide about it; words of one's own may stand beside them."""


class Reply(Struct, frozen=True):
    chosen: tuple[str, ...] = ()
    """Labels of options."""
    text: str = ""
    """The user's own words. Both empty: the question was skipped."""


UNASKED = Reply(text="(This editor has no field for text. Ask this in your answer, and end the turn.)")
"""For a question without options where the front end has no field for text; the user has not seen it."""


Replies = tuple[Reply, ...]
AskQuestions = Callable[[str, Sequence[Question]], Awaitable[Replies | None]]
"""Takes the id of the call. Returns one reply per question; None: the user skipped all of them."""


class PutQuestions(Protocol):
    """The same with the id of the `task` call whose subagent asks."""

    def __call__(self, call_id: str, questions: Sequence[Question], task: str = "") -> Awaitable[Replies | None]: ...


HookDecision = Literal["", "allow", "ask", "deny"]


class HookReply(Struct, frozen=True, kw_only=True):
    """Answer of one hook, or of all hooks of an event."""

    decision: HookDecision = ""
    """`deny` also means: do not send the prompt, make the model continue, do not compact."""
    reason: str = ""
    context: str = ""
    """Text for the model."""
    updated_input: Mapping[str, Any] | None = None
    """Arguments that replace those of the call."""
    updated_output: str | None = None
    """Text that replaces the result for the model."""
    stops: bool = False
    """Ends the turn; `stop_reason` is shown to the user."""
    stop_reason: str = ""
    watch: tuple[Path, ...] | None = None
    """Files that `FileChanged` hooks want to hear about, besides those in their matchers."""
    notices: tuple[str, ...] = ()
    """Shown to the user."""
    unclear: str = ""
    """Names the parts of the decision that cannot be understood."""
