"""The line of /goal, and a goal that changes during a turn."""

from __future__ import annotations

import pytest

from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, sse
from wolo.agent.events import TurnEnded, TurnStarted
from wolo.conversation.factory import open_conversation
from wolo.conversation.goals import read_goal
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x --until", "--until needs a value."),
        ("x --until --budget 2turns", "--until needs a value."),
        ("x --budget", "--budget needs a value."),
        ("x --until ''", "--until needs a value."),
        ("--until", "A goal needs a condition."),
        ("x --budget ,", "--budget needs a value."),
        (f"x --budget {'9' * 30}turns", "this is no amount."),
        (f"x --budget {'9' * 400}turns", "this is no amount."),
        (f"x --budget {'9' * 400}usd", "this is no amount."),
    ],
)
def test_bad_goal_line_is_refused(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_goal(line)


def test_quoted_and_plain_commands_are_read() -> None:
    assert read_goal("tests pass --until make test --budget 2turns").until == "make test"
    assert read_goal('tests pass --until "make test"').until == "make test"
    assert read_goal("it accepts --until-like words").condition == "it accepts --until-like words"


async def test_alarm_of_earlier_goal_spends_no_budget(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(hold))
    flags = {"base_url": provider.base_url, "model": "test-model", "api_key": "key"}
    conversation = await open_conversation(StartOptions(flags=flags, attended=True))
    try:
        await conversation.set_goal(read_goal("first --until false --budget 1s"))
        ends = []
        async for event in conversation.prompt(typed("go")):
            if isinstance(event, TurnStarted):
                await conversation.set_goal(read_goal("second --until false --budget 1h"))
            ends += [event.cause] if isinstance(event, TurnEnded) else []
        assert ends == ["max_seconds"]
        assert conversation.goal is not None
        assert (conversation.goal.condition, conversation.goal.status) == ("second", "active")
        assert conversation.goal.worked_s < 3600
    finally:
        hold.release()
        await conversation.close()
