"""The MCP servers that are written down here: a person's own, and those of a trusted project, each with a consent of its own.

A consent holds for exactly what the person saw, in one folder: whatever changes about a server, it is asked for again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from wolo.config import consents, project
from wolo.config.schema import Config
from wolo.errors import ConfigError
from wolo.mcp.server import ConfiguredServer, Server, check, fingerprint, read_servers
from wolo.places import Places


def wanted_servers(config: Config, places: Places, root: Path, cwd: Path, notices: list[str]) -> tuple[ConfiguredServer, ...]:
    """`root` and `cwd` are real paths. A person's own server stands before one of the project by the same name.

    Raises ConfigError for a server of the person's own that makes no sense.
    """
    found: dict[str, ConfiguredServer] = {}
    if config.trusts_project:
        found = {each.name: each for each in _of_project(places, root, cwd, notices)}
    for name, server in config.settings.mcp_servers.items():
        keys = [source for key, source in config.sources.items() if _is_about(key, name)]
        source = keys[0] if keys else "the settings"
        check(name, server, source)
        if name in found:
            notices.append(f"{found[name].source}: its MCP server {name} is not used: your settings have one of that name.")
        named_in = places.config if _runs_relative_program(server, cwd, places.config) else None
        found[name] = ConfiguredServer(name=name, server=server, source=source, named_in=named_in)
    return tuple(found.values())


def consent_notice(wanted: tuple[ConfiguredServer, ...], places: Places, root: Path) -> str:
    """Of servers that are not started for want of an answer; empty when there are none."""
    names = [each.name for each in open_ones(wanted, places, root)]
    if not names:
        return ""
    how = f"`wolo mcp allow {names[0]}` shows what it would run, and asks."
    if len(names) == 1:
        return f"The MCP server {names[0]} of this project is not started: it needs your consent. {how}"
    return f"MCP servers of this project are not started ({', '.join(names)}): each needs your consent. {how}"


def open_ones(wanted: tuple[ConfiguredServer, ...], places: Places, root: Path) -> list[ConfiguredServer]:
    """Those that a person has said neither yes nor no to."""
    return [each for each in wanted if not each.is_allowed and each.server.enabled and not is_refused(places, root, each)]


def is_refused(places: Places, root: Path, wanted: ConfiguredServer) -> bool:
    """A person does not want to be asked about it again."""
    return consents.consent_to(places, root, _asked(wanted), []) == "never"


def keep_consent(places: Places, root: Path, wanted: ConfiguredServer, *, allowed: bool) -> None:
    """Raises ConfigError when it cannot be kept."""
    consents.save_consent(places, root, _asked(wanted), "yes" if allowed else "never")


def _asked(wanted: ConfiguredServer) -> str:
    """What a person answers to, among all they were asked about."""
    return f"mcp server {fingerprint(wanted)}"


def _of_project(places: Places, root: Path, cwd: Path, notices: list[str]) -> Iterator[ConfiguredServer]:
    """The nearest last. A file that cannot be used is said and costs no other."""
    for folder in project.folders(root, cwd):
        for place in project.MCP_SERVERS.places:
            path = folder / place
            if not path.exists():
                continue
            where = project.on_one_line(path.relative_to(root))
            try:
                for name, server in read_servers(project.read_file(path, root), where, notices):
                    brought = ConfiguredServer(name=name, server=server, source=where, folder=folder, is_allowed=False)
                    is_allowed = consents.consent_to(places, root, _asked(brought), notices) == "yes"
                    yield replace(brought, is_allowed=is_allowed)
            except ConfigError as error:
                notices.append(error.message)


def _runs_relative_program(server: Server, cwd: Path, named_in: Path) -> bool:
    """Its name is one beside the file that names it, never one of the checkout."""
    if not server.command:
        return False
    from wolo.extensions.referenced_files import runs_relative_program  # noqa: PLC0415  # most starts have no server

    return runs_relative_program(shlex.join((server.command, *server.args)), cwd, named_in)


def _is_about(key: str, name: str) -> bool:
    return key.startswith((f"mcp_servers.{name}.", f'mcp_servers."{name}".'))
