"""Finds configured MCP servers of the user and of a trusted project, and stores consents to the latter.

A consent applies to exactly what the user saw, in one folder. When anything about a server changes, or a program of the project
that it starts, wolo asks again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.config import consents, project
from wolo.config.schema import Config
from wolo.errors import ConfigError
from wolo.foreign_places import first_names, present
from wolo.mcp.server import ConfiguredServer, Server, check, fingerprint
from wolo.places import Notices, Places, Site

_OPTION = "--mcp-config"
_MOST_FILES = 50
"""Of one folder."""


def wanted_servers(config: Config, site: Site) -> tuple[ConfiguredServer, ...]:
    """Of one name, the command line wins over this project's own, these over the user's
    settings, and all of them over the project's files.

    Raises ConfigError for an invalid server in the user's settings.
    """
    if config.is_safe:
        return _filter_allowed(_of_user(config, site), config, site.notices)
    given = config.given_servers or {}
    brought = {name: ConfiguredServer(name=name, server=each, source=_OPTION, scope="run") for name, each in given.items()}
    if config.only_given_servers:
        return _filter_allowed(brought, config, site.notices)
    servers: dict[str, ConfiguredServer] = {}
    if config.trusts_project:
        servers = {each.name: each for each in _of_project(site)}
    if site.places.plugin_index.exists():
        from wolo.config.plugins.installed import allowed_servers  # noqa: PLC0415  # most users have no plugins

        taken = {*servers, *config.settings.mcp_servers}
        servers |= {each.name: replace(each, scope="plugin") for each in allowed_servers(site.places, taken, site.notices)}
    own = _of_user(config, site) | _of_user_here(site, servers) | brought
    for name in own.keys() & servers.keys():
        site.notices.add(f"{servers[name].source}: its MCP server {name} is not used: your settings define one of that name.")
    return _filter_allowed(servers | own, config, site.notices)


def _filter_allowed(servers: dict[str, ConfiguredServer], config: Config, notices: Notices) -> tuple[ConfiguredServer, ...]:
    """Those that managed files allow. Also names the servers whose `elicitation` is not used."""
    if not servers:
        return ()
    import shlex  # noqa: PLC0415  # only where there are servers

    for name, each in [*servers.items()]:
        server, program = each.server, f"command:{shlex.join((each.server.command, *each.server.args))}"
        if not config.settings.managed.mcp.has(name, server.url or program):
            del servers[name]
            notices.add(f"{each.source}: the MCP server {name} is not allowed on this machine, so it is not used.")
        elif each.server.elicitation != "decline" and not each.accepts_defaults:
            notices.add(f"{each.source}: elicitation of the MCP server {each.name} is not used: only your settings can set it.")
    return tuple(servers.values())


def _of_user(config: Config, site: Site) -> dict[str, ConfiguredServer]:
    servers = {}
    for name, server in config.settings.mcp_servers.items():
        own_keys = (f"mcp_servers.{name}.", f'mcp_servers."{name}".')
        source = next((source for key, source in config.sources.items() if key.startswith(own_keys)), "the settings")
        check(name, server, source)
        folder = site.places.config
        named_in = folder if _runs_relative_program(server, site.real_cwd, folder) else None
        servers[name] = ConfiguredServer(name=name, server=server, source=source, named_in=named_in)
    return servers


def _of_user_here(site: Site, of_others: dict[str, ConfiguredServer]) -> dict[str, ConfiguredServer]:
    """Also switches off servers of the project and of plugins that the user disabled."""
    path = site.places.config / "mcp_servers.toml"
    if not path.exists():
        return {}
    from wolo.config.server_scopes import read_local  # noqa: PLC0415  # most users have none

    local = read_local(site.places, site.root, site.notices)
    for name in local.disabled & of_others.keys():
        of_others[name] = replace(of_others[name], server=replace(of_others[name].server, enabled=False))
    return {
        name: ConfiguredServer(
            name=name,
            server=server,
            source=str(path),
            scope="local",
            named_in=site.root if _runs_relative_program(server, site.real_cwd, site.root) else None,
        )
        for name, server in local.servers.items()
    }


def consent_notice(servers: tuple[ConfiguredServer, ...], places: Places, root: Path) -> str:
    """Names servers that wait for consent; empty if there are none."""
    names = [each.name for each in find_unanswered(servers, places, root)]
    if not names:
        return ""
    how = f"`wolo mcp allow {names[0]}` shows what it would run, and asks."
    if len(names) == 1:
        return f"The MCP server {names[0]} of this project is not started: it needs your consent. {how}"
    return f"MCP servers of this project are not started ({', '.join(names)}): each needs your consent. {how}"


def find_unanswered(servers: tuple[ConfiguredServer, ...], places: Places, root: Path) -> list[ConfiguredServer]:
    """Servers without an answer from the user."""
    return [each for each in servers if not each.is_allowed and each.server.enabled and not is_refused(places, root, each)]


def is_refused(places: Places, root: Path, server: ConfiguredServer) -> bool:
    """Tells whether the user never wants to be asked about it again."""
    return consents.consent_to(places, root, _consent_key(server, root), Notices()) == "never"


def save_server_consent(places: Places, root: Path, server: ConfiguredServer, *, allowed: bool) -> None:
    """Raises ConfigError if it cannot be saved."""
    consents.save_consent(places, root, _consent_key(server, root), "yes" if allowed else "never")


def _consent_key(server: ConfiguredServer, root: Path) -> str:
    """Key of the consent, with the content of programs of the project, where there are some."""
    key = f"mcp server {fingerprint(server)}"
    programs = [path for path in find_server_programs(server, root, (root,)) if path.is_file()]
    if not programs:
        return key
    from wolo.extensions.referenced_files import add_contents  # noqa: PLC0415  # only where there are servers

    seen = hashlib.sha256()
    add_contents(seen, programs)
    return f"{key} {seen.hexdigest()}"


def find_server_programs(configured: ConfiguredServer, cwd: Path, roots: Sequence[Path]) -> list[Path]:
    """Programs, or files that could become programs, below `roots` that its command line names."""
    server = configured.server
    if not server.command:
        return []
    import shlex  # noqa: PLC0415  # only where there are servers

    from wolo.extensions.referenced_files import find_programs  # noqa: PLC0415  # the same

    folder = Path((configured.folder or configured.named_in or cwd), os.path.expanduser(server.cwd))  # noqa: PTH111  # Path's own may raise
    return find_programs([shlex.join((server.command, *server.args))], folder, roots)


def _of_project(site: Site) -> Iterator[ConfiguredServer]:
    """The nearest last. An unusable file is reported and does not affect others."""
    for folder in project.folders(site.root, site.real_cwd):
        for place in present(project.MCP_SERVERS.places, first_names(folder)):
            top = folder / place
            try:
                # Continue has a folder of files
                paths = sorted(top.iterdir())[:_MOST_FILES] if not top.suffix and top.is_dir() else [top]
            except OSError as error:
                site.notices.add(f"{top} is not read: {error.strerror}.")
                continue
            for path in paths:
                if os.path.lexists(path):
                    yield from _of_file(path, folder, site)


def _of_file(path: Path, folder: Path, site: Site) -> Iterator[ConfiguredServer]:
    from wolo.config.foreign_servers import read_project_servers  # noqa: PLC0415  # most starts have no such file

    root = site.root
    where = project.on_one_line(path.relative_to(root))
    try:
        for name, server in read_project_servers(project.read_file(path, root), where, site.notices):
            brought = ConfiguredServer(name=name, server=server, source=where, folder=folder, scope="project", is_allowed=False)
            is_allowed = consents.consent_to(site.places, root, _consent_key(brought, root), site.notices) == "yes"
            yield replace(brought, is_allowed=is_allowed)
    except ConfigError as error:
        site.notices.add(error.message)


def untrusted_servers(site: Site) -> list[ConfiguredServer]:
    """Servers of a project that the user has not answered for, to list them; nothing of them is used."""
    if consents.trust_in(site.places, site.root, site.notices) is not None:
        return []
    return [*{each.name: each for each in _of_project(site)}.values()]


def _runs_relative_program(server: Server, cwd: Path, named_in: Path) -> bool:
    """Tells whether it starts a program by a relative name, which is then looked up next to the settings, not in the checkout."""
    if not server.command:
        return False
    import shlex  # noqa: PLC0415  # only where there are servers

    from wolo.extensions.referenced_files import runs_relative_program  # noqa: PLC0415

    return runs_relative_program(shlex.join((server.command, *server.args)), cwd, named_in)
