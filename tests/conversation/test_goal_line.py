"""The line of /goal, read."""

from __future__ import annotations

import pytest

from wolo.conversation.goals import read_goal
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
