"""Approvals and questions of a task as forms for the client's user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from wolo.agent.events import ApprovalAsked
from wolo.conversation.phrasing import argument_lines
from wolo.frontends.question_forms import form_properties, form_text
from wolo.messages.call_arguments import shortened
from wolo.messages.terminal_text import clean, escaped_line
from wolo.tools.tool_values import Question

MOST_OF_CALL = 1_000_000
"""Characters of the arguments that a form shows; a call with more can only be denied."""
_DECISION = "decision"


class Form:
    """A form that waits for its answer."""

    def __init__(self, id: str, message: str, properties: Mapping[str, Any], required: Sequence[str] = ()) -> None:
        self.id = id
        self.message = message
        self.schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "required": list(required)}
        self.answer: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()

    def fill(self, content: Mapping[str, Any] | None) -> None:
        """None: it was closed without an answer; empty: the user declined."""
        if not self.answer.done():
            self.answer.set_result(content)


def approval_form(id: str, asked: ApprovalAsked) -> Form:
    arguments = argument_lines(asked.arguments)
    is_whole = len(arguments) <= MOST_OF_CALL
    choices = {"once": "Allow once"} if is_whole else {}
    if is_whole and not asked.only_once:
        choices["session"] = "Allow for the rest of this task"
        if asked.rule:
            choices["always"] = f"Always allow {clean(asked.rule)} in this workspace"
    choices["no"] = "Deny"
    if asked.denial:
        choices["never"] = f"Never allow {clean(asked.denial)} in this workspace"
    agent = f" (agent {asked.agent})" if asked.agent else ""
    message = f"wolo{agent} wants to run: {escaped_line(asked.part.tool)}"
    if arguments:
        message += f"\n{shortened(arguments, MOST_OF_CALL)}"
    if not is_whole:
        message += "\nThat is too long for a form, so it can only be denied here."
    if asked.reason:
        message += f"\n{clean(asked.reason)}"
    titled = [{"const": value, "title": title} for value, title in choices.items()]
    return Form(id, message, {_DECISION: {"type": "string", "title": "Decision", "oneOf": titled}}, [_DECISION])


def decision_of(form: Form, content: Mapping[str, Any] | None) -> str:
    """A form that was closed decides nothing; one sent without a decision that it offers denies the call."""
    if content is None:
        return "dismiss"
    decision = content.get(_DECISION)
    offered = [each["const"] for each in form.schema["properties"][_DECISION]["oneOf"]]
    return decision if isinstance(decision, str) and decision in offered else "no"


def question_form(id: str, questions: Sequence[Question]) -> Form:
    return Form(id, form_text(questions), form_properties(questions))
