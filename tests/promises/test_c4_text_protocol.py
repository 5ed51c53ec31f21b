"""C4: messages of a role and a text, and calls that are spelled in it. Promises inside the rooms, each with its number."""

from __future__ import annotations

import json
from typing import Any

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import call, text
from tests.formats.test_bracket_thinking import Thought, scan
from tests.formats.test_xml_tools import OWN, answer, sent, shape
from wolo.formats.xml_tools import XmlDialect
from wolo.formats.xml_tools.call_blocks import format_call
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ToolPart

CALL = '<tool>\n{\n  "server_name": "local",\n  "tool_name": "read",\n  "arguments": {"path": "a"}\n}\n</tool>'


def done(status: Any, output: str) -> Message:
    part = ToolPart(tool="calculator", input={"a": 5}, status=status, output=output)
    return Message(role="assistant", parts=(part,), producer=OWN, finished=True)


def test_c4_01_result_is_tool_name_and_text() -> None:
    assert sent((user("a"), done("completed", "Result: 42")))[-1] == {"role": "user", "content": "Tool: calculator\nResult: 42"}
    failed = sent((user("a"), done("failed", "division by zero")))[-1]
    assert failed["content"] == "Tool: calculator\nError: division by zero"


def test_c4_02_calls_stand_between_tags_among_words() -> None:
    message = answer(f"I look.\n\n{CALL}\n\nAnd again.\n\n{CALL}\n")
    assert [part[:2] for part in shape(message) if isinstance(part, tuple)] == [("read", {"path": "a"})] * 2
    assert message.text.split() == ["I", "look.", "And", "again."]
    spelled = json.loads(format_call("calculator", '{"a": 5}').removeprefix("<tool>").removesuffix("</tool>"))
    assert spelled == {"server_name": "local", "tool_name": "calculator", "arguments": {"a": 5}}


def test_c4_03_bracketed_thoughts_can_be_disabled() -> None:
    found = scan("[First, I read]\n[over two\nlines]\n\nThe answer.")
    assert found == [Thought("First, I read"), Thought("over two\nlines"), "\nThe answer."]
    on, off = (sent((user("a"),), dialect=XmlDialect(bracket_thinking=each))[0]["content"] for each in (True, False))
    assert "brackets" in on
    assert "brackets" not in off


def test_c4_09_system_message_comes_first_results_after_calls() -> None:
    wire = sent((user("a"), done("completed", "42"), Message(role="assistant", parts=(TextPart(text="42"),), producer=OWN)))
    assert [each["role"] for each in wire[:4]] == ["system", "user", "assistant", "user"]
    assert "<tool>" in wire[2]["content"]
    assert wire[3]["content"].startswith("Tool: calculator\n")


async def test_c4_10_tool_errors_return_to_the_model(harness: AgentHarness) -> None:
    harness.provider.script(call("fail", {"text": "zero"}), text("I see."))
    turn = await harness.turn()
    assert harness.results() == ["there is no zero"]
    assert turn.ended.answer == "I see."
