"""The `present_plan` tool: the user approves a plan, which ends plan mode, or keeps planning."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError, WoloError
from wolo.guard.intents import Intent
from wolo.guard.modes import MODES, PLAN
from wolo.messages.message import NAMED_MODE, Message, nudge
from wolo.messages.parts import ToolKind
from wolo.tools.todo import LONGEST_TEXT, MOST_ITEMS, PLAN_FILE, STEPS
from wolo.tools.tool import CallContext, ModeSwitch, ToolServices
from wolo.tools.tool_values import AnswerOption, AskQuestions, CallResult, Interrupted, Question, Reply, TodoItem, TodoList

MOST_CHARS = 50_000
"""A longer plan of the model is not read by the person who approves it; one that the person wrote may be longer."""
KEEP, REVISE = "keep", "revise"
OPTIONS = (
    AnswerOption("auto", "start in auto"),
    AnswerOption("edit", "start with edits approved"),
    AnswerOption(KEEP, "keep planning, with words"),
    AnswerOption(REVISE, "edit the plan"),
)
"""The first two are modes. The text beside `keep` is for the model, that beside `revise` is the new plan."""

DRAFT = "plan-draft.md"
NOTHING_TO_HAND_OVER = "There is nothing to hand over: this is not plan mode. Do the work."
NOT_LAST = "Not shown: a plan is presented once, as the last call of an answer. Present it again."
NOBODY = "No user is present to read the plan. Give it as your answer."
EMPTY = "the plan is empty."
TOO_LONG = """present_plan: the plan has {count:,} characters; {most:,} is the most. It is saved in {path}: present a shorter \
one, without code."""
STOPPED = "The user did not decide about the plan: the turn was stopped. Plan mode continues."
WAIT = "Plan mode continues: end your turn, and wait for the user's next message."
UNDECIDED = f"The user closed the plan without a decision. {WAIT}"
KEPT_SILENTLY = f"The user keeps planning and does not say why. {WAIT}"
KEPT = "The user keeps planning and says:\n{words}\n\nPlan mode continues: change the plan, and present it again."
APPROVED = "The user approved {plan}. Plan mode has ended; the mode is now `{mode}`: {about}. The plan is saved in {path}.{todo}"

READ_ONLY = """Plan mode: read-only. Calls that write are refused, and commands that may. {end} It holds the goal, numbered \
steps with the files that each changes, and how to check the result."""
END_WITH_CALL = "When you know enough, call `present_plan` with the plan, and nothing after it."
END_WITH_ANSWER = "End with the plan as your answer."
ANOTHER_MODE = "The mode is now `{mode}`: {about}.{ended}"
ENDED = " Plan mode has ended: you may change files as far as this mode allows."


def mode_notice(mode: str, before: str, *, can_present: bool) -> Message:
    """Tells the model the mode. `before`: the mode it was told last; `can_present`: `present_plan` is offered."""
    if mode == PLAN:
        text = READ_ONLY.format(end=END_WITH_CALL if can_present else END_WITH_ANSWER)
    else:
        text = ANOTHER_MODE.format(mode=mode, about=MODES[mode].about, ended=ENDED if before == PLAN else "")
    return nudge(text, NAMED_MODE, **{NAMED_MODE: mode})


class PresentPlanArgs(Struct, frozen=True):
    plan: Annotated[str, Meta(description="Markdown")]


class PresentPlan:
    """In plan mode, as the last call: show the whole plan to the user, who approves it or asks for changes."""

    name: ClassVar[str] = "present_plan"
    Args: ClassVar[type[Struct]] = PresentPlanArgs
    aliases: ClassVar[Mapping[str, str]] = dict.fromkeys(("text", "content", "markdown", "summary"), "plan")
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "think"

    def intents(self, args: PresentPlanArgs, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: PresentPlanArgs, call: CallContext) -> CallResult:
        services = call.services
        if recorded := services.recorded_result(call.call_id):
            return recorded
        if services.mode is None or services.ask_user is None:
            raise ToolError(NOBODY)
        if services.mode.in_force != PLAN:
            return CallResult(NOTHING_TO_HAND_OVER)
        if not args.plan.strip():
            raise ToolError(f"present_plan: {EMPTY}")
        if not await asyncio.to_thread(_is_last, call):
            raise ToolError(NOT_LAST)
        if len(args.plan) > MOST_CHARS:
            path = await asyncio.to_thread(services.save_output, DRAFT, args.plan.encode("utf-8", "replace"))
            raise ToolError(TOO_LONG.format(count=len(args.plan), most=MOST_CHARS, path=path))
        return await _hand_over(call, services.mode, services.ask_user, args.plan.strip())


def plan_steps(plan: str) -> tuple[TodoItem, ...]:
    """The numbered lines of a plan as open items; without any its other list items, else its headings. Code does not count."""
    prose = re.sub(r"(?ms)^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", "", plan)
    for mark in (r"\d{1,3}[.)]", r"[-*+](?: \[[ xX]\])?", r"#{2,6}"):
        if lines := re.findall(rf"(?m)^ ?{mark}[ \t]+(\S.*)$", prose):
            texts = (" ".join(line.replace("**", "").split()).rstrip("#: ") for line in lines)
            shortened = (text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…" for text in texts if text)
            return tuple(TodoItem(text, "pending") for text in shortened)[:MOST_ITEMS]
    return ()


def _is_last(call: CallContext) -> bool:
    """The call is the last one of its answer. May block to load the start of a large session."""
    messages = call.services.recall()
    return not messages or not messages[-1].calls or messages[-1].calls[-1].id == call.part_id


async def _hand_over(call: CallContext, mode: ModeSwitch, ask_user: AskQuestions, plan: str) -> CallResult:
    """Asks about a plan, again each time that the user edits it."""
    is_edited = False
    while True:
        try:
            replies = await ask_user(call.call_id, [Question(text=plan, header="Plan", options=OPTIONS, is_plan=True)])
        except asyncio.CancelledError:
            raise Interrupted(CallResult(STOPPED)) from None
        if not replies:
            return CallResult(UNDECIDED)
        choice, text = _decision(replies[0])
        if choice in MODES:
            break
        if choice == KEEP:
            return CallResult(KEPT.format(words=text) if text else KEPT_SILENTLY)
        if not text or text == plan:  # else a program that always edits would be asked for ever
            return CallResult(KEPT_SILENTLY)
        plan, is_edited = text, True
    try:  # the plan is saved first: without its file nothing starts
        path = await asyncio.to_thread(call.services.save_output, "plan.md", plan.encode("utf-8", "replace"))
    except (OSError, WoloError) as error:
        raise ToolError(f"The plan was approved, but it cannot be saved: {error}. {WAIT}") from error
    mode.change(choice, str(path))
    items = plan_steps(plan)
    text = APPROVED.format(
        plan="this plan, which they have edited" if is_edited else "the plan",
        mode=mode.in_force,
        about=MODES[mode.in_force].about,
        path=path,
        todo=" Its steps are the todo list now: keep it current with `todo`." if items else "",
    )
    steps = [item.text for item in items]
    if is_edited:
        text += f"\n\n{plan[:MOST_CHARS]}"
        if (rest := len(plan) - MOST_CHARS) > 0:
            text += f"\n[… {rest:,} more characters are in the file]"
    metadata = {NAMED_MODE: mode.in_force, PLAN_FILE: str(path), **({STEPS: steps} if steps else {})}
    return CallResult(text, TodoList(items) if items else None, metadata=metadata)


def _decision(reply: Reply) -> tuple[str, str]:
    """The option and the text beside it. Words without an option are a wish to keep planning."""
    labels = {option.label for option in OPTIONS}
    choice = next((label for label in reply.chosen if label in labels), "")
    text = "\n".join((*(label for label in reply.chosen if label not in labels), reply.text)).strip()
    if choice or text.lower() not in labels:
        return choice or KEEP, text
    return text.lower(), ""
