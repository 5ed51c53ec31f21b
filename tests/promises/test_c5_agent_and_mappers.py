"""C5: an agent that knows no provider, and one mapper for each. Promises inside the rooms, each with its number."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import text
from tests.formats.histories import histories
from tests.formats.test_every_format import Side
from wolo.agent.events import TextStreamed
from wolo.formats.lint.linters import LINTERS
from wolo.messages.message import Message
from wolo.messages.parts import ToolPart
from wolo.models.format_selection import FORMATS

DONE = tuple(
    ToolPart(tool="read", input={"n": n}, call_id=f"call_{n}", status="completed", outcome="ok", output=f"result {n}")
    for n in (1, 2, 3)
)


async def test_c5_04_streamed_pieces_add_up(harness: AgentHarness) -> None:
    harness.provider.script(text("An answer in several pieces.").split(5))
    turn = await harness.turn()
    assert "".join(event.text for event in harness.told(TextStreamed)) == turn.ended.answer == "An answer in several pieces."


@pytest.mark.parametrize("name", FORMATS)
@given(history=histories)
def test_c5_10_any_history_is_valid_everywhere(name: str, history: tuple[Message, ...]) -> None:
    side = Side(name)
    assert LINTERS[name](json.loads(side.format().encode(side.request(history)))) == []
