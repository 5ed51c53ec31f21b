"""Finds the MCP servers of a conversation, in the settings and the project."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.agent_services import AgentServices
from wolo.config import layers
from wolo.config.cli_options import Flags, many
from wolo.config.configured_servers import consent_notice, find_server_programs, save_server_consent, wanted_servers
from wolo.config.schema import Config
from wolo.errors import ConfigError
from wolo.mcp.listings import CachedListing, CachedListings, ServerListing
from wolo.mcp.server import ConfiguredServer, Server, ServerEnvironment, fingerprint
from wolo.mcp.servers import Servers, ServerStatus
from wolo.places import Notices, Places, Site, find_places
from wolo.tools.toolbox import MCP_PREFIX, beginning_of
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace, find_site

if TYPE_CHECKING:
    from wolo.mcp.hosted.hosted_server import Exchange


class FoundServers(Struct, frozen=True):
    servers: Servers
    notices: tuple[str, ...]
    programs: tuple[Path, ...] = ()
    """Workspace files that servers execute; writing one would escape the sandbox."""


async def find_servers(
    config: Config,
    workspace: Workspace,
    site: Site,
    before: Servers | None,
    *,
    attended: bool,
    was_asked: bool,
    hosted: Mapping[str, Exchange],
) -> FoundServers:
    """Reuses the servers of the previous conversation, `before`, if they are the same, else closes them.

    `was_asked`: the user was asked for consent just now; `hosted` servers are inside the embedding program. Raises ConfigError
    for an invalid server in the settings.
    """
    site = replace(site, notices=Notices())
    if refused := sorted(name for name in hosted if not config.settings.managed.mcp.has(name)):
        hosted = {name: each for name, each in hosted.items() if name not in refused}
        site.notices.extend(
            f"The MCP server {name} of the program is not allowed on this machine, so it is not used." for name in refused
        )
    written = [each for each in wanted_servers(config, site) if each.name not in hosted]
    written += [ConfiguredServer(name=name, server=Server(), source="the program", scope="run") for name in hosted]
    configured = tuple(
        each if _is_offered(each.name, config) else replace(each, server=replace(each.server, enabled=False)) for each in written
    )
    around = replace(server_environment(workspace, site, configured), hosted=hosted)
    if not was_asked and (notice := consent_notice(configured, site.places, site.root)):
        site.notices.add(notice)
    if before is not None and before.is_for(configured, around):
        return FoundServers(before, (), _programs(configured, workspace, site.cwd))
    if before is not None:
        await before.close()
    servers = Servers(configured, around, cached_listings(site.places), attended=attended)
    return FoundServers(servers, tuple(site.notices), _programs(configured, workspace, site.cwd))


async def connect_servers(servers: Servers, workspace: Workspace, agent: AgentServices) -> None:
    """Tells the servers of the workspace, and lets those use the model that may."""
    if servers.is_empty:
        return
    sample = None
    if servers.use_models:
        from wolo.conversation.resources.mcp_sampling import ask_model  # noqa: PLC0415  # few servers may use the model

        sample = partial(ask_model, agent)
    await servers.attach(workspace, sample)


def _programs(configured: Sequence[ConfiguredServer], workspace: Workspace, cwd: Path) -> tuple[Path, ...]:
    """Includes servers without consent: it may come during the conversation."""
    roots = (workspace.root, *workspace.extra)
    paths: dict[Path, None] = {}
    for each in configured:
        if each.server.enabled:
            paths |= dict.fromkeys(find_server_programs(each, cwd, roots))
    return tuple(paths)


def _is_offered(name: str, config: Config) -> bool:
    """The settings offer at least one tool of this server."""
    tools, beginning = config.settings.tools, beginning_of(f"{MCP_PREFIX}{name}")
    if beginning in map(beginning_of, tools.hide):
        return False
    return tools.offer is None or any(beginning_of(each).startswith(beginning) for each in tools.offer)


def server_environment(workspace: Workspace, site: Site, configured: Iterable[ConfiguredServer]) -> ServerEnvironment:
    logins = None
    if any(each.server.url for each in configured):
        from wolo.config.mcp_logins import MCPLogins  # noqa: PLC0415  # most starts have no such server

        logins = MCPLogins(site.places)
    find_input = None
    if any(each.server.inputs for each in configured):
        from wolo.config.mcp_logins import ServerInputs  # noqa: PLC0415  # the same

        find_input = ServerInputs(site.places, site.root).find
    processes = Processes(site.places.state / "mcp")
    return ServerEnvironment(workspace, site.cwd, site.environ, processes, logins, find_input=find_input)


def cached_listings(places: Places) -> CachedListings:
    return CachedListings(places.cache / "mcp")


def remember_listing(configured: ConfiguredServer, listing: ServerListing) -> None:
    """The next turn has these tools at once, whatever the last start came to."""
    cached_listings(find_places()).write(fingerprint(configured), CachedListing(listing))


def servers_here(options: Flags, site: Site) -> tuple[ConfiguredServer, ...]:
    """All servers defined for this directory. Raises ConfigError."""
    config = layers.load(site, options, many(options, "set"))
    site.notices.extend(config.notices)
    return wanted_servers(config, site)


class LastKnown(Struct, frozen=True):
    state: Literal["off", "needs consent", "not tried yet", "still starting", "failed last time", "ready"]
    tools: tuple[str, ...] | None
    """By the server's own names; None: never listed."""
    why: str = ""
    """Reason of a failure."""


def last_known(configured: ConfiguredServer) -> LastKnown:
    """Does not start the server."""
    server = configured.server
    remembered = cached_listings(find_places()).read(fingerprint(configured))
    tools = tuple(each.name for each in remembered.listing.tools if server.offers(each.name)) if remembered else None
    if not server.enabled:
        return LastKnown("off", tools)
    if not configured.is_allowed:
        return LastKnown("needs consent", tools)
    if remembered is not None and 0 <= time.time() - remembered.started_at < server.startup_timeout_s:
        return LastKnown("still starting", tools)
    if remembered is None or (remembered.started_at and remembered.listing.is_empty and not remembered.failed):
        return LastKnown("not tried yet", None)  # a run was killed before it was ready
    return LastKnown("failed last time" if remembered.failed else "ready", tools, remembered.why)


def login_state(configured: ConfiguredServer) -> str | None:
    """None for programs, and for servers without a saved login."""
    if not configured.server.url:
        return None
    from wolo.config.mcp_logins import MCPLogins  # noqa: PLC0415  # for remote servers only
    from wolo.mcp.logins import login_key  # noqa: PLC0415
    from wolo.mcp.references import fill_in  # noqa: PLC0415

    try:
        saved = MCPLogins(find_places()).read(login_key(configured.name, fill_in(configured.server.url, os.environ, "url")))
    except ConfigError as error:
        return error.message
    return "saved" if saved is not None and saved.tokens else None


async def try_server(configured: ConfiguredServer) -> ServerStatus:
    """Starts a server, lists its tools and stops it."""
    site = find_site()
    around = server_environment(Workspace(site.root, (), site.cwd), site, [configured])
    allowed = replace(configured, is_allowed=True, server=replace(configured.server, enabled=True))
    servers = Servers([allowed], around, cached_listings(site.places), attended=False)
    try:
        await servers.restart(configured.name)
        await servers.until_settled(configured.name)
        return servers.statuses()[0]
    finally:
        await servers.close()


def allow_server(servers: Servers, name: str, places: Places, root: Path) -> None:
    """Saves consent and starts the server. Raises UsageError."""
    save_server_consent(places, root, servers.waits_for_consent(name), allowed=True)
    servers.allow(name)
