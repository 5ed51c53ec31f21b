"""Reads AGENTS.md files and their like, from general to specific, as one text for the system prompt.

They are read without asking and cannot change permissions. The same files yield the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo import foreign_places
from wolo.extensions.instructions.file_reading import InstructionFile, cut, one_line, read_file, read_named
from wolo.places import Notices, find_home

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
    remarks: tuple[str, ...] = ()
    """Files that are not sent, with the reason; for `/memory`."""

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
    more: Sequence[tuple[Path, str]] = (),
    limit: int = MAX_TOTAL_BYTES,
    is_readable: Callable[[Path], bool] = lambda path: True,
) -> Instructions:
    """Reads the user's file, the approved `notes`, `more` files of plugins with their names, then each directory from `root`
    down to `cwd`. All are real paths.

    `limit` holds for all files together. `is_readable` is False for files of the project that a rule denies reading.
    """
    notices, remarks = Notices(), Notices()
    files = _read_own(config, notices, remarks)
    for path in notes:
        note = read_file(path, f"your notes in {path.name}", notices, owner="notes")
        files += [note] if note else []
    files += [file for path, name in more if (file := read_file(path, one_line(name), notices, owner="user"))]
    files += users_rules(root, notices)
    for folder in folders_between(root, cwd):
        files += read_folder(folder, root, notices, remarks=remarks)
    always = [each for each in readable(files, notices, is_readable) if not each.paths]
    # Many projects write one text for several agents: the first of its folder counts
    seen: set[tuple[Path, str]] = set()
    kept = []
    for file in always:
        top = file.folder if file.folder.name[:1] != "." else file.folder.parent
        if file.owner != "project" or (top, file.text) not in seen:
            kept.append(file)
        seen.add((top, file.text))
    always = with_imports(kept, notices, is_readable)
    kept = _within(always, limit, notices)
    return Instructions(
        "\n\n".join(each.section for each in kept),
        tuple(each.path for each in kept),
        tuple(notices),
        tuple(kept),
        tuple(remarks),
    )


def folders_between(root: Path, cwd: Path) -> list[Path]:
    """Root first; only `cwd` if it is outside."""
    if not cwd.is_relative_to(root):
        return [cwd]
    return [folder for folder in reversed((cwd, *cwd.parents)) if folder.is_relative_to(root)]


def read_folder(
    folder: Path, root: Path, notices: Notices, *, only_rules: bool = False, remarks: Notices | None = None
) -> list[InstructionFile]:
    """The instructions of one directory of the project, without imports: main file, others, named by settings, rules.

    `remarks` name what is left out; finding it costs reading it.
    """
    base = root if folder.is_relative_to(root) else folder
    names = foreign_places.first_names(folder)
    files: list[InstructionFile | None] = []
    if names and not only_rules:
        files.append(_read_main(folder, base, names, notices, remarks))
        more = (folder / each for each in foreign_places.present(foreign_places.MORE_FILES, names))
        files += (read_named(each, base, notices) for each in more if each.name != ".clinerules" or not each.is_dir())
        if named_in := foreign_places.present(foreign_places.NAMING_SETTINGS, names):
            from wolo.extensions.instructions.imports import read_named_files  # noqa: PLC0415  # few projects do

            files += read_named_files(folder, base, named_in, notices)
    for place in foreign_places.present(foreign_places.RULES, names):
        if place not in foreign_places.MORE_FILES or (folder / place).is_dir():
            if not os.path.lexists(folder / place):
                continue
            from wolo.extensions.instructions.rules import read_rules  # noqa: PLC0415  # few projects have any

            files += read_rules(folder, base, place, notices, Notices() if remarks is None else remarks)
    kept = [each for each in files if each]
    return kept if base is root else [replace(each, name=one_line(str(each.path))) for each in kept]


def users_rules(root: Path, notices: Notices) -> list[InstructionFile]:
    """The user's rules for other agents, relative to `root`."""
    home = find_home()
    places = [each for each in foreign_places.USERS_RULES if os.path.isdir(f"{home}/{each}")]  # noqa: PTH112  # at every start
    if not places:
        return []
    from wolo.extensions.instructions.rules import read_users_rules  # noqa: PLC0415  # few users have any

    return [file for place in places for file in read_users_rules(home, place, root, notices)]


def readable(
    files: Sequence[InstructionFile], notices: Notices, is_readable: Callable[[Path], bool]
) -> Iterator[InstructionFile]:
    """Leaves out files of the project that a rule denies reading."""
    for file in files:
        if file.owner != "project" or (is_readable(file.path) and is_readable(Path(os.path.realpath(file.path)))):
            yield file
        else:
            notices.add(f"{file.path} is not read: a rule denies it.")


def with_imports(
    files: Sequence[InstructionFile], notices: Notices, is_readable: Callable[[Path], bool] = lambda path: True
) -> list[InstructionFile]:
    """Adds the imported files, each behind the file that imports it; a file that is listed already is not imported."""
    if not any("@" in each.text for each in files):
        return [*files]
    from wolo.extensions.instructions.imports import Imports  # noqa: PLC0415  # many files import nothing

    return Imports(files, notices, is_readable).expand()


def _read_own(config: Path, notices: Notices, remarks: Notices) -> list[InstructionFile]:
    """The first file that exists; the others of the user are named if they differ."""
    home = find_home()
    names = foreign_places.present(foreign_places.USERS_FILES, foreign_places.first_names(home))
    candidates = [(config / "AGENTS.md", "your own AGENTS.md"), *((home / name, f"your own ~/{name}") for name in names)]
    paths = [each for each in candidates if os.path.lexists(each[0])]
    if not paths:
        return []
    (first, name), *others = paths
    file = read_file(first, name, notices, owner="user")
    for path, _ in others:
        _remark(file, read_file(path, "", Notices(), owner="user"), remarks)
    return [file] if file else []


def _read_main(
    folder: Path, base: Path, names: frozenset[str], notices: Notices, remarks: Notices | None
) -> InstructionFile | None:
    complaints = Notices()
    paths = [folder / each for each in foreign_places.present(foreign_places.MAIN_FILES, names)]
    for at, path in enumerate(paths):
        file = read_named(path, base, complaints)
        if file is not None:
            notices.extend(each for each in complaints if each.startswith(str(file.path)))
            if remarks is not None:
                for other in paths[at + 1 :]:
                    _remark(file, read_named(other, base, Notices()), remarks)
            return file
    notices.extend(complaints)
    return None


def _remark(first: InstructionFile | None, other: InstructionFile | None, remarks: Notices) -> None:
    """Names a file that is left out, unless it says the same or one of the two imports the other."""
    if first is None or other is None or first.text == other.text:
        return
    imports = (f"@{first.path.name}", f"@./{first.path.name}", f"@{other.path.name}", f"@./{other.path.name}")
    if other.text in imports or any(each in first.text.split() for each in imports[2:]):
        return
    remarks.add(
        f"{other.path} is not read: {first.path.name} comes first, and they differ. To have both: @{other.path.name} in it."
    )


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
