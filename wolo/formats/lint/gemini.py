"""Lint Gemini requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wolo.formats.lint.checks import is_base64, list_problems, prefix_problems
from wolo.formats.tolerant_json import mapping_at

FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
PLACEHOLDERS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
BODY_KEYS = frozenset(
    {
        *("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"),
        *("labels", "model", "store", "serviceTier"),
    }
)
PART_KEYS = frozenset({*KINDS, "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})
SCHEMA_KEYS = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "default", "example", "enum", "items", "minItems", "maxItems"),
        *("properties", "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength"),
        *("pattern", "anyOf", "propertyOrdering"),
    }
)
CALL_KEYS = frozenset({"id", "name", "args"})
RESPONSE_KEYS = frozenset({"id", "name", "response", "parts", "willContinue", "scheduling"})

Content = Mapping[str, Any]


def lint(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Return problems; empty when the request is accepted. `previous` is the preceding request of the conversation.

    The body does not show whether a model requires signatures: they are required if it has a thinking level or a placeholder.
    `strict_template` has no effect.
    """
    if odd := list_problems(body, "contents", _is_content, "object with a role and parts"):
        return odd
    contents = body["contents"]
    # Before version 3 the form of an answer and tools are refused together, so that such a request has no tools.
    is_alone = any(
        each and "tools" not in each and "responseMimeType" in mapping_at(each, "generationConfig") for each in (body, previous)
    )
    head = ("systemInstruction",) if is_alone else ("systemInstruction", "tools")
    return [
        *(f"unknown field {name!r}" for name in body if name not in BODY_KEYS),
        *_turns(contents),
        *(complaint for at, content in enumerate(contents) for complaint in _parts(at, content)),
        *_pairing(contents),
        *_signatures(contents, body),
        *_system(body),
        *_tools(body),
        *_options(body),
        *prefix_problems(body, previous, head=head, turns="contents"),
    ]


def _is_content(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("role") not in ("user", "model"):
        return False
    parts = content.get("parts")
    return isinstance(parts, list) and all(isinstance(part, dict) for part in parts)


def _turns(contents: Sequence[Content]) -> Iterator[str]:
    roles = [content["role"] for content in contents]
    if roles[0] != "user":
        yield "contents[0]: the first content must be the user's"
    if roles[-1] != "user":
        yield f"contents[{len(roles) - 1}]: the last content is the model's, there is nothing to answer"
    for at in range(1, len(roles)):
        if roles[at] == roles[at - 1]:
            yield f"contents[{at}]: two contents of the {roles[at]} in a row"


def _parts(at: int, content: Content) -> Iterator[str]:
    if not (parts := content["parts"]):
        yield f"contents[{at}]: empty parts"
    for part in parts:
        where = f"contents[{at}]"
        yield from (f"{where}: unknown field {name!r} in a part" for name in part if name not in PART_KEYS)
        kinds = [kind for kind in KINDS if kind in part]
        if len(kinds) != 1:
            yield f"{where}: a part must be exactly one of {', '.join(KINDS)}; it is {kinds}"
            continue
        if "thoughtSignature" in part and not is_base64(part["thoughtSignature"]):
            yield f"{where}: a thoughtSignature that is not base64"
        if content["role"] == "user" and ("thoughtSignature" in part or part.get("thought")):
            yield f"{where}: only the model thinks"
        yield from (f"{where}: {complaint}" for complaint in _kind(kinds[0], part, content["role"]))


def _kind(kind: str, part: Mapping[str, Any], role: str) -> Iterator[str]:
    value = part[kind]
    if kind == "text":
        if not isinstance(value, str) or (not value and not part.get("thoughtSignature")):
            yield "empty text"
        return
    if not isinstance(value, dict):
        yield f"{kind} is no object"
        return
    match kind:
        case "functionCall":
            if role != "model":
                yield "only the model calls functions"
            yield from (f"unknown field {name!r} in a functionCall" for name in value if name not in CALL_KEYS)
            if not isinstance(value.get("args", {}), dict):
                yield f"the args of {value.get('name')!r} are no object"
            yield from _name(value)
        case "functionResponse":
            yield from (f"unknown field {name!r} in a functionResponse" for name in value if name not in RESPONSE_KEYS)
            if not isinstance(value.get("response"), dict):
                yield f"the response of {value.get('name')!r} is no object"
            yield from _name(value)
            for inner in value.get("parts", []):
                yield from _data(inner.get("inlineData") if isinstance(inner, dict) else None)
        case "inlineData":
            yield from _data(value)
        case "fileData":
            if not value.get("fileUri"):
                yield "fileData without fileUri"


def _name(call: Mapping[str, Any]) -> Iterator[str]:
    name = call.get("name")
    if not isinstance(name, str) or not FUNCTION_NAME.fullmatch(name):
        yield f"illegal function name {name!r}"


def _data(data: Any) -> Iterator[str]:
    if not isinstance(data, dict) or not isinstance(data.get("mimeType"), str) or "/" not in data["mimeType"]:
        yield "inlineData without a mimeType"
    elif not data.get("data") or not is_base64(data["data"]):
        yield "inlineData whose data is not base64"


def _pairing(contents: Sequence[Content]) -> Iterator[str]:
    """The next content has one response per call, in the same order and with the same names and ids."""
    seen: set[str] = set()
    for at, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if isinstance(part.get("functionCall"), dict)]
        before = contents[at - 1]["parts"] if at else []
        asked = [part["functionCall"] for part in before if isinstance(part.get("functionCall"), dict)]
        answered = [part["functionResponse"] for part in content["parts"] if isinstance(part.get("functionResponse"), dict)]
        if len(asked) != len(answered):
            yield f"contents[{at}]: {len(answered)} function responses to {len(asked)} function calls"
        elif [(each.get("name"), each.get("id")) for each in asked] != [(each.get("name"), each.get("id")) for each in answered]:
            yield f"contents[{at}]: the function responses do not match the calls in name, id and order"
        for call_id in (call["id"] for call in calls if "id" in call):
            if not isinstance(call_id, str) or not call_id or call_id in seen:
                yield f"contents[{at}]: call id {call_id!r} is empty or used twice"
            else:
                seen.add(call_id)
    if any("functionCall" in part for part in contents[-1]["parts"]):
        yield "function calls without a response"


def _signatures(contents: Sequence[Content], body: Mapping[str, Any]) -> Iterator[str]:
    """In the current turn the first call of each step is signed; placeholders appear nowhere else."""
    is_strict = "thinkingLevel" in mapping_at(mapping_at(body, "generationConfig"), "thinkingConfig")
    of_user = ((at, content["parts"]) for at, content in enumerate(contents) if content["role"] == "user")
    begin = max((at for at, parts in of_user if not any("functionResponse" in part for part in parts)), default=0)
    missing: list[str] = []
    for at, content in enumerate(contents):
        if content["role"] != "model":
            continue
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature") and at > begin:
            missing.append(f"contents[{at}]: the first function call is missing a thoughtSignature")
        is_strict = is_strict or any(call.get("thoughtSignature") in PLACEHOLDERS for call in calls)
        for part in content["parts"]:
            if part.get("thoughtSignature") in PLACEHOLDERS and (not calls or part is not calls[0]):
                yield f"contents[{at}]: a placeholder signature on something other than the first function call"
    if is_strict:
        yield from missing


def _system(body: Mapping[str, Any]) -> Iterator[str]:
    if "systemInstruction" not in body:
        return
    parts = mapping_at(body, "systemInstruction").get("parts")
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) and part.get("text") for part in parts):
        yield "systemInstruction must have parts of text"


def _tools(body: Mapping[str, Any]) -> Iterator[str]:
    if "tools" not in body:
        return
    tools = body["tools"]
    if not isinstance(tools, list) or not tools or not all(isinstance(tool, dict) for tool in tools):
        yield "empty tools; leave the key out"
        return
    if any("google_search" in tool for tool in tools) and len(tools) > 1:
        yield "tools: google_search beside function declarations"
    seen: set[Any] = set()
    for declaration in (each for tool in tools for each in tool.get("functionDeclarations", [])):
        name = declaration.get("name")
        yield from (f"tools: {complaint}" for complaint in _name(declaration))
        if name in seen:
            yield f"tools: {name!r} is offered twice"
        seen.add(name)
        if "parameters" in declaration and "parametersJsonSchema" in declaration:
            yield f"tools: {name!r} has two schemas"
        if "parametersJsonSchema" in declaration and mapping_at(declaration, "parametersJsonSchema").get("type") != "object":
            yield f"tools: the schema of {name!r} is no object"
        if "parameters" in declaration:
            yield from (f"tools: {name!r}: {complaint}" for complaint in _schema(declaration["parameters"]))
            if not mapping_at(declaration, "parameters").get("properties"):
                yield f"tools: {name!r} has parameters without properties; leave them out"


def _schema(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"a schema that is no object: {schema!r}"
        return
    yield from (f"{name!r} is not allowed in a schema" for name in schema if name not in SCHEMA_KEYS)
    if "type" not in schema and "anyOf" not in schema:
        yield "a schema without a type"
    if not all(isinstance(each, str) for each in schema.get("enum", [])):
        yield "an enum of something other than text"
    if schema.get("type") == "array" and "items" not in schema:
        yield "an array without items"
    unknown = [name for name in schema.get("required", []) if name not in schema.get("properties", {})]
    if unknown:
        yield f"{unknown} are required and no properties"
    inner = [
        *mapping_at(schema, "properties").values(),
        *schema.get("anyOf", []),
        *([schema["items"]] if "items" in schema else []),
    ]
    for each in inner:
        yield from _schema(each)


def _options(body: Mapping[str, Any]) -> Iterator[str]:
    options = mapping_at(body, "generationConfig")
    thinking = mapping_at(options, "thinkingConfig")
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        yield "thinkingBudget and thinkingLevel exclude each other"
    if thinking.get("includeThoughts") and thinking.get("thinkingBudget") == 0:
        yield "includeThoughts without any thinking"
    if "responseJsonSchema" in options and "responseMimeType" not in options:
        yield "responseJsonSchema needs a responseMimeType"
    if len(options.get("stopSequences", [])) > 5:
        yield "more than 5 stopSequences"
