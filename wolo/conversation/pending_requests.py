"""Approvals and questions that wait for the user's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from wolo.agent.events import ApprovalAsked, ApprovalGiven, QuestionsAnswered, QuestionsAsked
from wolo.agent.tool_execution import Emit
from wolo.errors import UsageError
from wolo.guard.judge import Judge
from wolo.guard.rules import Decision
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.parts import new_id
from wolo.places import Places
from wolo.tools.tool_values import Question, Replies


class PendingApprovals:
    def __init__(self, emit: Emit, judge: Judge, places: Places, root: Path) -> None:
        """`root` is the workspace for which an "always" is saved."""
        self._emit, self._judge, self._places, self._root = emit, judge, places, root
        self.waiting: dict[str, tuple[ApprovalAsked, asyncio.Future[ApprovalGiven]]] = {}
        """Pending requests by id."""

    async def ask(self, asked: ApprovalAsked) -> ApprovalGiven:
        future: asyncio.Future[ApprovalGiven] = asyncio.get_running_loop().create_future()
        self.waiting[asked.id] = (asked, future)
        await self._emit(asked)
        try:
            approval = await future
        finally:
            del self.waiting[asked.id]
        rule = approval.rule or (asked.rule if approval.allowed else asked.denial)
        if approval.scope in ("always", "everywhere") and rule:
            from wolo.config.settings_writer import save_rule  # noqa: PLC0415  # few turns save a rule

            decision: Decision = "allow" if approval.allowed else "deny"
            save_rule(self._places, self._root if approval.scope == "always" else None, rule, decision)
        return approval

    def answer(self, approval: ApprovalGiven) -> None:
        """Ignores a second answer. Raises UsageError for a rule with a `rule_problem`."""
        asked, future = self.waiting.get(approval.id, (None, None))
        if asked is None or future is None or future.done():
            return
        if approval.rule and (problem := self.rule_problem(asked, approval.rule)):
            raise UsageError(problem)
        future.set_result(approval)

    def rule_problem(self, asked: ApprovalAsked, rule: str) -> str:
        """The reason why the user's edited rule cannot be saved for this call; empty: it can."""
        return self._judge.complaint(rule, asked.intents)


class PendingQuestions:
    def __init__(self, emit: Emit, secrets: Secrets) -> None:
        self._emit, self._secrets = emit, secrets
        self.waiting: dict[str, tuple[QuestionsAsked, asyncio.Future[Replies | None]]] = {}
        """Pending requests by id."""

    async def ask(self, call_id: str, questions: Sequence[Question], task: str = "") -> Replies | None:
        """None: the user dismisses them. `task` is the call that a subagent works for."""
        asked = QuestionsAsked(id=new_id("ask"), call_id=call_id, questions=tuple(questions), task=task)
        asked = self._secrets.hide_fields(asked)
        future: asyncio.Future[Replies | None] = asyncio.get_running_loop().create_future()
        self.waiting[asked.id] = (asked, future)
        await self._emit(asked)
        try:
            replies = await future
        finally:
            del self.waiting[asked.id]
        await self._emit(QuestionsAnswered(id=asked.id, replies=replies))
        return replies

    def answer(self, id: str, replies: Replies | None) -> None:
        """Takes one reply per question; None dismisses them. Ignores a second answer. Raises ValueError for another number."""
        asked, future = self.waiting.get(id, (None, None))
        if asked is None or future is None or future.done():
            return
        if replies is not None and len(replies) != len(asked.questions):
            raise ValueError(f"{len(replies)} replies to {len(asked.questions)} questions")
        future.set_result(replies)
