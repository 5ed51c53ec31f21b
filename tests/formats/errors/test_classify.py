"""Refusals: from status, headers and body to what they mean, whether to try again, and what a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from wolo.errors import (
    AuthError,
    BadAnswer,
    BadRequest,
    ContentRefused,
    ContextOverflow,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from wolo.formats.errors.classify import CHECK_BASE_URL, classify
from wolo.formats.format import Request
from wolo.formats.openai_chat import ChatDialect, OpenAIChat
from wolo.messages.message import Producer, user

NOON = 1_790_000_000.0  # 2026-09-21T14:13:20Z

ROWS = [json.loads(line) for line in Path(__file__).with_name("refusals.jsonl").read_text(encoding="utf-8").splitlines()]
"""Refusals as providers word them, all come at noon, and what each means."""


def refused(status: int, body: Any = "", headers: Mapping[str, str] | None = None, **more: Any) -> ProviderError:
    return classify(status, headers or {}, body, now_s=NOON, **more)


def glm(code: Any, message: str = "text", status: int = 429) -> ProviderError:
    return refused(status, json.dumps({"error": {"code": code, "message": message}}).encode())


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_each_provider_is_understood_in_its_own_words(row: dict[str, Any]) -> None:
    body = row["body"] if isinstance(row["body"], str) else json.dumps(row["body"])
    error = refused(row["status"], body.encode(), row.get("headers"))
    assert (error.kind, error.retryable, error.exit_code) == (row["kind"], row["retryable"], row["exit_code"])
    delay_s = row.get("delay_s")
    assert error.delay_s == (None if delay_s is None else pytest.approx(delay_s, abs=0.01))
    assert error.resets_at == row.get("resets_at")
    if isinstance(error, AuthError | QuotaExhausted | ContentRefused) and error.exit_code == 1:
        assert error.hint


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (404, {"error": "model 'qwen9' not found"}, "ollama pull qwen9"),
        (404, {"error": {"message": 'model "qwen9" not found, try pulling it first'}}, "ollama pull qwen9"),
        (400, {"error": "registry.ollama.ai/library/gemma:2b does not support tools"}, "can call tools"),
        (400, {"error": '"gemma" does not support thinking'}, "--thinking"),
        (500, {"error": "model requires more system memory (9.2 GiB) than is available (3.1 GiB)"}, "smaller model"),
        (404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}, "deployment"),
        (404, {"error": {"message": "No endpoints found that support tool use."}}, "can call tools"),
        (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-x"}}, "wolo models list"),
        (402, {"error": {"message": "Insufficient Balance"}}, "balance"),
    ],
)
def test_a_person_reads_what_to_do_now(status: int, body: Any, hint: str) -> None:
    assert hint in refused(status, json.dumps(body).encode()).hint


def test_router_error_names_provider_and_its_words() -> None:
    raw = json.dumps({"error": {"message": "slow down"}})
    error = refused(429, {"error": {"message": "Provider returned error", "metadata": {"raw": raw, "provider_name": "Chutes"}}})
    assert error.message == "Provider returned error (Chutes): slow down"


GLM_ROWS: list[tuple[str, type[ProviderError], bool, int]] = [
    *(
        (code, AuthError, False, 1)
        for code in ("1000", "1001", "1002", "1003", "1004", "1100", "1110", "1111", "1112", "1121", "1220")
    ),
    *((code, BadRequest, False, 1) for code in ("1219", "1299", "1314", "1399")),
    *((code, Unavailable, True, 75) for code in ("500", "1120", "1200", "1230", "1234")),
    *((code, BadRequest, False, 1) for code in ("1210", "1211", "1212", "1213", "1214", "1215", "1221", "1222", "1231")),
    *((code, ContentRefused, False, 1) for code in ("1300", "1301")),
    *((code, RateLimited, True, 75) for code in ("1302", "1303", "1305", "1312")),
    *((code, QuotaExhausted, False, 75) for code in ("1304", "1308", "1310", "1316", "1321")),
    *((code, QuotaExhausted, False, 1) for code in ("1113", "1309", "1311", "1313")),
]


@pytest.mark.parametrize(("code", "kind", "retryable", "exit_code"), GLM_ROWS)
def test_glm_codes_decide_whatever_the_status(code: str, kind: type[ProviderError], retryable: bool, exit_code: int) -> None:
    statuses = (200, 500) if code == "500" else (200, 400, 429, 500)  # a plain status: it counts where no other status does
    for status, said in product(statuses, (code, int(code))):
        error = glm(said, status=status)
        found = (type(error), error.retryable, error.code, error.exit_code)
        assert found == (kind, retryable, code, exit_code), (status, said)


def test_glms_reset_time_is_beijing_time() -> None:
    error = glm("1308", "Usage limit reached for 5 hour. Your limit will reset at 2026-11-22 03:04:05")
    assert isinstance(error, QuotaExhausted)
    assert error.resets_at == "2026-11-22T03:04:05+08:00"
    assert error.exit_code == 75
    assert "2026-11-22 03:04:05" in error.message


def test_malformed_reset_time_is_passed_over() -> None:
    for stated in ("2026-13-45 99:99:99", "0001-01-01 00:00:00Z", "9999-12-31 23:59:59-12:00", "2027-01-01 00:00:00+99:99"):
        assert glm("1308", f"will reset at {stated}").resets_at is None, stated


def test_other_glm_endpoint_puts_code_into_message() -> None:
    error = refused(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "[1313][Fair use][2026112103]"}})
    assert (type(error), error.code, error.message) == (QuotaExhausted, "1313", "Fair use")


def test_plan_key_on_general_endpoint_is_explained() -> None:
    assert "coding endpoint" in glm("1113").hint


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, BadRequest, False),
        (401, AuthError, False),
        (402, QuotaExhausted, False),
        (403, AuthError, False),
        (404, BadRequest, False),
        (405, BadRequest, False),
        (408, Unavailable, True),
        (409, Unavailable, True),
        (413, ContextOverflow, False),
        (422, BadRequest, False),
        (429, RateLimited, True),
        (434, AuthError, False),
        (435, BadRequest, False),
        (500, Unavailable, True),
        (502, Unavailable, True),
        (503, Unavailable, True),
        (504, Unavailable, True),
        (529, Unavailable, True),
    ],
)
def test_without_a_better_word_the_status_decides(status: int, kind: type[ProviderError], retryable: bool) -> None:
    error = refused(status, {"error": {"message": "no"}})
    assert (type(error), error.retryable, error.status) == (kind, retryable, status)


@pytest.mark.parametrize(
    "wording",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Your input exceeds the context window of this model",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens",
        "the request exceeds the available context size, try increasing it",
        "tokens to keep from the initial prompt is greater than the context length",
        "Invalid request: Your request exceeded model token limit: 262144",
        "Prompt contains 999 tokens, too large for model with 32768 maximum context length",
        "invalid params, context window exceeds limit",
        "prompt token count of 203524 exceeds the limit of 128000",
        "no user query found in messages",
    ],
)
@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_full_window_is_recognised_by_its_wording(wording: str, status: int) -> None:
    assert type(refused(status, {"error": {"message": wording}})) is ContextOverflow
    assert type(refused(status, wording.encode())) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, b""),
        (413, {}),
        (400, {"error": {"code": "context_length_exceeded", "message": "no"}}),
        (500, {"error": {"code": 1261}}),
    ],
)
def test_full_window_is_recognised_by_code_and_silence(status: int, body: Any) -> None:
    assert type(refused(status, body)) is ContextOverflow


def test_tokens_per_minute_are_no_full_window() -> None:
    text = (
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000. Reduce the length of the messages."
    )
    assert type(refused(429, {"error": {"code": "rate_limit_exceeded", "message": text}})) is RateLimited


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (
            429,
            {"code": "insufficient_quota", "message": "You exceeded your current quota, please check your plan"},
            QuotaExhausted,
        ),
        (403, {"type": "billing_error", "message": "pay"}, QuotaExhausted),
        (400, {"message": "Your credit balance is too low to access the API"}, QuotaExhausted),
        (402, {"message": "Insufficient Balance"}, QuotaExhausted),
        (400, {"code": "content_filter", "message": "triggering content management policy"}, ContentRefused),
        (500, {"message": "blocked by content_filter"}, ContentRefused),
        (404, {"code": "model_not_found", "message": "The model `x` does not exist"}, BadRequest),
    ],
)
def test_codes_and_wordings_say_more_than_the_status(status: int, error: Any, kind: type[ProviderError]) -> None:
    refusal = refused(status, {"error": error})
    assert type(refusal) is kind
    assert not refusal.retryable


# How long to wait


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Mon, 21 Sep 2026 14:13:50 GMT"}, 30.0),
        ({"retry-after": "Monday, 21-Sep-26 14:13:50 GMT"}, 30.0),
        ({"retry-after": "Mon, 21 Sep 2020 14:13:50 GMT"}, None),
        ({"retry-after": "Mon, 99 Sep 2026 14:13:50 GMT"}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "-1", "retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
    ],
)
def test_wait_is_read_in_every_form_never_negative(headers: dict[str, str], delay_s: float | None) -> None:
    error = refused(429, {"error": {"message": "slow down"}}, headers)
    assert isinstance(error, RateLimited)
    assert error.delay_s == delay_s


@pytest.mark.parametrize(
    ("body", "delay_s"),
    [
        ({"error": {"message": "quota", "details": [{"@type": "x"}, {"retryDelay": "34.4s"}]}}, 34.4),
        ({"error": {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": 90}}, 90),
        ({"error": {"message": "limit", "resets_at": None, "reset_at": [1]}}, None),
        ({"error": {"message": "Rate limit reached. Please try again in 1.2s."}}, 1.2),
        ({"error": {"message": "Please try again in 1m30s"}}, 90.0),
        ({"error": {"message": "Please retry after 20ms"}}, 0.02),
        ({"error": {"message": "You exceeded your current quota. Please retry in 12s."}}, 12.0),
    ],
)
def test_the_wait_may_stand_in_the_body(body: Any, delay_s: float) -> None:
    error = refused(429, body)
    assert isinstance(error, RateLimited)
    assert error.delay_s == pytest.approx(delay_s)


@pytest.mark.parametrize("after", ["121", "86400", "Tue, 22 Sep 2026 14:13:20 GMT", "1e300"])
def test_long_wait_stops_and_names_its_end(after: str) -> None:
    for status in (429, 503):
        error = refused(status, {"error": {"message": "later"}}, {"retry-after": after})
        assert isinstance(error, QuotaExhausted)
        assert error.exit_code == 75
        assert error.resets_at is not None
        assert error.resets_at.endswith("+00:00")
        assert not error.retryable


def test_far_reset_is_a_stop_too() -> None:
    error = refused(429, {"error": {"message": "Limit reached, resets at 2026-09-22T00:00:00Z"}})
    assert (type(error), error.resets_at) == (QuotaExhausted, "2026-09-22T00:00:00+00:00")
    soon = glm("1302", "reset at 2026-09-21 22:14:20")
    assert (type(soon), soon.delay_s) == (RateLimited, 60.0)


@pytest.mark.parametrize(("said", "status", "retryable"), [("false", 500, False), ("true", 400, True), ("maybe", 400, False)])
def test_the_servers_own_word_on_trying_again_counts(said: str, status: int, retryable: bool) -> None:
    assert refused(status, {"error": {"message": "x"}}, {"x-should-retry": said}).retryable is retryable


# What a person reads


PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title><style>p{}</style></head><body><script>x()</script><p>Welcome&nbsp;back"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, BadAnswer), (404, BadRequest), (401, AuthError), (403, AuthError), (502, Unavailable), (429, RateLimited)],
)
def test_a_web_page_is_shown_as_its_words(status: int, kind: type[ProviderError]) -> None:
    error = refused(status, PAGE)
    assert type(error) is kind
    assert f"HTTP {status}" in error.message
    assert error.message.endswith("Sign in Welcome back")
    assert "<" not in error.message
    assert error.hint


def test_a_missing_path_hints_at_the_base_url() -> None:
    assert refused(404, b"404 page not found").hint == CHECK_BASE_URL
    assert "wolo models list" in refused(404, {"error": {"message": "model 'x' not found, try pulling it first"}}).hint


def test_refused_key_shows_the_provider_hint() -> None:
    chat = OpenAIChat(ChatDialect(), provider_hint="Set ZAI_API_KEY.")
    error = chat.read_error(401, {}, b'{"error": {"message": "bad key"}}')
    assert isinstance(error, AuthError)
    assert error.hint == "Set ZAI_API_KEY."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "told"}}, "told"),
        ({"error": "told"}, "told"),
        ({"message": "told"}, "told"),
        ({"detail": "told"}, "told"),
        ({"detail": [{"msg": "told", "loc": ["body"]}]}, "told"),
        ({"errors": [{"message": "told"}]}, "told"),
        ([{"error": {"message": "told"}}], "told"),
        ({"error": {"error": {"message": "told"}}}, "told"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "told"}}}, "Provider returned error: told"),
        ("told", "told"),
        ({"error": {"message": "to\x00l\nd"}}, "to l d"),
        ({}, "The provider refused the request without a reason (HTTP 418)."),
        ("", "The provider refused the request without a reason (HTTP 418)."),
    ],
)
def test_the_message_is_found_in_every_wrapping(body: Any, message: str) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    assert refused(418, raw).message == message


def test_a_message_without_end_is_cut() -> None:
    assert len(refused(400, b"x" * 100_000).message) < 1000


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"error": {"message": "Unrecognized request argument supplied: stream_options", "param": None}}, "stream_options"),
        ({"error": {"message": "Unsupported parameter", "param": "reasoning_effort"}}, "reasoning_effort"),
        (
            {
                "error": {
                    "message": "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                    "param": "max_tokens",
                }
            },
            "max_tokens",
        ),
        (
            {"detail": [{"loc": ["body", "parallel_tool_calls"], "msg": "Extra inputs are not permitted: parallel_tool_calls"}]},
            "parallel_tool_calls",
        ),
        (
            {
                "error": {
                    "message": "messages[2]: property 'reasoning_content' is unsupported",
                    "param": "messages[2].reasoning_content",
                }
            },
            "reasoning_content",
        ),
        ({"error": {"code": "1210", "message": "This model always engages in thinking and cannot be disabled"}}, "thinking"),
        ({"error": {"message": "bad value for temperature"}}, "temperature"),
        ({"error": {"message": "messages.0.role: developer is not one of system, user"}}, "developer"),
        ({"error": {"message": "the messages are wrong", "param": "messages"}}, None),
        ({"error": {"message": "we are rethinking this"}}, None),
    ],
)
def test_the_optional_field_that_was_refused_is_named(body: Any, field: str | None) -> None:
    error = refused(400, body)
    assert isinstance(error, BadRequest)
    assert error.field == field


def test_tools_beside_reasoning_get_advice_keeping_fields() -> None:
    text = "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. Use /v1/responses."
    error = refused(400, {"error": {"message": text}})
    assert error.field is None
    assert "thinking" in error.hint


@pytest.mark.parametrize(
    "leak",
    ["Bearer abcdef123456", "sk-proj-abcdefghijkl", "0123456789abcdef0123456789abcdef.AbCdEfGhIjKlMnOp"],
)
def test_no_key_is_ever_repeated(leak: str) -> None:
    for body in ({"error": {"message": f"Incorrect API key provided: {leak}."}}, f"<html><p>{leak}</p>", f"got {leak}"):
        raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        error = refused(401, raw)
        assert leak.removeprefix("Bearer ") not in f"{error} {error.message} {error.hint} {error!r}"


@given(
    st.integers(0, 599),
    st.dictionaries(
        st.sampled_from(
            [
                "retry-after",
                "retry-after-ms",
                "x-should-retry",
                "x-ratelimit-reset-requests",
                "x-ratelimit-remaining-requests",
                "anthropic-ratelimit-tokens-reset",
            ]
        ),
        st.text(max_size=8)
        | st.floats().map(str)
        | st.from_regex(r"\A(\d{1,6}(\.\d)?(ms|[dhms])){1,3}\Z")
        | st.datetimes().map(lambda instant: instant.isoformat() + "Z"),
        max_size=4,
    ),
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["error", "code", "message", "detail", "details", "metadata", "type", "param"]), inner
                )
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)
def test_no_refusal_brings_the_classifier_down(status: int, headers: dict[str, str], body: bytes) -> None:
    error = refused(status, body, headers)
    assert error.message
    assert error.delay_s is None or 0 < error.delay_s < 400 * 86400
    assert error.retryable in (True, False)


def test_unthinking_model_is_asked_again_without_thinking() -> None:
    error = refused(400, {"error": {"message": '"gemma" does not support thinking'}})
    assert error.field == "thinking"
    chat = OpenAIChat(ChatDialect(thinking_param_style="effort"))
    said = Request(model="gemma", producer=Producer(), messages=(user("Hi"),), thinking="high")
    assert b"reasoning_effort" in chat.encode(said)
    assert b"reasoning_effort" not in chat.encode(replace(said, dropped_fields=frozenset({"thinking"})))


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize(
    "other", ["quota exceeded", "flagged by moderation", "invalid api key", "out of memory", "an image is not supported"]
)
def test_full_window_outranks_other_words_of_refusal(status: int, other: str) -> None:
    for words in (f"prompt is too long; {other}", f"{other}: maximum context length is 9000 tokens"):
        assert type(refused(status, {"error": {"message": words}})) is ContextOverflow


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429, 502, 503])
def test_window_words_with_other_status_mean_something_else(status: int) -> None:
    error = refused(status, {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum"}})
    assert type(error) is not ContextOverflow


def test_web_page_about_windows_is_no_full_window() -> None:
    page = b"<html><title>400</title><p>Your prompt is too long</p></html>"
    assert type(refused(400, page)) is BadRequest
