"""All that the loop tells the world. A public format: events are added, never renamed.

SummaryRequest within a turn:

    TurnStarted
      ([CompactionStarted …], [Compacted], RequestStarted, ThinkingStreamed | TextStreamed | CallStreamed …,
       [AttemptFailed | ModelReplaced | [CompactionStarted …] Compacted, RequestStarted, …] AnswerEnded,
       ([ApprovalAsked, ApprovalGiven], CallStarted, CallProgressed …, [QuestionsAsked, QuestionsAnswered],
        [TaskStarted, [ApprovalAsked …], [QuestionsAsked …], [CallDenied] …, TaskEnded], [CallDenied],
         CallEnded) …, [MessageAdded]) …
    TurnEnded

`AttemptFailed`, `ModelReplaced` and `Compacted` take back everything streamed since the `RequestStarted` before them. An
answer that is empty is not kept: it has no `AnswerEnded`. Every call of a kept answer has exactly one
`CallEnded`, in call order, whether it ran or not.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from wolo.errors import ProviderError, WoloError
from wolo.guard.intents import Intent
from wolo.messages.message import Message, Usage
from wolo.messages.parts import IN_FENCE, ToolPart
from wolo.tools.background_jobs import Job, JobEnd
from wolo.tools.tool_values import Question, Reply, View


class Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class ErrorInfo(Struct, frozen=True, kw_only=True):
    kind: str
    message: str
    hint: str = ""
    status: int | None = None
    code: str | None = None
    resets_at: str | None = None

    @classmethod
    def of(cls, error: WoloError) -> ErrorInfo:
        if not isinstance(error, ProviderError):
            return cls(kind=error.kind, message=error.message, hint=error.hint)
        return cls(
            kind=error.kind,
            message=error.message,
            hint=error.hint,
            status=error.status,
            code=error.code,
            resets_at=error.resets_at,
        )


class TurnStarted(Event, frozen=True, kw_only=True, tag="turn_started"):
    prompt: Message


class PromptRefused(Event, frozen=True, kw_only=True, tag="prompt_refused"):
    """A hook keeps it back, or was interrupted: it is not kept and was not sent. Where it began the turn, there is no
    `TurnStarted`, and `TurnEnded` follows."""

    prompt: Message
    reason: str
    """Empty when it was interrupted."""


class HookAwaited(Event, frozen=True, kw_only=True, tag="hook_awaited"):
    """Commands of the person's own that run at an event take their time; the next event says that they have ended."""

    hook: str
    """The event they run at."""
    commands: tuple[str, ...]


class RequestStarted(Event, frozen=True, kw_only=True, tag="request_started"):
    model: str
    attempt: int
    context_tokens: int
    """Estimated size of the request."""


class ThinkingStreamed(Event, frozen=True, kw_only=True, tag="thinking_streamed"):
    text: str


class TextStreamed(Event, frozen=True, kw_only=True, tag="text_streamed"):
    text: str


class CallStreamed(Event, frozen=True, kw_only=True, tag="call_streamed"):
    """A call is being written: `fragment` is the newest piece of its argument text."""

    slot: int
    tool: str
    fragment: str
    size_bytes: int
    """Argument bytes so far."""


class AttemptFailed(Event, frozen=True, kw_only=True, tag="attempt_failed"):
    error: ErrorInfo
    attempt: int
    tries: int
    """0: as many as the time for retries allows."""
    delay_s: float
    """Seconds until the next attempt."""


class ModelReplaced(Event, frozen=True, kw_only=True, tag="model_replaced"):
    """The fallback model answers the rest of this turn; the next prompt goes to the first model again."""

    error: ErrorInfo
    """Why the first model gave up."""
    model: str
    """Who answers now."""


CompactionReason = Literal["window", "overflow", "manual", "restored"]
"""It would not have fitted the model's window; the provider said that it does not; a person asked for it, or took it back."""


class CompactionStarted(Event, frozen=True, kw_only=True, tag="compaction_started"):
    """A model is asked to sum up what is old; `Compacted` follows, or nothing when it was interrupted."""

    reason: CompactionReason
    model: str
    tokens: int
    """Estimated size of the request that is to become smaller."""
    request: int = 1
    requests: int = 1
    """A long conversation is summed up in several requests."""


class Compacted(Event, frozen=True, kw_only=True, tag="compacted"):
    """Less of the conversation is sent from now on, or more again (`restored`); the session keeps all of it."""

    reason: CompactionReason
    tokens_before: int
    tokens_after: int
    """Estimated sizes of the request."""
    outputs_shortened: int
    messages_left_out: int
    """Both count what is new."""
    is_summarised: bool = False
    """The model has summed up what is left out."""
    summary: Message | None = None
    """Stands for the messages that are left out."""
    shortened: tuple[str, ...] = ()
    """Ids of all messages whose outputs are sent shortened."""
    left_out: tuple[str, ...] = ()
    """Ids of all messages that are not sent."""
    usage: Usage | None = None
    """What asking for the summary has cost."""


class AnswerEnded(Event, frozen=True, kw_only=True, tag="answer_ended"):
    """The answer is complete and kept. Its calls are pending and carry the guard's first verdict in `metadata["verdict"]`.

    When a person stopped it, this is the text that had come until then, with `finish_reason` "interrupted".
    """

    message: Message


class MessageAdded(Event, frozen=True, kw_only=True, tag="message_added"):
    """A word to the model that joins the history in the middle of a turn; `metadata["nudge"]` says why the loop spoke."""

    message: Message


class CallStarted(Event, frozen=True, kw_only=True, tag="call_started"):
    message_id: str
    part: ToolPart


class CallProgressed(Event, frozen=True, kw_only=True, tag="call_progressed"):
    part_id: str
    text: str


Scope = Literal["once", "session", "always", "everywhere"]
"""For how long a yes holds: this call, this session, in this workspace for good, or in every workspace."""


SandboxState = Literal["", "inside", "outside", "again", "restored"]
"""Of the sandbox, for a command: it would run inside, or outside; or it has failed inside, and would run once more outside."""


class ApprovalAsked(Event, frozen=True, kw_only=True, tag="approval_asked"):
    """A person must say yes or no: `Conversation.answer(id, …)`."""

    id: str
    part: ToolPart
    intents: tuple[Intent, ...]
    reason: str
    rule: str
    """The rule that "always" would write; empty when none may be offered."""
    walls: SandboxState = ""
    """Where a command would run; empty for what is none."""
    agent: str = ""
    """Another agent that asks, in the middle of a task; empty: the one that is talked to."""
    task: str = ""
    """The id of the call that gave it this task."""

    @property
    def only_once(self) -> bool:
        """A yes can hold for this call alone: one that may be an example asks each time."""
        return IN_FENCE in self.part.metadata


class ApprovalGiven(Event, frozen=True, kw_only=True, tag="approval_given"):
    id: str
    allowed: bool
    scope: Scope = "once"
    reason: str = ""
    rule: str = ""
    """The rule as the person changed it; empty: the one that was shown."""


class JobStarted(Event, frozen=True, kw_only=True, tag="job_started"):
    """A command runs in the background from now on: until it ends, is stopped, or the conversation ends."""

    id: int
    command: str
    pid: int

    @classmethod
    def of(cls, job: Job) -> JobStarted:
        return cls(id=job.id, command=job.command, pid=job.program.pid)


class JobEnded(Event, frozen=True, kw_only=True, tag="job_ended"):
    """May come at any time; between turns it waits for the next one, unless a front end uses `Conversation.listen_while_idle`."""

    id: int
    command: str
    cause: Literal["exited", "timed_out", "crowded", "stopped"]
    """`crowded`: it had started far too many processes and was ended."""
    exit_code: int
    """As a shell tells it: 128 and the signal's number when a signal ended it."""
    duration_s: float

    @classmethod
    def of(cls, job: Job, ending: JobEnd) -> JobEnded:
        return cls(id=job.id, command=job.command, cause=ending.cause, exit_code=ending.shell_code, duration_s=ending.seconds)


class QuestionsAsked(Event, frozen=True, kw_only=True, tag="questions_asked"):
    """The model asks the person: `Conversation.answer_questions(id, …)`."""

    id: str
    call_id: str
    questions: tuple[Question, ...]
    task: str = ""
    """Another agent asks: the id of the call that gave it the task."""


class QuestionsAnswered(Event, frozen=True, kw_only=True, tag="questions_answered"):
    """Does not come when the turn was stopped instead."""

    id: str
    replies: tuple[Reply, ...] | None
    """One to each question; None: the person answers none of them."""


class CallDenied(Event, frozen=True, kw_only=True, tag="call_denied"):
    part: ToolPart
    reason: str
    agent: str = ""
    """Another agent whose call it was, in the middle of a task."""


class CallEnded(Event, frozen=True, kw_only=True, tag="call_ended"):
    message_id: str
    part: ToolPart
    """Completed or failed, with its output."""
    view: View | None = None
    files_changed: tuple[str, ...] = ()


class TaskStarted(Event, frozen=True, kw_only=True, tag="task_started"):
    """Another agent begins to work on a call of `task`, in a conversation of its own."""

    part_id: str
    """Of the call; what the agent does is heard as its `CallProgressed`."""
    agent: str
    session_id: str
    """Of the agent's own conversation."""
    model: str
    prompt: str


class TaskEnded(Event, frozen=True, kw_only=True, tag="task_ended"):
    """Its calls and approvals are over; `CallEnded` follows with what it said."""

    part_id: str
    agent: str
    session_id: str
    ended: str
    """`done`, `timed out`, `interrupted`, or what else stopped it."""
    answers: int
    calls: int
    usage: Usage
    """What it took; the turn's own usage has it, too."""
    duration_s: float
    files_changed: tuple[str, ...] = ()


class Noticed(Event, frozen=True, kw_only=True, tag="noticed"):
    """Something a person should know; shown once, never sent to the model."""

    text: str
    level: Literal["info", "warning"] = "info"


class Check(Struct, frozen=True, kw_only=True):
    """One run of the command that verifies the work."""

    exit_code: int | None
    """None: it was ended, because its time was up."""
    failures: tuple[str, ...] = ()
    """What failed, by names that mean the same in another run."""
    output: str = ""
    """The end of what it printed."""
    duration_s: float = 0.0
    timed_out: bool = False

    @property
    def says_something(self) -> bool:
        """It came to its end, and the shell did not say (126, 127) that there is no such program."""
        return self.exit_code not in (None, 126, 127)


class Verification(Struct, frozen=True, kw_only=True):
    """Both looks at the work of a turn; None where it did not come to that, because nothing was changed."""

    command: str
    before: Check | None = None
    after: Check | None = None
    new_failures: tuple[str, ...] = ()
    runs: int = 0
    """How often it was run after the work."""


class VerifyStarted(Event, frozen=True, kw_only=True, tag="verify_started"):
    command: str
    when: Literal["before", "after"]


class Verified(Event, frozen=True, kw_only=True, tag="verified"):
    """With new failures the model is told (a `MessageAdded` follows), as long as it may try again."""

    command: str
    when: Literal["before", "after"]
    check: Check
    new_failures: tuple[str, ...] = ()
    """Compared with the run before the first change; empty in that run itself."""


StopCause = Literal[
    "done",
    "unverified",
    "max_turns",
    "max_cost",
    "max_tokens",
    "max_seconds",
    "model_error",
    "unavailable",
    "interrupted",
    "session_error",
    "blocked",
]
"""`blocked`: a hook kept the prompt back, and nothing was sent; or it ended the turn."""


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_ended"):
    cause: StopCause
    answer: str
    """The final text; what there is of it when the turn ended badly."""
    finish_reason: str
    usage: Usage
    """Sum over the turn; `cost` None as soon as one answer's price is unknown."""
    num_answers: int
    duration_s: float
    provider_s: float
    """Time spent waiting for the provider."""
    error: ErrorInfo | None = None
    exit_code: int = 0
    """The exit status of the process, unless a signal ended it or something was denied."""
    verification: Verification | None = None
    """None: nobody asked for it."""
