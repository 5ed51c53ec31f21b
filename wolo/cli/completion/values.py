"""Candidate values for options and arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Final, Literal, Union, get_args, get_origin

if TYPE_CHECKING:
    from wolo.models.catalog_files import Overrides

Value = tuple[str, str]
"""A value and what it means."""
MOST_SESSIONS: Final = 50
MOST_FILES: Final = 200

_NAMED = re.compile(r"((?:[\w-]+, )+[\w-]+ or [\w-]+)")


def names_in(help: str, metavar: str) -> list[str]:
    """Values listed in the help (`plan, ask or edit`) or the metavar (`[status|forget]`)."""
    if "|" in metavar:
        return [each for each in metavar.strip("[]").split("|") if each.islower()]
    found = _NAMED.search(help)
    return re.split(", | or ", found[1]) if found else []


def models(begun: str) -> Iterator[Value]:
    """Providers first, then models of one provider or by prefix, then thinking levels."""
    from wolo.models.catalog import Catalog
    from wolo.models.catalog_files import load, names_of

    overrides, prefix = _overrides(), begun.lower()
    name, colon, level = begun.rpartition(":")
    if colon and "/" in name:
        yield from ((f"{name}:{value}", about) for value, about in levels(level))
    first, slash, _ = prefix.partition("/")
    names = [each for each in names_of(overrides) if (each == first if slash else each.startswith(prefix))]
    for each in names:
        provider = load(each, overrides, os.environ)
        if slash:
            # As the server listed them last; asks nobody.
            from wolo.models.catalog import CUSTOM
            from wolo.models.model_lists import read_list
            from wolo.places import find_places

            base_url = os.environ.get("WOLO_BASE_URL", "").strip() if provider.name == CUSTOM else provider.base_url
            saved = read_list(find_places().cache, base_url) if base_url else None
            ids = dict.fromkeys((*(model.id for model in provider.models), *(saved.ids if saved else ())))
            yield from ((f"{each}/{id}", "") for id in ids if f"{each}/{id}".lower().startswith(prefix))
        else:
            yield f"{each}/", provider.label
    if not names and not slash and prefix:
        rows = Catalog(os.environ, overrides).list_models()
        yield from ((row.label, row.provider.label) for row in rows if row.model and row.model.id.lower().startswith(prefix))


def levels(begun: str) -> Iterator[Value]:
    from wolo.formats.encoding.thinking_levels import LEVELS

    yield from ((level, "") for level in LEVELS if level.startswith(begun))


def wire_formats(begun: str) -> Iterator[Value]:
    from wolo.models.format_selection import FORMATS

    yield from ((name, "") for name in FORMATS if name.startswith(begun))


def modes(begun: str) -> Iterator[Value]:
    from wolo.guard.modes import MODES

    yield from ((mode.name, mode.about) for mode in MODES.values() if mode.name.startswith(begun))


def sessions(begun: str) -> Iterator[Value]:
    """Ids, names and titles of sessions of this directory, newest first."""
    from wolo.messages.terminal_text import clean_line
    from wolo.places import find_places
    from wolo.sessions.listing import peek

    wanted = begun.casefold()
    for info in peek(find_places().data, Path.cwd(), MOST_SESSIONS):
        title = clean_line(info.title)
        yield from ((each, title) for each in (info.id, info.name or "") if each and each.casefold().startswith(wanted))
        if wanted and title.casefold().startswith(wanted):
            yield title, info.id


def providers(begun: str) -> Iterator[Value]:
    from wolo.models.catalog_files import load, names_of

    overrides = _overrides()
    found = [load(name, overrides, os.environ) for name in names_of(overrides) if name.startswith(begun)]
    yield from ((each.name, each.label) for each in found if each.key_env)


def tools(begun: str) -> Iterator[Value]:
    """Completes the last name of a comma-separated list."""
    from wolo.tools.toolbox import BUILTIN_WITH_COMPLETION

    before, comma, last = begun.rpartition(",")
    yield from ((f"{before}{comma}{tool.name}", "") for tool in BUILTIN_WITH_COMPLETION if tool.name.startswith(last))


def rules(begun: str) -> Iterator[Value]:
    if ":" not in begun:
        yield from ((f"{name}:", "") for name, _ in tools(begun))


def settings(begun: str) -> Iterator[Value]:
    """Keys of settings."""
    from wolo.config.dotted_keys import join_key, values
    from wolo.config.schema import Settings

    yield from ((join_key(key), "") for key, _ in values(Settings()) if join_key(key).startswith(begun))


def assignments(begun: str) -> Iterator[Value]:
    key, equals, value = begun.partition("=")
    if equals:
        yield from ((f"{key}={each}", about) for each, about in values_of(key, value))
    else:
        yield from ((f"{key}=", about) for key, about in settings(begun))


def values_of(key: str, begun: str) -> Iterator[Value]:
    """Values of a setting with a fixed set of values."""
    if live := {"model": models, "fallback_model": models, "mode": modes, "thinking": levels, "ui.theme": themes}.get(key):
        yield from live(begun)
    else:
        yield from ((each, "") for each in _choices(key) if each.startswith(begun))


def themes(begun: str) -> Iterator[Value]:
    """The built-in themes, and files of the user's own."""
    from wolo.config.schema import THEMES
    from wolo.places import find_places

    own = (path.stem for path in (find_places().config / "themes").glob("*.toml"))
    yield from ((name, "") for name in (*THEMES, *sorted(own)) if name.startswith(begun))


def _choices(key: str) -> list[str]:
    import msgspec

    from wolo.config.schema import Settings

    kind: object = Settings
    for name in key.split("."):
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            return []
        kind = {each.encode_name: each.type for each in msgspec.structs.fields(kind)}.get(name)
    return list(_alternatives(kind))


def _alternatives(kind: object) -> Iterator[str]:
    """Values of a Literal, bool or union of them."""
    if kind is bool:
        yield from ("true", "false")
    elif get_origin(kind) is Literal:
        yield from (each for each in get_args(kind) if isinstance(each, str) and each)
    else:
        for each in get_args(kind) if get_origin(kind) in (Union, UnionType) else ():
            yield from _alternatives(each)


def files_under(begun: str) -> list[str]:
    """Paths with this prefix; directories end with a slash."""
    folder, slash, name = begun.rpartition("/")
    names = []
    with os.scandir(Path(folder + slash or ".").expanduser()) as entries:
        for entry in entries:
            if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
                names.append(f"{folder}{slash}{entry.name}{'/' if entry.is_dir() else ''}")
    return sorted(names)[:MOST_FILES]


def _overrides() -> Overrides:
    """Providers from the settings, even when other settings are invalid."""
    import msgspec

    from wolo.config.files import read_toml
    from wolo.models.provider import ProviderSettings
    from wolo.places import Notices, find_places

    path = find_places().config / "config.toml"
    if not path.exists():
        return {}
    try:
        return msgspec.convert(read_toml(path, Notices())[1].get("providers", {}), dict[str, ProviderSettings])
    except Exception:  # the catalogue alone is offered
        return {}


Kind = str | Callable[[str], Iterable[Value]]
BY_NAME: Final[Mapping[str, Kind]] = {
    "model": models,
    "fallback_model": models,
    "thinking": levels,
    "mode": modes,
    "api": wire_formats,
    "resume": sessions,
    "session": sessions,
    "tools": tools,
    "disallow_tools": tools,
    "set": assignments,
    "cd": "dirs",
    "add_dir": "dirs",
    "debug_wire": "dirs",
    "file": "files",
    "output_last_message": "files",
    "json_schema": "files",
}
"""By option name."""
BY_METAVAR: Final[Mapping[str, Kind]] = {
    "ID": sessions,
    "MODEL": models,
    "PROVIDER/MODEL": models,
    "PROVIDER": providers,
    "MODE": modes,
    "RULE": rules,
    "CALL": rules,
    "SETTING": settings,
    "FILE": "files",
    "PATH": "files",
    "ID|FILE": "files",
    "N] [PATH": "files",
    "DIR": "dirs",
}
"""By metavar of subcommands."""
