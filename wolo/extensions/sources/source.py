"""Reads where a skill or plugin comes from."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.errors import UsageError

ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar")
FORMS = (
    "A folder, OWNER/REPO, a git URL (both with #REF or #REF:FOLDER), a .zip or .tar.gz file or https URL, pypi:NAME or npm:NAME."
)
_SHORT = r"(?:github:|gh:)?([A-Za-z0-9][\w.-]*)/([\w.-]+?)(?:\.git)?((?:/[\w.@+-]+)*)"
PYPI = "pypi:"
NPM = "npm:"
NPM_PACKAGE = r"(?:(https?://[^\s@]+)/)?((?:@[\w.~-]+/)?[\w~-][\w.~-]*)"
"""Registry and name."""
_NPM_VERSION = r"(?:@([\w.+-]+))?"
_REQUIREMENT = r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)(?:==([\w.!+-]+))?"
_WEB = r"(https://[^/]+/[^/]+/[^/]+?)(?:\.git)?/(?:-/)?(?:tree|blob)/(.+)"
_LOCAL = ("/", "./", "../", "~")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Source(Struct, frozen=True):
    kind: Literal["folder", "git", "archive", "pypi", "npm"]
    location: str
    """Absolute path, URL or name of a package."""
    ref: str = ""
    """Branch, tag or commit, perhaps with a folder after a slash; empty: the default branch. Of a package: the version."""
    folder: str = ""
    """Folder in it; empty: all of it."""

    def __str__(self) -> str:
        if self.kind == "pypi":
            return f"{PYPI}{self.location}{f'=={self.ref}' if self.ref else ''}"
        if self.kind == "npm":
            return f"{NPM}{self.location}{f'@{self.ref}' if self.ref else ''}"
        end = f"{self.ref}:{self.folder}" if self.folder else self.ref
        return f"{self.location}#{end}" if end else self.location

    @property
    def name(self) -> str:
        """Last part of its address, for something that has no name."""
        last = PurePosixPath(self.folder or urlsplit(self.location).path or self.location.rpartition(":")[2]).name
        ending = next((each for each in (*ARCHIVES, ".git") if last.endswith(each)), "")
        return last.removesuffix(ending)


def read_source(text: str, base: Path) -> Source:
    """`base` is the folder of relative paths. Raises UsageError."""
    text = text.strip()
    if text.startswith(PYPI):
        named = re.fullmatch(_REQUIREMENT, text.removeprefix(PYPI))
        if named is None:
            raise UsageError(f"{text} names no package.", hint="pypi:NAME, or pypi:NAME==VERSION.")
        return Source("pypi", named[1], named[2] or "")
    if text.startswith(NPM):
        named = re.fullmatch(f"({NPM_PACKAGE}){_NPM_VERSION}", text.removeprefix(NPM))
        if named is None:
            raise UsageError(f"{text} names no package.", hint="npm:NAME, or npm:NAME@VERSION: a version or a tag, no range.")
        return Source("npm", named[1], named[4] or "")
    location, _, end = text.partition("#")
    ref, _, folder = end.partition(":")
    if "://" in text or re.match(r"[\w.-]+@[\w.-]+:", text):
        return _remote(location, ref, _inside(folder))
    path = base / Path(text).expanduser()
    if not path.exists():
        path = base / Path(location).expanduser()
    else:
        ref = folder = ""
    if path.exists():
        return _local(path.resolve(), ref, _inside(folder))
    short = re.fullmatch(_SHORT, location)
    if short is None or text.startswith(_LOCAL):
        raise UsageError(f"There is nothing at {location}.", hint=FORMS)
    ref, folder = _check_ref(ref), _inside(folder or short[3])
    return Source("git", f"https://github.com/{short[1]}/{short[2]}.git", ref, folder)


def _remote(location: str, ref: str, folder: str) -> Source:
    address = urlsplit(location)
    if address.scheme == "http" and address.hostname not in _LOOPBACK:
        raise UsageError(f"{location} is not encrypted.", hint="Use https://.")
    if address.scheme not in ("", "https", "http", "ssh", "file"):
        raise UsageError(f"{location}: only https, ssh and file addresses are fetched.", hint=FORMS)
    if address.scheme in ("http", "https") and address.path.endswith(ARCHIVES):
        return Source("archive", location, folder=_inside(ref) or folder)
    if web := re.fullmatch(_WEB, location):
        inner = web[2].removesuffix("/SKILL.md").rstrip("/")
        return Source("git", f"{web[1]}.git", _check_ref(inner), folder)
    return Source("git", location, _check_ref(ref), folder)


def _local(path: Path, ref: str, folder: str) -> Source:
    if path.is_file():
        if not path.name.endswith(ARCHIVES):
            raise UsageError(f"{path} is neither a folder nor an archive.", hint=FORMS)
        return Source("archive", str(path), folder=_inside(ref) or folder)
    is_git = (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())
    if ref and not is_git:
        raise UsageError(f"{path} is no git repository, so it has no {ref}.", hint=f"{path}#:FOLDER names a folder in it.")
    return Source("git" if is_git else "folder", str(path), _check_ref(ref), folder)


def _check_ref(ref: str) -> str:
    if ref and (not re.fullmatch(r"\w[\w./+@-]*", ref) or ".." in ref):
        raise UsageError(f"{ref} is no name of a branch, tag or commit.")
    return ref


def _inside(folder: str) -> str:
    """Raises UsageError for a path that leads out."""
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in folder:
        raise UsageError(f"The folder {folder} leads out of the source.")
    return "/".join(parts)
