"""C4: messages of a role and a text, and calls that are spelled in it. Each test bears the number of the promise it shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.conftest import AgentHarness
from tests.end_to_end.test_xml_api import block
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.formats.test_bracket_thinking import Thought, scan
from tests.formats.test_xml_tools import OWN, answer, sent, shape
from wolo.formats.xml_tools import XmlDialect
from wolo.formats.xml_tools.call_blocks import Malformed, check_call, check_message, format_call
from wolo.messages.message import Message, system, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.tokens import (
    ROLE_TOKENS,
    TEXT_CALL_TOKENS,
    TOOL_ROLE_TOKENS,
    ConversationMemory,
    estimate_message,
)

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


@pytest.mark.parametrize(
    ("said", "tokens"),
    [(user("Hello"), 5), (user("x" * 129), 36), (user("<tool>" + "x" * 98), 40), (system("x" * 40), 14)],
)
def test_c4_04_tokens_exceed_a_quarter_of_text(said: Message, tokens: int) -> None:
    assert estimate_message(said) == tokens
    assert (ROLE_TOKENS, TOOL_ROLE_TOKENS, TEXT_CALL_TOKENS) == (4, 10, 10)


def test_c4_05_memory_prunes_oldest_but_no_system_message() -> None:
    memory = ConversationMemory[Message](100)
    memory.add(system("You are a helpful math tutor"))
    added = [user(f"Message {number} {'x' * 100}") for number in range(9)]
    for message in added:
        memory.add(message)
        assert memory.tokens <= 100
    assert memory.messages[0].role == "system"
    assert memory.messages[1:] == tuple(added[-len(memory.messages) + 1 :])


def test_c4_06_task_completion_ends_the_task(provider: ProviderServer) -> None:
    provider.script(text(block("task_completion", result="The result is 42.")))
    ran = run_wolo("-p", *provider.flags, "--api", "xml", "compute")
    assert (ran.stdout, len(provider.requests)) == ("The result is 42.\n", 1)


def test_c4_07_message_needs_known_role_and_content() -> None:
    for role in ("system", "user", "assistant", "tool"):
        check_message(role, "x")
    for role, content, problem in (("robot", "x", "role"), ("user", "", "empty")):
        with pytest.raises(Malformed, match=problem):
            check_message(role, content)


def test_c4_08_each_call_mistake_has_its_words() -> None:
    mistakes = ("no call", "<tool>{}", "<tool>{</tool>", '<tool>{"arguments":{}}</tool>', '<tool>{"tool_name":"x"}</tool>')
    told = set()
    for mistake in mistakes:
        with pytest.raises(Malformed) as caught:
            check_call(mistake)
        told.add(str(caught.value))
    assert len(told) == len(mistakes)
    assert check_call(CALL)[:2] == ("local", "read")


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
