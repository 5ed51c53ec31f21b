"""Lint Chat Completions requests, also those of the XML text protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wolo.formats.lint import checks
from wolo.formats.tolerant_json import list_at, mapping_at
from wolo.formats.xml_tools.call_blocks import OPEN, RESULT, Malformed, validate_message

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_MARKS = 4
"""Maximum cache marks per request."""


def lint(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Return problems; empty when every server accepts the request.

    `previous` is the preceding request of the conversation: its messages and tools must be a prefix of this one.
    `strict_template`: chat templates of local servers refuse two user messages in a row.
    """
    if odd := checks.list_problems(
        body, "messages", lambda each: isinstance(each, dict) and each.get("role") in ROLES, "object with a known role"
    ):
        return odd
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    unanswered = f"the last message is the {roles[-1]}'s: there is nothing to answer"
    marks = _count_marks(body.get("tools")) + _count_marks(messages)
    return [
        *_pairing(messages),
        *_ids(messages),
        *(complaint for at, message in enumerate(messages) for complaint in _content(at, message)),
        *([unanswered] if roles[-1] not in ("user", "tool") else []),
        *checks.order_problems("messages", roles, strict_template=strict_template),
        *checks.tool_problems(body, lambda tool: mapping_at(tool, "function").get("name"), _tool),
        *([f"{marks} cache marks; {MOST_MARKS} are allowed"] if marks > MOST_MARKS else []),
        *_answer(body.get("response_format")),
        *checks.prefix_problems(_without_marks(body), _without_marks(previous), head=("tools",), turns="messages"),
    ]


def _answer(form: Any) -> Iterator[str]:
    if form is None:
        return
    if not isinstance(form, dict) or form.get("type") not in ("json_schema", "json_object", "text"):
        yield f"illegal response_format {form!r}"
    elif form["type"] == "json_schema" and (named := form.get("json_schema", {})).get("strict"):
        yield from checks.answer_problems(named.get("schema"), requires_all=True)


def _pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call is answered once before another role follows; each tool message answers a call."""
    waiting: list[Any] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            if (answered := message.get("tool_call_id")) in waiting:
                waiting.remove(answered)
            else:
                yield f"messages[{at}]: tool message without its call ({answered!r})"
            continue
        if waiting:
            yield f"messages[{at}]: {message['role']} message before the results of {waiting!r}"
        waiting = [call.get("id") for call in list_at(message, "tool_calls") if isinstance(call, dict)]
    if waiting:
        yield f"calls without a result: {waiting!r}"


def _ids(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for at, message in enumerate(messages):
        for call in list_at(message, "tool_calls"):
            wire_id = call.get("id") if isinstance(call, dict) else None
            if not isinstance(wire_id, str) or not wire_id:
                yield f"messages[{at}]: a call without an id"
            elif wire_id in seen:
                yield f"messages[{at}]: call id {wire_id!r} is used twice"
            else:
                seen.add(wire_id)


def _content(at: int, message: Mapping[str, Any]) -> Iterator[str]:
    content, role = message.get("content"), message["role"]
    if "content" not in message:
        yield f"messages[{at}]: the content key is missing"
    elif content is None or content == "":
        if not (role == "assistant" and list_at(message, "tool_calls")):
            yield f"messages[{at}]: {role} message with neither content nor calls"
    elif isinstance(content, list):
        if not content:
            yield f"messages[{at}]: empty content list"
        for part in content:
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield f"messages[{at}]: a content part without a type"
            elif part["type"] == "text" and not part.get("text"):
                yield f"messages[{at}]: empty text part"
    elif not isinstance(content, str):
        yield f"messages[{at}]: content is neither text nor a list"
    if role == "tool" and not isinstance(content, str):
        yield f"messages[{at}]: the content of a tool message must be text"
    if "tool_calls" in message:
        if message["role"] != "assistant":
            yield f"messages[{at}]: only the assistant calls tools"
        if not list_at(message, "tool_calls"):
            yield f"messages[{at}]: empty tool_calls; leave the key out"
        for call in list_at(message, "tool_calls"):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict) or call.get("type") != "function":
                yield f"messages[{at}]: a call that is no function"
                continue
            if not checks.is_tool_name(function.get("name")):
                yield f"messages[{at}]: illegal tool name {function.get('name')!r}"
            if not checks.is_object_text(function.get("arguments")):
                yield f"messages[{at}]: arguments are no text of a JSON object: {str(function.get('arguments'))[:80]!r}"


def _tool(name: Any, tool: Any) -> Iterator[str]:
    if isinstance(tool, dict) and tool.get("type") == "web_search":
        if not isinstance(search := tool.get("web_search"), dict) or not search.get("search_engine"):
            yield "tools: web_search without a search engine"
        return
    if not checks.is_tool_name(name):
        yield f"tools: illegal name {name!r}"
    function = mapping_at(tool, "function")
    yield from checks.schema_problems(name, function.get("parameters", {"type": "object"}) if function else None)


def _count_marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_count_marks, value))
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_count_marks, value.values()))
    return 0


def _without_marks(value: Any) -> Any:
    """Without cache marks, which move with every request."""
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    match plain.get("content"):
        case [{"type": "text", "text": text}]:
            plain["content"] = text
    return plain


NOT_IN_TEXT = ("tools", "tool_choice", "parallel_tool_calls", "tool_stream", "functions")


def lint_xml(body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """Lint a request of the XML text protocol, including text that looks like a call."""
    complaints = lint(body, previous, strict_template=strict_template)
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return complaints
    keys = [f"{key}: the text protocol offers tools in the system prompt only" for key in NOT_IN_TEXT if key in body]
    return [*complaints, *keys, *_xml_shapes(messages), *_xml_results(messages)]


def _xml_shapes(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for at, message in enumerate(messages):
        try:
            validate_message({"role": message.get("role"), "content": message.get("content")})
        except Malformed as problem:
            yield f"messages[{at}]: {problem}"
        if message.get("role") == "tool" or "tool_calls" in message or "tool_call_id" in message:
            yield f"messages[{at}]: calls and results are text here"
        if message.get("role") == "user" and OPEN in _plain_text(message):
            yield f"messages[{at}]: what the user or a tool said holds {OPEN} as it is"


def _xml_results(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Results directly follow the response with their calls."""
    for at, message in enumerate(messages):
        if message.get("role") != "user" or not _plain_text(message).startswith(RESULT):
            continue
        before = messages[at - 1] if at else {}
        if before.get("role") != "assistant" or OPEN not in _plain_text(before):
            yield f"messages[{at}]: a result, but no call before it"
        elif OPEN not in _plain_text(messages[0]):
            yield "messages[0]: the system prompt does not say how tools are called"


def _plain_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
