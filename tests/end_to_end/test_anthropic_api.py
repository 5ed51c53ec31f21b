"""wolo on a server of the Messages API: tools, thinking that goes back, pauses, refusals, and a session gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import replies
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies_anthropic import (
    LAST,
    begin,
    call,
    call_block,
    calls,
    end,
    error,
    failed,
    sse,
    start,
    stop,
    text,
    text_block,
    thinking_block,
    usage,
)
from wolo.places import find_places


def flags(provider: ProviderServer, *, at: str = "", model: str = "custom/claude-x") -> tuple[str, ...]:
    return ("--api", "anthropic", "--base-url", provider.origin + at, "--api-key", KEY, "-m", model)


def blocks(asked: Asked, kind: str) -> list[dict[str, Any]]:
    return [block for message in asked.messages for block in message["content"] if block["type"] == kind]


@pytest.mark.parametrize("at", ["", "/v1", "/v1/", "/api/anthropic"])
def test_a_question_and_its_answer(provider: ProviderServer, at: str) -> None:
    provider.script(text("Hello there.", counted=usage(100, 1, read=40)))
    done = run_wolo("--json", *flags(provider, at=at), "hi")
    assert (done.exit_code, done.json["result"]) == (0, "Hello there.")
    assert {name: done.json["usage"][name] for name in ("input_tokens", "cache_read_tokens", "output_tokens")} == {
        "input_tokens": 100,
        "cache_read_tokens": 40,
        "output_tokens": 10,
    }
    (asked,) = provider.requests
    assert asked.path == (at.rstrip("/") if at.startswith("/api") else "") + "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in asked.headers
    assert asked.json["system"][0]["text"].startswith("You are Wolo")


def test_calls_run_and_results_share_one_message(provider: ProviderServer) -> None:
    for name in "abc":
        Path(name).write_text(f"this is {name}\n")
    provider.script(calls(*(("read", {"path": name}, f"toolu_{name}") for name in "abc"), content="I look."), text("Read."))
    assert run_wolo("-p", *flags(provider), "read them").stdout == "Read.\n"
    last = provider.requests[1].messages[-1]
    assert [block["tool_use_id"] for block in last["content"]] == ["toolu_a", "toolu_b", "toolu_c"]
    assert all(f"this is {name}" in block["content"] for name, block in zip("abc", last["content"], strict=True))


def test_signatures_come_back_from_the_disk(provider: ProviderServer) -> None:
    Path("a").write_text("this is a\n")
    redacted = [begin(1, {"type": "redacted_thinking", "data": "c2VjcmV0"}), stop(1)]
    provider.script(
        sse(
            start(),
            *thinking_block(0, "\nI need the file.", "c2lnbmVk"),
            *redacted,
            *text_block(2, "I look."),
            *call_block(3, "read", {"path": "a"}),
            end("tool_use"),
            LAST,
        ),
        text("It says: this is a.", thinking="Short.", signature="YWdhaW4="),
        text("You are welcome."),
    )
    asking = (*flags(provider), "--thinking", "high")
    assert run_wolo("-p", *asking, "what is in a?").exit_code == 0
    done = run_wolo("-p", *asking, "-c", "thanks")
    assert (done.exit_code, done.stdout) == (0, "You are welcome.\n")
    asked = provider.requests[2]
    assert [block["signature"] for block in blocks(asked, "thinking")] == ["c2lnbmVk", "YWdhaW4="]
    assert blocks(asked, "thinking")[0]["thinking"] == "\nI need the file."
    assert [block["data"] for block in blocks(asked, "redacted_thinking")] == ["c2VjcmV0"]
    assert [block["type"] for block in asked.messages[1]["content"]] == ["thinking", "redacted_thinking", "text", "tool_use"]
    assert asked.json["thinking"]["type"] == "enabled"


def test_another_model_sees_no_thoughts_of_the_first(provider: ProviderServer) -> None:
    Path("a").write_text("this is a\n")
    provider.script(call("read", {"path": "a"}, thinking="hm", signature="c2ln"), text("Read."), text("Hi."))
    run_wolo("-p", *flags(provider), "read a")
    provider.forget_prefix()
    run_wolo("-p", *flags(provider, model="custom/claude-y"), "-c", "hi")
    assert len(blocks(provider.requests[1], "thinking")) == 1
    assert not blocks(provider.requests[2], "thinking")


def test_conversation_continues_from_chat_completions_and_back(provider: ProviderServer) -> None:
    Path("a").write_text("this is a\n")
    provider.script(
        replies.call("read", {"path": "a"}, id="functions.read:0", reasoning="hm"),
        replies.text("Read."),
        call("read", {"path": "a"}, thinking="hm", signature="c2ln"),
        text("Read again."),
        replies.text("Bye."),
    )
    run_wolo("-p", *provider.flags, "read a")
    provider.forget_prefix()
    assert run_wolo("-p", *flags(provider), "-c", "again").stdout == "Read again.\n"
    provider.forget_prefix()
    assert run_wolo("-p", *provider.flags, "-c", "bye").stdout == "Bye.\n"
    assert "c2ln" not in provider.requests[4].body.decode()


def test_a_paused_answer_is_gone_on_with(provider: ProviderServer) -> None:
    provider.script(text("First half, ", reason="pause_turn"), text("second half."))
    assert run_wolo("-p", *flags(provider), "go").stdout == "First half, second half.\n"
    last = provider.requests[1].messages[-1]
    assert (last["role"], last["content"][0]["text"]) == ("assistant", "First half, ")


def test_refusal_gives_its_reason_and_is_not_resent(provider: ProviderServer) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It asks for malware."}
    provider.script(sse(start(), *text_block(0, "I w"), end("refusal", stop_details=details), LAST), text("Gladly."))
    refused = run_wolo("-p", *flags(provider), "bad")
    assert refused.exit_code == 1
    assert "It asks for malware." in refused.stderr
    assert run_wolo("-p", *flags(provider), "-c", "good").exit_code == 0
    assert "I w" not in [block["text"] for block in blocks(provider.requests[1], "text")]


def test_crowded_server_is_asked_again_without_half_answers(provider: ProviderServer) -> None:
    broken_off = sse(start(), *text_block(0, "Half an ans"), *call_block(1, "write", {"path": "no", "content": "x"}), failed())
    provider.script(error(529, "overloaded_error", "Overloaded", {"retry-after-ms": "1"}), broken_off, text("Whole."))
    done = run_wolo("-p", *flags(provider), "go")
    assert (done.exit_code, done.stdout) == (0, "Whole.\n")
    assert not Path("no").exists()


def test_a_refused_signature_is_not_sent_again(provider: ProviderServer) -> None:
    Path("a").write_text("this is a\n")
    bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    provider.script(
        call("read", {"path": "a"}, thinking="hm", signature="c2ln"), error(400, "invalid_request_error", bound), text("Read.")
    )
    provider.expect_problem("differs from the request before")
    assert run_wolo("-p", *flags(provider), "read a").stdout == "Read.\n"
    assert not blocks(provider.requests[2], "thinking")


def test_a_stream_without_its_end_runs_nothing(provider: ProviderServer) -> None:
    whole = call("write", {"path": "no", "content": "x"})
    body = whole.body
    provider.script(whole.cut_at(body.rindex(b"event: message_stop"), "clean"), text("Done."))
    assert run_wolo("-p", *flags(provider), "go").stdout == "Done.\n"
    assert not Path("no").exists()


@pytest.mark.parametrize(("is_long", "mark"), [(False, {"type": "ephemeral"}), (True, {"type": "ephemeral", "ttl": "1h"})])
def test_long_cache_marks_all_and_costs_more(provider: ProviderServer, is_long: bool, mark: dict[str, str]) -> None:
    path = find_places().config / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (f'base_url = "{provider.origin}"', f'api_key = "{KEY}"', f"dialect.long_cache = {str(is_long).lower()}")
    path.write_text("\n".join(["[providers.anthropic]", *lines]))
    provider.script(text("Hello.", counted=usage(0, 0, written=1_000_000)))
    done = run_wolo("--json", "-m", "anthropic/claude-sonnet-5-5", "hi")
    assert done.exit_code == 0, done.stderr
    body = provider.requests[0].whole
    blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
    assert "cache_control" in blocks[-1]
    assert [block["cache_control"] for block in blocks if "cache_control" in block] == [mark] * 2
    assert done.json["total_cost_usd"] == pytest.approx(4.0 if is_long else 2.5, rel=0.01)
