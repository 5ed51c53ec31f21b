"""Cassettes: a session and its initial files in one portable file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats.tolerant_json import read_as
from wolo.guard import protected_paths
from wolo.guard.protected_paths import fold
from wolo.replay.recording import RecordedTurns
from wolo.replay.workspace_copy import ReplayWorkspace, files_used
from wolo.sessions.exchange import jsonl
from wolo.sessions.exchange.export_stream import Write
from wolo.sessions.exchange.json_files import read_lines
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store
from wolo.workspace.walk import WalkLimits, WalkStopped, walk

VERSION = 1
MAX_FILE_BYTES = 256 << 10
MAX_WORKSPACE_FILES = 200
MAX_WORKSPACE_BYTES = 1 << 20
"""A smaller workspace is included whole: commands use files that no call names."""


class CassetteHeader(Struct, frozen=True, kw_only=True, tag="cassette", tag_field="wolo"):
    version: int
    root: str
    """The recorded workspace, as calls and results spell it."""
    cwd: str
    files: int


class File(Struct, frozen=True, kw_only=True, tag="file", tag_field="wolo", omit_defaults=True):
    path: str
    """Relative to the root."""
    data: bytes
    executable: bool = False


class Cassette(Struct, frozen=True, kw_only=True):
    header: CassetteHeader
    files: tuple[File, ...]

    def unpack(self, root: Path) -> tuple[str, ...]:
        """Returns the names that were left out: git's directory is not made from a file.

        Raises SessionError for a path outside of the workspace.
        """
        left_out: list[str] = []
        root.mkdir(parents=True)
        for file in self.files:
            place = Path(os.path.normpath(root / file.path))
            if place == root or not place.is_relative_to(root):
                raise SessionError(f"The cassette contains a file outside of its workspace: {file.path!r}.")
            if ".git" in fold(str(place.relative_to(root))).split("/"):
                left_out.append(file.path)
                continue
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(file.data)
                place.chmod(0o755 if file.executable else 0o644)
            except (OSError, ValueError) as error:
                raise SessionError(f"Cannot create the file {file.path!r} of the cassette: {error}.") from error
        return tuple(left_out)


def write(store: Store, info: SessionInfo, tape: RecordedTurns, stage: ReplayWorkspace, out: Write, redactor: Redactor) -> None:
    """Writes the files of `stage`, with all secrets redacted."""
    encode = msgspec.json.Encoder().encode
    files = list(_files(tape, stage, redactor))
    out(encode(CassetteHeader(version=VERSION, root=str(stage.original), cwd=info.cwd, files=len(files))) + b"\n")
    for file in files:
        out(encode(file) + b"\n")
    jsonl.write(store, info, out, redactor)


def split(path: Path, session: Path) -> Cassette | None:
    """Extracts the session of a cassette into its own file; None: the file is no cassette."""
    header: CassetteHeader | None = None
    files: list[File] = []
    with session.open("wb") as out:
        for line in read_lines(path):
            if header is None:
                if (header := read_as(line or b"", CassetteHeader)) is None:
                    return None
                if header.version > VERSION:
                    raise SessionError("A newer version of wolo recorded this cassette.", hint="Update wolo, or record it again.")
            elif len(files) < header.files and (file := read_as(line or b"", File)) is not None:
                files.append(file)
            else:
                out.write((line or b"") + b"\n")
    return Cassette(header=header, files=tuple(files)) if header else None


def _files(tape: RecordedTurns, stage: ReplayWorkspace, redactor: Redactor) -> Iterator[File]:
    for path in dict.fromkeys((*_small_workspace(stage.root), *sorted(files_used(tape, stage)))):
        if not path.is_relative_to(stage.root):
            continue  # of a directory that was added to the workspace
        if (
            path.is_symlink()
            or not path.is_file()
            or path.stat().st_size > MAX_FILE_BYTES
            or protected_paths.is_secret(str(path))
        ):
            continue
        data = redactor.data(path.read_bytes())
        yield File(path=str(path.relative_to(stage.root)), data=data, executable=os.access(path, os.X_OK))


def _small_workspace(root: Path) -> Iterable[Path]:
    """The files git would see; none if there are many."""
    try:
        files = [root / name for name in walk(root, WalkLimits(MAX_WORKSPACE_FILES * 10, 2.0))]
        if len(files) > MAX_WORKSPACE_FILES or sum(path.stat().st_size for path in files) > MAX_WORKSPACE_BYTES:
            return ()
    except (WalkStopped, OSError):
        return ()
    return files
