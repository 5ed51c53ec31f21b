"""Reads AGENTS.md files and their like, from general to specific, as one text for the system prompt.

They are read without asking and cannot change permissions. The same files yield the same bytes.

An `@path` import counts at the start of a word, outside code and HTML comments. It is relative to the file that contains it. A
project's file imports only from its workspace; the user's own file also by `~/` and absolute paths.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.instructions.file_reading import InstructionFile, cut, one_line, read_file, read_import, read_named
from wolo.guard.protected_paths import is_secret
from wolo.messages.terminal_text import escaped_line
from wolo.places import Notices, find_home

NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md")
"""The first usable file in each directory counts."""
LOCAL_NAME = "CLAUDE.local.md"
RULES = ".claude/rules"
TOP_NAMES = tuple(dict.fromkeys(name.split("/")[0] for name in (*NAMES, LOCAL_NAME, RULES)))
"""A directory that has none of these has no instructions."""
OTHERS_OWN = (".claude/CLAUDE.md", ".codex/AGENTS.md")
"""The user's file for other agents, below the home directory; the first one is read if wolo has none."""
MAX_TOTAL_BYTES = 128 * 1024
_LEAST_BYTES = 512
"""A file is left out when less of it would remain."""


class Instructions(Struct, frozen=True):
    text: str
    """Empty if there are none."""
    files: tuple[Path, ...] = ()
    notices: tuple[str, ...] = ()
    """Parts that were left out or changed."""
    loaded: tuple[InstructionFile, ...] = ()
    """In load order."""

    @property
    def texts(self) -> Mapping[str, str]:
        return {each.name: each.text for each in self.loaded}


def byte_limit(window: int | None) -> int:
    """A quarter of the context window; `window` is in tokens, of about four bytes."""
    return MAX_TOTAL_BYTES if window is None else min(MAX_TOTAL_BYTES, window)


def read_instructions(
    root: Path,
    cwd: Path,
    config: Path,
    *,
    notes: Sequence[Path] = (),
    limit: int = MAX_TOTAL_BYTES,
    is_readable: Callable[[Path], bool] = lambda path: True,
) -> Instructions:
    """Reads the user's file, the approved `notes`, then each directory from `root` down to `cwd`. All are real paths.

    `limit` holds for all files together. `is_readable` is False for files of the project that a rule denies reading.
    """
    notices = Notices()
    files = _read_own(config, notices)
    for path in notes:
        note = read_file(path, f"your notes in {path.name}", notices, owner="notes")
        files += [note] if note else []
    for folder in folders_between(root, cwd):
        files += read_folder(folder, root, notices)
    always = [each for each in readable(files, notices, is_readable) if not each.paths]
    always = with_imports(always, notices, is_readable)
    kept = _within(always, limit, notices)
    return Instructions(
        "\n\n".join(each.section for each in kept), tuple(each.path for each in kept), tuple(notices), tuple(kept)
    )


def folders_between(root: Path, cwd: Path) -> list[Path]:
    """Root first; only `cwd` if it is outside."""
    if not cwd.is_relative_to(root):
        return [cwd]
    return [folder for folder in reversed((cwd, *cwd.parents)) if folder.is_relative_to(root)]


def read_folder(folder: Path, root: Path, notices: Notices, *, only_rules: bool = False) -> list[InstructionFile]:
    """The instructions of one directory of the project, without imports."""
    base = root if folder.is_relative_to(root) else folder
    files = () if only_rules else (_read_first(folder, base, notices), read_named(folder / LOCAL_NAME, base, notices))
    present = [each for each in files if each]
    if (folder / RULES).is_dir():
        from wolo.extensions.instructions.rules import read_rules  # noqa: PLC0415  # few projects have any

        present += read_rules(folder, base, folder / RULES, notices)
    return present if base is root else [replace(each, name=one_line(str(each.path))) for each in present]


def readable(
    files: Sequence[InstructionFile], notices: Notices, is_readable: Callable[[Path], bool]
) -> Iterator[InstructionFile]:
    """Leaves out files of the project that a rule denies reading."""
    for file in files:
        if file.owner != "project" or is_readable(file.path):
            yield file
        else:
            notices.add(f"{file.path} is not read: a rule denies it.")


def with_imports(
    files: Sequence[InstructionFile], notices: Notices, is_readable: Callable[[Path], bool] = lambda path: True
) -> list[InstructionFile]:
    """Adds the imported files, each behind the file that imports it; a file that is listed already is not imported."""
    if not any("@" in each.text for each in files):
        return [*files]
    return Imports(files, notices, is_readable).expand()


def _read_own(config: Path, notices: Notices) -> list[InstructionFile]:
    home = find_home()
    candidates = ((config / "AGENTS.md", "your own AGENTS.md"), *((home / name, f"your own ~/{name}") for name in OTHERS_OWN))
    for path, name in candidates:
        if os.path.lexists(path):
            file = read_file(path, name, notices, owner="user")
            return [file] if file else []
    return []


def _read_first(folder: Path, base: Path, notices: Notices) -> InstructionFile | None:
    complaints = Notices()
    for name in NAMES:
        file = read_named(folder / name, base, complaints)
        if file is not None:
            notices.extend(each for each in complaints if each.startswith(str(file.path)))
            return file
    notices.extend(complaints)
    return None


def _within(files: Sequence[InstructionFile], limit: int, notices: Notices) -> list[InstructionFile]:
    """Cuts or leaves out files beyond `limit`, the most general ones first."""
    kept: list[InstructionFile] = []
    for file in reversed(files):
        data = file.text.encode()
        if len(data) <= limit:
            kept.append(file)
        elif limit >= _LEAST_BYTES:
            kept.append(replace(file, text=cut(data, limit).decode("utf-8", "ignore").rstrip()))
            notices.add(f"{file.path} is cut at {limit:,} bytes: the instructions are too long for the model.")
        else:
            notices.add(f"{file.path} is left out: the instructions are too long for the model.")
        limit = max(0, limit - len(data))
    return kept[::-1]


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
        elif not is_own and not self._is_readable(real):
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
