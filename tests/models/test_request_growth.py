"""The work for a request does not grow with the history before it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.formats.test_every_format import SIDES, Side
from tests.sessions.samples import said, tool_turn
from wolo.agent.asker import RedactingAsker
from wolo.agent.compaction.history_cut import Cut
from wolo.formats.format import Format
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.message import Message
from wolo.messages.secret_values import Secret
from wolo.models.prompt_cache import PrefixWatch, all_blocks
from wolo.models.protocol import LazyModelClient, ModelQuestion
from wolo.models.tokens import TokenEstimate
from wolo.sessions import replay_entries
from wolo.sessions.entries import AnyEntry


class Requests:
    """All that looks at the history between the agent and the transport."""

    def __init__(self, side: Side) -> None:
        client: Any = LazyModelClient
        self._asker = RedactingAsker(client, Secrets([Secret("API_KEY", "a-value-that-does-not-occur")]))
        self._side = side
        self._format: Format = side.format()
        self._estimate = TokenEstimate()
        self._prefixes = PrefixWatch()
        self._cut = Cut(left_out=["msg_0"])

    def make(self, history: tuple[Message, ...]) -> bytes:
        question = self._asker.hide(ModelQuestion(messages=self._cut.apply(history), system="You are Wolo."))
        body = self._format.encode(self._side.request(question.messages))
        self._estimate.request(question.messages)
        answer = Message(id=f"answer to {len(history)}", role="assistant")
        self._prefixes.remember(answer, question.messages, self._format.blocks())
        return body


def conversation(turns: int) -> tuple[Message, ...]:
    entries: list[AnyEntry] = [said("go")]
    for number in range(turns):
        entries += tool_turn(number, output=f"line {number}")
    return replay_entries.messages(entries)


def calls_during(work: Callable[[], object]) -> int:
    count = 0

    def on_event(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("side", [side for side in SIDES if side.name != "xml"], ids=lambda side: side.name)
def test_request_after_many_turns_reuses_earlier_work(side: Side) -> None:
    history = conversation(401)
    calls = []
    for turns in (40, 400):
        requests = Requests(side)
        requests.make(history[: turns + 1])
        calls.append(calls_during(lambda requests=requests, turns=turns: requests.make(history[: turns + 2])))
    assert calls[1] <= calls[0] + 5


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_growing_history_equals_one_encoding_at_once(side: Side) -> None:
    history = conversation(12)
    requests = Requests(side)
    for turns in (3, 9, 10, 6, 12):
        assert requests.make(history[:turns]) == Requests(side).make(history[:turns])


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.name)
def test_request_blocks_stay_its_own_under_any_change(side: Side) -> None:
    history = conversation(12)
    format = side.format()
    for turns in (3, 9, 6, 12):
        format.encode(side.request(history[:turns]))
        first = format.blocks()
        format.encode(side.request((*history[: turns - 2], history[11])))
        other = side.format()
        other.encode(side.request(history[:turns]))
        assert all_blocks(first) == all_blocks(other.blocks())
        assert format.blocks().messages is not first.messages
