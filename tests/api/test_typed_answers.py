"""Typed answers: sent back as often as the program says, checked by its functions, and streamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from wolo import Agent, OutputError, PartialOutput, TypedResult
from wolo.errors import UsageError
from wolo.testing import ScriptedTransport


@dataclass
class Point:
    x: int
    y: int = 0


class Cash(msgspec.Struct, tag="cash"):
    coins: int


class Card(msgspec.Struct, tag="card"):
    digits: str


def agent(*answers: Any) -> Agent:
    return Agent("custom/m", session="memory", tools=[], transport=ScriptedTransport(answers))


async def test_retries_are_as_many_as_asked_for() -> None:
    async with agent("no", "no", "no", '{"x": 1}') as ours:
        typed = await ours.run_for("where?", Point, retries=3)
    assert typed.output == Point(1)
    assert len(typed.messages) == 8
    async with agent("no") as ours:
        with pytest.raises(OutputError) as failed:
            await ours.run_for("where?", Point, retries=0)
    assert failed.value.raw == "no"


async def test_negative_retries_are_refused() -> None:
    with pytest.raises(UsageError, match="retries"):
        await agent("never sent").run_for("where?", Point, retries=-1)


async def test_validator_asks_again_and_changes_the_value() -> None:
    def even(point: Point) -> None:
        if point.x % 2:
            raise ValueError("x must be even")

    async def moved(point: Point) -> Point:
        return Point(point.x, 9)

    async with agent('{"x": 1}', '{"x": 2}') as ours:
        typed = await ours.run_for("where?", Point, validators=[even, moved])
    assert typed.output == Point(2, 9)
    assert "x must be even" in typed.messages[2].text


async def test_error_of_a_validator_is_raised() -> None:
    def broken(point: Point) -> None:
        raise KeyError("oops")

    async with agent('{"x": 1}', "Fine.") as ours:
        with pytest.raises(KeyError):
            await ours.run_for("where?", Point, validators=[broken])
        assert (await ours.run("again")).output == "Fine."


async def test_validators_that_are_no_functions_are_refused() -> None:
    with pytest.raises(UsageError, match="validators"):
        await agent("never sent").run_for("where?", Point, validators=["even"])  # type: ignore[list-item]  # the mistake


async def test_stream_has_partial_values_and_a_result() -> None:
    async with agent('{"x": 12,\n "y": 345}') as ours:
        events = [event async for event in ours.run_stream_for("where?", Point)]
    values = [event.value for event in events if isinstance(event, PartialOutput)]
    assert values[-1] == {"x": 12, "y": 345}
    assert {"x": 12} in values
    result = events[-1].result  # type: ignore[attr-defined]  # the last one is the result
    assert isinstance(result, TypedResult)
    assert result.output == Point(12, 345)
    assert "".join(event.output for event in events) == '{"x": 12,\n "y": 345}'


async def test_partial_values_begin_anew_with_each_answer() -> None:
    async with agent('{"value": ["a"]}', '{"value": [1]}') as ours:
        events = [event async for event in ours.run_stream_for("which?", list[int])]
    values = [event.value for event in events if isinstance(event, PartialOutput)]
    assert values[0] in ([], ["a"])
    assert values[-1] == [1]


async def test_abandoned_typed_stream_does_not_block() -> None:
    async with agent('{"x": 1,\n"y": 2}', "Fine.") as ours:
        async for event in ours.run_stream_for("where?", Point):
            if event.output:
                break
        assert (await ours.run("again")).output == "Fine."


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (list[Cash], '[{"type": "cash", "coins": 1}]', [Cash(1)]),
        (Cash | Card, '{"type": "card", "digits": "12"}', Card("12")),
        (dict[str, Card | None], '{"a": null}', {"a": None}),
    ],
)
async def test_structs_in_lists_and_unions_are_answers(kind: Any, answer: str, value: Any) -> None:
    async with agent("none", answer) as ours:
        assert (await ours.run_for("how paid?", kind)).output == value
