"""A goal of the session: turns continue until its check is met, its budget is spent, or nothing changes any more."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent import compaction_run, side_question, turn_policy
from wolo.agent.budget import Limits, Spent, limit_reached
from wolo.agent.compaction.summary_text import pieces
from wolo.agent.events import Check, ErrorInfo, GoalReport, Noticed, VerifyStarted
from wolo.errors import ProviderError
from wolo.formats.tolerant_json import read_fields
from wolo.messages.message import GOAL, NUDGE, Message, Usage, UsageCost, nudge, user
from wolo.messages.parts import CHANGED
from wolo.messages.terminal_text import clean_line, quantity
from wolo.models.protocol import ModelClient, ModelQuestion
from wolo.tools.todo import latest_todos

if TYPE_CHECKING:
    from wolo.agent.agent_services import AgentServices
    from wolo.agent.cancellation import Cancellation

MAX_IDLE_ROUNDS = 3
"""Rounds in a row without a change that end the work on a goal."""
MOST_TRANSCRIPT_TOKENS = 12_000
"""Length of the transcript that the judging model sees."""
_SHOWN_CHARS = 6_000
"""Length of a check's output that the model sees."""
_REASON_CHARS = 600

GOAL_TEXT = "The goal of this session: {condition}\n\nWork until it is reached. {decider}"
BY_CHECK = "After each of your final answers `{until}` is run; exit status 0 means that the goal is reached."
BY_MODEL = "Each of your final answers is checked against it. Show what proves it, such as the output of a command."
NOT_MET = "The goal is not reached yet: {condition}\n\n{reason}\n\nContinue. If you cannot reach it, say what you need."

Status = Literal["active", "paused", "met", "blocked", "no_progress", "budget", "cleared"]


class Goal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A goal, and what was spent on it."""

    condition: str
    until: str = ""
    """The command that decides, by its exit status; empty: a model decides."""
    budget: Limits = Limits()
    """Over all turns that work towards the goal."""
    status: Status = "active"
    reason: str = ""
    """Of the last verdict."""
    num_rounds: int = 0
    """Verdicts so far."""
    num_idle_rounds: int = 0
    num_answers: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    worked_s: float = 0.0
    result: str = ""
    """What the check printed last, without numbers that differ from run to run."""

    @property
    def usage(self) -> Usage:
        """As far as a budget needs it."""
        cost = None if self.cost_usd is None else UsageCost(total=self.cost_usd)
        return Usage(input_tokens=self.tokens, cost=cost)


class GoalVerdict(Struct, frozen=True, kw_only=True):
    status: Literal["met", "blocked", "active"]
    reason: str
    result: str = ""
    usage: Usage | None = None


class GoalPolicy:
    """Holds the turns of one conversation to the goal. Between turns `change` replaces it."""

    def __init__(
        self,
        goal: Goal,
        services: AgentServices,
        *,
        save: Callable[[Goal, Usage | None], Awaitable[None]],
        check: Callable[[str], Awaitable[Check]],
        attended: bool,
    ) -> None:
        """`check` runs the command of a goal; `attended`: an interruption by the user pauses the goal."""
        self.goal, self._services, self._save = goal, services, save
        self._check, self._attended = check, attended
        self._before = goal
        """At the start of the turn."""
        self._used, self._answers = services.account.used, 0
        self._began_at: float | None = None
        self._round_start = 0
        self._own_limits: Limits | None = None
        """Of the account, while those of the goal hold in addition."""
        self._timed: Limits | None = None
        """The budget that the turn's alarm was set for."""

    @property
    def is_active(self) -> bool:
        return self.goal.status == "active"

    @property
    def is_begun(self) -> bool:
        """A turn works towards it."""
        return self._began_at is not None and self._before.status == "active"

    @property
    def current(self) -> Goal:
        """The goal with what the running turn has spent so far."""
        return self.goal if self._began_at is None else self._tally(self.goal)

    def begin_turn(self, num_messages: int) -> None:
        """From here on the budget counts. `num_messages` of the history are older than the turn."""
        account = self._services.account
        self._before, self._used, self._answers, self._round_start = self.goal, account.used, account.answers, num_messages
        self._began_at = self._services.clock()
        if self.is_active:
            # The account's limits with what is left of the budget, so that requests of subagents count too
            goal, used, budget = self.goal, self._services.account.used, self.goal.budget
            answers = self._services.account.answers - goal.num_answers
            spent = used.cost.total if used.cost is not None else 0.0
            self._own_limits, account.limits = (
                account.limits,
                replace(
                    account.limits,
                    max_turns=_least(account.limits.max_turns, budget.max_turns and max(answers + budget.max_turns, 0)),
                    max_cost=_least(
                        account.limits.max_cost, budget.max_cost and spent + budget.max_cost - (goal.cost_usd or 0.0)
                    ),
                    max_tokens=_least(
                        account.limits.max_tokens, budget.max_tokens and used.context_tokens + budget.max_tokens - goal.tokens
                    ),
                ),
            )

    def seconds_left(self) -> float | None:
        most, self._timed = self.goal.budget.max_seconds, self.goal.budget
        return None if most is None or not self.is_active else max(most - self.goal.worked_s, 0.001)

    def reminder(self, messages: Sequence[Message], left_out: Collection[str]) -> Message | None:
        """Names the goal when no sent message does: at its beginning, and after a compaction."""
        if not self.is_active or any(
            message.metadata.get(NUDGE) == GOAL and self.goal.condition in message.text
            for message in messages
            if message.id not in left_out
        ):
            return None
        decider = BY_CHECK.format(until=self.goal.until) if self.goal.until else BY_MODEL
        return nudge(GOAL_TEXT.format(condition=self.goal.condition, decider=decider), GOAL)

    async def after_answer(self, messages: Sequence[Message], cancellation: Cancellation) -> Message | None:
        """Judges the work when the model stops. Returns the message that continues it. Raises Cancelled and ProviderError."""
        if not self.is_active:
            return None
        goal, verdict = self.goal, await cancellation.run(self._judge(messages))
        if goal is not self.goal:  # the user changed it meanwhile
            return None
        has_result_changed = bool(goal.result) and verdict.result != goal.result
        idle = 0 if has_result_changed or self._has_change(messages) else goal.num_idle_rounds + 1
        status: Status = verdict.status
        if status == "active" and idle >= MAX_IDLE_ROUNDS:
            status = "no_progress"
        goal = replace(
            goal,
            status=status,
            reason=verdict.reason,
            num_rounds=goal.num_rounds + 1,
            num_idle_rounds=idle,
            result=verdict.result,
        )
        await self._store(goal, verdict.usage)
        if status in ("active", "met"):  # the end of the turn reports the others
            await self._services.emit(Noticed(text=describe_round(self.goal), level="warning", once=False))
        self._round_start = len(messages)
        return nudge(NOT_MET.format(condition=goal.condition, reason=goal.reason), GOAL) if status == "active" else None

    async def end_turn(self, stop: turn_policy.Stop) -> turn_policy.Stop:
        """Returns the stop as the goal sees it. Saves what was spent."""
        if self._began_at is None:
            return stop
        if self._own_limits is not None:
            self._services.account.limits, self._own_limits = self._own_limits, None
        goal, most_s, limit_s = self._tally(self.goal), self.goal.budget.max_seconds, self._services.limits.max_seconds
        is_own_alarm = (
            self._timed is goal.budget and most_s is not None and (limit_s is None or most_s - self._before.worked_s <= limit_s)
        )
        if stop.cause == "max_seconds" and most_s is not None and is_own_alarm:  # it was set before this clock was read
            goal = replace(goal, worked_s=max(goal.worked_s, most_s))
        if goal.status == "active" and stop.cause in ("max_turns", "max_cost", "max_tokens", "max_seconds"):
            if spent := spent_budget(goal):
                goal = replace(goal, status="budget", reason=f"The budget of {describe_budget(goal.budget)} is spent.")
                stop = replace(stop, cause=spent, error=_error(goal, "Raise it with /goal, or continue with -c."), exit_code=5)
        elif goal.status == "active" and stop.cause == "interrupted" and self._attended:
            goal = replace(goal, status="paused", reason="You interrupted it.")
        elif stop.cause == "done" and self.is_begun and goal.status in ("blocked", "no_progress"):
            stop = turn_policy.Stop(cause="goal", error=_error(goal, "The work is saved; /goal resume tries again."), exit_code=1)
        self.goal = goal
        await self._save(goal, None)
        self._began_at = None
        return stop

    def report(self) -> GoalReport:
        goal = self.goal
        return GoalReport(condition=goal.condition, status=goal.status, reason=goal.reason, num_rounds=goal.num_rounds)

    async def change(self, goal: Goal) -> None:
        """Replaces the goal, also during a turn. Raises SessionError."""
        if self._own_limits is not None:
            self._services.account.limits, self._own_limits = self._own_limits, None
        is_in_turn = self._began_at is not None
        self.goal = goal
        await self._save(goal, None)
        if is_in_turn:
            self.begin_turn(self._round_start)

    async def _store(self, goal: Goal, usage: Usage | None = None) -> None:
        self.goal = self._tally(goal)
        await self._save(self.goal, usage)

    def _tally(self, goal: Goal) -> Goal:
        account, before = self._services.account, self._before
        cost, used = account.used.cost, self._used.cost
        known = cost is not None and used is not None and before.cost_usd is not None
        return replace(
            goal,
            num_answers=before.num_answers + account.answers - self._answers,
            tokens=before.tokens + account.used.context_tokens - self._used.context_tokens,
            cost_usd=before.cost_usd + cost.total - used.total if known else None,  # type: ignore[union-attr, operator]
            worked_s=before.worked_s + self._services.clock() - (self._began_at or self._services.clock()),
        )

    def _has_change(self, messages: Sequence[Message]) -> bool:
        """Files or the task list changed in this round."""
        new = messages[self._round_start :]
        if any(CHANGED in part.metadata for message in new for part in message.calls):
            return True
        todos = latest_todos(new)
        return todos is not None and todos != latest_todos(messages[: self._round_start])

    async def _judge(self, messages: Sequence[Message]) -> GoalVerdict:
        if not self.goal.until:
            # The small model, and the main one where that fails
            services = self._services
            if services.open_small is not None:
                small = services.open_small()
                try:
                    return await self._ask_model(small, messages)
                except ProviderError:
                    if not compaction_run.can_summarize(services.asker):
                        raise
                finally:
                    await small.close()
            return await self._ask_model(services.asker, messages)
        until = self.goal.until
        await self._services.emit(VerifyStarted(command=until, when="after"))
        check = await self._check(until)
        if check.exit_code == 0:
            return GoalVerdict(status="met", reason=f"`{until}` ended with exit 0.", result="0")
        how = f"did not end within {check.duration_s:.0f} s" if check.timed_out else f"ended with exit {check.exit_code}"
        output = check.output.strip()[-_SHOWN_CHARS:]
        result = "\n".join((how if not check.timed_out else "timeout", *check.failures))
        return GoalVerdict(status="active", reason=f"`{until}` {how}." + (f"\n{output}" if output else ""), result=result)

    async def _ask_model(self, model: ModelClient, messages: Sequence[Message]) -> GoalVerdict:
        window = model.choice.model.context or 0
        most_tokens = min(MOST_TRANSCRIPT_TOKENS, window // 2) if window else MOST_TRANSCRIPT_TOKENS
        # The last prompt of the user and what follows it; before it, the end of what is older.
        at = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].is_from_user), 0)
        transcript = "\n\n".join(pieces(messages[at:], max(most_tokens // 3, 500)))
        question = ModelQuestion(
            messages=(user(f"<goal>\n{self.goal.condition}\n</goal>\n\n<transcript>\n{transcript}\n</transcript>"),),
            system=(Path(__file__).parent / "prompts" / "goal.md").read_text(encoding="utf-8").strip(),
            session_id=self._services.session_id,
        )
        answer = await model.ask(question, side_question.SideQuestionListener())
        usage = answer.usage or Usage()
        self._services.account.use(usage)
        self._services.account.lend(usage)
        return replace(read_verdict(answer.text), usage=usage)


def read_verdict(text: str) -> GoalVerdict:
    """`MET`, `NOT MET` or `BLOCKED` and a reason, or the same as a JSON object; anything else is not met."""
    statuses: dict[str, Literal["met", "blocked", "active"]] = {"met": "met", "blocked": "blocked"}
    word, reason = "", text
    if braces := re.search(r"\{.*\}", text, re.DOTALL):
        fields = read_fields(braces[0])
        word = next((str(fields[name]) for name in ("verdict", "status", "result", "met") if name in fields), "")
        word = {"True": "met", "False": "not met"}.get(word, word)
        reason = str(fields.get("reason", "")) if word else text
    pattern = r"(?i)\W*\b(not[\s_-]*met|unmet|met|blocked)\b[\s:.*_,—-]*"
    if match := re.match(pattern, word or text):
        word = match[1].lower()
        reason = reason if reason is not text else text[match.end() :]
    else:
        word, reason = "", f"The check gave no verdict: {text}"
    reason = " ".join(reason.split())[:_REASON_CHARS]
    return GoalVerdict(status=statuses.get(word, "active"), reason=reason)


def spent_budget(goal: Goal) -> Spent | None:
    if goal.budget.max_seconds is not None and goal.worked_s >= goal.budget.max_seconds:
        return "max_seconds"
    return limit_reached(goal.budget, goal.usage, goal.num_answers)


_STATES = {
    "active": "not reached",
    "paused": "paused",
    "met": "reached",
    "blocked": "blocked",
    "no_progress": f"not reached, nothing changed in {MAX_IDLE_ROUNDS} rounds",
    "budget": "not reached, budget spent",
    "cleared": "cleared",
}


def describe_round(goal: Goal | GoalReport) -> str:
    """`Goal not reached (round 2): 3 tests fail.`"""
    first = clean_line(goal.reason.strip().split("\n")[0])
    state = _STATES[goal.status]
    return f"Goal {state} ({'round' if goal.status == 'active' else 'after round'} {goal.num_rounds}): {first}"


def describe_goal(goal: Goal) -> str:
    """For `/goal`: the condition, its state, and what was spent."""
    cost = "cost unknown" if goal.cost_usd is None else f"${goal.cost_usd:.4f}"
    minutes, seconds = divmod(round(goal.worked_s), 60)
    spent = [quantity(goal.num_rounds, "round"), quantity(goal.num_answers, "answer"), cost, f"{minutes}:{seconds:02} min"]
    lines = [
        f"Goal: {goal.condition}",
        f"Decided by: `{goal.until}`" if goal.until else "Decided by: a model",
        f"Status: {goal.status.replace('_', ' ')} · {' · '.join(spent)}",
    ]
    if goal.budget != Limits():
        lines.append(f"Budget: {describe_budget(goal.budget)}")
    return "\n".join([*lines, *([f"Last verdict: {goal.reason}"] if goal.reason else [])])


def describe_budget(budget: Limits) -> str:
    seconds = budget.max_seconds or 0
    parts = (
        f"{budget.max_cost:g} USD" if budget.max_cost else "",
        f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s" if seconds else "",
        quantity(budget.max_turns, "answer") if budget.max_turns else "",
        quantity(budget.max_tokens, "token") if budget.max_tokens else "",
    )
    return ", ".join(filter(None, parts))


def _error(goal: Goal, hint: str) -> ErrorInfo:
    return ErrorInfo(kind=f"goal_{goal.status}", message=f"{describe_round(goal)}", hint=hint)


def _least(limit: float | None, rest: float | None) -> float | None:
    return min((each for each in (limit, rest) if each is not None), default=None)
