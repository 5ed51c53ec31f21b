"""Runs a program that starts no others, where no process group could end them: on Windows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wolo.operating_system import inherited_number, os


def run_single(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, pass_fds: Sequence[int]
) -> tuple[bytes, int | None]:
    """The output and the exit code; None: it was ended after that time. Raises OSError when it cannot be started."""
    passed: dict[str, Any] = {"pass_fds": pass_fds}
    if sys.platform == "win32":
        numbers = [inherited_number(descriptor) for descriptor in pass_fds]
        for number in numbers:
            os.set_handle_inheritable(number, True)
        passed = {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": numbers})}
        env = {**env, "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")}  # Python does not start without it
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=env, timeout=timeout_s, input=b"", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **passed
        )
    except subprocess.TimeoutExpired as late:
        return late.output or b"", None
    return done.stdout, done.returncode
