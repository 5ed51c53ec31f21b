"""Keeps the addresses that a public MCP server names for its login out of the user's own network."""

from __future__ import annotations

import os

from wolo.errors import ToolError
from wolo.mcp.oauth.callback import LoginFailed
from wolo.models.address import origin, proxy_for
from wolo.tools.web.address import Hosts, read_address


class MetadataAddresses:
    def __init__(self, server_url: str, issuer: str = "", hosts: Hosts | None = None) -> None:
        """`issuer`: the authorization server that the user named, which may be anywhere."""
        self.peer = ""
        """IP address at which the server answered; empty: not known, or behind a proxy."""
        self._server_url, self._issuer = server_url, issuer
        self._hosts = hosts or Hosts()

    async def resolve(self, url: str) -> tuple[str, ...]:
        """The IP addresses that may be contacted for `url`; empty: any. Raises LoginFailed."""
        if self._issuer and origin(url) == origin(self._issuer):
            return ()
        try:
            if await self._is_server_private():
                return ()
            address = read_address(url)
            if proxy_for(address.url, os.environ):
                self._hosts.check_name(address)
                return ()
            return await self._hosts.find(address)
        except ToolError as error:
            raise LoginFailed(f"the server leads to {url.partition('?')[0]}: {error.message.rstrip('.')}") from error
        except OSError as error:
            raise LoginFailed(f"the server leads to {url.partition('?')[0]}, which has no address") from error

    async def _is_server_private(self) -> bool:
        """Judges the connection itself where there was one: a name can mean another address at each lookup."""
        if self.peer:
            return not self._hosts.is_open(self.peer)
        server = read_address(self._server_url)
        try:
            self._hosts.check_name(server)
        except ToolError:
            return True
        if server.is_literal or proxy_for(server.url, os.environ):
            return False
        return not any(map(self._hosts.is_open, await self._hosts.look_up(server.host, server.port)))
