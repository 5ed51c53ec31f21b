"""One container an attempt, through docker or podman: made once, its phases are started in it, and none outlives its wolo."""

from __future__ import annotations

import csv
import io
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

from msgspec import Struct

from wolo import __version__
from wolo.config.schema import BatchSettings
from wolo.diagnostics.folder_update import MARK
from wolo.errors import WoloError
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.outcomes import Owner
from wolo.fleet.tasks import BatchTask
from wolo.places import DATA_VARIABLE, Places

PROGRAMS = ("docker", "podman")
_HOME, _WOLO = "/wolo-home", "/opt/wolo"
"""Where the user's settings, and wolo itself, are in the container."""
_PASSED_BEGINNINGS = ("WOLO_",)
_PASSED_ENDS = ("_API_KEY", "_PROXY", "_proxy", "_BASE_URL")
_NOT_PASSED = ("WOLO_HOME", "WOLO_OWNER", DATA_VARIABLE)
_LABEL = "wolo.owner"
"""On containers and snapshots: the process that removes them."""
_PULL_S, _REMOVE_S = 3600, 60


class ContainerFailed(WoloError):
    """The engine, or the image, does not do what an attempt needs."""

    kind = "container"


class ContainerEngine(Struct, frozen=True):
    program: str
    wolo_folder: str
    """Mounted into containers; empty: the image has wolo."""
    config: Path

    @property
    def name(self) -> str:
        return Path(self.program).name

    def control(self, *words: str, timeout_s: float = _PULL_S) -> str:
        """Raises ContainerFailed with the engine's own words. May block."""
        try:
            done = subprocess.run(
                [self.program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = error.strerror if isinstance(error, OSError) else f"no answer in {timeout_s:g} s"
            raise ContainerFailed(f"{self.name} {words[0]}: {reason}") from error
        if done.returncode:
            complaint = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"status {done.returncode}"]
            raise ContainerFailed(f"{self.name} {words[0]}: {complaint[-1]}")
        return done.stdout.strip()

    def remove_leftovers(self, host: Host) -> None:
        """Removes what wolos of this machine that were killed have left. May block."""
        for kind, listing, removal in (("container", ("ps", "-aq"), "rm"), ("image", ("images", "-q"), "rmi")):
            for id in dict.fromkeys(self.control(*listing, "--filter", f"label={_LABEL}").split()):
                with suppress(ContainerFailed, ValueError):  # another wolo removes it, or the label is another's
                    label = self.control(kind, "inspect", "--format", f'{{{{index .Config.Labels "{_LABEL}"}}}}', id)
                    name, pid, started = label.split(" ", 2)
                    owner = Owner(name, int(pid), started)
                    if host.is_dead(owner) or host.was_restarted_since(owner):
                        self.control(removal, "-f", id, timeout_s=_REMOVE_S)


def find_engine(settings: BatchSettings, places: Places) -> ContainerEngine:
    """The first engine that answers, without leftovers of killed wolos. Raises ContainerFailed. May block."""
    names = [settings.container] if settings.container else PROGRAMS
    programs = [path for name in names if (path := shutil.which(name))]
    if not programs:
        missing = f"no {settings.container}, which batch.container names," if settings.container else "neither docker nor podman"
        raise ContainerFailed(f"A task needs an image, and there is {missing} on {os.uname().nodename}.")
    folder = settings.wolo_folder or (sys.prefix if (Path(sys.prefix) / MARK).exists() else "")
    if folder and not (Path(folder).expanduser() / "bin/wolo").exists():
        raise ContainerFailed(f"batch.wolo_folder: {folder} is no self-contained folder of wolo.", hint="`make dist` builds one.")
    failures = []
    for program in programs:
        engine = ContainerEngine(program, str(Path(folder).expanduser().absolute()) if folder else "", places.config)
        try:
            engine.control("version", "--format", "{{.Server.Version}}", timeout_s=_REMOVE_S)
        except ContainerFailed as error:
            failures.append(error)
            continue
        engine.remove_leftovers(Host())
        return engine
    raise failures[0]


class Container:
    """The container of one attempt. Its methods may block, and raise ContainerFailed."""

    def __init__(self, engine: ContainerEngine, task: BatchTask) -> None:
        self.engine = engine
        self.name = f"wolo-{secrets.token_hex(8)}"
        self._task, self._image = task, task.image
        self._cwd = ""
        self._mounts: list[str] = []
        self._network: bool | None = None
        """None: it is not made yet."""
        self._changed: tuple[str, ...] = ()
        self._owner = ""
        """`UID:GID` that this user has in the container, where another one works there."""
        self._snapshots: list[str] = []
        self._lock = Lock()
        self._is_removed = False

    def mount(self, cwd: Path, *, writable: Sequence[Path] = (), readable: Sequence[Path] = ()) -> None:
        """`cwd` is the worktree, at the task's `workdir` or at the same path; the others are at the same paths."""
        self._cwd = self._task.workdir or str(cwd)
        self._mounts = [_bind(cwd, self._cwd, "rw"), *(_bind(path, path, "rw") for path in writable)]
        self._mounts += [_bind(path, path) for path in readable]
        self._changed = (*map(str, writable), self._cwd)

    def copy_workdir(self, folder: Path) -> None:
        """Copies the repository of the image to the new folder."""
        with self._lock:
            self._create(self._task.image)
            folder.mkdir()
            self.engine.control("cp", f"{self.name}:{self._task.workdir}/.", str(folder))
            self.engine.control("rm", "-f", self.name)

    def enter(self, *, network: bool) -> None:
        """Begins a phase, with nothing running. Without network it is the same container, made again from its own files."""
        with self._lock:
            if self._network not in (None, network):
                self._snapshots.append(f"wolo-attempt:{self.name}-{len(self._snapshots)}")
                self._image = self._snapshots[-1]
                self.engine.control("commit", self.name, self._image)
                self.engine.control("rm", "-f", self.name)
                self._network = None
            if self._network is None:
                self._create(self._image, *self._settings(network=network))
                self._network = network
            self.engine.control("start", self.name)
            if self._task.workdir and os.getuid() and not self._owner:
                self._owner = self.engine.control("exec", self.name, "stat", "-c", "%u:%g", self._cwd)

    def leave(self) -> None:
        """Ends a phase with everything that it has started."""
        with self._lock:
            if self._owner:  # what another user of the image has made must be readable outside
                self.engine.control("exec", "--user=0", self.name, "chown", "-R", self._owner, *self._changed)
            self.engine.control("stop", "-t", "0", self.name)

    def command_argv(self, command: str) -> tuple[str, ...]:
        return (*self._exec((*self._task.env, *self._task.setup_env)), "sh", "-c", command)

    def agent_argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """`argv` from `agent_argv`. Raises ContainerFailed unless the container has this version of wolo."""
        program = f"{_WOLO}/bin/wolo" if self.engine.wolo_folder else "wolo"
        try:
            version = self.engine.control("exec", self.name, program, "--version").removeprefix("wolo ")
        except ContainerFailed as error:
            hint = "batch.wolo_folder names a self-contained folder, which containers get."
            raise ContainerFailed(f"wolo does not start in {self._task.image}: {error.message}", hint=hint) from error
        if version != __version__:
            raise ContainerFailed(f"{self._task.image} has wolo {version}, and this is wolo {__version__}.")
        names = [name for name in os.environ if name.startswith(_PASSED_BEGINNINGS) or name.endswith(_PASSED_ENDS)]
        passed = (DATA_VARIABLE, *(name for name in names if name not in _NOT_PASSED))
        return (*self._exec(passed, "-e", f"WOLO_HOME={_HOME}"), program, *argv[argv.index("wolo") + 1 :])

    def ran_out_of_memory(self) -> bool:
        """After a program that failed. Raises ContainerFailed where that is the fault of the container."""
        state = self.engine.control("container", "inspect", "--format", "{{.State.Running}} {{.State.OOMKilled}}", self.name)
        if not state.startswith("true") and not state.endswith("true"):
            raise ContainerFailed(f"The container of {self._task.image} has ended.")
        return state.endswith("true")

    def image_digest(self) -> str:
        """Empty: it is not known."""
        with suppress(ContainerFailed):
            return self.engine.control("image", "inspect", "--format", "{{.Id}}", self._task.image)
        return ""

    def remove(self) -> None:
        """Waits for what is under way. Does not raise; what an engine that does not answer keeps is removed by the next wolo."""
        with self._lock:
            self._is_removed = True
            for words in (("rm", "-f", self.name), *(("rmi", "-f", name) for name in reversed(self._snapshots))):
                with suppress(ContainerFailed):
                    self.engine.control(*words, timeout_s=_REMOVE_S)

    def _exec(self, names: Sequence[str], *words: str) -> tuple[str, ...]:
        passed = (word for name in names for word in ("-e", name))
        return (self.engine.program, "exec", "-i", "-w", self._cwd, *passed, *words, self.name)

    def _create(self, image: str, *settings: str) -> None:
        if self._is_removed:
            raise ContainerFailed("The attempt has ended.")
        me = Host().owner()
        label = f"{_LABEL}={me.host} {me.pid} {me.started}"
        own = (f"--name={self.name}", "--label", label, "--stop-signal=KILL", "--entrypoint=tail")
        self.engine.control("create", *own, *settings, image, "-f", "/dev/null")

    def _settings(self, *, network: bool) -> list[str]:
        resources = self._task.resources
        words = [f"--network={'host' if network else 'none'}", "--tmpfs", _HOME, *self._mounts]
        words += [_bind(self.engine.config, f"{_HOME}/config")] if self.engine.config.exists() else []
        words += [f"--memory={resources.memory_mb}m"] if resources.memory_mb is not None else []
        words += [f"--cpus={resources.cpus:g}"] if resources.cpus is not None else []
        words += [_bind(self.engine.wolo_folder, _WOLO)] if self.engine.wolo_folder else []
        if self._task.workdir:  # a repository of the image belongs to its user
            return words
        words += ["--userns=keep-id"] if self.engine.name == "podman" and os.getuid() else []
        return [*words, f"--user={os.getuid()}:{os.getgid()}"]


def _bind(source: Path | str, target: Path | str, access: str = "ro") -> str:
    """Paths may have colons, which end them in `-v`, and commas: the fields are those of a CSV row."""
    csv.writer(row := io.StringIO(), lineterminator="").writerow(
        ("type=bind", f"source={source}", f"target={target}", f"readonly={str(access == 'ro').lower()}")
    )
    return f"--mount={row.getvalue()}"
