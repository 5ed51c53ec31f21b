"""The connection interface; `sdk.py` implements it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from wolo.mcp.listings import ServerListing
from wolo.mcp.tool_answer import Item, ToolAnswer, read_items

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""Maximum size of a message; over stdio each is a line."""
ADDRESSES = "wolo.addresses"
"""Extension of a request: the IP addresses that it may go to, if there are any; it connects to no other."""
PEER = "wolo.peer"
"""Extension of a response: the IP address it came from, if no proxy was between."""


class ConnectionLost(Exception):
    """The connection is lost. `may_have_run`: the server may have started the call."""

    def __init__(self, why: str, *, may_have_run: bool = True) -> None:
        super().__init__(why)
        self.may_have_run = may_have_run


class RequestRejected(Exception):
    """The server refused, timed out or sent invalid data; the connection is still open."""


class PromptMessage(Struct, frozen=True):
    role: str
    items: tuple[Item, ...]


def read_messages(messages: object) -> tuple[PromptMessage, ...]:
    """Of the result of a prompt."""
    read = []
    for each in messages if isinstance(messages, list) else []:
        if isinstance(each, Mapping):
            content = each.get("content")
            items = read_items(content if isinstance(content, list) else [content])
            read.append(PromptMessage(str(each.get("role", "user")), tuple(items)))
    return tuple(read)


class Completing(Struct, frozen=True):
    """An argument of a prompt, or a variable of a resource template, that is being typed."""

    prompt: str
    """Empty: `template` is completed."""
    template: str
    argument: str
    typed: str
    others: Mapping[str, str]
    """Arguments that are complete."""


class Connection(Protocol):
    ended: asyncio.Event
    """The connection has ended."""
    changed: asyncio.Event
    """The server's tools, prompts or resources have changed."""

    async def listing(self) -> ServerListing:
        """Raises ConnectionLost and RequestRejected."""

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> ToolAnswer:
        """Raises ConnectionLost and RequestRejected. Cancellation notifies the server."""

    async def read(self, uri: str, timeout_s: float) -> tuple[Item, ...]:
        """The contents of a resource. Raises ConnectionLost and RequestRejected."""

    async def prompt(self, name: str, arguments: Mapping[str, str], timeout_s: float) -> tuple[PromptMessage, ...]:
        """Raises ConnectionLost and RequestRejected."""

    async def complete(self, completing: Completing) -> tuple[str, ...]:
        """Empty for a server that completes nothing. Raises ConnectionLost and RequestRejected."""

    async def roots_changed(self) -> None:
        """Tells the server that the folders of the workspace have changed. Raises ConnectionLost."""
