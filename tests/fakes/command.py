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
) -> Completed:
    """Without `stdin` there is nothing to read; the environment is the isolated one of the test, and `env` over it."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    ended = subprocess.run(
        [sys.executable, "-m", "wolo", *args],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return Completed(ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"), ended.returncode)


def start_wolo(*args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.Popen[bytes]:
    """For tests that signal, kill or watch it; use it as a context manager. It leads a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "wolo", *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
    )
