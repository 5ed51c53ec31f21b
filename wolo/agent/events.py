"""The events of a turn. A public format: events are added, never renamed.

Order within a turn:

    TurnStarted
      ([CompactionStarted …], [Compacted], RequestStarted, ThinkingStreamed | TextStreamed | CallStreamed …,
       [AttemptFailed | ModelReplaced | [CompactionStarted …] Compacted, RequestStarted, …] AnswerEnded,
       ([ApprovalAsked, ApprovalGiven], CallStarted, CallProgressed …, [QuestionsAsked, QuestionsAnswered, [ModeChanged]],
        [TaskStarted, [ApprovalAsked …], [QuestionsAsked …], [CallDenied] …, TaskEnded], [CallDenied],
         CallEnded) …, [MessageAdded]) …
    TurnEnded

`AttemptFailed`, `ModelReplaced` and `Compacted` invalidate everything streamed since the `RequestStarted` before them. An
empty answer is not saved and has no `AnswerEnded`. Every call of a saved answer has exactly one `CallEnded`, in call order,
whether it ran or not.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from wolo.errors import ProviderError, WoloError
from wolo.guard.intents import Intent, RunIntent
from wolo.messages.call_arguments import named_arguments
from wolo.messages.message import Message, Usage
from wolo.messages.parts import IN_FENCE, ToolKind, ToolPart
from wolo.messages.terminal_text import exact
from wolo.tools.tool_values import Location, Question, Reply, View

if TYPE_CHECKING:
    from wolo.tools.background.background_jobs import Job, JobEnd


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
    """A hook blocked the prompt, or was interrupted: the prompt is neither saved nor sent. If it would have started the turn,
    `TurnEnded` follows without a `TurnStarted`."""

    prompt: Message
    reason: str
    """Empty when the hook was interrupted."""


class HookAwaited(Event, frozen=True, kw_only=True, tag="hook_awaited"):
    """The user's hooks for an event take a while; the next event means that they have ended."""

    hook: str
    """Name of the hook event."""
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
    """The model writes a call; `fragment` is the newest piece of the argument text."""

    id: str
    """Id of the call's part in `AnswerEnded`."""
    slot: int
    tool: str
    kind: ToolKind = "other"
    fragment: str
    size_bytes: int
    """Argument bytes so far."""


class AttemptFailed(Event, frozen=True, kw_only=True, tag="attempt_failed"):
    error: ErrorInfo
    attempt: int
    tries: int
    """0: as many as the time limit for retries allows."""
    delay_s: float
    """Seconds until the next attempt."""

    @property
    def is_limit(self) -> bool:
        """A limit with a known end; the user may ask again before."""
        return self.error.kind == "quota"


class ModelReplaced(Event, frozen=True, kw_only=True, tag="model_replaced"):
    """The fallback model answers the rest of this turn; the next prompt goes to the first model again."""

    error: ErrorInfo
    """The failure of the first model."""
    model: str
    """The model that answers now."""


CompactionReason = Literal["window", "overflow", "manual", "restored", "masked"]
"""The request would exceed the window; the provider refused it as too large; the user ran /compact, or /uncompact; old outputs
were masked before the window was full."""


class CompactionStarted(Event, frozen=True, kw_only=True, tag="compaction_started"):
    """The model is asked for a summary; `Compacted` follows, or nothing after an interrupt."""

    reason: CompactionReason
    model: str
    tokens: int
    """Estimated size of the request that must become smaller."""
    request: int = 1
    requests: int = 1
    """Number of requests for the summary."""


class Compacted(Event, frozen=True, kw_only=True, tag="compacted"):
    """Fewer messages of the conversation are sent from now on, or more again (`restored`); the session keeps all of them."""

    reason: CompactionReason
    tokens_before: int
    tokens_after: int
    """Estimated sizes of the request."""
    outputs_shortened: int
    messages_left_out: int
    """Both count only what this compaction added."""
    is_summarised: bool = False
    """The model summarized the messages that are left out."""
    summary: Message | None = None
    """The message that replaces those left out."""
    shortened: tuple[str, ...] = ()
    """Ids of all messages whose outputs are shortened."""
    left_out: tuple[str, ...] = ()
    """Ids of all messages that are not sent."""
    sent_from: str = ""
    """Id of the oldest message that is still sent; empty when nothing is left out."""
    usage: Usage | None = None
    """Usage of the requests for the summary."""


class AnswerEnded(Event, frozen=True, kw_only=True, tag="answer_ended"):
    """The answer is complete and saved. Its calls are pending and carry the first verdict in `metadata["verdict"]`.

    After an interrupt it holds the text received so far, with `finish_reason` "interrupted".
    """

    message: Message


class MessageAdded(Event, frozen=True, kw_only=True, tag="message_added"):
    """A message to the model joined the history during a turn; `metadata["nudge"]` holds the reason."""

    message: Message


class CallStarted(Event, frozen=True, kw_only=True, tag="call_started"):
    message_id: str
    part: ToolPart
    locations: tuple[Location, ...] = ()
    """Files that the call reads or changes."""


class CallProgressed(Event, frozen=True, kw_only=True, tag="call_progressed"):
    part_id: str
    text: str


Scope = Literal["once", "session", "always", "everywhere"]
"""Duration of an approval: this call, this session, always in this workspace, or always in every workspace. A denial that is
`always` saves a deny rule; any other one holds until the next prompt.
"""


SandboxState = Literal["", "inside", "outside", "again", "restored", "host"]
"""The command would run inside the sandbox, or outside; it failed inside and would run again outside; or the sandbox restored
files that it changed."""


class ShownArgument(Struct, frozen=True, kw_only=True):
    """An argument of a call as text for a person: complete, with `⟨U+202E⟩` for each character that cannot be seen."""

    name: str
    """Quoted unless it is a plain word."""
    text: str
    is_in_view: bool = False


class ApprovalAsked(Event, frozen=True, kw_only=True, tag="approval_asked"):
    """The user must approve or deny a call with `Conversation.answer(id, …)`."""

    id: str
    part: ToolPart
    intents: tuple[Intent, ...]
    view: View | None = None
    """The view that the call would have, as far as it is known before: the change of an edit, the command; None: unknown."""
    locations: tuple[Location, ...] = ()
    reason: str
    rule: str
    """The rule that "always" would save; empty when no rule can be offered."""
    denial: str = ""
    """The deny rule that "never" would save; empty when none can be offered."""
    walls: SandboxState = ""
    """Sandbox state of a command; empty for other calls."""
    agent: str = ""
    """The subagent that asks; empty: the main agent."""
    task: str = ""
    """Id of the `task` call that started the subagent."""
    in_view: tuple[str, ...] = ()
    """Names of arguments that `view` shows whole; a front end that draws the view shows all others beside it."""

    @property
    def arguments(self) -> tuple[ShownArgument, ...]:
        """All arguments, whole. Each must be shown: by the view, or as its text."""
        shown = []
        for name, value in named_arguments(self.part):
            plain = name if re.fullmatch(r"[\w.-]+", name) else json.dumps(name, ensure_ascii=False)
            shown.append(ShownArgument(name=exact(plain), text=exact(value), is_in_view=name in self.in_view))
        return tuple(shown)

    @property
    def only_once(self) -> bool:
        """An approval cannot extend beyond this call: it may be an example in a text, or does something else the next time."""
        return IN_FENCE in self.part.metadata or any(isinstance(each, RunIntent) and each.concern for each in self.intents)


class ApprovalGiven(Event, frozen=True, kw_only=True, tag="approval_given"):
    id: str
    allowed: bool
    scope: Scope = "once"
    is_dismissed: bool = False
    """The question was closed and nobody decided: the call does not run, and the next one like it asks again."""
    reason: str = ""
    rule: str = ""
    """The rule as edited by the user; empty: the suggested one."""
    input: dict[str, Any] | None = None
    """Arguments that the user put in place of the call's; None: unchanged."""


class ModeChanged(Event, frozen=True, kw_only=True, tag="mode_changed"):
    """The user approved a plan of the model, which ends plan mode. Other changes of the mode come from the front end."""

    mode: str
    notice: str = ""
    """Set if the mode differs from the chosen one."""
    plan_file: str = ""
    """The plan that was approved."""


class JobStarted(Event, frozen=True, kw_only=True, tag="job_started"):
    """A command runs in the background until it ends, is stopped, or the conversation ends."""

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
    """`crowded`: the job started too many processes and was ended."""
    exit_code: int
    """As in a shell: 128 plus the signal number when a signal ended the job."""
    duration_s: float

    @classmethod
    def of(cls, job: Job, ending: JobEnd) -> JobEnded:
        return cls(id=job.id, command=job.command, cause=ending.cause, exit_code=ending.shell_code, duration_s=ending.elapsed_s)


class QuestionsAsked(Event, frozen=True, kw_only=True, tag="questions_asked"):
    """The model asks the user; answer with `Conversation.answer_questions(id, …)`."""

    id: str
    call_id: str
    questions: tuple[Question, ...]
    task: str = ""
    """Id of the `task` call whose subagent asks; empty: the main agent."""


class QuestionsAnswered(Event, frozen=True, kw_only=True, tag="questions_answered"):
    """Does not follow when the turn was stopped instead."""

    id: str
    replies: tuple[Reply, ...] | None
    """A reply to each question; None: the user skipped all of them."""


class CallDenied(Event, frozen=True, kw_only=True, tag="call_denied"):
    part: ToolPart
    reason: str
    agent: str = ""
    """The subagent that made the call; empty: the main agent."""


class CallEnded(Event, frozen=True, kw_only=True, tag="call_ended"):
    message_id: str
    part: ToolPart
    """Completed or failed, with its output."""
    view: View | None = None
    files_changed: tuple[str, ...] = ()
    locations: tuple[Location, ...] = ()
    """Files that the call read or changed, with the first line of each change."""


class TaskStarted(Event, frozen=True, kw_only=True, tag="task_started"):
    """A subagent starts on a call of `task`, in a conversation of its own."""

    part_id: str
    """Id of the call; the subagent's progress comes as its `CallProgressed`."""
    agent: str
    session_id: str
    """Session of the subagent."""
    model: str
    prompt: str
    background: int = 0
    """Number of a background task; 0: the call waits for its end."""


class TaskEnded(Event, frozen=True, kw_only=True, tag="task_ended"):
    """The calls and approvals of the subagent are over; `CallEnded` follows with its answer."""

    part_id: str
    agent: str
    session_id: str
    ended: str
    """`done`, `timed out`, `interrupted`, or another stop cause."""
    answers: int
    calls: int
    usage: Usage
    """Usage of the subagent; the usage of the turn includes it."""
    duration_s: float
    files_changed: tuple[str, ...] = ()
    background: int = 0
    """Number of a background task, whose result goes to the model as a message."""


class Noticed(Event, frozen=True, kw_only=True, tag="noticed"):
    """A notice for the user; never sent to the model."""

    text: str
    level: Literal["info", "warning"] = "info"
    once: bool = True
    """Not shown again where the same text was shown before."""


class Check(Struct, frozen=True, kw_only=True):
    """A run of the check command."""

    exit_code: int | None
    """None: the check timed out."""
    failures: tuple[str, ...] = ()
    """Names of failures that stay the same from run to run."""
    output: str = ""
    """The end of the output."""
    duration_s: float = 0.0
    timed_out: bool = False

    @property
    def is_conclusive(self) -> bool:
        """The check ran to its end, and the command exists (the exit code is not 126 or 127)."""
        return self.exit_code not in (None, 126, 127)


class Verification(Struct, frozen=True, kw_only=True):
    """Results of the check before and after the work of a turn; None: the check did not run, because nothing was changed."""

    command: str
    before: Check | None = None
    after: Check | None = None
    new_failures: tuple[str, ...] = ()
    runs: int = 0
    """Number of runs after the work."""


class WorkCheck(Struct, frozen=True, kw_only=True):
    """Which check followed the last edit of a turn."""

    status: Literal["passed", "failed", "stale", "not_run", "none"] = "none"
    """`passed` and `failed`: a check ran after the last edit. `stale`: files changed after the last check. `not_run`: no check
    ran whose exit status was read. `none`: no file changed that a check looks at."""
    command: str = ""
    """The check that ran last, or that the project has; empty: there is none."""
    exit_code: int | None = None
    at: float | None = None
    """Time at which it ended."""
    unread: str = ""
    """The reason why its result is unknown: `still runs`, `was denied`."""
    line: str = ""
    """For the user: `3 files · pytest -q passed after the last edit`; empty: no files changed, or the check is off."""


class VerifyStarted(Event, frozen=True, kw_only=True, tag="verify_started"):
    command: str
    when: Literal["before", "after"]


class Verified(Event, frozen=True, kw_only=True, tag="verified"):
    """The check has ended. On new failures the model gets them in a `MessageAdded`, as long as it may try again."""

    command: str
    when: Literal["before", "after"]
    check: Check
    new_failures: tuple[str, ...] = ()
    """Failures that the run before the first change did not have; empty in that run itself."""


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
    "goal",
]
"""`blocked`: a hook blocked the prompt before it was sent, or ended the turn. `goal`: the goal is blocked, or nothing changes."""


class GoalReport(Struct, frozen=True, kw_only=True):
    """The goal of a session after a turn."""

    condition: str
    status: Literal["active", "paused", "met", "blocked", "no_progress", "budget", "cleared"]
    reason: str
    """Of the last verdict; empty before the first."""
    num_rounds: int
    """Verdicts so far."""


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn_ended"):
    cause: StopCause
    answer: str
    """The final text, or the text so far when the turn failed."""
    finish_reason: str
    usage: Usage
    """Sum over the turn; `cost` None as soon as one answer's price is unknown."""
    num_answers: int
    duration_s: float
    provider_s: float
    """Time spent waiting for the provider."""
    error: ErrorInfo | None = None
    exit_code: int = 0
    """Exit code of the process, unless a signal ended it or an action was denied."""
    verification: Verification | None = None
    """None: no check is configured."""
    work: WorkCheck = WorkCheck()
    goal: GoalReport | None = None
    """None: the turn did not work towards a goal."""
