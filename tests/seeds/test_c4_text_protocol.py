"""C4: messages of a role and a text, and calls that are spelled in it. Each test bears the number of the promise it shows."""

from __future__ import annotations

import pytest

from tests.end_to_end.test_xml_api import block
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo import ConversationMemory, Message, TextPart, estimate_message, validate_message, validate_tool_call

CALL = '<tool>\n{\n  "server_name": "local",\n  "tool_name": "read",\n  "arguments": {"path": "a"}\n}\n</tool>'


def user(text: str) -> Message:
    return Message(role="user", parts=[TextPart(text=text)], finished=True)


def system(text: str) -> Message:
    return Message(role="system", parts=[TextPart(text=text)], finished=True)


@pytest.mark.parametrize(
    ("said", "tokens"),
    [(user("Hello"), 5), (user("x" * 129), 36), (user("<tool>" + "x" * 98), 40), (system("x" * 40), 14)],
)
def test_c4_04_tokens_exceed_a_quarter_of_text(said: Message, tokens: int) -> None:
    assert estimate_message(said) == tokens


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
        validate_message({"role": role, "content": "x"})
    validate_message(user("x"))
    for message, problem in (({"role": "robot", "content": "x"}, "invalid role"), (user(""), "cannot be empty"), ({}, "role")):
        with pytest.raises(ValueError, match=problem):
            validate_message(message)


def test_c4_08_each_call_mistake_has_its_words() -> None:
    mistakes = ("no call", "<tool>{}", "<tool>{</tool>", '<tool>{"arguments":{}}</tool>', '<tool>{"tool_name":"x"}</tool>')
    reasons = set()
    for mistake in mistakes:
        with pytest.raises(ValueError, match=r"tag|JSON|tool_name|arguments") as caught:
            validate_tool_call(mistake)
        reasons.add(str(caught.value))
    assert len(reasons) == len(mistakes)
    validate_tool_call(CALL)
