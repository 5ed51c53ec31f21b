"""Reads AGENTS.md files and their like, from general to specific, as one text for the system prompt.

They are read without asking and cannot change permissions. The same files yield the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.instructions.file_reading import InstructionFile, cut, one_line, read_file, read_named
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
    from wolo.extensions.instructions.imports import Imports  # noqa: PLC0415  # most files import nothing

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
