"""Lets the small model approve harmless calls, where the user has chosen so; whatever it does not approve goes to the user."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.agent import approvals, budget, compaction_run, events, side_question, tool_execution
from wolo.errors import ProviderError
from wolo.guard.intents import Intent, ReadIntent, RunIntent, WriteIntent
from wolo.guard.judge import Judge
from wolo.guard.rules import Verdict
from wolo.messages import parts, terminal_text
from wolo.messages.message import Message, Usage, user
from wolo.models.protocol import ModelClient, ModelQuestion
from wolo.tools.tool import ToolServices

SOURCE = "reviewer"
"""Source of a verdict by the model."""
TIMEOUT_S = 30.0
_MOST_TASK_CHARS = 4000
_MOST_CALL_CHARS = 20_000
"""A call that is longer goes to the user: it is not judged by a part."""
_REASON_CHARS = 300


class Reviewer:
    """A yes of the model counts only where a rule of the user would: never for protected names, secrets, irreversible effects,
    files outside the workspace, or the network. Commands stay in the sandbox."""

    def __init__(
        self,
        judge: Judge,
        services: ToolServices,
        emit: tool_execution.Emit,
        *,
        open_model: Callable[[], ModelClient],
        account: budget.Account,
        recall: Callable[[], Sequence[Message]],
        session_id: str,
    ) -> None:
        """`recall` returns the messages with the user's task."""
        self._open_model, self._judge, self._services, self._account = open_model, judge, services, account
        self._emit, self._recall, self._session_id = emit, recall, session_id

    def most(self, intents: Sequence[Intent], verdict: Verdict, *, has_secrets: bool) -> Verdict | None:
        """The verdict that a yes of the model would lead to; None: only the user can approve this."""
        if verdict.decision != "ask" or verdict.source == parts.IN_FENCE or has_secrets or not intents:
            return None
        has_sandbox = self._judge.confine != "never" and self._services.sandbox.walls is not None
        for intent in intents:
            match intent:
                case ReadIntent() | WriteIntent() if intent.inside:
                    continue
                case RunIntent() if has_sandbox:
                    continue
            return None
        allowed = self._judge.as_if_allowed(intents, verdict, SOURCE)
        if allowed.decision != "allow":
            return None
        return replace(allowed, confined=any(isinstance(intent, RunIntent) for intent in intents))

    async def review(self, part: parts.ToolPart, verdict: Verdict, most: Verdict) -> approvals.Review:
        """Asks the model. Never raises but for a cancellation: an error leaves the decision to the user."""
        try:
            async with asyncio.timeout(TIMEOUT_S):
                is_yes, reason = await self._ask(part, verdict)
        except TimeoutError:
            is_yes, reason = False, f"it did not answer within {TIMEOUT_S:g} s"
        except ProviderError as error:
            is_yes, reason = False, error.message
        reason = self._services.secrets.hide(terminal_text.clean_line(reason.strip())[:_REASON_CHARS])
        text = f"Reviewer: {part.tool} {'approved' if is_yes else 'is for you to decide'}: {reason}"
        await self._emit(events.Noticed(text=text, level="warning", once=False))
        return approvals.Review(replace(most, reason=f"Approved by the reviewer: {reason}") if is_yes else None, reason)

    async def _ask(self, part: parts.ToolPart, verdict: Verdict) -> tuple[bool, str]:
        call = json.dumps({"tool": part.tool, "arguments": part.input}, ensure_ascii=False)
        if len(call) > _MOST_CALL_CHARS:
            return False, "the call is too long to judge"
        if budget.limit_reached(self._account.limits, self._account.used, 0):
            return False, "the limits of the session are reached"
        task = next((message.text for message in reversed(self._recall()) if message.is_from_user), "")
        rules = "\n".join(f"{rule.decision} {rule}" for rule in self._judge.rules) or "none"
        sections = {
            "task": self._services.secrets.hide(task[:_MOST_TASK_CHARS]),
            "rules": self._services.secrets.hide(rules),
            "mode": f"{self._judge.mode.name}: {self._judge.mode.about}",
            "workspace": str(self._services.workspace.root),
            "why_it_asks": verdict.reason,
            "call": call,
        }
        text = "\n\n".join(f"<{name}>\n{_escape(content)}\n</{name}>" for name, content in sections.items())
        question = ModelQuestion(
            messages=(user(text),),
            system=(Path(__file__).parent / "prompts" / "reviewer.md").read_text(encoding="utf-8").strip(),
            session_id=self._session_id,
        )
        model = self._open_model()
        try:
            if not compaction_run.can_summarize(model):
                return False, "the embedded model is too small to review calls"
            answer = await model.ask(question, side_question.SideQuestionListener())
        finally:
            await model.close()
        usage = answer.usage or Usage()
        self._account.use(usage)
        self._account.lend(usage)
        return read_answer(answer)


def read_answer(answer: Message) -> tuple[bool, str]:
    """A yes is `YES:` and a reason, at the beginning of a complete answer; everything else is a no."""
    match = re.match(r"\s*\**(YES|NO)\b\**\s*[:.,—-]\**\s*(\S.*)", answer.text, re.DOTALL)
    if match is None or answer.finish_reason not in ("stop", "") or answer.calls:
        return False, f"it gave no clear answer: {answer.text.strip() or 'nothing'}"
    return match[1] == "YES", match[2]


def _escape(text: str) -> str:
    """Without tags, which would end a section early."""
    return text.replace("<", "&lt;")
