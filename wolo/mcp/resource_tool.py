"""The `read_resource` tool: lists and reads resources of MCP servers, each judged as `mcp:SERVER/read_resource`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wolo.errors import ToolError
from wolo.formats.format import ToolSpec
from wolo.guard.intents import CallIntent, Intent
from wolo.mcp.listings import ServerListing
from wolo.mcp.mcp_tool import INTERRUPTED, answer_result
from wolo.mcp.tool_answer import ToolAnswer
from wolo.tools.tool import READ_RESOURCE, CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Interrupted

if TYPE_CHECKING:
    from wolo.mcp.client import McpClient

_MOST_LISTED = 200
_PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "server": {"type": "string", "description": "name of the MCP server"},
        "uri": {"type": "string", "description": "URI of the resource; leave it out to list the resources of the server"},
    },
    "required": ["server"],
}


class ReadResource:
    aliases: Mapping[str, str] = {}
    reads_only = False
    name = READ_RESOURCE
    server = ""
    """It belongs to no single server."""
    is_gone = False

    def __init__(self, clients: Mapping[str, McpClient], listings: Mapping[str, ServerListing]) -> None:
        """Both are live."""
        self._clients = clients
        self._listings = listings
        about = "Read a resource of an MCP server (a file, a record, a page) by its URI, or list its resources and URI templates."
        self.spec = ToolSpec(READ_RESOURCE, about, _PARAMETERS)

    def intents(self, args: Mapping[str, Any], services: ToolServices) -> Sequence[Intent]:
        server = self._server(args)
        return (CallIntent(f"mcp:{server}/{READ_RESOURCE}"),)

    async def run(self, args: Mapping[str, Any], call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        server, uri = self._server(args), str(args.get("uri") or "").strip()
        if not uri:
            return CallResult(self._list(server))
        began = time.monotonic()
        try:
            items = await self._clients[server].read(uri)
        except asyncio.CancelledError as error:
            raise Interrupted(CallResult(INTERRUPTED, outcome="interrupted")) from error
        return answer_result(self.name, ToolAnswer(items or ("[the resource is empty]",)), call, time.monotonic() - began)

    def _server(self, args: Mapping[str, Any]) -> str:
        having = [name for name, listing in self._listings.items() if listing.resources]
        server = str(args.get("server") or (having[0] if len(having) == 1 else ""))
        if server not in self._clients:
            raise ToolError(
                f"read_resource: there is no server `{server}`. Servers with resources: {', '.join(having) or 'none'}."
            )
        return server

    def _list(self, server: str) -> str:
        resources = self._listings.get(server, ServerListing()).resources
        if not resources:
            return f"{server} lists no resources."
        lines = [
            f"- {each.uri}{' (a template)' if each.is_template else ''}"
            f"{': ' if each.name or each.description else ''}{' - '.join(filter(None, (each.name, each.description)))}"
            for each in resources[:_MOST_LISTED]
        ]
        more = len(resources) - _MOST_LISTED
        return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])
