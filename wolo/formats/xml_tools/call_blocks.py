"""A call as the text protocol spells it: `<tool>{"server_name": …, "tool_name": …, "arguments": {…}}</tool>`."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, NamedTuple

from wolo.formats.text_recovery.json_scanner import Member, read_members
from wolo.messages.call_arguments import Unreadable, read_arguments

OPEN, CLOSE = "<tool>", "</tool>"
LOCAL = "local"
RESULT = "Tool: "
"""Before the name, where a result begins."""
ERROR = "Error: "
ROLES = ("system", "user", "assistant", "tool")

MISSING_OPEN = f"The call has no {OPEN} tag in front of it."
MISSING_CLOSE = f"The call has no {CLOSE} tag behind it."
MISSING_NAME = "The call does not say `tool_name`, the name of the tool as text."
MISSING_ARGUMENTS = "The call does not say `arguments`, a JSON object."
NOTHING_RUN = "Nothing was run. Write the whole call again, as the rules for calls say."

_MCP = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)
_NAME = re.compile(r'"tool_name"\s*:\s*"([^"\\]*)"')
_SERVER = re.compile(r'"server_name"\s*:\s*"([^"\\]*)"')


class Malformed(Exception):
    """The message says what is wrong with a call or a message of the text protocol."""


class CallBlock(NamedTuple):
    """A call as it was read."""

    tool: str
    arguments: str
    """The text of the JSON that stands there as the arguments, to the letter."""
    raw: str
    """The whole block, both tags included."""
    begin: int = -1
    """Where the arguments stand in `raw`; -1 when they do not stand there as they are."""
    problem: str = ""
    """Why it cannot be run, in words for the model."""


def check_message(role: object, content: object) -> None:
    """Raises Malformed. Each message of this protocol is a role and a text."""
    if role not in ROLES:
        raise Malformed(f"The role {role!r} is not one of {', '.join(ROLES)}.")
    if not content:
        raise Malformed("The content is empty.")


def check_call(text: str) -> tuple[str, str, Member | None]:
    """Server, tool and place of the arguments between the tags; None: the object was written as a string. Raises Malformed."""
    if (begin := text.find(OPEN)) < 0:
        raise Malformed(MISSING_OPEN)
    if (end := text.rfind(CLOSE)) < begin:
        raise Malformed(MISSING_CLOSE)
    return _parts_of(text[begin + len(OPEN) : end])


def read_block(raw: str, offered: Collection[str]) -> CallBlock | None:
    """A whole block, both tags included. None: it is about no tool that is offered, and so just text.

    What cannot be read is a call all the same, with a problem: the model has to hear of it.
    """
    inner = raw[len(OPEN) : -len(CLOSE)]
    try:
        server, named, arguments = check_call(raw)
    except Malformed as problem:
        return failed_block(raw, f"{problem} {NOTHING_RUN}", offered)
    tool = find_tool(server, named, offered)
    if tool is None:
        return None
    if arguments is None:  # the whole object was written as a string: there is no passage to cut out
        return CallBlock(tool, _arguments_in(inner), raw)
    return CallBlock(tool, inner[arguments.begin : arguments.end], raw, len(OPEN) + arguments.begin)


def failed_block(raw: str, problem: str, offered: Collection[str]) -> CallBlock | None:
    named = _NAME.search(raw)
    server = _SERVER.search(raw)
    tool = find_tool(server[1] if server else LOCAL, named[1], offered) if named else ""
    return None if tool is None else CallBlock(tool, raw, raw, 0, problem)


def find_tool(server: str, name: str, offered: Collection[str]) -> str | None:
    """Our name of the tool that is called so on this server."""
    names = (name, name.strip().lower()) if server in (LOCAL, "") else (f"mcp__{server}__{name}", name)
    return next((each for each in names if each in offered), None)


def split_name(tool: str) -> tuple[str, str]:
    """Server and name as the protocol has them: `mcp__SERVER__TOOL` is the tool of a server, all others are local."""
    found = _MCP.fullmatch(tool)
    return (found[1], found[2]) if found else (LOCAL, tool)


def format_call(tool: str, arguments: str) -> str:
    server, name = split_name(tool)
    quoted = (json.dumps(each, ensure_ascii=False) for each in (server, name))
    head = '{{"server_name": {}, "tool_name": {}, "arguments": '.format(*quoted)
    return f"{OPEN}{head}{arguments}}}{CLOSE}"


def _parts_of(inner: str) -> tuple[str, str, Member | None]:
    text = inner.rstrip()
    try:
        members = read_members(text)
    except (ValueError, RecursionError):
        return _parts_of_string(text)
    by_key: dict[str, Member] = {}
    for member in members:
        if by_key.setdefault(member.key, member) is not member:
            raise Malformed(f"The key `{member.key}` stands there twice.")
    named, server = by_key.get("tool_name"), by_key.get("server_name")
    arguments = by_key.get("arguments")
    if named is None or not isinstance(named.value, str) or not named.value:
        raise Malformed(MISSING_NAME)
    if arguments is None:
        raise Malformed(MISSING_ARGUMENTS)
    return server.value if server and isinstance(server.value, str) else LOCAL, named.value, arguments


def _parts_of_string(text: str) -> tuple[str, str, None]:
    """The object was encoded once too often, or it is none."""
    try:
        value = read_arguments(text)
    except Unreadable as reason:
        raise Malformed(f"What stands between the tool tags is {reason}.") from None
    if not isinstance(value.get("tool_name"), str):
        raise Malformed(MISSING_NAME)
    if "arguments" not in value:
        raise Malformed(MISSING_ARGUMENTS)
    server = value.get("server_name")
    return server if isinstance(server, str) else LOCAL, value["tool_name"], None


def _arguments_in(inner: str) -> str:
    value: Any = read_arguments(inner)["arguments"]
    return json.dumps(value, ensure_ascii=False)
