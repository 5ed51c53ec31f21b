"""C5: an agent that knows no provider, and one mapper for each. Each test bears the number of the promise it shows."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import calls, text
from tests.formats.test_every_format import LISTS, Side
from wolo import Message, TextPart, ToolMessage, ToolPart, by_role

DONE = tuple(
    ToolPart(tool="read", input={"n": n}, call_id=f"call_{n}", status="completed", outcome="ok", output=f"result {n}")
    for n in (1, 2, 3)
)


def user(text: str) -> Message:
    return Message(role="user", parts=[TextPart(text=text)], finished=True)


def wire(name: str) -> list[dict[str, Any]]:
    """A round of three calls, in the messages of a format."""
    side = Side(name)
    answer = Message(role="assistant", parts=DONE, producer=side.producer, finished=True)
    body = json.loads(side.format().encode(side.request((user("go"), answer))))
    found: list[dict[str, Any]] = body[LISTS.get(name, "messages")]
    return found


def test_c5_01_providerless_agent_alternates_its_speakers() -> None:
    agent = Path(__file__).parents[2] / "wolo" / "agent"
    imported = {
        node.module
        for path in agent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    packages = ("anthropic", "gemini", "ollama", "openai_chat", "openai_responses", "xml_tools")
    assert not {name for name in imported if any(name.startswith(f"wolo.formats.{each}") for each in packages)}
    said = [message["role"] for message in wire("anthropic")]
    assert said == ["user", "assistant", "user"]


def test_c5_02_round_results_share_one_message() -> None:
    asked, answer, results = by_role([user("go"), Message(role="assistant", parts=(TextPart(text="I look."), *DONE))])
    assert (asked.role, answer.role) == ("user", "assistant")
    assert isinstance(results, ToolMessage)
    assert [(result.id, result.content) for result in results.contents] == [(f"call_{n}", f"result {n}") for n in (1, 2, 3)]


async def test_c5_03_run_gives_new_messages_with_everything(harness: AgentHarness) -> None:
    harness.provider.script(text("Hi!"))
    first = await harness.turn("Hello")
    harness.provider.script(calls(("say", {"text": "1"}), ("say", {"text": "2"})), text("Both done."))
    second = await harness.turn("work")
    assert [(message.role, message.text) for message in first.new] == [("user", "Hello"), ("assistant", "Hi!")]
    assert [message.role for message in second.new] == ["user", "assistant", "assistant"]
    assert [call.status for call in second.new[1].calls] == ["completed", "completed"]
    assert second.ended.answer == "Both done."
    assert second.messages == (*first.new, *second.new)


async def test_c5_05_the_caller_owns_the_history(harness: AgentHarness) -> None:
    harness.provider.script(text("One."), text("Two."))
    history = (user("before"), Message(role="assistant", parts=(TextPart(text="Yes."),), finished=True))
    turn = await harness.agent.run(history, user("now"))
    assert turn.messages[:2] == history
    assert len(history) == 2
    assert [each["content"] for each in harness.provider.requests[0].messages[1:]] == ["before", "Yes.", "now"]
    harness.provider.forget_prefix()
    await harness.agent.run((), user("afresh"))
    assert [each["content"] for each in harness.provider.requests[1].messages[1:]] == ["afresh"]


def test_c5_06_openai_gets_ordered_messages_per_result() -> None:
    results = [message for message in wire("openai-chat") if message["role"] == "tool"]
    assert [(each["tool_call_id"], each["content"]) for each in results] == [(f"call_{n}", f"result {n}") for n in (1, 2, 3)]
    items = [item for item in wire("openai-responses") if item["type"] == "function_call_output"]
    assert [(each["call_id"], each["output"]) for each in items] == [(f"call_{n}", f"result {n}") for n in (1, 2, 3)]


def test_c5_07_anthropic_gets_results_in_one_message() -> None:
    _, answer, results = wire("anthropic")
    assert [part["type"] for part in answer["content"]] == ["tool_use"] * 3
    assert (results["role"], [part["type"] for part in results["content"]]) == ("user", ["tool_result"] * 3)
    assert [part["tool_use_id"] for part in results["content"]] == [part["id"] for part in answer["content"]]


def test_c5_08_google_gets_responses_in_one_message() -> None:
    _, answer, results = wire("gemini")
    assert [next(key for key in part if key.startswith("function")) for part in answer["parts"]] == ["functionCall"] * 3
    assert (results["role"], ["functionResponse" in part for part in results["parts"]]) == ("user", [True] * 3)


def test_c5_09_ollama_api_has_its_own_shape() -> None:
    own, compatible = wire("ollama"), wire("openai-chat")
    assert own[2]["tool_calls"][0]["function"]["arguments"] == {"n": 1}
    assert isinstance(compatible[2]["tool_calls"][0]["function"]["arguments"], str)
    assert [each["tool_name"] for each in own if each["role"] == "tool"] == ["read"] * 3
