"""/btw, /init, /review, /commit, /goal: ask a side question, or send what a prepared prompt says."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from msgspec.structs import replace

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText
from wolo.errors import UsageError


async def _btw(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("/btw needs a question.", hint="/btw QUESTION")
    return ShowText(await context.conversation.aside(rest), is_answer=True)


FOLDER = Path(__file__).parent / "prompts"
UNCOMMITTED = "the uncommitted changes in this directory (`git status`, `git diff HEAD`, and the untracked files)"


async def _review(context: CommandContext, rest: str) -> Outcome:
    return SendPrompt(review_prompt(rest))


def review_prompt(what: str) -> str:
    return _read_prompt("review").replace("{what}", what or UNCOMMITTED)


async def _send(name: str, context: CommandContext, rest: str) -> Outcome:
    return SendPrompt(_read_prompt(name, rest))


def _read_prompt(name: str, instructions: str = "") -> str:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    return f"{text}\n\n{instructions}" if instructions else text


NO_GOAL = "No goal is set: /goal CONDITION [--until COMMAND] [--budget 2usd]"
CONTINUE = "Continue with the goal: {condition}"


async def _goal(context: CommandContext, rest: str) -> Outcome:
    from wolo.agent.goal import describe_goal, spent_budget  # noqa: PLC0415  # most sessions have no goal
    from wolo.conversation.goals import read_goal  # noqa: PLC0415  # as above

    conversation = context.conversation
    goal = conversation.goal
    if not rest:
        return ShowText(describe_goal(goal) if goal else NO_GOAL)
    if rest not in ("pause", "resume", "clear"):
        goal = read_goal(rest)
        await conversation.set_goal(goal)
        if conversation.is_in_turn:
            return ShowText("The goal is set; the running turn works towards it.")
        return SendPrompt(goal.condition)
    if goal is None:
        raise UsageError(f"There is no goal to {rest}.", hint="/goal CONDITION sets one.")
    if rest == "clear":
        await conversation.set_goal(replace(goal, status="cleared"))
        return ShowText("The goal is cleared.")
    if rest == "pause":
        if goal.status != "active":
            raise UsageError(f"The goal is not active: {goal.status.replace('_', ' ')}.", hint="/goal resume")
        await conversation.set_goal(replace(goal, status="paused", reason="You paused it."))
        return ShowText("The goal is paused; /goal resume continues.")
    if goal.status == "active" and conversation.is_in_turn:
        return ShowText("The running turn works towards the goal.")
    if spent_budget(goal):
        raise UsageError("The budget of the goal is spent.", hint="Set it again with a higher one: /goal CONDITION --budget …")
    await conversation.set_goal(replace(goal, status="active", num_idle_rounds=0))
    if conversation.is_in_turn:
        return ShowText("The goal is active again; the running turn works towards it.")
    return SendPrompt(CONTINUE.format(condition=goal.condition))


def _goal_arguments(context: CommandContext) -> list[tuple[str, str]]:
    if context.conversation.goal is None:
        return [("--until", "the command that decides"), ("--budget", "2usd, 30min, 20turns")]
    return [("pause", "stop checking the goal"), ("resume", "continue"), ("clear", "drop the goal")]


COMMANDS = (
    Command(
        "btw",
        "ask a side question; the answer is not saved",
        _btw,
        doing="asking a side question",
        usage="QUESTION",
        more="The model sees the conversation and has no tools. Its cost counts.",
        group="Conversation",
        while_working=True,
    ),
    Command(
        "init",
        "let the model write an AGENTS.md",
        partial(_send, "init"),
        usage="[INSTRUCTIONS]",
        more="For this directory. Sends an ordinary prompt, which is shown.",
        group="Conversation",
        makes_prompt=True,
    ),
    Command(
        "review",
        "review changes without editing",
        _review,
        usage="[WHAT]",
        more="Without WHAT: the uncommitted changes. Sends an ordinary prompt, which is shown.",
        group="Conversation",
        makes_prompt=True,
        arguments=lambda _: [("the last commit", ""), ("this branch against main", "")],
    ),
    Command(
        "commit",
        "let the model commit the work",
        partial(_send, "commit"),
        usage="[INSTRUCTIONS]",
        more="Sends an ordinary prompt, which is shown; the model runs git, with the usual approvals.",
        group="Conversation",
        makes_prompt=True,
    ),
    Command(
        "goal",
        "work until a condition holds",
        _goal,
        doing="setting the goal",
        usage="[CONDITION [--until CMD] [--budget 2usd] | pause | resume | clear]",
        more="Whenever the model stops, CMD is run (exit 0: reached), or the small model judges; what is missing goes back "
        "to the model. The work ends when the goal is reached or blocked, after three rounds without a change, or at the budget. "
        "Without arguments: the goal, its rounds, cost and time.",
        group="Conversation",
        arguments=_goal_arguments,
        makes_prompt=True,
        while_working=True,
    ),
)
