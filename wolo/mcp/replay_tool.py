"""A server's tool in a session that is played again: no server is asked, it says what was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wolo.errors import ToolError
from wolo.formats.format import ToolSpec
from wolo.guard.intents import CallIntent, Intent
from wolo.mcp.names import BEGINNING
from wolo.tools.tool import FIND_TOOLS, Result, ToolContext


class RecordedTool:
    reads_only = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.spec = ToolSpec(name, "", {"type": "object", "properties": {}})

    def intents(self, args: Mapping[str, Any], context: ToolContext) -> Sequence[Intent]:
        """As far as its name tells them."""
        if self.name == FIND_TOOLS:
            return ()
        server, _, tool = self.name.removeprefix(BEGINNING).partition("__")
        return (CallIntent(f"mcp:{server}/{tool}"),)

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> Result:
        recorded = context.recorded(context.call_id)
        if recorded is None:
            raise ToolError(f"Nothing is known of what {self.name} said.")
        return recorded


def recorded_tools(called: Sequence[str]) -> list[RecordedTool]:
    """For all that were called by names of servers' tools, and for what found them."""
    return [RecordedTool(name) for name in dict.fromkeys(called) if name.startswith(BEGINNING) or name == FIND_TOOLS]
