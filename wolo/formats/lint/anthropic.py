"""Lint Messages API requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wolo.formats.lint.checks import answer_problems, is_tool_name, list_problems, prefix_problems, tool_problems

CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
MOST_MARKS = 4
LEAST_BUDGET = 1024
UNIONS = ("oneOf", "anyOf", "allOf")
THINKING = ("thinking", "redacted_thinking")
SAMPLING = ("temperature", "top_p", "top_k")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
BY_ROLE = {
    "user": ("text", "image", "document", "search_result", "tool_result"),
    "assistant": ("text", "tool_use", "thinking", "redacted_thinking"),
}
IN_RESULTS = ("text", "image", "document", "search_result")

WEB_SEARCH_KEYS = frozenset({"type", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location", "cache_control"})

Message = Mapping[str, Any]


def lint(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Return problems; empty when every server accepts the request.

    `previous` is the preceding request of the conversation: tools, system prompt and messages must be a prefix of this one,
    cache marks aside. `strict_template` has no effect.
    """
    if odd := list_problems(body, "messages", _is_message, "user or assistant message with content"):
        return odd
    messages = body["messages"]
    if body.get("tools") is None and any(_of(message, "tool_use", "tool_result") for message in messages):
        odd = ["the messages hold tool blocks, so tools must be present"]
    return [
        *_turns(messages),
        *_pairing(messages),
        *(complaint for at, message in enumerate(messages) for complaint in _content(at, message)),
        *_limits(body),
        *_thinking(body, messages),
        *_marks(body),
        *_answer((body.get("output_config") or {}).get("format")),
        *odd,
        *tool_problems(body, lambda tool: tool.get("name") if isinstance(tool, dict) else None, _tool),
        *prefix_problems(_without_marks(body), _without_marks(previous), head=("tools", "system"), turns="messages"),
    ]


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in BY_ROLE and isinstance(message.get("content"), str | list)


def _blocks(message: Message) -> list[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block if isinstance(block, dict) else {} for block in content]


def _of(message: Message, *types: str) -> list[dict[str, Any]]:
    return [block for block in _blocks(message) if block.get("type") in types]


def _turns(messages: Sequence[Message]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield "messages[0]: the user must speak first"
    for at in range(1, len(messages)):
        if messages[at]["role"] == messages[at - 1]["role"]:
            yield f"messages[{at}]: two {messages[at]['role']} messages in a row"


def _answer(form: Any) -> Iterator[str]:
    if form is not None and (not isinstance(form, dict) or form.get("type") != "json_schema"):
        yield f"illegal output_config.format {form!r}"
    elif form is not None:
        yield from answer_problems(form.get("schema"), requires_all=False)


def _pairing(messages: Sequence[Message]) -> Iterator[str]:
    """Calls are answered in the next message, all together, before other content."""
    waiting: list[Any] = []
    seen: set[Any] = set()
    for at, message in enumerate(messages):
        results = [block.get("tool_use_id") for block in _of(message, "tool_result")]
        missing = [each for each in waiting if each not in results]
        if missing:
            yield f"messages[{at}]: tool_use ids without tool_result blocks immediately after: {missing!r}"
        for answered in results:
            if answered not in waiting:
                yield f"messages[{at}]: unexpected tool_use_id {answered!r} in tool_result blocks"
            elif results.count(answered) > 1:
                yield f"messages[{at}]: {answered!r} is answered twice"
        if any(block.get("type") != "tool_result" for block in _blocks(message)[: len(results)]):
            yield f"messages[{at}]: tool_result blocks must come first"
        waiting = [block.get("id") for block in _of(message, "tool_use")]
        for wire_id in waiting:
            if not isinstance(wire_id, str) or not CALL_ID.fullmatch(wire_id) or len(wire_id) > 64:
                yield f"messages[{at}]: illegal tool_use id {wire_id!r}"
            elif wire_id in seen:
                yield f"messages[{at}]: tool_use id {wire_id!r} is used twice"
            seen.add(str(wire_id))
    if waiting:
        yield f"tool_use ids without a tool_result: {waiting!r}"


def _content(at: int, message: Message) -> Iterator[str]:
    if not _blocks(message):
        yield f"messages[{at}]: content must be non-empty"
    for block in _blocks(message):
        if (kind := block.get("type")) not in BY_ROLE[message["role"]]:
            yield f"messages[{at}]: a block of type {kind!r} in a message of the {message['role']}"
        else:
            yield from _block(at, block)
    if message["role"] == "assistant" and _blocks(message) and _blocks(message)[-1].get("type") in THINKING:
        yield f"messages[{at}]: the final block cannot be thinking"


def _block(at: int, block: Mapping[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text" if not isinstance(block.get("text"), str) or not block["text"].strip():
            yield f"messages[{at}]: text content blocks must be non-empty"
        case "tool_use":
            if not isinstance(block.get("input"), dict):
                yield f"messages[{at}]: the input of a tool_use must be an object"
            if not is_tool_name(block.get("name")):
                yield f"messages[{at}]: illegal tool name {block.get('name')!r}"
        case "tool_result":
            content = block.get("content", [])
            for inner in content if isinstance(content, list) else ():
                kind = inner.get("type") if isinstance(inner, dict) else None
                if kind not in IN_RESULTS:
                    yield f"messages[{at}]: a block of type {kind!r} in a tool_result"
                elif kind != "text" and block.get("is_error"):
                    yield f"messages[{at}]: a tool_result that is an error takes text only"
                else:
                    yield from _block(at, inner)
            if not isinstance(content, str | list):
                yield f"messages[{at}]: the content of a tool_result is neither text nor a list"
        case "thinking":
            if not isinstance(block.get("thinking"), str) or not isinstance(block.get("signature"), str):
                yield f"messages[{at}]: a thinking block needs its text and a signature"
        case "redacted_thinking" if not block.get("data"):
            yield f"messages[{at}]: a redacted_thinking block without data"
        case "image" | "document":
            source = block.get("source")
            kind = source.get("type") if isinstance(source, dict) else None
            if kind not in ("base64", "url", "file", "text", "content"):
                yield f"messages[{at}]: the source of {block['type']} has no known type"
                return
            assert isinstance(source, dict)
            field = {"base64": "data", "url": "url", "file": "file_id", "text": "data", "content": "content"}[kind]
            if not source.get(field):
                yield f"messages[{at}]: the source of {block['type']} is empty"
            if block["type"] == "image" and kind == "base64" and source.get("media_type") not in IMAGE_TYPES:
                yield f"messages[{at}]: no image type: {source.get('media_type')!r}"


# Other fields of the request


def _limits(body: Mapping[str, Any]) -> Iterator[str]:
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        yield "max_tokens must be a positive number"
    for text in body.get("stop_sequences", ()):
        if not isinstance(text, str) or not text.strip():
            yield "stop_sequences must hold more than blanks"
    system = body.get("system", "none")
    for block in system if isinstance(system, list) else [{"type": "text", "text": system}]:
        if not isinstance(block, dict) or block.get("type") != "text" or not str(block.get("text", "")).strip():
            yield "system must be text that is not empty"
    try:
        json.dumps(body, allow_nan=False).encode()
    except ValueError:
        yield "the body holds a number that is no JSON"


def _thinking(body: Mapping[str, Any], messages: Sequence[Message]) -> Iterator[str]:
    if (config := body.get("thinking")) is None:
        return
    kind = config.get("type") if isinstance(config, dict) else None
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        yield f"thinking: unknown type {kind!r}"
    if kind not in ("enabled", "adaptive"):
        return
    yield from (f"{name} does not go together with thinking" for name in SAMPLING if name in body)
    choice = body.get("tool_choice", {"type": "auto"})
    if isinstance(choice, dict) and choice.get("type") not in ("auto", "none"):
        yield "thinking does not go together with a forced tool_choice"
    if kind != "enabled":
        return
    budget = config.get("budget_tokens")
    if not isinstance(budget, int) or not LEAST_BUDGET <= budget < body.get("max_tokens", 0):
        yield f"thinking: budget_tokens {budget!r} is not between {LEAST_BUDGET} and max_tokens"
    opening = None  # the first response of the current round of calls
    for message in reversed(messages):
        if message["role"] == "user" and not _of(message, "tool_result"):
            break
        if message["role"] == "assistant":
            opening = message
    if opening is not None and _blocks(opening)[:1] and _blocks(opening)[0].get("type") not in THINKING:
        yield "Expected thinking or redacted_thinking at the beginning of the current round of calls"


def _marks(body: Mapping[str, Any]) -> Iterator[str]:
    # Marked blocks in prefix order: tools, system, messages.
    system = body.get("system")
    places: list[Any] = [*(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    for message in body["messages"]:
        for block in _blocks(message):
            places.append(block)
            places += inner if isinstance(inner := block.get("content"), list) else ()
    marks = [(each, each["cache_control"]) for each in places if isinstance(each, dict) and each.get("cache_control")]
    if len(marks) > MOST_MARKS:
        yield f"{len(marks)} cache_control marks; {MOST_MARKS} are allowed"
    lifetimes = [str(mark.get("ttl", "5m")) if isinstance(mark, dict) else "" for _, mark in marks]
    if any(life not in ("5m", "1h") for life in lifetimes):
        yield "a cache_control mark with an unknown ttl"
    if lifetimes != sorted(lifetimes):  # "1h" sorts before "5m"
        yield "a cache_control mark of 1h behind one of 5m"
    for block, _ in marks:
        if block.get("type") in THINKING or (block.get("type") == "text" and not str(block.get("text", "")).strip()):
            yield "a cache_control mark on thinking or on empty text"


def _tool(name: Any, tool: Any) -> Iterator[str]:
    if isinstance(tool, dict) and str(tool.get("type")).startswith("web_search_"):
        if name != "web_search" or not WEB_SEARCH_KEYS.issuperset(tool):
            yield f"tools: no tool of the server: {tool!r}"
        return
    schema = tool.get("input_schema") if isinstance(tool, dict) else None
    if not is_tool_name(name):
        yield f"tools: illegal name {name!r}"
    if not isinstance(schema, dict) or schema.get("type") != "object" or any(union in schema for union in UNIONS):
        yield f"tools: the input_schema of {name!r} is not a plain object schema"


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_marks(inner) for name, inner in value.items() if name != "cache_control"}
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value
