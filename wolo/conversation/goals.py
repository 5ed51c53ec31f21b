"""Reads goals, and holds a conversation to one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from wolo.agent.budget import Limits
from wolo.agent.compaction_run import can_summarize
from wolo.agent.goal import Goal, GoalPolicy
from wolo.conversation.project_checks import check
from wolo.errors import UsageError
from wolo.messages.message import Usage

if TYPE_CHECKING:
    from wolo.agent.agent_services import AgentServices
    from wolo.conversation.permission_check import PermissionCheck
    from wolo.models.protocol import ModelClient
    from wolo.tools.tool import ToolServices

BUDGETS = "2usd, 30min or 20turns"
_NEXT = r"\s+--(?:until|budget)\b"
_OPTION = rf"(?:^|\s)--(until|budget)(?:=|(?={_NEXT})|\s+|$)(\"(?:[^\"\\]|\\.)*\"|'[^']*'|.*?)(?={_NEXT}|\s*$)"
_AMOUNT = r"(?:\$\s*(?P<dollars>\d{1,9}(?:\.\d+)?)|(?P<number>\d{1,9}(?:\.\d+)?)\s*(?P<unit>[a-z]+))"
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}


def read_goal(line: str) -> Goal:
    """`CONDITION [--until CMD] [--budget 2usd]`; a command may be quoted, and otherwise ends at the next option.

    Raises UsageError.
    """
    options: dict[str, str] = {}
    for match in re.finditer(_OPTION, line, re.DOTALL):
        name, value = match[1], match[2].strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = re.sub(r"\\([\"\\])", r"\1", value[1:-1]) if value[0] == '"' else value[1:-1]
        if name in options:
            raise UsageError(f"--{name} is given twice.", hint="Join commands with &&, budgets with a comma.")
        options[name] = value
    condition = re.sub(_OPTION, "", line, flags=re.DOTALL).strip()
    return make_goal(condition, options.get("until"), options.get("budget"))


def make_goal(condition: str | None, until: str | None, budget: str | None) -> Goal:
    """None is an option left out; an empty one would let another judge decide, so it is refused. Raises UsageError."""
    if not (condition or "").strip():
        raise UsageError("A goal needs a condition.", hint="/goal CONDITION [--until COMMAND] [--budget 2usd]")
    for name, value in (("until", until), ("budget", budget)):
        if value is not None and not value.strip(" ,\t\n"):
            raise UsageError(f"--{name} needs a value.", hint=f"--until COMMAND, --budget {BUDGETS}")
    text = budget or ""  # amounts of money, time, answers or tokens, with commas between
    amounts: dict[str, float] = {}
    for piece in filter(None, re.split(r"[,\s]+(?=[$\d])|,", text.strip().lower())):
        match = re.fullmatch(_AMOUNT, piece.strip())
        unit = "" if match is None else match["unit"] or "usd"
        number = 0.0 if match is None else float(match["dollars"] or match["number"])
        singular = unit if unit == "s" else unit.removesuffix("s")
        if unit in ("usd", "dollar", "dollars"):
            name = "max_cost"
        elif singular in _SECONDS:
            name, number = "max_seconds", number * _SECONDS[singular]
        elif singular in ("turn", "answer", "token") and number == int(number):
            name = "max_tokens" if singular == "token" else "max_turns"
        else:
            raise UsageError(f"--budget {piece.strip()}: this is no amount.", hint=f"--budget {BUDGETS}")
        if number <= 0 or name in amounts:
            raise UsageError(f"--budget {text}: each kind once, and more than 0.", hint=f"--budget {BUDGETS}")
        amounts[name] = number
    return Goal(
        condition=(condition or "").strip(), until=(until or "").strip(), budget=msgspec.convert(amounts, Limits, strict=False)
    )


def check_goal(goal: Goal, asker: ModelClient, small: object) -> None:
    """Raises UsageError for a goal that nothing could decide, or a budget that nothing could hold."""
    if not goal.until and small is None and not can_summarize(asker):
        raise UsageError("The embedded model cannot judge a goal.", hint="Let a command decide: --until 'make test'")
    price = asker.choice.model.price
    if goal.budget.max_cost is not None and (price is None or price.input is None):
        raise UsageError(
            f"--budget in USD cannot be enforced: the price of {asker.choice.label} is unknown.",
            hint="Use another budget, such as --budget 20turns.",
        )


def make_policy(
    goal: Goal,
    agent: AgentServices,
    services: ToolServices,
    permissions: PermissionCheck,
    *,
    save: Callable[[Goal, Usage | None], Awaitable[None]],
    attended: bool,
) -> GoalPolicy:
    """The check of the goal runs as the one of `--verify` does: sandboxed, because it runs code that the model wrote."""
    confined = services.sandbox.walls is not None and permissions.judge.confine != "never"
    timeout_s = permissions.config.settings.verify.timeout_s
    run = partial(check, timeout_s=timeout_s, services=services, confined=confined)
    return GoalPolicy(goal, agent, save=save, check=run, attended=attended)


def restore_goal(data: dict[str, Any]) -> Goal | None:
    """None for a state that cannot be read."""
    try:
        return msgspec.convert(data, Goal)
    except msgspec.ValidationError:
        return None
