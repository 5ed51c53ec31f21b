"""Runs git for attempts: no hooks, no questions, nothing of the caller's repository."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from wolo.errors import WoloError
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.processes.run_with_input import run_with_input

TIMEOUT_S = 1800.0
"""Enough to fetch a large repository."""
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *(
        "-c",
        "core.autocrlf=false",
        "-c",
        "gc.auto=0",
        "-c",
        "maintenance.auto=false",
        "-c",
        "advice.detachedHead=false",
        "-c",
        "advice.addEmbeddedRepo=false",
    ),
    *("-c", "submodule.recurse=false", "-c", "core.quotePath=true", "-c", "diff.suppressBlankEmpty=false"),
)
_PASSED_ON = frozenset(("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_COMMAND"))
_KEPT_BYTES = 64 << 10


class GitFailed(WoloError):
    kind = "git"


class Git:
    """Runs git; a cancellation ends it with everything it started."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def run(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
        """Returns what it prints. Raises GitFailed."""
        code, stdout, stderr = await self.attempt(*words, cwd=cwd, env=env)
        if code:
            said = [line for line in stderr.splitlines() if line.strip()] or ["it failed"]
            worst = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1])
            raise GitFailed(f"git {words[0]}: {clean_line(worst)}")
        return stdout

    async def attempt(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Exit code, stdout and stderr. Raises GitFailed when git cannot be started or takes too long."""
        program = shutil.which("git")
        if program is None:
            raise GitFailed("git is not installed.", hint="Attempts need it to find out what was changed.")
        argv = (program, *_SETTINGS, *words)
        done = await run_with_input(
            self._processes, argv, b"", cwd=cwd, env=git_environment(env), timeout_s=TIMEOUT_S, kept_bytes=_KEPT_BYTES
        )
        if done.cause == "timed_out":
            raise GitFailed(f"git {words[0]} took longer than {TIMEOUT_S:.0f} s.")
        return done.exit_code, done.stdout.decode("utf-8", "surrogateescape").strip(), done.stderr.decode("utf-8", "replace")


def git_environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The user's own, without what would lead git elsewhere or make it ask."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _PASSED_ON}
    environ |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file", "LC_ALL": "C"}
    environ.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
    return {**environ, **(more or {})}
