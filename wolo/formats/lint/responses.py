"""Lint Responses API requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wolo.formats.lint import checks

CALL_ID = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_-]*[A-Za-z0-9-]")
PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc"}
ROLES = ("user", "system", "developer", "assistant")
TEXTS = ("input_text", "output_text", "summary_text", "reasoning_text")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
CACHE_KEY_CHARACTERS = 64
FEWEST_OUTPUT_TOKENS = 16
WEB_SEARCH_KEYS = ("type", "filters", "search_context_size", "user_location", "external_web_access")
FROM_ELSEWHERE = (
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "reasoning_effort",
    "stop",
    "stream_options",
)
"""Fields of other formats, unknown here."""


def lint(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Return problems; empty when every server accepts the request.

    `previous` is the preceding request of the conversation: its instructions, tools and items must be a prefix of this one.
    `strict_template`: chat templates of local servers refuse two user messages in a row.
    """
    if odd := checks.list_problems(body, "input", lambda item: bool(_kind(item)), "item of a known type"):
        return odd
    items = body["input"]
    return [
        *_pairing(items),
        *_ids(items),
        *(complaint for at, item in enumerate(items) for complaint in _shape(at, item)),
        *_reasoning(items, bool(body.get("store", True))),
        *(["the last item is the assistant's: there is nothing to answer"] if _is_said(items[-1]) else []),
        *checks.order_problems("input", [item.get("role") for item in items], strict_template=strict_template),
        *checks.tool_problems(body, lambda tool: tool.get("name") if isinstance(tool, dict) else None, _tool),
        *_fields(body),
        *checks.prefix_problems(body, previous, head=("tools", "instructions"), turns="input"),
    ]


def _kind(item: Any) -> str:
    """Simple messages have a role and no type."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type", "message" if "role" in item else "")
    if kind == "message":
        return "message" if item.get("role") in ROLES else ""
    return kind if kind in ("reasoning", "function_call", "function_call_output") else ""


def _is_said(item: Mapping[str, Any]) -> bool:
    """The item is the assistant's."""
    kind = _kind(item)
    return kind in ("reasoning", "function_call") or (kind == "message" and item["role"] == "assistant")


def _pairing(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call is answered once, after the assistant's items; each output answers a call."""
    waiting: list[Any] = []
    for at, item in enumerate(items):
        if (kind := _kind(item)) == "function_call_output":
            if item.get("call_id") in waiting:
                waiting.remove(item["call_id"])
            else:
                yield f"input[{at}]: an output without its call ({item.get('call_id')!r})"
        elif kind == "function_call":
            waiting.append(item.get("call_id"))
        elif waiting and not _is_said(item):
            yield f"input[{at}]: {item['role']} message before the outputs of {waiting!r}"
            waiting = []
    if waiting:
        yield f"calls without an output: {waiting!r}"


def _ids(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[Any] = set()
    called: set[Any] = set()
    for at, item in enumerate(items):
        if (kind := _kind(item)) == "function_call":
            call_id = item.get("call_id")
            if not isinstance(call_id, str) or not CALL_ID.fullmatch(call_id):
                yield f"input[{at}]: illegal call id {call_id!r}"
            elif call_id in called:
                yield f"input[{at}]: call id {call_id!r} is used twice"
            else:
                called.add(call_id)
        if "id" not in item or kind == "function_call_output":
            continue
        if not isinstance(item["id"], str) or not CALL_ID.fullmatch(item["id"]) or not item["id"].startswith(PREFIXES[kind]):
            yield f"input[{at}]: illegal item id {item['id']!r} of a {kind}"
        elif item["id"] in seen:
            yield f"input[{at}]: item id {item['id']!r} is used twice"
        else:
            seen.add(item["id"])


def _shape(at: int, item: Mapping[str, Any]) -> Iterator[str]:
    match _kind(item):
        case "message":
            content, is_output = item.get("content"), item["role"] == "assistant"
            if isinstance(content, str):
                if not content:
                    yield f"input[{at}]: empty {item['role']} message"
            elif isinstance(content, list):
                allowed = ("output_text", "refusal") if is_output else ("input_text", "input_image", "input_file", "input_audio")
                yield from _pieces(at, content, allowed)
            else:
                yield f"input[{at}]: content is neither text nor a list"
            if "phase" in item and not (is_output and item["phase"] in ("commentary", "final_answer")):
                yield f"input[{at}]: illegal phase {item['phase']!r}"
            if "id" in item and not is_output:
                yield f"input[{at}]: only the assistant's items have ids"
        case "function_call":
            if not checks.is_tool_name(item.get("name")):
                yield f"input[{at}]: illegal tool name {item.get('name')!r}"
            if not checks.is_object_text(item.get("arguments")):
                yield f"input[{at}]: arguments are no text of a JSON object: {str(item.get('arguments'))[:80]!r}"
        case "function_call_output":
            output = item.get("output")
            if isinstance(output, list):
                yield from _pieces(at, output, ("input_text", "input_image", "input_file"))
            elif not isinstance(output, str):
                yield f"input[{at}]: the output is neither text nor a list"
            elif not output:
                yield f"input[{at}]: empty output"


def _pieces(at: int, pieces: Sequence[Any], allowed: Sequence[str]) -> Iterator[str]:
    if not pieces:
        yield f"input[{at}]: empty content list"
    for piece in pieces:
        kind = piece.get("type") if isinstance(piece, dict) else None
        if kind not in allowed:
            yield f"input[{at}]: a piece of type {kind!r}; here stand {', '.join(allowed)}"
        elif kind in TEXTS and not piece.get("text"):
            yield f"input[{at}]: empty text"
        elif kind == "input_image" and ("detail" not in piece or not (piece.get("image_url") or piece.get("file_id"))):
            yield f"input[{at}]: an image needs a detail, and an address or a file id"
        elif kind == "input_file" and not any(piece.get(name) for name in ("file_data", "file_id", "file_url")):
            yield f"input[{at}]: a file without data, id or address"


def _reasoning(items: Sequence[Mapping[str, Any]], is_stored: bool) -> Iterator[str]:
    """Reasoning directly precedes its product; unstored reasoning must carry its content."""
    for at, item in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        if not isinstance(item.get("id"), str):
            yield f"input[{at}]: reasoning without an id"
        summary = item.get("summary")
        if not isinstance(summary, list) or not all(
            isinstance(each, dict) and each.get("type") == "summary_text" for each in summary
        ):
            yield f"input[{at}]: the summary must be a list of summary_text"
        if not is_stored and not (item.get("encrypted_content") or item.get("content")):
            yield f"input[{at}]: nothing is stored, and the reasoning has no encrypted content"
        following = items[at + 1] if at + 1 < len(items) else {}
        if not _kind(following) or not _is_said(following):
            yield f"input[{at}]: reasoning without the item it led to"
        elif _kind(following) != "reasoning" and "id" not in following:
            yield f"input[{at + 1}]: what the reasoning before it led to has lost its id"


def _tool(name: Any, tool: Any) -> Iterator[str]:
    if isinstance(tool, dict) and tool.get("type") == "web_search":
        yield from (f"tools: web_search has no field {key!r}" for key in tool if key not in WEB_SEARCH_KEYS)
        return
    if not isinstance(tool, dict) or tool.get("type") != "function" or "function" in tool:
        yield f"tools: a tool is flat, of the type function: {str(tool)[:80]}"
        return
    if not checks.is_tool_name(name):
        yield f"tools: illegal name {name!r}"
    schema = tool.get("parameters")
    if "parameters" not in tool or (schema is not None and (not isinstance(schema, dict) or schema.get("type") != "object")):
        yield f"tools: the parameters of {name!r} are no object schema"


def _fields(body: Mapping[str, Any]) -> Iterator[str]:
    for name in FROM_ELSEWHERE:
        if name in body:
            yield f"{name} is a field of another format"
    if body.get("store") is False and body.get("previous_response_id"):
        yield "previous_response_id names an answer that was not stored"
    if "instructions" in body and (not isinstance(body["instructions"], str) or not body["instructions"].strip()):
        yield "empty instructions; leave the key out"
    form = (body.get("text") or {}).get("format") or {}
    if form.get("strict"):
        yield from checks.answer_problems(form.get("schema"), requires_all=True)
    reasoning = body.get("reasoning", {})
    if not isinstance(reasoning, dict) or reasoning.get("effort", "low") not in EFFORTS:
        yield f"illegal reasoning {reasoning!r}"
    limit = body.get("max_output_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < FEWEST_OUTPUT_TOKENS):
        yield f"max_output_tokens {limit!r} is below {FEWEST_OUTPUT_TOKENS}"
    key = body.get("prompt_cache_key")
    if key is not None and (not isinstance(key, str) or len(key) > CACHE_KEY_CHARACTERS):
        yield f"prompt_cache_key has more than {CACHE_KEY_CHARACTERS} characters"
