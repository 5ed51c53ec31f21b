"""The `ask` tool: asks the user questions; offered only when a user is present."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import AnswerOption, CallResult, Interrupted, Question, Replies, Reply

MOST_QUESTIONS = 4
MOST_OPTIONS = 9
"""Each key selects one option."""
LONGEST_TEXT = 1_000
LONGEST_LABEL = 200
DISMISSED = "The user did not answer. Do not ask the same again: continue with the most likely meaning, and say so."
STOPPED = "The user did not answer: the turn was stopped."
NOBODY = "No user is present to answer. Continue with the most likely meaning, and say so."


class GivenOption(Struct, frozen=True):
    label: str
    description: str = ""


class GivenQuestion(Struct, frozen=True):
    question: str
    options: Annotated[tuple[GivenOption | str, ...], Meta(description="2 to 4; the user may always give another answer")] = ()
    multi_select: bool = False
    header: Annotated[str, Meta(description="one or two words")] = ""


class AskArgs(Struct, frozen=True):
    questions: Annotated[tuple[GivenQuestion, ...], Meta(description=f"1 to {MOST_QUESTIONS}")]


class Ask:
    """Ask the user, when a wrong guess would cost them real work and no file has the answer. Put the option you would choose
    first."""

    name: ClassVar[str] = "ask"
    Args: ClassVar[type[Struct]] = AskArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("text", "prompt", "message"), "question"),
        **dict.fromkeys(("choices", "answers"), "options"),
        **dict.fromkeys(("multiSelect", "multiple", "multiselect", "allow_multiple"), "multi_select"),
        "title": "header",
    }
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "other"

    def intents(self, args: AskArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: AskArgs, call: CallContext) -> CallResult:
        questions = read_questions(args)
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if call.services.ask_user is None:
            raise ToolError(NOBODY)
        try:
            replies = await call.services.ask_user(call.call_id, questions)
        except asyncio.CancelledError:
            raise Interrupted(CallResult(STOPPED)) from None
        return CallResult(DISMISSED if replies is None else as_text(questions, replies))


def read_questions(args: AskArgs) -> tuple[Question, ...]:
    """Raises ToolError for questions that cannot be answered."""
    if not 1 <= len(args.questions) <= MOST_QUESTIONS:
        raise ToolError(f"ask: {len(args.questions)} questions; there must be 1 to {MOST_QUESTIONS}.")
    questions: list[Question] = []
    for number, question in enumerate(args.questions, start=1):
        if not (text := question.question.strip()):
            raise ToolError(f"ask: question {number} is empty.")
        whole = (GivenOption(option) if isinstance(option, str) else option for option in question.options)
        options = tuple(AnswerOption(_line(option.label), _line(option.description)) for option in whole)
        labels = [option.label for option in options]
        if "" in labels or len(set(labels)) < len(labels):
            raise ToolError(f"ask: question {number} has options without a label, or two with the same.")
        if len(options) > MOST_OPTIONS:
            raise ToolError(f"ask: question {number} has {len(options)} options; {MOST_OPTIONS} is the most.")
        several = question.multi_select and len(options) > 1
        questions.append(Question(text=text[:LONGEST_TEXT], header=_line(question.header), options=options, several=several))
    return tuple(questions)


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LABEL]


def as_text(questions: Sequence[Question], replies: Replies) -> str:
    """Returns the replies as the model reads them."""
    if not any(reply.chosen or reply.text for reply in replies):
        return DISMISSED
    return "\n".join(f"{question.text}\n→ {in_words(reply)}" for question, reply in zip(questions, replies, strict=True))


def in_words(reply: Reply) -> str:
    return ", ".join((*reply.chosen, *filter(None, (reply.text,)))) or "(no answer)"
