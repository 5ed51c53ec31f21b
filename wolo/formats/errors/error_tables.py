"""Error codes and wordings of providers, and their meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wolo import errors

Kind = type[errors.ProviderError]

CODES: Mapping[str, Kind] = {
    # OpenAI and compatible servers
    **dict.fromkeys(("rate_limit_exceeded", "engine_overloaded_error", "service_tier_capacity_exceeded"), errors.RateLimited),
    **dict.fromkeys(("request_quota_exceeded", "token_quota_exceeded", "too_many_requests_error"), errors.RateLimited),
    **dict.fromkeys(("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"), errors.QuotaExhausted),
    **dict.fromkeys(("exceeded_current_quota_error", "budget_exceeded"), errors.QuotaExhausted),
    **dict.fromkeys(("invalid_api_key", "invalid_authentication_error"), errors.AuthError),
    "unsupported_country_region_territory": errors.AuthError,
    **dict.fromkeys(("context_length_exceeded", "contextwindowexceedederror"), errors.ContextOverflow),
    **dict.fromkeys(("content_filter", "content_policy_violation", "responsibleaipolicyviolation"), errors.ContentRefused),
    "model_not_found": errors.BadRequest,
    "tool_use_failed": errors.BadAnswer,
    # Anthropic
    "rate_limit_error": errors.RateLimited,
    "overloaded_error": errors.Unavailable,
    "billing_error": errors.QuotaExhausted,
    **dict.fromkeys(("authentication_error", "permission_error"), errors.AuthError),
    "request_too_large": errors.ContextOverflow,
    # Google
    **dict.fromkeys(("api_key_invalid", "api_key_expired", "unauthenticated"), errors.AuthError),
    **dict.fromkeys(("permission_denied", "service_disabled"), errors.AuthError),
    # Amazon
    **dict.fromkeys(("throttlingexception", "toomanyrequestsexception"), errors.RateLimited),
    "servicequotaexceededexception": errors.QuotaExhausted,
    **dict.fromkeys(("accessdeniedexception", "expiredtokenexception", "unrecognizedclientexception"), errors.AuthError),
    **dict.fromkeys(("modelnotreadyexception", "modeltimeoutexception", "modelerrorexception"), errors.Unavailable),
    **dict.fromkeys(("serviceunavailableexception", "internalserverexception"), errors.Unavailable),
    # DashScope
    "arrearage": errors.QuotaExhausted,
    **dict.fromkeys(("data_inspection_failed", "datainspectionfailed"), errors.ContentRefused),
    "invalidapikey": errors.AuthError,
    **dict.fromkeys(("throttling.ratequota", "throttling.burstrate"), errors.RateLimited),
}

RETRYABLE_CODES = frozenset({"tool_use_failed"})
"""The server could not parse the model's tool call; a retry usually succeeds."""


def kind_of(codes: Iterable[str], status: int) -> tuple[str, Kind] | None:
    """First known code, as written, and its error class.

    With status 413 a rate limit code means the request itself is too large, so it is skipped.
    """
    for written in codes:
        code = re.sub(r"^.*[#/]", "", written).partition(":")[0].strip().lower()
        if code in CODES and not (status == 413 and CODES[code] is errors.RateLimited):
            return code, CODES[code]
    return None


GLM_CODES: Mapping[str, tuple[type[errors.ProviderError], bool]] = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), (errors.AuthError, False)),
    **dict.fromkeys(("1100", "1110", "1111", "1112", "1121"), (errors.AuthError, False)),  # account locked or missing
    "1113": (errors.QuotaExhausted, False),  # no balance, or a plan key on the general endpoint
    "1120": (errors.Unavailable, True),  # account temporarily unavailable
    **dict.fromkeys(("1200", "1230"), (errors.Unavailable, True)),
    **dict.fromkeys(("1210", "1211", "1212", "1213", "1214", "1215"), (errors.BadRequest, False)),
    "1220": (errors.AuthError, False),
    **dict.fromkeys(("1221", "1222", "1231"), (errors.BadRequest, False)),
    "1234": (errors.Unavailable, True),
    "1261": (errors.ContextOverflow, False),
    **dict.fromkeys(("1300", "1301"), (errors.ContentRefused, False)),
    **dict.fromkeys(("1302", "1303", "1305", "1312"), (errors.RateLimited, True)),
    **dict.fromkeys(("1304", "1308", "1309", "1310", "1311", "1313"), (errors.QuotaExhausted, False)),
    **dict.fromkeys(("1316", "1317", "1318", "1319", "1320", "1321"), (errors.QuotaExhausted, False)),
}
"""Code → error class, and whether a retry may help."""

GLM_FINAL = r"1[23]\d\d"
"""Code families for parameters, content and plans; unknown codes in them are final too."""

TEMPORARY_QUOTAS = frozenset({"1304", "1308", "1310", "1316", "1317", "1318", "1319", "1320", "1321"})
"""Quotas that reset by themselves even if the message does not say when."""


OVERFLOW = (
    r"context_length_exceeded|prompt is too long|exceeds? (?:the )?(?:model'?s )?context (?:window|length|limit)|"
    r"maximum context length|"
    r"input token count .*exceeds the maximum|maximum prompt length is|reduce the length of the (?:messages|prompt|input)|"
    r"exceeds the available context size|greater than the context length|exceeded model token limit|"
    r"too large for model with \d+ maximum context|context window exceeds limit|exceeds the limit of \d+|"
    r"context (?:window|length|size|limit)\D{0,30}(?:exceed|overflow|too (?:long|large|small))|"
    r"(?:input|prompt|conversation|messages?) (?:(?:is|are) )?too (?:long|large)|too many (?:input )?tokens|"
    r"exceed(?:s|ed) max(?:imum)? context|longer than the context (?:length|window|size)|"
    r"(?:input|prompt) (?:length )?exceeds|no user query found in messages"
)
QUOTA = (
    r"insufficient[_ ](?:quota|balance|credits?|funds)|billing|credit balance|out of credits|no balance|quota[_ ]exceeded|"
    r"exceeded your (?:current )?quota|payment required|余额|arrear|(?:more|all available|enough) credits|spending limit|"
    r"budget has been exceeded|in good standing"
)
DAILY = r"\bper[- ]day\b|\bdaily\b|\b[RT]PD\b"
REFUSED = (
    r"content[_ ]?(?:filter|policy|management)|responsibleaipolicy|sensitive (?:content|word)|safety (?:system|filter)|"
    r"flagged|moderation|data_inspection_failed|不安全|敏感"
)
BAD_KEY = (
    r"api[ _-]?key (?:is |has )?(?:not valid|expired|invalid|incorrect)|(?:invalid|incorrect|expired|wrong) (?:x-)?api[ _-]?key|"
    r"AuthenticationError"
)
NO_MEMORY = r"requires more (?:system |gpu )?memory|out of memory|unable to load model|failed to load model"
NO_TOOLS = r"does not support (?:tools|function)|endpoints? found that supports? tool use|tool use is not supported"
NO_THINKING = r"does not support (?:thinking|reasoning)"
NOT_PULLED = r"^model ['\"]([^'\"]+)['\"] not found(?:, try pulling it first)?$"
AUTH = r"authentication|unauthorized|permission|(?:invalid|incorrect|missing|expired|no) (?:api[ _-]?)?(?:key|token)"
RATE_LIMITED = r"rate[_ -]?limit|too many requests|throttl|concurrency|resource_exhausted"
SERVER_FAILED = r"overloaded|server_error|internal|unavailable|timed? ?out|temporar|try again|upstream|bad gateway|capacity"
INVALID = (
    r"\binvalid_[a-z]|bad_request|validation|unsupported|not[_ ]supported|not_found|does not exist|"
    r"\b(?:image|file|audio)_[a-z]|_(?:image|file|audio)\b"
)
UNKNOWN_MODEL = r"model\S* .{0,80}(?:not found|not exist|does not exist|unknown)|model_not_found|no such model|^model: \S+"
REASONING_WITH_TOOLS = r"function tools with reasoning_effort are not supported"
"""Refused by OpenAI's newest models when both are requested."""
OPTIONAL_FIELDS = (
    *("stream_options", "parallel_tool_calls", "tool_stream", "tool_choice", "chat_template_kwargs", "enable_thinking"),
    *("thinking_budget", "reasoning_effort", "reasoning_content", "reasoning_details", "response_format"),
    *("max_completion_tokens", "max_output_tokens", "max_tokens", "prompt_cache_key", "do_sample", "temperature", "top_p"),
    *("cache_control", "output_config", "stop_sequences", "signature", "thinking", "think", "reasoning", "stop"),
    "developer",
)
"""Optional request fields that can be dropped, in search order."""
FIELDS_BY_PARAM = ("include", "summary", "effort", "verbosity")
"""Also optional, but common words: matched only in the error's `param`."""
RESULT_NAME = r"\bmessages\W{0,3}\d+\W{0,3}(?:tool\W)?name\b|\bproperty \W?name\W? is (?:unsupported|not supported)"
"""The `name` of a tool result is refused; in tools and calls it is required."""
MEDIA = {
    "images": r"\b(?:input_)?images?(?:_url)?\b|\bvision\b|\bmultimodal\b|\bmmproj\b",
    "audio": r"\b(?:input_)?audio\b",
    "files": r"\b(?:input_)?file(?:_data)?\b|\bpdf\b|\bdocuments?\b",
}
"""Patterns of refused attachments, by dialect flag."""
NO_MEDIA = (
    r"(?:image|audio|vision|multimodal|file) (?:inputs? )?(?:is|are) not supported|"
    r"support(?:s|ed)? (?:for )?(?:image|audio|vision|multimodal|file)|mmproj"
)
SECRETS = r"(?i:bearer)\s+\S+|\bsk-[\w*-]{6,}|\b[0-9a-f]{32}\.\w{16}\b"
"""Patterns of API keys, since servers repeat what they received."""


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
