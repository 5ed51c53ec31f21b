"""Finds further instructions: `@path` imports of instruction files, and the files that settings of other agents name.

An import counts at the start of a word, outside code and HTML comments. It is relative to the file that contains it. A
project's file imports only from its workspace; the user's own file also by `~/` and absolute paths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from wolo.errors import ExtensionError
from wolo.extensions.instructions.file_reading import InstructionFile, read_import, read_named, read_regular
from wolo.extensions.settings_documents import parse_settings
from wolo.foreign_places import MAIN_FILES
from wolo.guard.protected_paths import is_secret
from wolo.messages.terminal_text import escaped_line
from wolo.places import Notices, find_home
from wolo.workspace.globs import compile_glob, expand_braces

MAX_DEPTH = 5
MAX_IMPORTS = 100
_FENCE = r"(?m)^[ \t>]*(?P<sign>`{3,}|~{3,})[^\n]*\n(?:.*?^[ \t>]*(?P=sign)[`~]*[ \t]*$|.*\Z)"
_NOT_TEXT = r"(?s)<!--.*?(?:-->|\Z)|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)"
_IMPORT = r"(?:^|(?<=[\s(]))@((?:\\ |[^\s`\\])+)"
_AFTER_A_PATH = ".,;:!?)]}>'\"*_"
_FILE_NAME = r"\.(?:md|mdc|mdx|markdown|txt|rst|adoc|json|jsonc|toml|ya?ml)$"
_MOST_BYTES = 256 * 1024
_MOST_FILES = 50
_MOST_ENTRIES = 5_000
"""That a pattern looks at."""


class Imports:
    def __init__(self, files: Sequence[InstructionFile], notices: Notices, is_readable: Callable[[Path], bool]) -> None:
        self._files = files
        self._notices = notices
        self._is_readable = is_readable
        self._seen = {os.path.realpath(each.path) for each in files}
        self._count = 0

    def expand(self) -> list[InstructionFile]:
        """Notes import nothing: a model wrote them."""
        return [each for file in self._files for each in (file, *(self._expand_file(file, 1) if file.owner != "notes" else ()))]

    def _expand_file(self, file: InstructionFile, depth: int) -> Iterator[InstructionFile]:
        for target in imports_of(file.text):
            path = self._resolve(target, file)
            if path is None or str(path) in self._seen:
                continue
            if depth > MAX_DEPTH:
                self._notices.add(f"{file.path}: @{escaped_line(target)} is not imported: more than {MAX_DEPTH} levels.")
                continue
            self._seen.add(str(path))
            self._count += 1
            if self._count > MAX_IMPORTS:
                if self._count == MAX_IMPORTS + 1:
                    self._notices.add(f"{file.path}: there are more than {MAX_IMPORTS} imports; the rest is left out.")
                return
            imported = read_import(path, file, self._notices)
            if imported is not None:
                yield imported
                yield from self._expand_file(imported, depth + 1)

    def _resolve(self, target: str, file: InstructionFile) -> Path | None:
        """The file to import, with its folder resolved; None, with a notice where it is meant to be a file."""
        is_own, is_at_home = file.owner != "project", target.startswith("~/")
        path = find_home() / target[2:] if is_at_home else file.path.parent / target
        try:
            real = Path(os.path.realpath(path.parent)) / path.name
            is_there = os.path.lexists(real) and path.name not in ("", "..")
        except (OSError, ValueError):
            return None
        if is_there and real.is_dir():
            return None
        is_meant = target.startswith(("./", "../", "~/", "/")) or re.search(_FILE_NAME, target, re.IGNORECASE)
        if not is_there and not is_meant:
            return None
        if not is_own and (is_at_home or not real.is_relative_to(file.base)):
            why = f"a project imports only files inside {file.base}"
        elif not is_there:
            why = "the file does not exist"
        elif is_secret(str(real)) or is_secret(os.path.realpath(real)):
            why = "its name says that it contains secrets"
        elif not is_own and not (self._is_readable(real) and self._is_readable(Path(os.path.realpath(real)))):
            why = "a rule denies reading it"
        else:
            why = ""
        if why:
            self._notices.add(f"{file.path}: @{escaped_line(target)} is not imported: {why}.")
            return None
        return real


def imports_of(text: str) -> list[str]:
    """Targets in order, without duplicates."""
    prose = re.sub(_NOT_TEXT, " ", re.sub(_FENCE, " ", text, flags=re.DOTALL))
    found = (each[1].replace("\\ ", " ").rstrip(_AFTER_A_PATH) for each in re.finditer(_IMPORT, prose, re.MULTILINE))
    return list(dict.fromkeys(each for each in found if each))


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
