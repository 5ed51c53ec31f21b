"""Checks out a commit of a git repository without running anything in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from wolo.errors import ExtensionError
from wolo.workspace.git import GitFailed, run_git
from wolo.workspace.git_repository import find_repository, local_path, open_repository

TIMEOUT_S = 300.0
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
    done = run_git(*words, cwd=cwd or Path("/"), env={"GIT_LFS_SKIP_SMUDGE": "1"}, timeout_s=TIMEOUT_S)
    if done.exit_code:
        raise ExtensionError(f"git {words[0]}: {done.complaint}")
    return done.stdout.strip()
