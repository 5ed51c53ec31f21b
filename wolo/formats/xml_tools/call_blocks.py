"""Reads and writes calls of the text protocol: `<tool>{"server_name": …, "tool_name": …, "arguments": {…}}</tool>`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from wolo.formats.text_recovery.json_scanner import JsonMember, read_members
from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import Message, Role
from wolo.messages.parts import TextPart

if TYPE_CHECKING:
    from wolo.messages.roles import AgentMessage

OPEN, CLOSE = "<tool>", "</tool>"
LOCAL = "local"
RESULT = "Tool: "
"""Prefix of a result, before the tool name."""
ERROR = "Error: "
ROLES = ("system", "user", "assistant", "tool")

MISSING_OPEN = f"The call has no {OPEN} tag in front of it."
MISSING_CLOSE = f"The call has no {CLOSE} tag behind it."
MISSING_NAME = "The call has no `tool_name` with the name of the tool."
MISSING_ARGUMENTS = "The call has no `arguments` with a JSON object."
NOTHING_RUN = "Nothing was run. Write the whole call again, as the rules for calls say."

_MCP = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_NAME = re.compile(r'"tool_name"\s*:\s*"([^"\\]*)"')
_SERVER = re.compile(r'"server_name"\s*:\s*"([^"\\]*)"')


class Malformed(ValueError):
    """The message explains the error in a call or message of the text protocol."""


class CallBlock(NamedTuple):
    """A parsed call."""

    tool: str
    arguments: str
    """Arguments exactly as written."""
    raw: str
    """The whole block, including tags."""
    begin: int = -1
    """Offset of the arguments in `raw`; -1 if they are not contained verbatim."""
    problem: str = ""
    """Reason why the call cannot run, for the model."""


def validate_message(message: Mapping[str, Any] | Message | AgentMessage) -> None:
    """Raises ValueError unless the message, a value or one of Chat Completions, has a known role and content or a call."""
    if isinstance(message, Mapping):
        role, content, roles = message.get("role"), message.get("content") or message.get("tool_calls"), ROLES
    elif not hasattr(message, "role"):
        raise TypeError(f"A message is a value or a dict of Chat Completions, not a {type(message).__name__}.")
    else:
        role, roles = message.role, (*ROLES, *get_args(Role))
        parts = message.parts if isinstance(message, Message) else message.contents
        content = any(not isinstance(part, TextPart) or part.text for part in parts)
    if role not in roles:
        raise Malformed(f"invalid role: {role!r} is not one of {', '.join(dict.fromkeys(roles))}.")
    if not content:
        raise Malformed("The content cannot be empty.")


def validate_tool_call(content: str) -> None:
    """Raises ValueError unless the text holds a whole call: both tags, and JSON between them with `tool_name` and `arguments`."""
    if not isinstance(content, str):
        raise TypeError(f"A call is checked in the text that holds it, which is not a {type(content).__name__}.")
    check_call(content)


def check_call(text: str) -> tuple[str, str, JsonMember | None]:
    """Parse server, tool and position of the arguments; None: the object was double-encoded. Raises Malformed."""
    if (begin := text.find(OPEN)) < 0:
        raise Malformed(MISSING_OPEN)
    if (end := text.rfind(CLOSE)) < begin:
        raise Malformed(MISSING_CLOSE)
    return _parts_of(text[begin + len(OPEN) : end])


def read_block(raw: str, offered: Collection[str]) -> CallBlock | None:
    """Parse a block including its tags. None: no offered tool, so it is plain text.

    An unreadable block becomes a call with a `problem` that the model sees.
    """
    inner = raw[len(OPEN) : -len(CLOSE)]
    try:
        server, named, arguments = check_call(raw)
    except Malformed as problem:
        return failed_block(raw, f"{problem} {NOTHING_RUN}", offered)
    if (tool := find_tool(server, named, offered)) is None:
        return None
    if arguments is None:  # double-encoded, so there is no verbatim passage
        value: Any = read_arguments(inner)["arguments"]
        return CallBlock(tool, json.dumps(value, ensure_ascii=False), raw)
    return CallBlock(tool, inner[arguments.begin : arguments.end], raw, len(OPEN) + arguments.begin)


def failed_block(raw: str, problem: str, offered: Collection[str]) -> CallBlock | None:
    named = _NAME.search(raw)
    server = _SERVER.search(raw)
    tool = find_tool(server[1] if server else LOCAL, named[1], offered) if named else ""
    return None if tool is None else CallBlock(tool, raw, raw, 0, problem)


def find_tool(server: str, name: str, offered: Collection[str]) -> str | None:
    """Resolve an offered tool by server and name."""
    names = (name, name.strip().lower()) if server in (LOCAL, "") else (f"mcp__{server}__{name}", name)
    return next((each for each in names if each in offered), None)


def split_name(tool: str) -> tuple[str, str]:
    """Split into server and tool name: `mcp__SERVER__TOOL`, or `local`."""
    found = _MCP.fullmatch(tool)
    return (found[1], found[2]) if found else (LOCAL, tool)


def format_call(tool: str, arguments: str) -> str:
    server, name = split_name(tool)
    quoted = (json.dumps(each, ensure_ascii=False) for each in (server, name))
    head = '{{"server_name": {}, "tool_name": {}, "arguments": '.format(*quoted)
    return f"{OPEN}{head}{arguments}}}{CLOSE}"


def _parts_of(inner: str) -> tuple[str, str, JsonMember | None]:
    text = inner.rstrip()
    try:
        members = read_members(text)
    except (ValueError, RecursionError):
        try:
            value = read_arguments(text)  # an object that was JSON-encoded twice
        except Unreadable as reason:
            raise Malformed(f"The text between the tool tags is {reason}.") from None
        if not isinstance(value.get("tool_name"), str):
            raise Malformed(MISSING_NAME) from None
        if "arguments" not in value:
            raise Malformed(MISSING_ARGUMENTS) from None
        server = value.get("server_name")
        return server if isinstance(server, str) else LOCAL, value["tool_name"], None
    by_key: dict[str, JsonMember] = {}
    for member in members:
        if by_key.setdefault(member.key, member) is not member:
            raise Malformed(f"The key `{member.key}` is duplicated.")
    named, server = by_key.get("tool_name"), by_key.get("server_name")
    arguments = by_key.get("arguments")
    if named is None or not isinstance(named.value, str) or not named.value:
        raise Malformed(MISSING_NAME)
    if arguments is None:
        raise Malformed(MISSING_ARGUMENTS)
    return server.value if server and isinstance(server.value, str) else LOCAL, named.value, arguments
