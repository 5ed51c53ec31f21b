"""Expands `@path` imports of instruction files.

An import counts at the start of a word, outside code and HTML comments. It is relative to the file that contains it. A
project's file imports only from its workspace; the user's own file also by `~/` and absolute paths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wolo.extensions.instructions.file_reading import InstructionFile, read_import
from wolo.guard.protected_paths import is_secret
from wolo.messages.terminal_text import escaped_line
from wolo.places import Notices, find_home

MAX_DEPTH = 5
MAX_IMPORTS = 100
_FENCE = r"(?m)^[ \t>]*(?P<sign>`{3,}|~{3,})[^\n]*\n(?:.*?^[ \t>]*(?P=sign)[`~]*[ \t]*$|.*\Z)"
_NOT_TEXT = r"(?s)<!--.*?(?:-->|\Z)|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)"
_IMPORT = r"(?:^|(?<=[\s(]))@((?:\\ |[^\s`\\])+)"
_AFTER_A_PATH = ".,;:!?)]}>'\"*_"
_FILE_NAME = r"\.(?:md|mdc|mdx|markdown|txt|rst|adoc|json|jsonc|toml|ya?ml)$"


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
