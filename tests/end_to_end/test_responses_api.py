"""The whole program against a server of the Responses API: tools, sessions that go on, reasoning that comes back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import error
from tests.fakes.replies_responses import answer, call, events, message, reasoning, stream, usage

ENCRYPTED = "gAAAAABo_+/=0123456789" * 40


def flags(provider: ProviderServer, model: str = "custom/test-model") -> tuple[str, ...]:
    return ("--api", "openai-responses", "--base-url", provider.base_url, "--api-key", KEY, "--model", model)


def test_tool_runs_and_its_result_returns(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("buy milk\n")
    thought = reasoning("rs_1", "I should", "look.", encrypted=ENCRYPTED)
    called = call("read", {"path": "notes.txt"}, "call_1", id="fc_1")
    provider.script(
        answer(thought, message("I look.", id="msg_1", phase="commentary"), called),
        answer(message("You want milk.", phase="final_answer"), usage=usage(200, 20, cached=100, reasoning=5)),
    )
    done = run_wolo("--json", *flags(provider), "what do I want?")
    assert (done.exit_code, done.json["result"]) == (0, "You want milk.")
    assert done.json["usage"]["cache_read_tokens"] == 100
    first, second = (asked.json for asked in provider.requests)
    assert [asked.path for asked in provider.requests] == ["/v1/responses"] * 2
    assert (first["store"], first["include"]) == (False, ["reasoning.encrypted_content"])
    assert first["instructions"].startswith("You are Wolo")
    kinds = [item["type"] for item in second["input"]]
    assert kinds == ["message", "reasoning", "message", "function_call", "function_call_output"]
    assert second["input"][1] == thought
    assert second["input"][3]["id"] == "fc_1"
    assert "buy milk" in second["input"][4]["output"]


def test_continued_session_returns_reasoning_byte_for_byte(provider: ProviderServer) -> None:
    thought = reasoning("rs_1", "Hm.", encrypted=ENCRYPTED)
    provider.script(
        answer(thought, message("Hello.", id="msg_1", phase="final_answer")),
        answer(message("Still here.")),
        answer(message("Another model.")),
    )
    run_wolo("-p", *flags(provider), "hi")
    assert run_wolo("-p", "--continue", *flags(provider), "still there?").stdout == "Still here.\n"
    items = provider.requests[1].json["input"]
    assert items[1] == thought
    assert (items[2]["id"], items[2]["phase"]) == ("msg_1", "final_answer")
    provider.forget_prefix()
    run_wolo("-p", "--continue", *flags(provider, "custom/other-model"), "who are you?")
    sent = provider.requests[2].json["input"]
    assert [item["type"] for item in sent] == ["message"] * 5
    assert not any("id" in item or "phase" in item for item in sent)
    assert ENCRYPTED not in provider.requests[2].body.decode()


def test_broken_answer_is_asked_for_again(provider: ProviderServer) -> None:
    half = events(message("Half an answer"))[:6]
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "Oops."}}}
    provider.script(stream(*half), stream(*half, failed), answer(message("A whole answer.")))
    done = run_wolo("-p", *flags(provider), "hi")
    assert (done.exit_code, done.stdout) == (0, "A whole answer.\n")


@pytest.mark.parametrize(
    ("param", "message_text"),
    [
        ("include", "Encrypted content is not supported with this model."),
        ("include[0]", "Invalid value: 'reasoning.encrypted_content'."),
    ],
)
def test_refused_field_is_left_out(provider: ProviderServer, param: str, message_text: str) -> None:
    body = {"error": {"message": message_text, "type": "invalid_request_error", "param": param, "code": None}}
    provider.script(error(400, body), answer(message("Without it then.")))
    done = run_wolo("-p", *flags(provider), "hi")
    assert done.stdout == "Without it then.\n"
    assert "include" not in provider.requests[1].json


def test_key_refused_elsewhere_points_to_no_vendor(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}}))
    done = run_wolo("-p", *flags(provider, "openai/gpt-5.4"), "hi")
    assert done.exit_code != 0
    assert "Check --api-key (or WOLO_API_KEY) and --base-url." in done.stderr
    assert "platform.openai.com" not in done.stderr
    body = provider.requests[0].json
    assert body["reasoning"] == {"summary": "auto"}
    assert body["prompt_cache_key"]


def test_openai_models_still_work_through_chat_completions(provider: ProviderServer) -> None:
    provider.script(error(404, json.dumps({"error": {"message": "no"}})))
    address = ("--base-url", provider.base_url, "--api-key", KEY)
    run_wolo("-p", "--api", "openai-chat", *address, "--model", "openai/gpt-4.1", "hi")
    asked = provider.requests[0]
    assert asked.path == "/v1/chat/completions"
    assert asked.messages[0]["role"] == "developer"
