"""A connection to a server, as the rest of this room sees it; `sdk.py` makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from wolo.mcp.tool_listing import Listed
from wolo.mcp.tool_result import Answer


class Lost(Exception):
    """The connection is gone. `was_heard`: the server may have begun to do what was asked."""

    def __init__(self, why: str, *, was_heard: bool = True) -> None:
        super().__init__(why)
        self.was_heard = was_heard


class Refused(Exception):
    """The server said no, or nothing that makes sense, or nothing in time; the connection is still there."""


class Link(Protocol):
    ended: asyncio.Event
    """Nothing comes any more."""
    changed: asyncio.Event
    """The server said that its tools are others now."""

    @property
    def instructions(self) -> str:
        """What the server says of the use of its tools; empty: nothing."""
        ...

    async def tools(self) -> tuple[Listed, ...]:
        """Raises Lost and Refused."""
        ...

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float, show: Callable[[str], None]) -> Answer:
        """Raises Lost and Refused. When it is cancelled, the server is told."""
        ...
