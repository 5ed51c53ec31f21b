"""Calls in the forms that servers accept: their ids, tool names and schemas, arguments and results."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Any, Literal

import msgspec

from wolo.formats.format import ToolSpec
from wolo.formats.tolerant_json import read_json
from wolo.messages.parts import Outcome, ToolPart
from wolo.messages.unicode import clean, whole

IdPolicy = Literal["opaque", "openai", "responses", "anthropic", "mistral"]
"""Accepted call ids: up to 40 printable or safe characters, 64 safe ones, or exactly 9 alphanumerics."""

LEGAL_IDS: dict[IdPolicy, str] = {
    "opaque": r"[!-~]{1,40}",
    "openai": r"[A-Za-z0-9_-]{1,40}",
    "responses": r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]",
    "anthropic": r"[A-Za-z0-9_-]{1,64}",
    "mistral": r"[A-Za-z0-9]{9}",
}


def wire_id(own: str, policy: IdPolicy, taken: Collection[str]) -> str:
    """The id itself if legal and unused, else one derived from its hash. `taken` holds all earlier ids.

    Hashing keeps ids with a common prefix different, unlike truncation.
    """
    if re.fullmatch(LEGAL_IDS[policy], own) and own not in taken:
        return own
    for attempt in count(1):
        digest = hashlib.sha256(f"{attempt}\0{own}".encode("utf-8", "surrogatepass")).hexdigest()
        derived = digest[:9] if policy == "mistral" else f"call_{digest[:24]}"
        if derived not in taken:
            break
    return derived


LEGAL_NAME = r"[A-Za-z0-9_-]{1,64}"
_ILLEGAL_CHARACTERS = r"[^A-Za-z0-9_-]+"


def wire_name(name: str, reserved: Collection[str] = ()) -> str:
    """Depends only on the name, so that history keeps its bytes when the tools change."""
    if re.fullmatch(LEGAL_NAME, name) and name not in reserved:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(_ILLEGAL_CHARACTERS, '_', name)[:55] or 'tool'}_{mark}"


def names_by_wire(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Map wire names back to tool names."""
    return {wire_name(name, reserved): name for name in names}


def tool_functions(tools: Iterable[ToolSpec], reserved: Collection[str] = (), *, null_types: bool = True) -> list[dict[str, Any]]:
    """Name, description and parameters of each tool, as most servers take them."""
    return [
        {
            "name": wire_name(tool.name, reserved),
            "description": tool.description,
            "parameters": adapt_schema(tool.parameters, null_types=null_types),
        }
        for tool in tools
    ]


NOT_SENT = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref"})
MAX_NODES = 5000
MAX_DEPTH = 30
"""Limits for expanded references; beyond them a schema accepts anything."""

_SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
_SCHEMAS_IN_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_MUST_HOLD = (*_SCHEMAS_BY_NAME, *_SCHEMAS_IN_LIST)
_SCHEMA_ALONE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


def adapt_schema(schema: Mapping[str, Any], *, null_types: bool = True) -> dict[str, Any]:
    """Resolve references and ensure an object at the root, preserving the meaning where possible.

    Idempotent. `null_types` False also removes null from unions.
    """
    bent = _Adapter(schema, null_types).adapt(schema, (), 0)
    named = bent.get("type", "object")
    if named != "object" and not (isinstance(named, list) and "object" in named):
        bent = _with_description(bent, {})
    return {**bent, "type": "object", "properties": bent.get("properties", {})}


class _Adapter:
    def __init__(self, root: Mapping[str, Any], null_types: bool) -> None:
        self._root, self._null_types = root, null_types
        self._nodes_left = MAX_NODES

    def adapt(self, schema: Any, above: tuple[str, ...], depth: int) -> dict[str, Any]:
        """`above` holds the enclosing references: a repeated one is a cycle and ends here."""
        self._nodes_left -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._nodes_left < 0:
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in above:
                return _with_description(schema, {"type": "object"})
            # References are followed within the document; nothing is fetched.
            target: Any = self._root if reference.startswith("#") else {}
            for step in reference.removeprefix("#").split("/")[1:]:
                name = step.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, Mapping) else None
            beside = {name: value for name, value in schema.items() if name != "$ref"}
            return self.adapt({**(target if isinstance(target, Mapping) else {}), **beside}, (*above, reference), depth + 1)
        bent = {name: self._value(name, value, above, depth) for name, value in schema.items() if name not in NOT_SENT}
        return self._cleanup({name: value for name, value in bent.items() if value is not None or name not in _MUST_HOLD})

    def _value(self, name: str, value: Any, above: tuple[str, ...], depth: int) -> Any:
        if name in _SCHEMAS_BY_NAME:
            if not isinstance(value, Mapping):
                return None
            return {str(key): self.adapt(each, above, depth + 1) for key, each in value.items()}
        if name in _SCHEMAS_IN_LIST:
            if not isinstance(value, list):
                return None
            choices = [self.adapt(each, above, depth + 1) for each in value if each is not False]
            return [choice for choice in choices if choice != {"not": {}}] or None
        if name in _SCHEMA_ALONE and isinstance(value, Mapping):
            return self.adapt(value, above, depth + 1)
        return value

    def _cleanup(self, bent: dict[str, Any]) -> dict[str, Any]:
        for name in ("anyOf", "oneOf", "allOf"):
            if isinstance(choices := bent.pop(name, None), list):
                if not self._null_types and len(choices) > 1:
                    choices = [choice for choice in choices if choice.get("type") != "null"] or choices
                bent = bent | {name: choices} if len(choices) != 1 else {**choices[0], **bent}
        self._tidy_type(bent)
        if bent.get("additionalProperties") == {}:
            del bent["additionalProperties"]
        kind = bent.get("type")
        if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and not isinstance(bent.get("items"), dict):
            bent["items"] = {}
        if "required" in bent:
            known = bent.get("properties", {})
            named = bent.pop("required")
            required = [name for name in named if isinstance(name, str) and name in known] if isinstance(named, list) else []
            bent |= {"required": required} if required else {}
        return bent

    def _tidy_union(self, bent: dict[str, Any], name: str) -> dict[str, Any]:
        choices = bent.get(name)
        if not isinstance(choices, list):
            return bent
        if not self._null_types and len(choices) > 1:
            choices = [choice for choice in choices if choice.get("type") != "null"] or choices
        rest = {key: value for key, value in bent.items() if key != name}
        if len(choices) > 1:
            return rest | {name: choices}
        return {**choices[0], **rest} if choices else rest

    def _tidy_type(self, bent: dict[str, Any]) -> None:
        named = bent.get("type")
        if isinstance(named, list):
            texts = [each for each in named if isinstance(each, str)]
            kept = [each for each in texts if self._null_types or each != "null"] or texts
            named = kept[0] if len(kept) == 1 else kept
            bent["type"] = named
        if not named or not isinstance(named, str | list):
            bent.pop("type", None)
            if any(name in bent for name in ("type", "enum", "const", "anyOf", "oneOf", "allOf", "not")):
                return
            if "properties" in bent or "additionalProperties" in bent:
                bent["type"] = "object"
            elif "items" in bent or "prefixItems" in bent:
                bent["type"] = "array"


def _with_description(schema: Mapping[str, Any], bent: dict[str, Any]) -> dict[str, Any]:
    return {**bent, "description": schema["description"]} if "description" in schema else bent


OPENINGS: Mapping[Outcome, str] = {
    "denied_by_person": "The user denied this call. It was not run and had no effects.",
    "denied_by_rule": "A permission rule denied this call. It was not run and had no effects.",
    "interrupted": "This call was interrupted while it was running. It may have had effects; check before you repeat it.",
    "never_started": "The turn was interrupted before this call. It was never started and had no effects.",
    "cut_off": "The answer was cut off at the output limit, so this call was not run. Split the work into smaller steps.",
    "invalid": "The arguments of this call could not be read, so it was not run.",
    "error": "The call failed without an error message.",
}
"""Explanation for the model when the result gives none; each outcome has its own text."""

_SAYS_SO: Mapping[Outcome, str] = {
    "denied_by_person": "denied",
    "denied_by_rule": "denied",
    "interrupted": "interrupted",
    "never_started": "never started",
    "cut_off": "cut off",
}
_LOOKED_AT_CHARACTERS = 200
EMPTY = "(no output)"
BLANK = "(blank output)"


def result_text(part: ToolPart, notes: Iterable[str] = ()) -> str:
    """The result as the model reads it, with notes; never blank."""
    outcome = outcome_of(part)
    body = part.output or OPENINGS.get(outcome, EMPTY)
    if part.output and (opening := OPENINGS.get(outcome)) is not None:
        word = _SAYS_SO.get(outcome)  # the output may state the outcome at its start or end; errors always do
        ends = f"{part.output[:_LOOKED_AT_CHARACTERS]}\n{part.output[-_LOOKED_AT_CHARACTERS:]}".lower()
        if word is not None and word not in ends:
            body = f"{opening}\n{'Output until then:' if outcome == 'interrupted' else 'Details:'}\n{part.output}"
    text = "\n".join([clean(body), *notes])
    return text if text.strip() else BLANK


def outcome_of(part: ToolPart) -> Outcome:
    """Calls still pending or running when sent belong to an aborted turn."""
    if part.status == "pending":
        return "never_started"
    if part.status == "running":
        return "interrupted"
    return part.outcome or ("error" if part.status == "failed" else "ok")


def arguments_text(call: ToolPart) -> str:
    """The model's own text if it is JSON with the same meaning, otherwise the parsed arguments."""
    if call.raw_input and read_json(call.raw_input) == call.input:
        return call.raw_input
    try:  # blanks after commas and colons, as models write it
        return json.dumps(msgspec.json.decode(msgspec.json.encode(call.input)), ensure_ascii=False)
    except UnicodeEncodeError:  # lone surrogates, possible only in arguments no model wrote
        return whole(json.dumps(call.input, ensure_ascii=False, default=str))


def arguments_object(call: ToolPart) -> dict[str, Any]:
    """Arguments as an object in the model's key order; always strict JSON."""
    arguments = read_json(arguments_text(call))
    return arguments if isinstance(arguments, dict) else {}
