"""The MCP servers that are written down here: a person's own, and those of a trusted project, each with a consent of its own.

A consent holds for exactly what the person saw, in one folder: whatever changes about a server, it is asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from wolo.config import project
from wolo.config.files import locked, read_own, replace_file
from wolo.config.schema import Config
from wolo.errors import ConfigError
from wolo.mcp.server import Wanted, check, fingerprint
from wolo.mcp.shared_form import read_servers
from wolo.places import Places
from wolo.workspace.identity import identity_of

Kept = dict[str, Mapping[str, str]]
"""Fingerprint → "yes" or "no", by folder."""


def wanted_servers(config: Config, places: Places, root: Path, cwd: Path, notices: list[str]) -> tuple[Wanted, ...]:
    """`root` and `cwd` are real paths. A person's own server stands before one of the project by the same name.

    Raises ConfigError for a server of the person's own that makes no sense.
    """
    found: dict[str, Wanted] = {}
    if config.trusts_project:
        found = {each.name: each for each in _of_project(places, root, cwd, notices)}
    for name, server in config.settings.mcp_servers.items():
        keys = [source for key, source in config.sources.items() if _is_about(key, name)]
        source = keys[0] if keys else "the settings"
        check(name, server, source)
        if name in found:
            notices.append(f"{found[name].source}: its MCP server {name} is not used: your settings have one of that name.")
        found[name] = Wanted(name=name, server=server, source=source)
    return tuple(found.values())


def consent_notice(wanted: tuple[Wanted, ...]) -> str:
    """Of servers that are not started for want of a consent; empty when there are none."""
    names = [each.name for each in wanted if not each.is_allowed and each.server.enabled]
    if not names:
        return ""
    what = (
        f"The MCP server {names[0]} of this project is"
        if len(names) == 1
        else f"MCP servers of this project are ({', '.join(names)})"
    )
    return f"{what} not started: it needs your consent. `wolo mcp allow {names[0]}` shows what it would run, and asks."


def is_refused(places: Places, root: Path, wanted: Wanted) -> bool:
    """A person does not want to be asked about it again."""
    return _answers(places, root).get(fingerprint(wanted.name, wanted.server)) == "no"


def keep_consent(places: Places, root: Path, wanted: Wanted, *, allowed: bool) -> None:
    """Raises ConfigError when it cannot be kept."""
    path = _store(places)
    with locked(places.state):
        kept = _read(path)
        answers = {**_of_folder(kept, root), fingerprint(wanted.name, wanted.server): "yes" if allowed else "no"}
        kept[str(root)] = {**answers, "identity": identity_of(root)}
        replace_file(path, json.dumps(kept, indent=1) + "\n")


def _of_project(places: Places, root: Path, cwd: Path, notices: list[str]) -> Iterator[Wanted]:
    """The nearest last. A file that cannot be used is said and costs no other."""
    answers = _answers(places, root)
    for folder in project.folders(root, cwd):
        for place in project.MCP_SERVERS.places:
            path = folder / place
            if not path.exists():
                continue
            where = project.on_one_line(path.relative_to(root))
            try:
                for name, server in read_servers(project.read_file(path, root), where, notices):
                    is_allowed = answers.get(fingerprint(name, server)) == "yes"
                    yield Wanted(name=name, server=server, source=where, is_allowed=is_allowed)
            except ConfigError as error:
                notices.append(error.message)


def _is_about(key: str, name: str) -> bool:
    return key.startswith((f"mcp_servers.{name}.", f'mcp_servers."{name}".'))


def _answers(places: Places, root: Path) -> Mapping[str, str]:
    return _of_folder(_read(_store(places)), root)


def _of_folder(kept: Kept, root: Path) -> Mapping[str, str]:
    """Of this very folder: another one put in its place is asked about anew."""
    answers = kept.get(str(root), {})
    try:
        return answers if answers.get("identity") == identity_of(root) else {}
    except OSError:
        return {}


def _read(path: Path) -> Kept:
    data = read_own(path, [], is_secret=True)
    try:
        kept = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not all(isinstance(each, dict) for each in kept.values()):
        raise ConfigError(f"{path} is damaged.", hint="Remove it: wolo asks again about each MCP server.")
    return kept


def _store(places: Places) -> Path:
    return places.state / "mcp-consents.json"
