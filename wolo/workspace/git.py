"""Starts git, for every room: no hooks, no questions, nothing of the caller's repository, bounded output and time.

A repository of the user or of a stranger is opened with `git_repository`, which keeps git from reading its settings at all: the
settings that name programs (filters, drivers, monitors, promisors, helpers) have no end, and some have names of their own choice.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from msgspec import Struct

from wolo.errors import WoloError
from wolo.workspace.processes.process_runner import Processes

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
        from wolo.workspace.processes.run_with_input import run_with_input  # noqa: PLC0415  # not for a reader

        argv, environ = _prepare(words, cwd, env or {})
        try:
            done = await run_with_input(
                self._processes, argv, b"", cwd=cwd, env=environ, timeout_s=timeout_s, kept_bytes=MAX_OUTPUT_BYTES
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


def _prepare(words: Sequence[str], top: Path, env: Mapping[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command and its environment. Raises GitFailed when git is not installed."""
    # A folder of the repository itself may hold anything, and relative ones would be looked for in it.
    own = os.path.realpath(top)
    folders = [folder for folder in os.get_exec_path() if folder.startswith("/") and not _leads_into(folder, own)]
    path = os.pathsep.join(folders)
    if (program := shutil.which("git", path=path)) is None:
        raise GitFailed("git is not installed.", hint="Install it; wolo needs it for repositories.")
    # The user's own environment, without what would lead git elsewhere, start something or make it ask.
    passed = _PASSED_ON.split()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in passed}
    environ.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    return (program, *_OPTIONS, *words), {**environ, **_FIXED, "PATH": path, **env}


def _leads_into(folder: str, top: str) -> bool:
    real = (os.path.realpath(folder), os.path.realpath(f"{folder}/git"))
    return any(path == top or path.startswith(f"{top}/") for path in real)


class GitReader:
    """A git that only looks at files: started at once, read later, from any thread. Leaving the context kills it with its group.

    Starting it costs a thirtieth of `run_git`, which also finds processes that git leaves behind.
    """

    def __init__(self, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, *, top: Path | None = None) -> None:
        """No git below `top` is started, or below `cwd` without it. Raises GitFailed."""
        argv, environ = _prepare(words, top or cwd, env or {})
        self._name = words[0]
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise GitFailed(f"git cannot be started in {cwd}: {error.strerror}.") from error
        atexit.register(self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        atexit.unregister(self._end)
        self._end()

    def read(self, most_bytes: int, end_at: float) -> tuple[str, bool]:
        """Its output, and whether that is all: git is stopped behind `most_bytes`. `end_at` is in `time.monotonic()`.

        Raises GitFailed when it fails, or has not ended by then.
        """
        assert self._process.stdout is not None
        pipe, poller = self._process.stdout.fileno(), select.poll()
        poller.register(pipe, select.POLLIN)
        pieces, size = list[bytes](), 0
        while size <= most_bytes:
            if not poller.poll(max(end_at - time.monotonic(), 0) * 1000):
                raise GitFailed(f"git {self._name} took too long.")
            if not (piece := os.read(pipe, 1 << 16)):
                break
            pieces.append(piece)
            size += len(piece)
        text, is_whole = b"".join(pieces)[:most_bytes].decode("utf-8", "surrogateescape"), size <= most_bytes
        try:
            if is_whole and (exit_code := self._process.wait(max(end_at - time.monotonic(), 0))):
                raise GitFailed(f"git {self._name} failed (exit {exit_code}).")
        except subprocess.TimeoutExpired as error:
            raise GitFailed(f"git {self._name} took too long.") from error
        return text, is_whole

    def _end(self) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a file system that does not answer
                self._process.wait(1)
        if self._process.stdout is not None:
            self._process.stdout.close()


def run_git(*words: str, cwd: Path, env: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S) -> GitEnd:
    """As `Git.attempt`, for callers without an event loop."""
    processes = Processes()
    try:
        return asyncio.run(Git(processes).attempt(*words, cwd=cwd, env=env, timeout_s=timeout_s))
    finally:
        processes.close_all()
