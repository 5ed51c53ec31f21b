"""How servers of Chat Completions differ, as flags: the format asks a flag, never the name of a provider."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from wolo.formats.encoding.wire_names import IdPolicy
from wolo.formats.format import ThinkingLevel

ReasoningReplay = Literal["never", "tool_turns", "always", "always_even_empty"]
ThinkingStyle = Literal["none", "glm", "deepseek", "kimi", "qwen", "template_kwargs", "openrouter", "effort"]


class ChatDialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The defaults fit a server nothing is known about."""

    # What goes out

    system_role: Literal["system", "developer", "user"] = "system"
    """In which role the prompt goes."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of an answer is called."""
    usage_option: bool = True
    """Ask for token counts with `stream_options`."""
    content_null_ok: bool = True
    """Calls without text carry `content: null`; otherwise an empty string."""
    alternate_roles: bool = True
    """No two user messages in a row."""
    assistant_between_tool_and_user: bool = False
    """A short message of the assistant stands between results and what the user says next."""
    tool_result_name: bool = True
    """Tool messages carry the name of the tool."""
    id_policy: IdPolicy = "opaque"
    """What a call id may look like: up to 40 printable or safe characters, 64 safe ones, or exactly 9 letters and digits."""
    cache_marks: bool = False
    """Say with `cache_control` what is to be kept in the cache (models of Anthropic behind OpenRouter)."""
    reserved_tool_names: tuple[str, ...] = ()
    """Names the model takes for its own built-in tools; ours go under another name."""

    strict_field: bool = False
    """Functions say `strict: false`."""
    schema_null_types: bool = True
    """Schemas may name the type null."""
    parallel_flag: bool = False
    """Say `parallel_tool_calls: true`."""
    tool_choice_levels: tuple[str, ...] = ()
    """Where it holds "auto", that is said; by default it goes without saying."""
    tool_stream: bool = False
    """Ask for argument fragments as they are written (GLM is silent until they are complete otherwise)."""

    thinking_param_style: ThinkingStyle = "none"
    """In which words a thinking level is said; `none`: it is not."""
    thinking_levels: tuple[ThinkingLevel, ...] = ()
    """The levels this model knows; empty: all. Others become the nearest one above, or the highest."""
    sampling: Literal["open", "glm", "fixed"] = "open"
    """`glm`: kept within 0…1, and 0 turns sampling off; `fixed`: temperature and top_p are refused."""
    stop_sequences: bool = True
    """Answers may be asked to end at words of the caller's; models that think often refuse that."""
    response_format: Literal["json_schema", "json_object", "none"] = "json_schema"
    """What an answer can be held to: a schema, to be any JSON, or nothing."""

    images: bool = True
    """Takes images."""
    image_style: Literal["url", "data", "bare"] = "url"
    """`url`: addresses and data URLs; `data`: data URLs only; `bare`: addresses, and base64 without a prefix."""
    audio: bool = False
    """Takes sound."""
    files: bool = False
    """Takes PDF."""

    # Reasoning

    reasoning_field: str = "auto"
    """Where reasoning comes: a field's name, or the first known one that holds any."""
    reasoning_replay: ReasoningReplay = "always"
    """Which assistant messages carry their reasoning back; never to another producer."""

    # What comes in

    think_tags: bool = True
    """Text that opens with a think tag is reasoning up to the closing tag."""
    leaked_calls: bool = True
    """A call of an offered tool that was written as text, at the end and alone, counts as a call when there is no other. False
    for hosted providers of the catalogue, unless `models probe` found that theirs come so."""
    leaked_in_reasoning: bool = False
    """So does one at the end of the reasoning, when the answer says nothing else."""
