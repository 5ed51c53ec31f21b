"""Tools, prompts and resources that the connected servers offer, in an order that keeps the request prefix stable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from wolo.mcp.listings import MOST_TOOLS, ServerListing
from wolo.messages.terminal_text import clean
from wolo.tools.tool import READ_RESOURCE

if TYPE_CHECKING:
    from wolo.mcp.client import McpClient
    from wolo.mcp.mcp_tool import ReadResource, RemoteTool

MOST_INSTRUCTIONS = 4000
"""Maximum characters of a server's instructions, which are part of every request."""
_MOST_NAMED = 8


class ServerOffers:
    def __init__(self, clients: Mapping[str, McpClient]) -> None:
        self._clients = clients
        self.listings: dict[str, ServerListing] = {}
        """The latest of each server."""
        self.tools: list[RemoteTool | ReadResource] = []
        self._arrived: list[RemoteTool | ReadResource] = []
        """Not offered yet; the next request appends them."""
        self._instructions: dict[str, str] = {}
        self._news: list[str] = []

    @property
    def instructions(self) -> Mapping[str, str]:
        """Of servers that offer something, by server."""
        offering = {tool.server for tool in self.tools}
        offering |= {name for name, listing in self.listings.items() if listing.resources or listing.prompts}
        return {name: said for name, said in sorted(self._instructions.items()) if name in offering}

    def tools_of(self, server: str) -> Iterator[RemoteTool]:
        """Without those that the server has removed."""
        for tool in (*self.tools, *self._arrived):
            if tool.server == server and not tool.is_gone:
                yield tool  # type: ignore[misc]  # the same

    def take(self, client: McpClient, listing: ServerListing, *, is_current: bool = False) -> None:
        """Known tools keep their first definition, because it is part of the request prefix. `is_current`: not from the cache."""
        from wolo.mcp.mcp_tool import RemoteTool  # noqa: PLC0415  # most runs have no server

        instructions = clean(listing.instructions).strip()
        if instructions:
            self._instructions.setdefault(client.name, instructions[:MOST_INSTRUCTIONS])
        known = {tool.name: tool.server for tool in (*self.tools, *self._arrived)}
        offered = [each for each in listing.tools if client.server.offers(each.name)]
        room = MOST_TOOLS - list(known.values()).count(client.name)
        new = [tool for tool in (RemoteTool(client, each) for each in offered) if tool.name not in known]
        self._arrived += {tool.name: tool for tool in new[:room]}.values()
        if len(new) > room:
            self._note(client.name, [f"{len(new) - room:,} of its tools are not offered: wolo takes at most {MOST_TOOLS:,}"])
        self.listings[client.name] = listing
        if listing.resources and READ_RESOURCE not in known:
            from wolo.mcp.mcp_tool import ReadResource  # noqa: PLC0415  # few servers have resources

            self._arrived.append(ReadResource(self._clients, self.listings))
        if is_current:
            self._note(client.name, [tool.notice for tool in new[:room] if tool.notice])
            self._mark_removed(client.name, {each.name for each in offered})
            self._note(client.name, listing.notices)
            if len(instructions) > MOST_INSTRUCTIONS:
                self._note(client.name, [f"its instructions are cut at {MOST_INSTRUCTIONS:,} characters"])

    def append_arrived(self) -> None:
        self.tools += sorted(self._arrived, key=lambda tool: (tool.server, tool.name))
        self._arrived.clear()

    def news(self) -> list[str]:
        """New notices for the user."""
        news, self._news = self._news, []
        return news

    def _mark_removed(self, server: str, offered: set[str]) -> None:
        """A removed tool stays in the prefix of the requests; calls of it are refused."""
        from wolo.mcp.mcp_tool import RemoteTool  # noqa: PLC0415  # it is loaded

        removed = []
        for tool in (*self.tools, *self._arrived):
            if isinstance(tool, RemoteTool) and tool.server == server:
                if tool.listed_name not in offered and not tool.is_gone:
                    removed.append(tool.listed_name)
                tool.is_gone = tool.listed_name not in offered
        self._arrived = [tool for tool in self._arrived if not (isinstance(tool, RemoteTool) and tool.is_gone)]
        if removed:
            more = f" and {len(removed) - _MOST_NAMED} more" if len(removed) > _MOST_NAMED else ""
            self._note(server, [f"it no longer offers {clean(', '.join(removed[:_MOST_NAMED]))}{more}"])

    def _note(self, server: str, notices: tuple[str, ...] | list[str]) -> None:
        for notice in notices:
            line = f"MCP server {server}: {notice}."
            if line not in self._news:
                self._news.append(line)
