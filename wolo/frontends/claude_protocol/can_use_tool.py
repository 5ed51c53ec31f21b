"""Asks the program about calls and questions: `can_use_tool`, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wolo.agent.events import ApprovalAsked, QuestionsAsked
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.claude_protocol.channel import Channel, ProgramGone, ProgramRefused
from wolo.frontends.claude_protocol.wire_calls import WireCall, to_wire_call
from wolo.guard.modes import SPELLINGS, find_mode
from wolo.tools.tool_values import Question, Reply

NOT_ASKED = "The program could not be asked, so the call was denied: {error}."
NOT_UNDERSTOOD = "The program's answer to can_use_tool is not understood, so the call was denied."
NOT_TRANSLATED = "The program changed the arguments of this call in a way that cannot be applied, so it was denied."
DONT_ASK = "The permission mode dontAsk denies what no rule allows."
_RETRIED = frozenset(("again", "restored", "host"))
"""The command runs in the sandbox, or has run there: its arguments are what they are."""
AFTER_PLAN = "edit"
"""The option that approves a plan; the mode is the program's afterwards."""


class ToolPermissions:
    def __init__(self, channel: Channel, *, may_bypass: bool, asks: bool) -> None:
        """`asks`: the mode is not dontAsk, in which what is not allowed is denied."""
        self._channel = channel
        self._may_bypass = may_bypass
        self._asks = asks
        self.mode_after_plan = ""
        """Set when a plan was approved; empty: none was."""

    async def approve(self, asked: ApprovalAsked, conversation: Conversation) -> None:
        """Answers the approval. Without an understandable answer of the program the call is denied."""
        if not self._asks:
            conversation.answer(asked.id, allowed=False, reason=DONT_ASK)
            return
        call = to_wire_call(asked.part.tool, asked.part.input, conversation.info.cwd)
        try:
            answer = await self._ask(call.name, call.input, asked.part.id, reason=asked.reason, agent=asked.task)
        except (ProgramGone, ProgramRefused) as error:
            conversation.answer(asked.id, allowed=False, reason=NOT_ASKED.format(error=error))
            return
        match answer:
            case {"behavior": "deny"}:
                conversation.answer(asked.id, allowed=False, reason=str(answer.get("message") or ""))
                if answer.get("interrupt"):
                    conversation.interrupt()
            case {"behavior": "allow"}:
                self._allow(asked, call, answer, conversation)
            case _:
                conversation.answer(asked.id, allowed=False, reason=NOT_UNDERSTOOD)

    def _allow(self, asked: ApprovalAsked, call: WireCall, answer: Mapping[str, Any], conversation: Conversation) -> None:
        changed, arguments = answer.get("updatedInput"), None
        if changed is not None and changed != call.input:
            arguments = call.to_arguments(changed) if isinstance(changed, dict) and asked.walls not in _RETRIED else None
            if arguments is None:
                conversation.answer(asked.id, allowed=False, reason=NOT_TRANSLATED)
                return
        try:
            # Returns whether a rule allows calls like this one from now on. Raises UsageError for a guard that wolo cannot add.
            updates = answer.get("updatedPermissions")
            lasts = False
            for update in updates if isinstance(updates, list) else ():
                match update:
                    case {"type": "setMode", "mode": str(mode)}:
                        self.set_mode(mode, conversation)
                    case {"type": "addRules", "behavior": "allow"}:
                        lasts = True
                    case {"type": "addDirectories"}:
                        pass  # then wolo asks about them again
                    case _:
                        kind = update.get("type") if isinstance(update, dict) else update
                        raise UsageError(
                            f"wolo cannot apply the permission update {kind!r} of the program, so the call was denied."
                        )
        except UsageError as error:
            conversation.answer(asked.id, allowed=False, reason=error.message)
            return
        keeps = lasts and not asked.only_once and arguments is None
        conversation.answer(asked.id, allowed=True, scope="session" if keeps else "once", input=arguments)

    def set_mode(self, name: str, conversation: Conversation) -> None:
        """Raises UsageError for a mode that the program may not choose."""
        mode = find_mode(to_mode(name)).name
        if mode == "yolo" and not self._may_bypass:
            raise UsageError(
                "The mode bypassPermissions was not allowed when the session began.", hint="allowDangerouslySkipPermissions"
            )
        conversation.set_mode(mode)
        self._asks = name != "dontAsk"

    async def answer(self, asked: QuestionsAsked, conversation: Conversation) -> None:
        """A plan is decided by allowing it; other questions by the answers in `updatedInput`."""
        plan = asked.questions[0] if asked.questions[0].is_plan else None
        name = "ExitPlanMode" if plan else "AskUserQuestion"
        input = {"plan": plan.text} if plan else {"questions": [_to_wire(each) for each in asked.questions]}
        try:
            answer = await self._ask(name, input, asked.call_id)
        except (ProgramGone, ProgramRefused):
            answer = {}
        replies: Sequence[Reply] | None = None
        if plan:
            allowed = answer.get("behavior") == "allow"
            replies = [Reply((AFTER_PLAN,) if allowed else ("keep",), "" if allowed else str(answer.get("message") or ""))]
            self.mode_after_plan = self._mode_of(answer) if allowed else ""
        elif answer.get("behavior") == "allow":
            updated = answer.get("updatedInput")
            answers = updated.get("answers") if isinstance(updated, dict) else None
            if isinstance(answers, dict) and answers:
                replies = [_to_reply(each, answers.get(each.text)) for each in asked.questions]
        conversation.questions.answer(asked.id, tuple(replies) if replies else None)

    def _mode_of(self, answer: Mapping[str, Any]) -> str:
        updates = answer.get("updatedPermissions")
        modes = [
            to_mode(str(each.get("mode")))
            for each in (updates if isinstance(updates, list) else ())
            if isinstance(each, dict) and each.get("type") == "setMode"
        ]
        return modes[-1] if modes and (modes[-1] != "yolo" or self._may_bypass) else "ask"

    async def _ask(
        self, name: str, input: Mapping[str, Any], call_id: str, *, reason: str = "", agent: str = ""
    ) -> Mapping[str, Any]:
        """Raises ProgramGone and ProgramRefused."""
        more = {"decision_reason": reason} if reason else {}
        more |= {"agent_id": agent} if agent else {}
        return await self._channel.request(
            "can_use_tool", tool_name=name, input=input, tool_use_id=call_id, permission_suggestions=[], **more
        )


def to_mode(name: str) -> str:
    """`dontAsk` differs from the mode `ask` only in that the program is not asked."""
    return "ask" if name == "dontAsk" else SPELLINGS.get(name, name)


def _to_wire(question: Question) -> dict[str, Any]:
    options = [{"label": each.label, "description": each.description} for each in question.options]
    return {"question": question.text, "header": question.header, "options": options, "multiSelect": question.several}


def _to_reply(question: Question, answer: Any) -> Reply:
    """Labels of options, also several in one text, or words of one's own."""
    if answer is None:
        return Reply()
    labels = {each.label for each in question.options}
    parts = [str(each) for each in answer] if isinstance(answer, list) else [str(answer)]
    if len(parts) == 1 and question.several and parts[0] not in labels:
        parts = [each.strip() for each in parts[0].split(",")]
    chosen = tuple(each for each in parts if each in labels)
    return Reply(chosen, ", ".join(each for each in parts if each not in labels))
