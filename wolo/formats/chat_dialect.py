"""Differences between Chat Completions servers, as flags; the format never checks provider names."""

# No `from __future__ import annotations`: msgspec would compile the text of each annotation at every start.

from typing import Literal

from msgspec import Struct

from wolo.formats.encoding.wire_forms import IdPolicy
from wolo.formats.format import ThinkingLevel

ReasoningReplay = Literal["never", "tool_turns", "always", "always_even_empty"]
ThinkingStyle = Literal["none", "glm", "deepseek", "kimi", "qwen", "template_kwargs", "openrouter", "effort"]


class ChatDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Defaults fit an unknown server."""

    # Requests

    system_role: Literal["system", "developer", "user"] = "system"
    """Role of the system prompt."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Field name of the output limit."""
    usage_option: bool = True
    """Request token counts with `stream_options`."""
    content_null_ok: bool = True
    """Calls without text send `content: null`; otherwise an empty string."""
    alternate_roles: bool = True
    """Refuses two user messages in a row."""
    assistant_between_tool_and_user: bool = False
    """Requires an assistant message between results and the next user message."""
    tool_result_name: bool = True
    """Tool messages carry the tool name."""
    id_policy: IdPolicy = "opaque"
    """Accepted call ids: up to 40 printable or safe characters, 64 safe ones, or exactly 9 alphanumerics."""
    cache_marks: bool = False
    """Send `cache_control` (Anthropic models behind OpenRouter)."""
    reserved_tool_names: tuple[str, ...] = ()
    """Names of the model's built-in tools; ours are renamed."""

    strict_field: bool = False
    """Functions send `strict: false`."""
    schema_null_types: bool = True
    """Schemas may use the type null."""
    parallel_flag: bool = False
    """Send `parallel_tool_calls: true`."""
    tool_choice_levels: tuple[str, ...] = ()
    """Levels at which `tool_choice: "auto"` is sent; otherwise it is omitted."""
    tool_stream: bool = False
    """Request streamed arguments (GLM otherwise sends them only when complete)."""

    thinking_param_style: ThinkingStyle = "none"
    """Parameter style for thinking levels; `none`: omitted."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """Supported levels; empty: all. Others map to the next higher level, or the highest."""
    sampling: Literal["open", "glm", "fixed"] = "open"
    """`glm`: clamped to 0…1, and 0 disables sampling; `fixed`: temperature and top_p are refused."""
    stop_sequences: bool = True
    """Supports stop sequences; thinking models often refuse them."""
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    """Supported response formats."""

    web_search: bool = False
    """Searches the web with a tool of the type `web_search` (GLM)."""

    images: bool = True
    """Supports images."""
    image_style: Literal["url", "data", "bare"] = "url"
    """`url`: URLs and data URLs; `data`: data URLs only; `bare`: URLs, and base64 without prefix."""
    audio: bool = False
    """Supports audio."""
    files: bool = False
    """Supports PDF."""

    # Reasoning

    reasoning_field: str = "auto"
    """Field name of reasoning; `auto`: the first known field with content."""
    reasoning_replay: ReasoningReplay = "always"
    """Assistant messages whose reasoning is replayed; never to another producer."""

    # Responses

    think_tags: bool = True
    """Text starting with a think tag is reasoning up to the closing tag."""
    leaked_calls: bool = True
    """Accept a call of an offered tool written as text, if it is alone at the end and there is no native call. False for hosted
    catalogue providers unless `models probe` found it necessary."""
    leaked_in_reasoning: bool = False
    """Also accept one at the end of the reasoning if there is no other text."""
