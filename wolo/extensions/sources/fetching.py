"""Fetches a source into a folder, or checks out a commit of it, without running anything in it."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from lzma import LZMAError
from pathlib import Path
from typing import IO, Self

from msgspec import Struct

from wolo.errors import ExtensionError, UsageError
from wolo.extensions.sources.http_download import load_file
from wolo.extensions.sources.npm_package import fetch_package
from wolo.extensions.sources.source import Source
from wolo.extensions.sources.tree_copy import check_size, copy_tree, tree_digest
from wolo.messages.terminal_text import clean_line
from wolo.operating_system import os
from wolo.workspace.git import GitFailed, run_git
from wolo.workspace.git_repository import find_repository, local_path, open_repository


class FetchedSource(Struct, frozen=True):
    folder: Path
    pin: str
    """The commit; without git a hash of the contents."""


def fetch(source: Source, into: Path, files: Sequence[str] = ()) -> FetchedSource:
    """Copies it, or some files of it, below `into`, an empty folder. Raises WoloError; nothing in it is run."""
    raw, tree = into / "raw", into / "tree"
    if source.kind == "git":
        checkout = check_out(source.location, source.ref, raw)
        root, folder, pin = raw, source.folder or checkout.folder, checkout.commit
    elif source.kind == "pypi":
        root, folder, pin = unpack(str(_download_wheel(source, into / "wheels")), raw, into), "", ""
    elif source.kind == "npm":
        archive = into / "package.tgz"
        archive.write_bytes(fetch_package(source))
        root, folder, pin = unpack(str(archive), raw, into), "", ""
    elif source.kind == "archive":
        root, folder, pin = unpack(source.location, raw, into), source.folder, ""
    else:
        root, folder, pin = Path(source.location), source.folder, ""
        if not root.exists():
            raise UsageError(f"There is nothing at {root} any more.")
    wanted = root / folder
    if not wanted.is_dir() or not wanted.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{source.location} has no folder {folder}.")
    copy_tree(wanted, tree, inside=root, files=files)
    return FetchedSource(tree, pin or tree_digest(tree))


MOST_ENTRIES = 20_000
_BLOCK = 1 << 16
_MOST_HEADER_BYTES = 1 << 20


class _ArchiveEntry(Struct, frozen=True):
    name: str
    file: IO[bytes] | None
    """None: a folder."""
    is_executable: bool = False


def unpack(location: str, into: Path, scratch: Path) -> Path:
    """The unpacked folder; an archive with a single folder is that folder. Raises ExtensionError."""
    path = scratch / "archive" if "://" in location else Path(location)
    into.mkdir()
    try:
        if "://" in location:
            path.write_bytes(load_file(location))
        _write(_zip(path) if zipfile.is_zipfile(path) else _tar(path), into)
    except tarfile.ReadError as error:
        raise ExtensionError(f"{location} cannot be unpacked: it is no archive (.zip, .tar, .tar.gz), or damaged.") from error
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, OSError, RuntimeError, ValueError) as error:
        raise ExtensionError(f"{location} cannot be unpacked: {error}.") from error
    found = list(into.iterdir())
    return found[0] if len(found) == 1 and found[0].is_dir() and not found[0].name.startswith(".") else into


def _write(entries: Iterator[_ArchiveEntry], into: Path) -> None:
    files = size = 0
    for number, entry in enumerate(entries):
        if number > MOST_ENTRIES:
            raise ExtensionError(f"The archive has more than {MOST_ENTRIES:,} entries.")
        parts = entry.name.replace("\\", "/").split("/")
        if entry.name.startswith(("/", "\\")) or ".." in parts or "\0" in entry.name or ":" in parts[0]:
            raise ExtensionError(f"The archive has an entry that leads outside: {entry.name!r}.")
        path = into / "/".join(part for part in parts if part not in ("", "."))
        if entry.file is None:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        files += 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o755 if entry.is_executable else 0o644), "wb") as file:
            while block := entry.file.read(_BLOCK):
                size += len(block)
                check_size(files, size)
                file.write(block)


def _zip(path: Path) -> Iterator[_ArchiveEntry]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise ExtensionError(f"The archive has a link or special file: {info.filename!r}.")
            if info.is_dir():
                yield _ArchiveEntry(info.filename, None)
                continue
            with archive.open(info) as file:
                yield _ArchiveEntry(info.filename, file, bool(mode & 0o100))


class _BoundedHeader(tarfile.TarInfo):
    """Headers that are read into memory may not be as large as files."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE or (
            not header.isdir() and not header.isreg() and header.size > _MOST_HEADER_BYTES
        ):
            raise ExtensionError(f"The archive has a special file, or a header of {header.size:,} bytes: {header.name!r}.")
        return header


def _tar(path: Path) -> Iterator[_ArchiveEntry]:
    with tarfile.open(path, tarinfo=_BoundedHeader) as archive:
        for member in archive:
            if member.isdir():
                yield _ArchiveEntry(member.name, None)
            elif member.isreg() and not member.issparse():
                yield _ArchiveEntry(member.name, archive.extractfile(member), bool(member.mode & 0o100))
            else:
                raise ExtensionError(f"The archive has a link or special file: {member.name!r}.")


def _download_wheel(source: Source, into: Path) -> Path:
    """By pip, with the index that the user has set up. A wheel is unpacked and runs nothing, as a source distribution would."""
    into.mkdir()
    requirement = f"{source.location}=={source.ref}" if source.ref else source.location
    options = ("--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check", "--quiet", "--dest", str(into))
    command = [sys.executable, "-I", "-m", "pip", "download", *options, "--", requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=GIT_S, cwd=into)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExtensionError(f"{source} cannot be fetched: {error}.") from error
    wheel = next(into.glob("*.whl"), None)
    if done.returncode or wheel is None:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        why = lines[-1].removeprefix("ERROR: ").rstrip(".") if lines else "there is no wheel"
        raise ExtensionError(f"{source} cannot be fetched: {clean_line(why)}.", hint="Packages are fetched as wheels, by pip.")
    return wheel


GIT_S = 300.0
_COMMIT = r"[0-9a-f]{7,40}"


class Checkout(Struct, frozen=True):
    commit: str
    folder: str = ""
    """The part of the given name after the branch or tag."""


def check_out(url: str, ref: str, into: Path) -> Checkout:
    """`into` must not exist. Raises ExtensionError."""
    try:
        with _readable(url) as address:
            folder = ""
            if "/" in ref:
                ref, folder = _split(ref, address)
            _git("init", "-q", "--template=", str(into))
            try:
                _git("fetch", "-q", "--depth", "1", "--no-tags", "--", address, ref or "HEAD", cwd=into)
                commit = _git("rev-parse", "FETCH_HEAD^{commit}", cwd=into)
            except ExtensionError as error:
                if not ref and "remote ref HEAD" in error.message:
                    raise ExtensionError(
                        f"The git repository {url} has no commit yet.", hint="Commit the files first."
                    ) from error
                if not re.fullmatch(_COMMIT, ref):
                    raise
                _git("fetch", "-q", "--", address, "+refs/heads/*:refs/remotes/source/*", "+refs/tags/*:refs/tags/*", cwd=into)
                commit = _git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", cwd=into)
            _git("config", "core.autocrlf", "false", cwd=into)
            _git("checkout", "-q", "--detach", commit, cwd=into)
            return Checkout(commit, folder)
    except GitFailed as error:
        raise ExtensionError(error.message, hint=error.hint) from error


@contextmanager
def _readable(url: str) -> Iterator[str]:
    """The address to fetch from: git reads none of the settings of a repository on this machine."""
    folder = local_path(url)
    found = find_repository(folder) if folder is not None and folder.is_dir() else None
    if found is None:
        yield url
        return
    with open_repository(found) as repository:
        yield str(repository.view)


def _split(ref: str, address: str) -> tuple[str, str]:
    """Splits a name and a folder at the slash where the repository has such a branch or tag."""
    listed = _git("ls-remote", "--heads", "--tags", "--", address)
    names = {re.sub(r"^refs/(?:heads|tags)/", "", line.partition("\t")[2]) for line in listed.splitlines()}
    parts = ref.split("/")
    for at in range(len(parts), 0, -1):
        if "/".join(parts[:at]) in names:
            return "/".join(parts[:at]), "/".join(parts[at:])
    return (parts[0], "/".join(parts[1:])) if re.fullmatch(_COMMIT, parts[0]) else (ref, "")


def _git(*words: str, cwd: Path | None = None) -> str:
    done = run_git(*words, cwd=cwd or Path("/"), env={"GIT_LFS_SKIP_SMUDGE": "1"}, timeout_s=GIT_S)
    if done.exit_code:
        raise ExtensionError(f"git {words[0]}: {done.complaint}")
    return done.stdout.strip()
