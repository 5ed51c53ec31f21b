"""Google's Gemini API: alternating user and model contents, and signed function calls."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from wolo.errors import ProviderError
from wolo.formats.encoding.encoder import BaseFormat, block, encode_json, sampling_of, split_system
from wolo.formats.encoding.wire_forms import adapt_schema
from wolo.formats.format import Blocks, Request, ToolSpec
from wolo.formats.gemini.decode import GeminiDecoder, read_refusal
from wolo.formats.gemini.encode import NAME, GeminiDialect, GeminiLayout, gemini_name, resolve_dialect, thinking_config
from wolo.formats.tolerant_json import list_at, mapping_at
from wolo.messages.unicode import clean

__all__ = ["Gemini", "GeminiDialect"]

OTHER_NAMES = {
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "thinking": "thinkingConfig",
    "thinking_budget": "thinkingBudget",
    "response_format": "responseJsonSchema",
    "tool_choice": "toolConfig",
}
"""Names in other formats of fields that a server may refuse."""
CONTENT_FIELDS = frozenset({"thoughtSignature", "functionResponse.parts", "id"})
"""Refused fields that belong to contents, not to the request body."""
MOST_STOPS = 5
JSON_TYPE = "application/json"


class Gemini(BaseFormat[GeminiDialect]):
    name = NAME
    _encoded_system = b""

    def path(self, model: str) -> str:
        """Tuned models have a folder of their own."""
        below = self._dialect.models_path.rstrip("/")
        folder, slash, name = model.partition("/")
        if slash and folder == "tunedModels":
            below, model = f"{below.rpartition('/')[0]}/tunedModels", name
        return f"{below}/{quote(model.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"

    def encode(self, request: Request) -> bytes:
        """Keys have a fixed order: equal histories give equal bytes, also across processes."""
        dialect = resolve_dialect(self._dialect, request.model)
        dropped = {OTHER_NAMES.get(field, field) for field in request.dropped_fields}
        system, messages = split_system(request.messages, request.system)
        has_field = dialect.system_instruction and "systemInstruction" not in dropped
        self._encoded_system = encode_json({"parts": [{"text": clean(system)}]}) if has_field and system.strip() else b""
        withheld = CONTENT_FIELDS.intersection(dropped)
        contents = self._history.encode(
            messages,
            "" if has_field else system,
            (request.producer, dialect, withheld),
            lambda: GeminiLayout(dialect, request.producer, withheld),
        )
        before = [b"{"]
        if self._encoded_system:
            before += [b'"systemInstruction":', self._encoded_system, b","]
        field = dialect.schema_field if "parametersJsonSchema" not in dropped else "parameters"
        is_alone = request.json_schema is not None and dialect.json_beside_tools == "no"  # refused together
        offered = () if is_alone and "responseJsonSchema" not in dropped else request.tools
        if request.web_search:
            before.append(b'"tools":[{"google_search":{}}],')
        elif tools := self._tools.take(offered, partial(_declarations, field=field), (_declarations, field)):
            before += [b'"tools":[{"functionDeclarations":', tools, b"}],"]
            if dialect.tool_mode and "toolConfig" not in dropped:
                before += [b'"toolConfig":', encode_json({"functionCallingConfig": {"mode": dialect.tool_mode}}), b","]
        options = self._options(request, dialect, dropped)
        after = (b',"generationConfig":', encode_json(options)) if options else ()
        return contents.join((*before, b'"contents":['), (b"]", *after, b"}"))

    def blocks(self) -> Blocks:
        system = (block("system", self._encoded_system),) if self._encoded_system else ()
        return self._history.blocks(*self._tools.blocks, *system)

    def _decoder(self, tools: Sequence[ToolSpec]) -> GeminiDecoder:
        return GeminiDecoder((tool.name for tool in tools), self._hint)

    def read_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        return read_refusal(status, headers, body, self._hint)

    def _options(self, request: Request, dialect: GeminiDialect, dropped: Collection[str]) -> dict[str, Any]:
        thinking = thinking_config(dialect, request.thinking)
        options: dict[str, Any] = {
            "maxOutputTokens": request.max_tokens,
            "stopSequences": [clean(stop) for stop in request.stop if stop][:MOST_STOPS] or None,
            "thinkingConfig": {name: value for name, value in thinking.items() if name not in dropped} or None,
        }
        if dialect.sampling == "open":
            options |= {OTHER_NAMES.get(name, name): value for name, value in sampling_of(request).items()}
        if request.json_schema is not None and "responseJsonSchema" not in dropped:
            from wolo.formats.encoding.answer_schema import GEMINI, strict_schema  # noqa: PLC0415  # only typed answers need it

            is_reduced = dialect.schema_field == "parameters"
            schema = reduce_schema(request.json_schema) if is_reduced else strict_schema(request.json_schema, GEMINI)
            options |= {"responseMimeType": JSON_TYPE, "responseSchema" if is_reduced else "responseJsonSchema": schema}
        return {name: value for name, value in options.items() if value is not None and name not in dropped}


def _declarations(tools: Iterable[ToolSpec], field: str) -> list[dict[str, Any]]:
    """Omits the schema of tools without arguments: Gemini refuses an empty object."""
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        name = gemini_name(tool.name)
        schema = adapt_schema(tool.parameters) if field == "parametersJsonSchema" else reduce_schema(tool.parameters)
        has_arguments = bool(schema.get("properties")) or bool(set(schema) - {"type", "properties", "description", "title"})
        described = {"name": name, "description": clean(tool.description) or name}
        declarations.append(described | ({field: schema} if has_arguments else {}))
    return declarations


TYPES = ("string", "number", "integer", "boolean", "array", "object")
FORMATS = {"string": ("date-time", "enum"), "number": ("float", "double"), "integer": ("int32", "int64")}

_TEXTS = ("title", "description", "pattern")
_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")
_BOUNDS = ("minimum", "maximum")

Schema = dict[str, Any]


def reduce_schema(schema: Mapping[str, Any]) -> Schema:
    """Preserve as much meaning as the allowed keys can express; idempotent."""
    root = _reduce(adapt_schema(schema))
    return _as_object(root) if root.get("type") != "object" else root


def _reduce(schema: Any) -> Schema:
    if not isinstance(schema, Mapping):
        return {"type": "string"}
    merged = _merge(schema)
    kept: Schema = {name: merged[name] for name in _TEXTS if isinstance(merged.get(name), str)}
    kept |= {name: merged[name] for name in _COUNTS if _is_number(merged.get(name)) and float(merged[name]).is_integer()}
    kept |= {name: merged[name] for name in _BOUNDS if _is_number(merged.get(name))}
    for bound, name, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        if _is_number(merged.get(name)) and bound not in kept:
            kept[bound] = merged[name] + (step if merged.get("type") == "integer" else 0)
    kept |= {name: merged[name] for name in ("default", "example") if merged.get(name) is not None}
    reduced = kept
    if isinstance(properties := merged.get("properties"), Mapping) and properties:
        reduced["properties"] = {str(name): _reduce(each) for name, each in properties.items()}
    declared = merged.get("type")
    names = [str(each).lower() for each in (declared if isinstance(declared, list) else [declared]) if isinstance(each, str)]
    kinds = [kind for kind in dict.fromkeys(names) if kind in TYPES]
    if "null" in names or merged.get("nullable") is True:
        reduced["nullable"] = True
    _enumerate(merged, kinds, reduced)
    offered = [each for name in ("anyOf", "oneOf") for each in list_at(merged, name)]
    choices = [_reduce(each) for each in offered if not (isinstance(each, Mapping) and each.get("type") == "null")]
    if len(choices) < len(offered):
        reduced["nullable"] = True
    if len(kinds) > 1 and not choices:
        choices = [_add_type({}, kind, merged) for kind in kinds]
    if choices:
        # `anyOf` must stand alone: shared keys are copied into each choice. An object that merely varies stays one object.
        if "properties" in reduced or "enum" in reduced or "array" in kinds:
            kind = "object" if "properties" in reduced else kinds[0]
            return _as_object({**reduced, "anyOf": choices}) if kind == "object" else _add_type(reduced, kind, merged)
        spread = {name: value for name, value in reduced.items() if name in ("title", "description", "nullable")}
        flat = [{**spread, **each} for choice in choices for each in choice.get("anyOf", [choice])]
        unique = [each for at, each in enumerate(flat) if each not in flat[:at]]
        return unique[0] if len(unique) == 1 else {"anyOf": unique}
    return _add_type(reduced, kinds[0] if kinds else "", merged)


def _merge(schema: Mapping[str, Any]) -> Schema:
    merged = {name: value for name, value in schema.items() if name != "allOf"}
    for part in list_at(schema, "allOf", dict):
        inner = _merge(part)
        properties = {**mapping_at(inner, "properties"), **mapping_at(merged, "properties")}
        required = [*list_at(merged, "required"), *list_at(inner, "required")]
        merged = {**inner, **merged}
        merged |= {"properties": properties} if properties else {}
        merged |= {"required": required} if required else {}
    return merged


def _enumerate(merged: Mapping[str, Any], kinds: list[str], reduced: Schema) -> None:
    """Enums must be strings: other values become text, booleans become a type."""
    values = [merged["const"]] if "const" in merged else merged.get("enum")
    if not isinstance(values, list):
        return
    if None in values:
        reduced["nullable"] = True
    values = [value for value in values if value is not None]
    if values and all(isinstance(value, bool) for value in values):
        kinds[:] = ["boolean"]
        return
    texts = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str) for value in values)
    if unique := list(dict.fromkeys(filter(None, texts))):
        kinds[:] = ["string"]
        reduced["enum"] = unique
        for name in (*_BOUNDS, *_COUNTS):
            reduced.pop(name, None)


def _add_type(reduced: Schema, kind: str, merged: Mapping[str, Any]) -> Schema:
    """Add the type and everything it requires."""
    kind = kind or ("object" if "properties" in reduced else "array" if "items" in merged else "string")
    typed = {"type": kind, **{name: value for name, value in reduced.items() if name != "type"}}
    if merged.get("format") in FORMATS.get(kind, ()):
        typed["format"] = merged["format"]
    if kind == "array":
        typed["items"] = _reduce(merged.get("items") or next(iter(list_at(merged, "prefixItems")), None))
    if kind != "object":
        typed.pop("properties", None)
        return typed
    known = typed.get("properties", {})
    for name in ("required", "propertyOrdering"):
        if kept := list(dict.fromkeys(each for each in list_at(merged, name, str) if each in known)):
            typed[name] = kept
    return typed


def _as_object(reduced: Schema) -> Schema:
    """Merge the properties of all choices into one object; required are those that every choice requires."""
    choices = [each for each in reduced.get("anyOf", []) if each.get("properties")]
    properties = {name: each for choice in choices for name, each in choice["properties"].items()} | reduced.get("properties", {})
    demanded = [name for name in properties if choices and all(name in choice.get("required", []) for choice in choices)]
    kept: Schema = {name: reduced[name] for name in ("title", "description", "nullable", "required") if name in reduced}
    merged: Schema = {**kept, "type": "object"}
    merged |= {"properties": properties} if properties else {}
    required = list(dict.fromkeys([*kept.get("required", []), *demanded]))
    return merged | ({"required": required} if required else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
