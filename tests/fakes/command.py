"""Runs the installed `wolo` as a person or a script would, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.fork_server import Forked, can_fork
from tests.fakes.reused_process import Reused, can_reuse


@dataclass(frozen=True)
class Completed:
    stdout: str
    stderr: str
    exit_code: int

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.stdout.splitlines()]


def run_wolo(
    *args: str,
    stdin: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 60.0,
    forked: bool = True,
) -> Completed:
    """Without `stdin` there is nothing to read; the environment is the isolated one of the test, and `env` over it.

    `forked=False` starts a new interpreter also where the process of the run before, or a fork, would do.
    """
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with _start(
        args,
        env,
        forked,
        reused=True,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
    ) as running:
        try:
            stdout, stderr = running.communicate(given, timeout)
        except BaseException:
            running.kill()
            raise
    return Completed(stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"), running.returncode)


def start_wolo(
    *args: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    forked: bool = True,
    stdin_pipe: bool = False,
    stderr_pipe: bool = True,
) -> subprocess.Popen[bytes]:
    """For tests that signal, kill or watch it; use it as a context manager. It leads a process group of its own."""
    stdin = subprocess.PIPE if stdin_pipe else subprocess.DEVNULL
    streams: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE if stderr_pipe else None}
    return _start(args, env, forked, cwd=cwd, start_new_session=True, **streams)


def _start(
    args: tuple[str, ...], env: Mapping[str, str] | None, forked: bool, *, reused: bool = False, **options: Any
) -> subprocess.Popen[bytes]:
    whole = {**os.environ, **(env or {})}
    if forked and reused and can_reuse(whole):
        return Reused(args, env=whole, **options)
    if forked and can_fork(whole):
        return Forked(args, env=whole, **options)
    return subprocess.Popen([sys.executable, "-m", "wolo", *args], env=whole, **options)
