"""/goal: works until a condition holds; shows, pauses, resumes and clears the goal."""

from __future__ import annotations

from msgspec.structs import replace

from wolo.commands.command import Command, CommandContext, Outcome, SendPrompt, ShowText
from wolo.errors import UsageError

NONE = "No goal is set: /goal CONDITION [--until COMMAND] [--budget 2usd]"
CONTINUE = "Continue with the goal: {condition}"


async def _run(context: CommandContext, rest: str) -> Outcome:
    from wolo.agent.goal import describe_goal, spent_budget  # noqa: PLC0415  # most sessions have no goal
    from wolo.conversation.goals import read_goal  # noqa: PLC0415  # as above

    conversation = context.conversation
    goal = conversation.goal
    if not rest:
        return ShowText(describe_goal(goal) if goal else NONE)
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


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    if context.conversation.goal is None:
        return [("--until", "the command that decides"), ("--budget", "2usd, 30min, 20turns")]
    return [("pause", "stop checking the goal"), ("resume", "continue"), ("clear", "drop the goal")]


COMMANDS = (
    Command(
        "goal",
        "work until a condition holds",
        _run,
        doing="setting the goal",
        usage="[CONDITION [--until CMD] [--budget 2usd] | pause | resume | clear]",
        more="Whenever the model stops, CMD is run (exit 0: reached), or the small model judges; what is missing goes back "
        "to the model. The work ends when the goal is reached or blocked, after three rounds without a change, or at the budget. "
        "Without arguments: the goal, its rounds, cost and time.",
        group="Conversation",
        arguments=_arguments,
        makes_prompt=True,
        while_working=True,
    ),
)
