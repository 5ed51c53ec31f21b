"""The wordings in which servers say what is wrong: they agree on little else.

Patterns for `says`, which is blind to case. None is compiled before the first refusal: most runs never meet one.
"""

from __future__ import annotations

import re

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
CROWDED = r"rate[_ -]?limit|too many requests|throttl|concurrency|resource_exhausted"
BROKEN = r"overloaded|server_error|internal|unavailable|timed? ?out|temporar|try again|upstream|bad gateway|capacity"
INVALID = (
    r"\binvalid_[a-z]|bad_request|validation|unsupported|not[_ ]supported|not_found|does not exist|"
    r"\b(?:image|file|audio)_[a-z]|_(?:image|file|audio)\b"
)
UNKNOWN_MODEL = r"model\S* .{0,80}(?:not found|not exist|does not exist|unknown)|model_not_found|no such model|^model: \S+"
REASONING_WITH_TOOLS = r"function tools with reasoning_effort are not supported"
"""OpenAI's newest models, when both are asked for."""
OPTIONAL_FIELDS = (
    "stream_options",
    "parallel_tool_calls",
    "tool_stream",
    "tool_choice",
    "chat_template_kwargs",
    "enable_thinking",
    "thinking_budget",
    "reasoning_effort",
    "reasoning_content",
    "reasoning_details",
    "response_format",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "prompt_cache_key",
    "do_sample",
    "temperature",
    "top_p",
    "cache_control",
    "output_config",
    "stop_sequences",
    "signature",
    "thinking",
    "think",
    "reasoning",
    "stop",
    "developer",
)
"""What we may add to a request and can leave out again, in the order in which a refusal is searched for them."""
FIELDS_BY_PARAM = ("include", "summary", "effort", "verbosity")
"""The same, but words that a refusal may use as well: only what it says it is about counts."""
RESULT_NAME = r"\bmessages\W{0,3}\d+\W{0,3}(?:tool\W)?name\b|\bproperty \W?name\W? is (?:unsupported|not supported)"
"""The `name` of a result is refused: the same key of a tool or a call cannot be left out."""
MEDIA = {
    "images": r"\b(?:input_)?images?(?:_url)?\b|\bvision\b|\bmultimodal\b|\bmmproj\b",
    "audio": r"\b(?:input_)?audio\b",
    "files": r"\b(?:input_)?file(?:_data)?\b|\bpdf\b|\bdocuments?\b",
}
"""How a refusal names what was attached, under the names of the flags that allow it."""
NO_MEDIA = (
    r"(?:image|audio|vision|multimodal|file) (?:inputs? )?(?:is|are) not supported|"
    r"support(?:s|ed)? (?:for )?(?:image|audio|vision|multimodal|file)|mmproj"
)
SECRETS = r"(?i:bearer)\s+\S+|\bsk-[\w*-]{6,}|\b[0-9a-f]{32}\.\w{16}\b"
"""What looks like a key, for `re.sub`: servers repeat what they were sent."""


def says(pattern: str, words: str) -> bool:
    return re.search(pattern, words, re.IGNORECASE) is not None
