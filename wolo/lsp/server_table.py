"""The known language servers, with the user's own before them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

_FILE = Path(__file__).with_name("servers.toml")
_LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
    ".rs": "rust",
    ".h": "c",
    ".cc": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".m": "objective-c",
    ".mm": "objective-cpp",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".cs": "csharp",
    ".rb": "ruby",
    ".ex": "elixir",
    ".exs": "elixir",
    ".hs": "haskell",
    ".ml": "ocaml",
    ".mli": "ocaml.interface",
    ".sh": "shellscript",
    ".bash": "shellscript",
    ".tf": "terraform",
}


class ServerSpec(Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    """Program and arguments."""
    extensions: tuple[str, ...] = ()
    """With the dot, in lower case."""
    enabled: bool = True
    pulls: bool = False
    """It publishes nothing: wolo asks for the errors of each text."""
    from_version: int = 0
    """Major version of its npm package from which on the program is a language server."""
    languages: Mapping[str, str] = {}
    """Language ids by extension, where they differ from `language_of`."""
    env: Mapping[str, str] = {}
    options: Any = None
    """`initializationOptions` of the protocol."""
    settings: Any = None
    """Answers to `workspace/configuration`."""


def known_servers(own: Sequence[ServerSpec] = (), of_plugins: Sequence[ServerSpec] = ()) -> tuple[ServerSpec, ...]:
    """`own` come first and complete or replace others of the same name; those of plugins come before and replace known ones."""
    known = {each.name: each for each in of_plugins}
    known |= {
        name: ServerSpec(
            name,
            tuple(row["command"]),
            tuple(row["extensions"]),
            pulls=row.get("pulls", False),
            from_version=row.get("from_version", 0),
        )
        for name, row in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
        if name not in known
    }
    first = []
    for each in own:
        base = known.pop(each.name, each)
        extensions = tuple(("." + one.lower().removeprefix("*").removeprefix(".")) for one in each.extensions) or base.extensions
        command, version = (each.command, 0) if each.command else (base.command, base.from_version)
        first.append(replace(base, command=command, extensions=extensions, enabled=each.enabled, from_version=version))
    return tuple(each for each in (*first, *known.values()) if each.enabled and each.command)


def language_of(path: Path) -> str:
    """The language id of the protocol."""
    suffix = path.suffix.lower()
    return _LANGUAGES.get(suffix, suffix.removeprefix("."))
