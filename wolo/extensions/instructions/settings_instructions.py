"""Reads the files of instructions that settings of OpenCode, Gemini CLI and Qwen Code name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wolo.errors import ExtensionError
from wolo.extensions.instructions.file_reading import InstructionFile, read_named, read_regular
from wolo.extensions.settings_documents import parse_settings
from wolo.foreign_places import MAIN_FILES
from wolo.guard.protected_paths import is_secret
from wolo.messages.terminal_text import escaped_line
from wolo.places import Notices
from wolo.workspace.globs import compile_glob, expand_braces

_MOST_BYTES = 256 * 1024
_MOST_FILES = 50
_MOST_ENTRIES = 5_000
"""That a pattern looks at."""


def read_named_files(folder: Path, base: Path, settings: Sequence[str], notices: Notices) -> Iterator[InstructionFile]:
    """Files inside the project only; each once."""
    seen: set[Path] = set()
    for place in settings:
        data = read_regular(folder / place, notices, within=base, most_bytes=_MOST_BYTES)
        if data is None:
            continue
        try:
            if len(data) > _MOST_BYTES:
                raise ExtensionError(f"{folder / place} is not read: it is larger than {_MOST_BYTES // 1024} KiB.")
            names = [*_names(parse_settings(data, str(folder / place)))]
        except ExtensionError as error:
            notices.add(error.message)
            continue
        if len(names) > _MOST_FILES:
            notices.add(f"{folder / place} names more than {_MOST_FILES} files; the rest is left out.")
        for name in names[:_MOST_FILES]:
            for path in _paths(name, folder, place, notices):
                if path not in seen:
                    seen.add(path)
                    file = read_named(path, base, notices)
                    if file is not None:
                        yield file


def _names(table: dict[str, Any]) -> Iterator[str]:
    """`instructions` of OpenCode; `context.fileName`, and its older spelling, of Gemini CLI."""
    context = table.get("context")
    values = (
        table.get("instructions"),
        table.get("contextFileName"),
        context.get("fileName") if isinstance(context, dict) else None,
    )
    for value in values:
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str) and name not in MAIN_FILES:
                yield name.removeprefix("./")


def _paths(name: str, folder: Path, place: str, notices: Notices) -> list[Path]:
    """The files of one entry, sorted."""
    why = ""
    if re.match(r"https?:", name):
        why = "wolo loads no instructions from the network"
    elif name.startswith(("/", "~", "\\")) or ".." in name.split("/") or "\0" in name:
        why = "a project names only files inside itself"
    elif is_secret(name):
        why = "its name says that it contains secrets"
    paths: list[Path] = []
    if not why and re.search(r"[*?\[{]", name):
        start = folder / re.split(r"[^/]*[*?\[{]", name, maxsplit=1)[0]
        try:
            pattern = compile_glob(f"/{name}")
            listing = start.rglob("*") if "**" in name else (path for each in expand_braces(name) for path in folder.glob(each))
            entries = [*islice(listing, _MOST_ENTRIES + 1)]
            paths = sorted(each for each in entries if pattern.fullmatch(each.relative_to(folder).as_posix()) and each.is_file())
            if len(entries) > _MOST_ENTRIES or len(paths) > _MOST_FILES:
                notices.add(f"{folder / place}: {escaped_line(name)} names too many files; some are left out.")
        except (ValueError, OSError) as error:
            why = str(error)
    elif not why and (folder / name).is_file():
        paths = [folder / name]
    if why:
        notices.add(f"{folder / place}: the instructions {escaped_line(name)} are not read: {why}.")
    return paths[:_MOST_FILES]
