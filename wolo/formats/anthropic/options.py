"""The fields of a request of the Messages API beside the conversation: limit, thinking, sampling, tools, form of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from wolo.formats.anthropic.dialect import AnthropicDialect
from wolo.formats.encoding.sampling import sampling_of
from wolo.formats.encoding.schema import bend
from wolo.formats.encoding.thinking_levels import nearest
from wolo.formats.encoding.tool_names import to_wire
from wolo.formats.format import Request, ThinkingLevel, ToolSpec
from wolo.messages.message import Message
from wolo.messages.unicode import clean

BUDGETS: Mapping[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 4_096,
    "medium": 10_240,
    "high": 20_480,
    "xhigh": 32_768,
    "max": 63_999,
}
"""Tokens of thinking, where the model counts them."""
LEAST_BUDGET = 1_024
SHARE_OF_THINKING = 0.8
"""Of the limit of an answer at most so much is for thinking: something must be left to say."""
EFFORTS: Mapping[ThinkingLevel, str] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
SMALL_LIMIT = 4_096
"""Every model can write so much: the limit after a server has refused a higher one."""
UNIONS = ("anyOf", "oneOf", "allOf")

Fields = dict[str, Any]


def limit(request: Request, dialect: AnthropicDialect) -> int:
    wanted = request.max_tokens or request.max_output
    if wanted is None:
        wanted = min(dialect.max_tokens, request.context // 2) if request.context else dialect.max_tokens
    if request.max_output:
        wanted = min(wanted, request.max_output)
    return min(wanted, SMALL_LIMIT) if "max_tokens" in request.dropped_fields else max(wanted, 1)


def options(request: Request, dialect: AnthropicDialect, *, may_think: bool) -> Fields:
    """`may_think` False: the history as it is does not allow thinking, so it is turned off for once."""
    fields = thinking(request, dialect, may_think=may_think)
    thinks = fields.get("thinking", {}).get("type") in ("enabled", "adaptive") or (
        "thinking" not in fields and dialect.thinks_unasked
    )
    if not thinks and dialect.sampling == "open":
        fields |= _sampling(request)
    if stop := [each for each in request.stop if each.strip()]:
        fields["stop_sequences"] = stop
    if request.json_schema is not None and dialect.structured_output:
        form = {"type": "json_schema", "schema": closed(bend(request.json_schema))}
        fields["output_config"] = {**fields.get("output_config", {}), "format": form}
    if "effort" in request.dropped_fields and "output_config" in fields:
        fields["output_config"] = {name: value for name, value in fields["output_config"].items() if name != "effort"}
    return {name: value for name, value in fields.items() if name not in request.dropped_fields and value != {}}


def thinking(request: Request, dialect: AnthropicDialect, *, may_think: bool) -> Fields:
    """Nothing when the user said nothing and the server's own default serves."""
    level = request.thinking
    if dialect.thinking_style == "none":
        return {}
    if level is None and not dialect.thinks_unasked:
        return {}
    if level is not None and dialect.thinking_levels:
        level = nearest(level, dialect.thinking_levels)
    shown = {"display": dialect.thinking_display} if dialect.thinking_display else {}
    if level == "off" and dialect.thinking_off == "refused":
        return {"thinking": {"type": "adaptive", **shown}, "output_config": {"effort": "low"}}
    if level == "off":
        return {"thinking": {"type": dialect.thinking_off}}
    if dialect.thinking_style == "adaptive":
        effort = {} if level is None else {"output_config": {"effort": EFFORTS[level]}}
        return {"thinking": {"type": "adaptive", **shown}, **effort}
    budget = min(BUDGETS[level or "medium"], int(limit(request, dialect) * SHARE_OF_THINKING))
    if budget < LEAST_BUDGET or not may_think:
        return {"thinking": {"type": "disabled"}} if dialect.thinks_unasked else {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget, **shown}}


def _sampling(request: Request) -> Fields:
    """One of the two: newer models refuse both together."""
    said = ((name, value) for name, value in sampling_of(request).items() if name not in request.dropped_fields)
    return {name: min(max(value, 0.0), 1.0) for name, value in islice(said, 1)}


# Tools


def offered(tool: ToolSpec) -> Fields:
    schema = without_unions(bend(tool.parameters))
    return {"name": to_wire(tool.name), "description": clean(tool.description), "input_schema": schema}


def remembered(messages: Sequence[Message]) -> list[Fields]:
    """Where calls are to be seen, their tools must be named, also when none is offered."""
    names = dict.fromkeys(to_wire(call.tool) for message in messages if message.role == "assistant" for call in message.calls)
    return [{"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}} for name in names]


def without_unions(schema: Mapping[str, Any]) -> Fields:
    """A union at the root is refused: the properties of its branches become optional ones of the root."""
    plain = {name: value for name, value in schema.items() if name not in UNIONS}
    properties: Fields = {}
    for union in UNIONS:
        for branch in schema.get(union, ()):
            inner = without_unions(branch)
            properties = {**inner.get("properties", {}), **properties}
            if union == "allOf" and "required" in inner:
                plain["required"] = list(dict.fromkeys([*plain.get("required", ()), *inner["required"]]))
    return {**plain, "properties": {**properties, **plain.get("properties", {})}} if properties else plain


def closed(schema: Any) -> Any:
    """Structured answers want every object to say that it holds nothing else."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    return {**inner, "additionalProperties": False} if inner.get("type") == "object" and "properties" in inner else inner
