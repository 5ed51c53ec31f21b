"""Tools that come from elsewhere, perhaps in the middle of a turn; and which of them a provider will not take."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from wolo.messages.message import MCP_INSTRUCTIONS, NUDGE, Message
from wolo.tools.tool import ForeignTool

_PLACE = re.compile(r"function_?declarations\W{1,2}(\d+)|\btools\W{1,2}(\d+)(?!\W{1,2}function_?declarations)", re.IGNORECASE)


_TOO_MANY = re.compile(
    r"\b(?:max(?:imum)?|at most|up to|limit|no more than|exceeds?|exceeding)\b[^\d.]{0,40}?(\d{1,4})(?!\d)", re.IGNORECASE
)
_ABOUT_TOOLS = re.compile(r"\b(?:tools|functions|function_?declarations)\b", re.IGNORECASE)
_LEAST_LIMIT = 8
"""A number below says something else."""


class LateTools(Protocol):
    async def settle(self) -> None:
        """Before a request: waits, but not for long."""
        ...

    @property
    def tools(self) -> Sequence[ForeignTool]:
        """All that are there; who comes later stands behind."""
        ...

    @property
    def instructions(self) -> Mapping[str, str]:
        """What servers say of the use of their tools, by server."""
        ...

    def news(self) -> str:
        """What a person should know, once; empty: nothing."""
        ...


_INSTRUCTIONS = '<mcp_instructions server="{server}">\n{text}\n</mcp_instructions>'


def unsaid(instructions: Mapping[str, str], sent: Sequence[Message]) -> str:
    """Those that none of the messages tells that are sent; empty: none."""
    blocks = (_INSTRUCTIONS.format(server=server, text=text) for server, text in instructions.items())
    told = [message.text for message in sent if message.metadata.get(NUDGE) == MCP_INSTRUCTIONS]
    return "\n".join(block for block in blocks if not any(block in each for each in told))


def most_taken(refusal: str) -> int | None:
    """How many tools a provider takes that refuses a request for having too many. None: the refusal is about something else."""
    found = _TOO_MANY.search(refusal) if _ABOUT_TOOLS.search(refusal) else None
    return int(found[1]) if found and int(found[1]) >= _LEAST_LIMIT else None


def blamed(message: str, foreign: Mapping[int, str]) -> str:
    """The tool that a refusal names, or the place of; `foreign` are the names by place. Empty: none of these."""
    words = set(re.findall(r"[A-Za-z0-9_-]+", message))
    named = next((name for name in foreign.values() if name in words), "")
    if named:
        return named
    places = (int(found[1] or found[2]) for found in _PLACE.finditer(message))
    return next((foreign[place] for place in places if place in foreign), "")
