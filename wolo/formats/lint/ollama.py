"""Lint Ollama requests, including what the server would silently misread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wolo.formats.lint.checks import is_base64, list_problems, order_problems, prefix_problems, tool_problems
from wolo.formats.tolerant_json import list_at, mapping_at

ROLES = ("system", "user", "assistant", "tool")
LEVELS = ("low", "medium", "high", "max")
SMALLEST_WINDOW = 1024


def lint(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Return problems; empty when every server accepts and reads the whole request.

    `previous` is the preceding request of the conversation: its messages and tools must be a prefix of this one.
    `strict_template`: many chat templates refuse two user messages in a row.
    """
    if odd := list_problems(
        body, "messages", lambda each: isinstance(each, dict) and each.get("role") in ROLES, "object with a known role"
    ):
        return odd
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    unanswered = f"the last message is the {roles[-1]}'s: it would be continued, not answered"
    return [
        *_pairing(messages),
        *(complaint for at, message in enumerate(messages) for complaint in _message(at, message)),
        *([unanswered] if roles[-1] not in ("user", "tool") else []),
        *order_problems("messages", roles, strict_template=strict_template),
        *tool_problems(body, _name, _tool),
        *_fields(body),
        *prefix_problems(body, previous, head=("tools",), turns="messages"),
    ]


def _name(call: Any) -> Any:
    return mapping_at(call, "function").get("name")


def _pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Results follow their calls in the same number and order, with the same tool and id."""
    waiting: list[Any] = []
    for at, message in enumerate(messages):
        if message["role"] != "tool":
            if waiting:
                yield f"messages[{at}]: {message['role']} message before the results of {[_name(call) for call in waiting]!r}"
            waiting = list_at(message, "tool_calls")
        elif not waiting:
            yield f"messages[{at}]: tool message without its call"
        else:
            call = waiting.pop(0)
            if message.get("tool_name") != _name(call):
                yield f"messages[{at}]: the result of {message.get('tool_name')!r} stands where {_name(call)!r} was called"
            wire_id = call.get("id") if isinstance(call, dict) else None
            if "tool_call_id" in message and message["tool_call_id"] != wire_id:
                yield f"messages[{at}]: tool_call_id {message['tool_call_id']!r} is not the call's {wire_id!r}"
    if waiting:
        yield f"calls without a result: {[_name(call) for call in waiting]!r}"


def _message(at: int, message: Mapping[str, Any]) -> Iterator[str]:
    content, role = message.get("content"), message["role"]
    if not isinstance(content, str):
        yield f"messages[{at}]: content must be text"
    elif not content.strip() and not (list_at(message, "tool_calls") or message.get("images")):
        yield f"messages[{at}]: {role} message with neither text nor calls nor images"
    if "thinking" in message and not (role == "assistant" and isinstance(message["thinking"], str) and message["thinking"]):
        yield f"messages[{at}]: thinking must be text of the assistant"
    if "images" in message:
        images = message["images"]
        if not isinstance(images, list) or not images:
            yield f"messages[{at}]: images must be a non-empty list"
        else:
            for image in images:
                if not image or not is_base64(image, strict=True):
                    yield f"messages[{at}]: an image that is no bare base64: {str(image)[:30]!r}"
    if "tool_calls" in message:
        if message["role"] != "assistant":
            yield f"messages[{at}]: only the assistant calls tools"
        if not list_at(message, "tool_calls"):
            yield f"messages[{at}]: empty tool_calls; leave the key out"
        for call in list_at(message, "tool_calls"):
            if not isinstance(_name(call), str) or not _name(call):
                yield f"messages[{at}]: a call without the name of a tool"
            elif not isinstance(call["function"].get("arguments"), dict):
                yield f"messages[{at}]: the arguments of {_name(call)!r} are no object"


def _tool(name: Any, tool: Any) -> Iterator[str]:
    if not isinstance(name, str) or not name or tool.get("type") != "function":
        yield f"tools: no function with a name: {str(tool)[:80]}"
        return
    schema = tool["function"].get("parameters")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        yield f"tools: the parameters of {name!r} are no object schema"


def _fields(body: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model must be the name of a model"
    think = body.get("think")
    if not (think is None or isinstance(think, bool) or think in LEVELS):
        yield f"think must be true, false or one of {', '.join(LEVELS)}: {think!r}"
    options = body.get("options")
    window = options.get("num_ctx") if isinstance(options, dict) else None
    if not isinstance(window, int) or isinstance(window, bool) or window < SMALLEST_WINDOW:
        yield "options.num_ctx is missing or tiny: the server would cut off the beginning without a word"
    odd = [name for name in ("max_tokens", "temperature", "top_p", "stop", "response_format", "num_ctx") if name in body]
    if odd:
        yield f"fields that the server ignores here: {', '.join(odd)}"
