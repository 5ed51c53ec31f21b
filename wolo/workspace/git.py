"""Starts git, for every room: no hooks, no questions, nothing of the caller's repository, bounded output and time.

A repository of the user or of a stranger is opened with `git_repository`, which keeps git from reading its settings at all: the
settings that name programs (filters, drivers, monitors, promisors, helpers) have no end, and some have names of their own choice.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wolo.errors import WoloError
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.run_with_input import run_with_input

TIMEOUT_S = 1800.0
"""Enough to fetch a large repository."""
MAX_OUTPUT_BYTES = 16 << 20
_SETTINGS = """
core.hooksPath=/dev/null core.fsmonitor=false core.untrackedCache=false core.quotePath=true core.askPass= core.editor=false
core.pager=cat gc.auto=0 maintenance.auto=false advice.detachedHead=false advice.addEmbeddedRepo=false submodule.recurse=false
fetch.recurseSubmodules=false diff.suppressBlankEmpty=false
"""
_OPTIONS = ("--no-pager", *(word for setting in _SETTINGS.split() for word in ("-c", setting)))
_PASSED_ON = """
GIT_SSH GIT_SSH_COMMAND GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_PROXY_COMMAND
GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM
"""
_FIXED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "LC_ALL": "C",
}


class GitFailed(WoloError):
    kind = "git"


class GitEnd(Struct, frozen=True):
    exit_code: int
    stdout: str
    """As it was printed."""
    stderr: str

    @property
    def complaint(self) -> str:
        """The worst line of stderr."""
        said = [line for line in self.stderr.splitlines() if line.strip()] or ["it failed"]
        worst = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1])
        return "".join(char if char.isprintable() else "?" for char in worst)


class Git:
    """Runs git; a cancellation ends it with everything it started."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def run(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
        """Returns what it prints, without the last line break. Raises GitFailed."""
        done = await self.attempt(*words, cwd=cwd, env=env)
        if done.exit_code:
            raise GitFailed(f"git {words[0]}: {done.complaint}")
        return done.stdout.rstrip("\n")

    async def attempt(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> GitEnd:
        """Raises GitFailed when git cannot be started, takes too long or prints too much."""
        # Of an absolute folder: others would be looked for in a repository.
        path = os.pathsep.join(folder for folder in os.get_exec_path() if folder.startswith("/"))
        program = shutil.which("git", path=path)
        if program is None:
            raise GitFailed("git is not installed.", hint="Install it; wolo needs it for repositories.")
        # The user's own environment, without what would lead git elsewhere, start something or make it ask.
        passed = _PASSED_ON.split()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in passed}
        environ.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
        try:
            done = await run_with_input(
                self._processes,
                (program, *_OPTIONS, *words),
                b"",
                cwd=cwd,
                env={**environ, **_FIXED, "PATH": path, **(env or {})},
                timeout_s=timeout_s,
                kept_bytes=MAX_OUTPUT_BYTES,
            )
        except OSError as error:
            raise GitFailed(f"git cannot be started in {cwd}: {error.strerror}.") from error
        if done.cause == "timed_out":
            raise GitFailed(f"git {words[0]} took longer than {timeout_s:.0f} s.")
        if done.cause != "exited":
            raise GitFailed("git started far too many processes.")
        if len(done.stdout) > MAX_OUTPUT_BYTES:
            raise GitFailed(f"git {words[0]} printed more than {MAX_OUTPUT_BYTES >> 20} MiB.")
        return GitEnd(done.exit_code, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "replace"))


def run_git(*words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> GitEnd:
    """As `Git.attempt`, for callers without an event loop."""
    processes = Processes()
    try:
        return asyncio.run(Git(processes).attempt(*words, cwd=cwd, env=env, timeout_s=timeout_s))
    finally:
        processes.close_all()
