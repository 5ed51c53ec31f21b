"""Checks that several linters share: names, arguments, schemas, a stable prefix."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def list_problems(body: Mapping[str, Any], field: str, is_valid: Callable[[Any], bool], expected: str) -> list[str]:
    """Problems that make further checks of the conversation in `field` impossible."""
    items = body.get(field)
    if not isinstance(items, list) or not items:
        return [f"{field} must be a non-empty list"]
    return [f"{field}[{at}] is no {expected}" for at, item in enumerate(items) if not is_valid(item)]


def order_problems(field: str, roles: Sequence[Any], *, strict_template: bool) -> Iterator[str]:
    """System messages come first; `strict_template` refuses two user messages in a row."""
    if "user" not in roles:
        yield "no user message at all"
    for at, role in enumerate(roles):
        if at and role in ("system", "developer"):
            yield f"{field}[{at}]: {role} message that is not the first"
        if strict_template and at and role == roles[at - 1] == "user":
            yield f"{field}[{at}]: two user messages in a row"


def tool_problems(
    body: Mapping[str, Any], name_of: Callable[[Any], Any], check: Callable[[Any, Any], Iterator[str]]
) -> Iterator[str]:
    """Problems of the field `tools`; `check` yields those of one tool with its name."""
    if "tools" not in body:
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools:
        yield "empty tools; leave the key out"
        return
    seen: list[Any] = []
    for tool in tools:
        if (name := name_of(tool)) is not None and name in seen:
            yield f"tools: {name!r} is offered twice"
        seen.append(name)
        yield from check(name, tool)


def is_tool_name(name: Any) -> bool:
    return isinstance(name, str) and TOOL_NAME.fullmatch(name) is not None


def is_base64(text: Any, *, strict: bool = False) -> bool:
    """Of either alphabet, padded or not; `strict`: the usual one, padded."""
    if not isinstance(text, str):
        return False
    bare = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        base64.b64decode(text if strict else bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_object_text(arguments: Any) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(json.loads(arguments, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


REFERENCES = ("$ref", "$schema", "$id", "$defs", "definitions")
BY_NAME = ("properties", "patternProperties")
IN_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
ALONE = ("items", "additionalProperties", "not")


def schema_problems(name: Any, schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        yield f"tools: the parameters of {name!r} are no object schema"
        return
    for inner in _all_within(schema):
        yield from (f"tools: {key} in the parameters of {name!r}" for key in REFERENCES if key in inner)
        if inner.get("type") == "array" and "items" not in inner and "prefixItems" not in inner:
            yield f"tools: an array without items in the parameters of {name!r}"
        required, properties = inner.get("required", []), inner.get("properties", {})
        if not isinstance(required, list) or not isinstance(properties, Mapping):
            yield f"tools: malformed properties in the parameters of {name!r}"


def answer_problems(schema: Any, *, requires_all: bool) -> Iterator[str]:
    """Servers that enforce the schema of an answer take only closed objects; `requires_all`: with every property required."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        yield "the schema of the answer is no object schema"
        return
    for inner in _all_within(schema):
        properties = inner.get("properties")
        if inner.get("type") == "object" and (
            inner.get("additionalProperties") is not False or not isinstance(properties, Mapping)
        ):
            yield "the schema of the answer has an object that is not closed"
        elif requires_all and isinstance(properties, Mapping) and set(inner.get("required", ())) != set(properties):
            yield "the schema of the answer has an optional property"


def _all_within(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        yield one
        inner: list[Any] = [one.get(key) for key in ALONE]
        inner += [each for key in IN_LIST for each in one.get(key) or ()]
        inner += [each for key in BY_NAME if isinstance(one.get(key), Mapping) for each in one[key].values()]
        waiting.extend(each for each in inner if isinstance(each, Mapping))


def prefix_problems(
    body: Mapping[str, Any], previous: Mapping[str, Any] | None, *, head: tuple[str, ...], turns: str
) -> Iterator[str]:
    """Check that the previous request is a prefix of this one.

    `head` names fields before the conversation, `turns` the list of messages. New tools may follow the earlier ones, because MCP
    servers can start later. The bodies must be without what may move, such as cache marks. Only the first differing turn is
    reported.
    """
    if previous is None:
        return

    def differs(old: Any, new: Any) -> bool:
        return json.dumps(old) != json.dumps(new)

    for name in head:
        old, new = previous.get(name), body.get(name)
        if differs(*((_flat_tools(old), _flat_tools(new)[: len(_flat_tools(old))]) if name == "tools" and old else (old, new))):
            yield f"{name} differs from the request before"
    before, now = previous.get(turns) or [], body[turns]
    if len(now) < len(before):
        yield f"{turns}: {len(before)} before, only {len(now)} now"
    at = next((at for at, (old, new) in enumerate(zip(before, now, strict=False)) if differs(old, new)), None)
    if at is not None:
        yield f"{turns}[{at}] differs from the request before"


def _flat_tools(tools: Any) -> list[Any]:
    """Tools as a flat list, also where a format nests them."""
    groups = ((each.get("functionDeclarations") if isinstance(each, Mapping) else None, each) for each in tools or ())
    return [tool for within, each in groups for tool in (within if isinstance(within, list) else [each])]
