"""All MCP servers of a conversation, with cached tools so that turns rarely wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ToolError, UsageError
from wolo.mcp.listings import CachedListing, CachedListings, ListedPrompt, ListedResource, ServerListing
from wolo.mcp.server import ConfiguredServer, ServerEnvironment, fingerprint
from wolo.mcp.server_offers import ServerOffers
from wolo.messages.secret_values import Secret
from wolo.messages.terminal_text import clean
from wolo.workspace.root import Workspace

if TYPE_CHECKING:
    from wolo.mcp.client import McpClient
    from wolo.mcp.connection import Completing, PromptMessage
    from wolo.mcp.logins import LoginStore
    from wolo.mcp.server_requests import Sample
    from wolo.mcp.tool_answer import Item
    from wolo.tools.tool import ExternalTool

ATTENDED_WAIT_S = 1.0
"""Wait for unknown servers when a user is present; their tools arrive later otherwise."""
_LOADING_S = 5.0
"""Limit for loading the SDK, reached only on very busy machines."""
_AFTER_THE_PROMPT_S = 0.4
"""Delay before loading the SDK, so that it does not slow down the first prompt."""

State = Literal["ready", "known", "starting", "failed", "needs consent", "off"]
"""`known`: tools are cached; the server starts when one is called."""

_FAILED_BEFORE = "it failed last time, so wolo does not wait for it"
_COMPLETION_S = 1.0


class ServerStatus(Struct, frozen=True, kw_only=True):
    """State of one server."""

    name: str
    state: State
    why: str
    """Failure reason."""
    source: str
    tools: tuple[tuple[str, str], ...]
    """Names for models, with descriptions."""
    prompts: tuple[ListedPrompt, ...] = ()
    resources: tuple[ListedResource, ...] = ()
    notices: tuple[str, ...] = ()
    """About entries that are not offered."""
    log: tuple[str, ...] = ()
    """The server's last log messages."""


LogIn = Callable[[ConfiguredServer, "LoginStore | None"], Coroutine[Any, Any, None]]
"""Logs in to a server and reports the result; must not raise."""


class Servers:
    """Requires an event loop. A turn uses `prepare`, `tools` and `news`."""

    def __init__(
        self, configured: Iterable[ConfiguredServer], around: ServerEnvironment, cached: CachedListings, *, attended: bool
    ) -> None:
        """`attended`: a user is waiting for the prompt."""
        self._loop = asyncio.get_running_loop()
        self._wanted = {each.name: each for each in sorted(configured, key=lambda each: each.name)}
        self._around = around
        self._cached = cached
        self._attended = attended
        self._clients: dict[str, McpClient] = {}
        self._offered = ServerOffers(self._clients)
        self._sample: Sample | None = None
        self._roots: tuple[Path, ...] = (around.workspace.root, *around.workspace.extra)
        self._reported_failures: set[str] = set()
        """Servers whose failure was reported."""
        self._reported_starting: set[str] = set()
        """Servers reported as still starting."""
        self._failed_before: set[str] = set()
        """Not waited for, because their last start failed."""
        self._due: list[McpClient] = []
        """Servers to start soon."""
        self._awaited: list[McpClient] = []
        self._logins: dict[str, asyncio.Task[None]] = {}
        self._has_asked = False
        """The first request was sent or is being prepared."""
        for each in self._wanted.values():
            self._add(each)
        self._offered.append_arrived()
        self._timer: asyncio.TimerHandle | None = None
        if self._due:
            delay_s = _AFTER_THE_PROMPT_S if attended else 0
            self._timer = self._loop.call_later(delay_s, self._begin_due)

    @property
    def is_empty(self) -> bool:
        """No server is defined, not even one that is off."""
        return not self._wanted

    @property
    def use_models(self) -> bool:
        """A server may ask the model."""
        return any(client.server.sampling_tokens for client in self._clients.values())

    @property
    def tools(self) -> tuple[ExternalTool, ...]:
        """Sorted by server and name; later arrivals are appended, and positions never change."""
        return tuple(self._offered.tools)

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions of servers that offer something, by server."""
        return self._offered.instructions

    @property
    def prompts(self) -> Mapping[str, tuple[ListedPrompt, ...]]:
        """By server."""
        return {name: listing.prompts for name, listing in self._offered.listings.items() if listing.prompts}

    @property
    def resources(self) -> Mapping[str, tuple[ListedResource, ...]]:
        """By server."""
        return {name: listing.resources for name, listing in self._offered.listings.items() if listing.resources}

    async def attach(self, workspace: Workspace, sample: Sample | None) -> None:
        """Connects the servers to a conversation: its folders, and its model for servers that may use it."""
        self._sample = sample
        self._roots = (workspace.root, *workspace.extra)
        for client in self._clients.values():
            client.requests.sample = sample
            await client.change_roots(self._roots)

    def report_secrets(self, learn: Callable[[Iterable[Secret]], None]) -> None:
        """`learn` receives the tokens of logins, also those that are refreshed later."""
        if self._around.logins is not None:
            self._around.logins.report_secrets(learn)

    async def read(self, server: str, uri: str) -> tuple[Item, ...]:
        """The contents of a resource. Raises ToolError."""
        return await self._client(server).read(uri)

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> tuple[PromptMessage, ...]:
        """Raises ToolError."""
        return await self._client(server).prompt(name, arguments)

    def complete(self, server: str, completing: Completing) -> tuple[str, ...]:
        """Asks a running server, for a short time. Called from a thread; empty where it cannot tell."""
        client = self._clients.get(server)
        if client is None:
            return ()
        asked = asyncio.run_coroutine_threadsafe(client.complete(completing), self._loop)
        try:
            return asked.result(_COMPLETION_S)
        except (TimeoutError, asyncio.CancelledError):
            asked.cancel()
            return ()

    async def wait_known(self) -> None:
        """Waits until every server has listed what it offers, or has failed."""
        self._begin_due()
        await _run_with_timeout((client.wait_settled() for client in self._awaited), self._longest(self._awaited) + 1)

    async def prepare(self) -> None:
        """Prepare for a request. Waits once for unknown servers: briefly when attended, else up to their startup timeout."""
        if self._has_asked and self._attended:
            self._due += [client for client in self._clients.values() if client.state == "idle"]
        self._has_asked = True
        self._begin_due()
        awaited, self._awaited = self._awaited, []
        await _run_with_timeout((client.wait_loaded() for client in awaited), _LOADING_S)
        most_s = ATTENDED_WAIT_S if self._attended else self._longest(awaited) + 1
        await _run_with_timeout((client.wait_settled() for client in awaited), most_s)
        self._offered.append_arrived()

    def news(self) -> str:
        """New failures for the user; empty if there are none."""
        failed = {each.name: each.why for each in self._clients.values() if each.state == "failed"}
        lines = [f"  {name}: {why}" for name, why in failed.items() if name not in self._reported_failures]
        self._reported_failures |= failed.keys()
        start = "An MCP server cannot be used" if len(lines) == 1 else f"{len(lines)} MCP servers cannot be used"
        said = [f"{start} (`wolo mcp list` shows them all):", *lines] if lines else []
        return "\n".join([*said, *self._starting_notices(), *self._offered.news()])

    def _starting_notices(self) -> list[str]:
        """Servers that are no longer waited for. Attended, they join later, and those with known tools are not mentioned."""
        starting = [each.name for each in self._clients.values() if each.state == "starting"]
        if self._attended:
            starting = [name for name in starting if self._offered.listings.get(name, ServerListing()).is_empty]
        new = [name for name in starting if name not in self._reported_starting]
        self._reported_starting |= {*starting}
        reasons = [f": {_FAILED_BEFORE}" if name in self._failed_before else "" for name in new]
        if len(new) == 1:
            later = "; its tools join when it is ready" if self._attended and not reasons[0] else ""
            return [f"The MCP server {new[0]} is still starting{reasons[0] or later}."]
        lines = [f"  {name}{reason}" for name, reason in zip(new, reasons, strict=True)]
        later = "; their tools join when they are ready" if self._attended else ""
        return [f"{len(new)} MCP servers are still starting{later}:", *lines] if new else []

    def statuses(self) -> tuple[ServerStatus, ...]:
        return tuple(map(self._status, self._wanted.values()))

    async def restart(self, name: str) -> None:
        """Raises UsageError for an unknown or disallowed server."""
        client = self._clients.get(name)
        if client is None:
            state = self._status(self._find(name)).state
            raise UsageError(f"The MCP server {name} is not started: {state}.", hint=f"/mcp allow {name}")
        await client.close()
        self._reported_failures.discard(name)
        client.start()

    async def until_settled(self, name: str) -> None:
        """Wait until the current start succeeded or failed."""
        await self._clients[name].wait_settled()

    def allow(self, name: str) -> ConfiguredServer:
        """Start a server after the user's consent. Raises UsageError if it needs none."""
        wanted = self._find(name)
        if wanted.is_allowed:
            raise UsageError(f"The MCP server {name} needs no consent.")
        allowed = self._wanted[name] = replace(wanted, is_allowed=True)
        self._add(allowed)
        self._begin_due()
        return allowed

    def start_login(self, name: str, log_in: LogIn) -> None:
        """Runs `log_in` beside everything else, until the servers are closed. Raises UsageError."""
        configured = self._find(name)
        if not configured.server.url:
            raise UsageError(f"{name} is a program: only remote servers have a login.")
        if not configured.is_allowed:
            raise UsageError(f"{name} is not contacted: it needs your consent.", hint=f"/mcp allow {name}")
        if (earlier := self._logins.get(name)) is not None:
            earlier.cancel()  # its address was lost from sight
        self._logins[name] = self._loop.create_task(log_in(configured, self._around.logins))

    def waits_for_consent(self, name: str) -> ConfiguredServer:
        """Raises UsageError if the server needs no consent."""
        configured = self._find(name)
        if configured.is_allowed:
            raise UsageError(f"The MCP server {name} needs no consent.")
        return configured

    def is_for(self, configured: Iterable[ConfiguredServer], around: ServerEnvironment) -> bool:
        """Check whether these inputs are the same, so that another conversation can share the servers."""
        same_place = (around.cwd, around.workspace.root) == (self._around.cwd, self._around.workspace.root)
        return same_place and {each.name: each for each in configured} == self._wanted

    async def close(self) -> None:
        """Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        for login in self._logins.values():
            login.cancel()
        await asyncio.gather(*self._logins.values(), return_exceptions=True)
        for name, client in self._clients.items():
            if client.state == "failed":
                self._remember(self._wanted[name], CachedListing(ServerListing(), failed=True, why=client.why))
            elif client.state == "starting":
                mark = fingerprint(self._wanted[name])
                if (before := self._cached.read(mark)) is None or (before.listing.is_empty and not before.failed):
                    self._cached.forget(mark)
                else:
                    self._cached.write(mark, replace(before, started_at=0.0))
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        self.kill()

    def kill(self) -> None:
        """End all servers at once, without an event loop."""
        self._around.processes.close_all()

    # Internals

    def _add(self, configured: ConfiguredServer) -> None:
        if not configured.is_allowed or not configured.server.enabled:
            return
        from wolo.mcp.client import McpClient  # noqa: PLC0415  # most runs have no server
        from wolo.mcp.server_requests import ServerRequests  # noqa: PLC0415  # the same

        requests = ServerRequests(
            configured.name,
            attended=self._attended,
            sampling_tokens=configured.server.sampling_tokens,
            accepts_defaults=configured.accepts_defaults,
        )
        requests.roots, requests.sample = self._roots, self._sample
        environ = {**self._around.environ, **configured.variables}
        around = replace(self._around, cwd=configured.folder or configured.named_in or self._around.cwd, environ=environ)
        client = self._clients[configured.name] = McpClient(
            configured.name, configured.server, around, partial(self._take, configured), requests
        )
        remembered = None if configured.name in around.hosted else self._cached.read(fingerprint(configured))
        failed = remembered is not None and remembered.failed
        if remembered is not None:
            self._offered.take(client, remembered.listing)
        is_unknown = remembered is None or (remembered.listing.is_empty and not failed)  # no call would start it
        if is_unknown:
            self._awaited.append(client)
        if is_unknown or failed:
            self._due.append(client)
        if failed:
            self._failed_before.add(configured.name)

    def _begin_due(self) -> None:
        due, self._due = self._due, []
        for client in due:
            if client.name in self._around.hosted:
                client.start()
                continue
            # Lets `wolo mcp list` tell a server that is starting from one that was never tried
            mark = fingerprint(self._wanted[client.name])
            before = self._cached.read(mark) or CachedListing(ServerListing())
            self._cached.write(mark, replace(before, started_at=time.time()))
            client.start()

    def _take(self, configured: ConfiguredServer, listing: ServerListing) -> None:
        self._remember(configured, CachedListing(listing))
        self._offered.take(self._clients[configured.name], listing, is_current=True)

    def _remember(self, configured: ConfiguredServer, seen: CachedListing) -> None:
        """Keeps the tools listed before a failure; those of a program are its own each time."""
        if configured.name in self._around.hosted:
            return
        mark = fingerprint(configured)
        before = self._cached.read(mark) if seen.failed else None
        self._cached.write(mark, replace(seen, listing=before.listing) if before else seen)

    def _find(self, name: str) -> ConfiguredServer:
        if name not in self._wanted:
            names = ", ".join(self._wanted) or "none"
            raise UsageError(f"There is no MCP server {name}.", hint=f"There are: {names}.")
        return self._wanted[name]

    def _status(self, configured: ConfiguredServer) -> ServerStatus:
        client = self._clients.get(configured.name)
        listing = self._offered.listings.get(configured.name, ServerListing())
        return ServerStatus(
            name=configured.name,
            state=_state(configured, client),
            why=client.why if client else "",
            source=configured.source,
            tools=tuple((tool.name, tool.spec.description) for tool in self._offered.tools_of(configured.name)),
            prompts=listing.prompts,
            resources=listing.resources,
            notices=listing.notices,
            log=tuple(client.requests.log) if client else (),
        )

    def _client(self, name: str) -> McpClient:
        if name not in self._clients:
            raise ToolError(
                f"There is no MCP server {clean(name)} that can be used. There are: {', '.join(self._clients) or 'none'}."
            )
        return self._clients[name]

    @staticmethod
    def _longest(clients: Iterable[McpClient]) -> float:
        return max((client.server.startup_timeout_s for client in clients), default=0.0)


async def _run_with_timeout(work: Iterable[Coroutine[None, None, None]], most_s: float) -> None:
    waiting = [asyncio.create_task(each) for each in work]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=most_s)
    finally:
        for each in waiting:
            each.cancel()


def _state(configured: ConfiguredServer, client: McpClient | None) -> State:
    if client is None:
        return "off" if configured.is_allowed else "needs consent"
    return "known" if client.state == "idle" else client.state
