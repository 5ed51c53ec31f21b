"""Confines commands with Landlock and a system call filter on machines without namespaces. It protects less, and reports so."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from wolo.errors import ToolError
from wolo.guard.sandbox import mounts, seccomp
from wolo.guard.sandbox.backend import NO_DOMAINS, Backend, Ending, cannot_apply, do_nothing
from wolo.guard.sandbox.bubblewrap import ROOT_CAPABILITIES, Cleanup
from wolo.guard.sandbox.name_watch import Watch
from wolo.guard.sandbox.profile import SandboxProfile
from wolo.guard.sandbox.python_launcher import bare_python, line_for, pack_programs
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.operating_system import in_memory
from wolo.workspace import landlock

_MOST_ENTRIES = 20_000


def is_possible() -> bool:
    """The filter is required too: Landlock alone permits sockets."""
    return landlock.version() > 0 and bool(seccomp.program(in_namespaces=False)) and bool(bare_python())


class Landlock(Backend):
    backend = "landlock"
    covers: tuple[str, ...] = (
        *("writing outside the workspace", "contents of secrets", "network", "host sockets", "FIFOs of the host"),
        *("shared memory", "limits of other processes", "system calls", "kernel settings", "set-user-ID bits"),
    )

    def __init__(self, profile: SandboxProfile) -> None:
        super().__init__(profile)
        self._filter = seccomp.program(in_namespaces=False)
        self._launcher = pack_programs("calls", "launcher")
        self._ruleset = -1
        self.not_covered = not_covered()

    def wrap(
        self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        assert proxy_fd < 0  # without `has_proxy`
        if in_background:
            raise ToolError(
                "sandbox denied: without mounts, protected files are restored when a command has ended, and a job may run on, "
                "so it was not started."
            )
        watch, ending = (None, do_nothing) if only_reads else self._save()
        fds: list[int] = []
        try:
            tmp = str(self._scratch.tmp)
            if self._ruleset < 0:
                self._ruleset = landlock.make_ruleset(self._rights(), self._rules(tmp), apart=True)
            variables = (f"{name}={value}" for name, value in self._environment(tmp).items())
            for data in (self._launcher, self._filter, b"".join(os.fsencode(word) + b"\0" for word in variables)):
                fds.append(in_memory(data))
        except OSError as error:
            Cleanup(fds, ending)()
            raise cannot_apply(error) from error
        code, filter_fd, words = fds
        line = [*line_for(code), *map(str, (self._ruleset, filter_fd, ROOT_CAPABILITIES, words, watch.fd if watch else -1)), "--"]
        passed = (self._ruleset, *fds, *((watch.fd,) if watch else ()))
        return SandboxedCommand(
            (*line, *argv), passed, Cleanup(fds, ending), why_ended=watch.why if watch else str, is_alone=True
        )

    def _save(self) -> tuple[Watch, Ending]:
        """Watches and saves the protected files in the writable directories. Raises ToolError."""
        try:
            self._watch_tops()
            names = self._names()
            own = next((path for path in self._profile.own if any(mounts.is_below(path, root) for root in names)), "")
            if own:
                raise ToolError(f"sandbox denied: {own} belongs to wolo and is in the workspace, so the command was not run.")
            watch = self._watch(names, (), is_apart=False)
        except OSError as error:
            raise cannot_apply(error) from error
        kept = (path for path in self._profile.kept if any(mounts.is_below(path, root) for root in names))
        present = (path for each in names.values() for path in (*each.present, *each.links))
        try:
            return watch, self._begin(names, filter(os.path.lexists, (*present, *kept)), watch=watch)
        except ToolError:
            watch.close()
            raise

    def close(self) -> None:
        ruleset, self._ruleset = self._ruleset, -1
        if ruleset >= 0:
            os.close(ruleset)
        super().close()

    @staticmethod
    def _rights() -> int:
        return landlock.changes() | landlock.READ_FILE | (landlock.IOCTL_DEVICE if landlock.version() > 4 else 0)

    def _rules(self, tmp: str) -> Iterator[tuple[str, int]]:
        profile = self._profile
        secrets = (*profile.hidden, *profile.own)
        everything = self._rights()
        for path in (*profile.writable, tmp):
            yield path, everything
        for path in landlock.DEVICES:
            yield path, landlock.WRITE_FILE | landlock.TRUNCATE | landlock.IOCTL_DEVICE
        for path in profile.shown:
            yield path, landlock.READ_FILE
        for path in _around("/", (*profile.closed, *secrets)):
            yield path, landlock.READ_FILE
        for place in map(os.path.realpath, profile.needed):
            if any(mounts.is_below(place, folder) for folder in profile.closed):
                for path in _around(place, secrets):
                    yield path, landlock.READ_FILE


def not_covered() -> tuple[str, ...]:
    """Depends on the Landlock version of this kernel."""
    known = landlock.version()
    return (
        "protected names in the workspace while a command runs (they are restored after it)",
        "data in git's directory",
        "secrets in the workspace",
        "modes, owners, dates and attributes of your other files",
        "names of hidden files",
        "visibility of your other processes",
        *(() if known > 5 else ("signals to your other processes",)),
        *(() if known > 2 else ("truncating files",)),
        "reading system files and other disks",
        NO_DOMAINS,
    )


def _around(folder: str, hidden: Sequence[str]) -> Iterator[str]:
    """The largest parts of the tree below `folder` that contain nothing hidden."""
    below = [path for path in hidden if path.startswith(f"{folder.rstrip('/')}/")]
    if folder in hidden:
        return
    if not below:
        yield folder
        return
    try:
        with os.scandir(folder) as entries:
            names = [entry.path for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False) if not entry.is_symlink()]
    except OSError:
        return
    for path in names:
        yield from _around(path, below)
