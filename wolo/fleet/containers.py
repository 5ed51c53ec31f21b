"""Runs the programs of an attempt in a container, through docker or podman."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.errors import WoloError
from wolo.fleet.tasks import BatchTask
from wolo.places import DATA_VARIABLE, Places

_HOME = "/wolo-home"
"""Where the user's settings are in the container."""
_PASSED_BEGINNINGS = ("WOLO_",)
_PASSED_ENDS = ("_API_KEY", "_PROXY", "_proxy", "_BASE_URL")
_NOT_PASSED = ("WOLO_HOME", "WOLO_OWNER")
_REMOVE_S = 30


class Container(Struct, frozen=True):
    """The container of one attempt; each program starts it anew."""

    program: str
    task: BatchTask
    name: str
    folders: tuple[Path, ...]
    """Writable at the same paths as outside."""
    read: tuple[Path, ...]
    """The same, but read-only."""
    config: Path

    def agent_argv(self, argv: Sequence[str], cwd: Path) -> tuple[str, ...]:
        """`argv` from `agent_argv`. The image must have wolo on its path."""
        given = [name for name in os.environ if name.startswith(_PASSED_BEGINNINGS) or name.endswith(_PASSED_ENDS)]
        names = [DATA_VARIABLE, *(name for name in given if name not in (*_NOT_PASSED, DATA_VARIABLE))]
        own = ("--tmpfs", _HOME, "-v", f"{self.config}:{_HOME}/config:ro", "-e", f"WOLO_HOME={_HOME}")
        return (*self._start(cwd, names), *own, self.task.image, "wolo", *argv[argv.index("wolo") + 1 :])

    def command_argv(self, command: str, cwd: Path) -> tuple[str, ...]:
        return (*self._start(cwd, (*self.task.env, *self.task.setup_env)), self.task.image, "sh", "-c", command)

    def _start(self, cwd: Path, names: Iterable[str]) -> tuple[str, ...]:
        resources = self.task.resources
        most = [f"--memory={resources.memory_mb}m"] if resources.memory_mb is not None else []
        most += [f"--cpus={resources.cpus:g}"] if resources.cpus is not None else []
        mounts = [f"{folder}:{folder}" for folder in self.folders] + [f"{folder}:{folder}:ro" for folder in self.read]
        user = f"--user={os.getuid()}:{os.getgid()}"
        start = (self.program, "run", "--rm", "-i", "--init", f"--name={self.name}", "--network=host", user, *most)
        shared = [word for mount in mounts for word in ("-v", mount)]
        return (*start, *shared, "-w", str(cwd), *(word for name in names for word in ("-e", name)))

    def image_digest(self) -> str:
        """Empty: it is not known. May block."""
        words = [self.program, "image", "inspect", "--format", "{{.Id}}", self.task.image]
        with suppress(OSError, subprocess.TimeoutExpired):
            done = subprocess.run(words, capture_output=True, text=True, timeout=_REMOVE_S, check=False)
            return done.stdout.strip() if done.returncode == 0 else ""
        return ""

    def remove(self) -> None:
        """Ends what a killed client has left running. May block."""
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([self.program, "rm", "-f", self.name], capture_output=True, timeout=_REMOVE_S, check=False)


def make_container(task: BatchTask, name: str, folders: Sequence[Path], read: Sequence[Path], places: Places) -> Container:
    """Raises WoloError where there is no docker and no podman."""
    program = shutil.which("docker") or shutil.which("podman")
    if program is None:
        raise WoloError(
            f"The task needs the image {task.image}, and there is neither docker nor podman on {os.uname().nodename}."
        )
    return Container(program, task, name, tuple(folders), tuple(read), places.config)
