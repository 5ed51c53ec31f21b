"""Google's Gemini through the whole program: calls with signatures, resumed from disk, in parallel, refused and retried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies_gemini import called, calls, refused, said, stream, text, word
from tests.fakes.replies_gemini import usage as counted

S1, S2, S3 = "c2lnbmF0dXJlLTE=", "c2lnbmF0dXJlLTI=", "c2lnbmF0dXJlLTM="
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}
PER_MINUTE = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}],
}


def retry_in(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def gemini(provider: ProviderServer, *args: str, model: str = "custom/gemini-3-test") -> Any:
    return run_wolo("-p", "--api", "gemini", "--base-url", provider.origin, "--api-key", KEY, "-m", model, *args)


def contents(asked: Asked) -> list[dict[str, Any]]:
    return list(asked.json["contents"])


def test_a_call_makes_its_round_with_its_signature(provider: ProviderServer) -> None:
    Path("a.txt").write_text("AAA")
    provider.script(calls(called("read", {"path": "a.txt"}, S1, "id-1")), text("It says AAA.", thoughts="Hm."))
    done = gemini(provider, "what is in a.txt?")
    assert (done.stdout, done.exit_code) == ("It says AAA.\n", 0)
    first, second = provider.requests
    assert first.path == "/v1beta/models/gemini-3-test:streamGenerateContent?alt=sse"
    assert first.headers["x-goog-api-key"] == KEY
    assert "authorization" not in first.headers
    assert contents(second)[1:] == [
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "id-1", "name": "read", "args": {"path": "a.txt"}}, "thoughtSignature": S1}],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "id-1", "name": "read", "response": {"output": "1→AAA\n[1 line.]"}}}],
        },
    ]


def test_resumed_conversation_sends_each_signature_on_its_part(provider: ProviderServer) -> None:
    Path("a.txt").write_text("AAA")
    answer = stream(
        said(word("I ")), said(word("read it.", S1)), said(called("read", {"path": "a.txt"}, S2)), said(finish="STOP")
    )
    provider.script(answer, text("Done.", signature=S3), text("Yes."))
    gemini(provider, "-s", "mine", "read a.txt")
    assert gemini(provider, "-s", "mine", "sure?").stdout == "Yes.\n"
    model = [content["parts"] for content in contents(provider.requests[2]) if content["role"] == "model"]
    assert model == [
        [
            {"text": "I "},
            {"text": "read it.", "thoughtSignature": S1},
            {"functionCall": {"name": "read", "args": {"path": "a.txt"}}, "thoughtSignature": S2},
        ],
        [{"text": "Done."}, {"text": "", "thoughtSignature": S3}],
    ]


def test_three_parallel_calls_are_answered_in_one_content(provider: ProviderServer) -> None:
    for name in "abc":
        Path(f"{name}.txt").write_text(name)
    wanted = [called("read", {"path": f"{name}.txt"}, S1 if name == "a" else "") for name in "abc"]
    provider.script(calls(*wanted), text("ok"))
    assert gemini(provider, "read them").exit_code == 0
    responses = contents(provider.requests[1])[2]["parts"]
    outputs = [part["functionResponse"]["response"]["output"] for part in responses]
    assert outputs == [f"1→{name}\n[1 line.]" for name in "abc"]


def test_other_model_continues_with_the_placeholder(provider: ProviderServer) -> None:
    Path("a.txt").write_text("AAA")
    provider.script(calls(called("read", {"path": "a.txt"}, S1)), text("It says AAA."), text("Yes."))
    gemini(provider, "-s", "mine", "read a.txt", model="custom/gemini-2.5-test")
    provider.forget_prefix()
    assert gemini(provider, "-s", "mine", "sure?", model="custom/gemini-3-test").stdout == "Yes.\n"
    signed = [part["thoughtSignature"] for part in contents(provider.requests[2])[1]["parts"]]
    assert signed == ["skip_thought_signature_validator"]


def test_an_unreadable_call_is_tried_once_more(provider: ProviderServer) -> None:
    spoilt = stream(said(finish="MALFORMED_FUNCTION_CALL"))
    provider.script(spoilt, text("Here."), spoilt, spoilt)
    assert gemini(provider, "go").stdout == "Here.\n"
    failed = gemini(provider, "go")
    assert failed.exit_code == 75
    assert "MALFORMED_FUNCTION_CALL" in failed.stderr
    assert len(provider.requests) == 4


def test_spent_day_is_final_but_full_minute_retried(provider: ProviderServer) -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    provider.script(refused(429, "RESOURCE_EXHAUSTED", message, PER_MINUTE, retry_in("0.1s")), text("Now."))
    assert gemini(provider, "go").stdout == "Now.\n"
    provider.script(refused(429, "RESOURCE_EXHAUSTED", message, PER_DAY, retry_in("34.4s")))
    failed = gemini(provider, "go")
    assert failed.exit_code == 75
    assert "resets" in failed.stderr
    assert len(provider.requests) == 3


def test_unknown_field_is_left_out(provider: ProviderServer) -> None:
    where = "tools[0].function_declarations[0]"
    unknown = f"Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at '{where}': Cannot find field."
    provider.script(refused(400, "INVALID_ARGUMENT", unknown), text("Hello."))
    provider.expect_problem("tools differs from the request before")
    assert gemini(provider, "hi").stdout == "Hello.\n"
    declared = provider.requests[1].json["tools"][0]["functionDeclarations"]
    assert all("parametersJsonSchema" not in each for each in declared)
    assert any("parameters" in each for each in declared)


def test_tokens_of_thinking_are_counted_as_output(provider: ProviderServer) -> None:
    ended = {**said(word("Hi"), finish="STOP"), "usageMetadata": counted(29, 15, thoughts=804, cached=9)}
    provider.script(stream(said(word("…")), ended))
    used = gemini(provider, "--json", "hi").json["usage"]
    assert (used["input_tokens"], used["cache_read_tokens"], used["output_tokens"], used["reasoning_tokens"]) == (20, 9, 819, 804)


def test_a_blocked_prompt_is_told_as_refused(provider: ProviderServer) -> None:
    provider.script(stream({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": counted(5, 0)}))
    failed = gemini(provider, "…")
    assert failed.exit_code == 1
    assert "content policy" in failed.stderr
