"""Runs commands in namespaces of wolo's own launcher, compiled or in Python, or in bubblewrap.

Each command gets new namespaces and a file tree in which only the workspace is writable.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from wolo.errors import ToolError
from wolo.guard.protected_paths import is_protected_name
from wolo.guard.sandbox import seccomp
from wolo.guard.sandbox.backend import Backend, Ending, cannot_apply, do_nothing
from wolo.guard.sandbox.mounts import TEMPORARY, Tree, host_sockets, is_below
from wolo.guard.sandbox.name_watch import Watch
from wolo.guard.sandbox.profile import SandboxProfile
from wolo.guard.sandbox.protected_names import Names, folders_between
from wolo.guard.sandbox.python_launcher import bare_python, line_for, pack_programs
from wolo.guard.sandbox_contract import PROXY_PORT, SandboxedCommand
from wolo.operating_system import in_memory, os
from wolo.places import make_private

COVERS = (
    *("files outside the workspace", "protected names", "the home directory", "other projects", "secrets", "network"),
    *("host sockets", "FIFOs of the host"),
    *("processes", "system calls", "kernel settings", "set-user-ID bits"),
)
NOT_COVERED = ("reading system files and other disks", "files in the workspace", "kernel vulnerabilities")
_NAMESPACES = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_CAPABILITY_BITS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3}
ROOT_CAPABILITIES = sum(1 << bit for bit in _CAPABILITY_BITS.values())
"""Capabilities of root in a workspace of another user: in a user namespace it could not write there."""
_ROOT_NAMESPACES = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *(word for name in _CAPABILITY_BITS for word in ("--cap-add", f"CAP_{name}")),
)
_MOST_STATUS_BYTES = 4096
_PROXY = f"http://127.0.0.1:{PROXY_PORT}"
_NAMES = ("http_proxy", "https_proxy", "all_proxy")
PROXY_VARIABLES = {
    **{spelled: _PROXY for name in _NAMES for spelled in (name, name.upper())},
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
}
"""Variables of a command that has a proxy: its own loopback address is reached directly."""


def find_binary(writable: Sequence[str]) -> str:
    """Path of the system's bwrap; empty if there is none that neither the workspace nor another user could have made."""
    for folder in os.get_exec_path():
        binary = os.path.realpath(Path(folder, "bwrap"))
        if folder.startswith("/") and _is_of_the_system(binary) and not any(is_below(binary, root) for root in writable):
            return binary
    return ""


def _is_of_the_system(binary: str) -> bool:
    """Tells whether the binary and all folders above it belong to root or this user and are not writable by others."""
    owners = {0, os.getuid()}
    with suppress(OSError):
        for path in (Path(binary), *Path(binary).parents):
            status = path.stat()
            if status.st_uid not in owners or (status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX):
                return False
        return os.access(binary, os.X_OK) and stat.S_ISREG(Path(binary).stat().st_mode)
    return False


class Descriptors:
    """Descriptors that the program inherits; -1 for none."""

    def __init__(self, proxy: int) -> None:
        self.proxy = proxy
        self.args_fd = self.status = self.watch = self.filter = self.code = self.writable = -1

    @property
    def own_fds(self) -> tuple[int, ...]:
        """Those that are closed when the command ends."""
        return tuple(fd for fd in (self.args_fd, self.status, self.filter, self.code, self.writable) if fd >= 0)

    @property
    def passed(self) -> tuple[int, ...]:
        return (*self.own_fds, *(fd for fd in (self.watch, self.proxy) if fd >= 0))

    @property
    def last_words(self) -> tuple[str, ...]:
        """The end of a launcher's arguments; one without a proxy has none of it."""
        return ("--",) if self.proxy < 0 else (str(self.proxy), "--")


class Bubblewrap(Backend):
    backend = "bubblewrap"
    covers: tuple[str, ...] = COVERS
    not_covered: tuple[str, ...] = NOT_COVERED
    has_proxy = True

    def __init__(self, program: str, profile: SandboxProfile, *, of_others: bool = False, is_old: bool = False) -> None:
        """`of_others`: root works on files of other users. `is_old`: this bwrap cannot set modes (before 0.5)."""
        super().__init__(profile)
        self._closes_by_mode = not of_others and not is_old
        self._goes_by_modes = os.getuid() == 0 and not of_others
        self._program = program
        self._of_others = of_others
        self._filter = seccomp.program(in_namespaces=True)

    @cached_property
    def _inner(self) -> bytes:
        return pack_programs("calls", "launcher")

    def wrap(
        self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        watch: Watch | None = None
        ending: Ending = do_nothing
        descriptors = Descriptors(proxy_fd)
        try:
            if not only_reads:
                self._watch_tops()
            names = {} if only_reads else self._names()
            linked = self._hard_links(names)
            if linked and in_background:
                raise ToolError(
                    f"sandbox denied: {linked[0]} has a second name, through which a job could change it, so it was not started."
                )
            tree = self._tree(names)
            if names:
                watch = self._watch(names, tree.held, is_job=in_background)
                ending, descriptors.watch = watch.close, watch.fd
            if names and not in_background:  # while a job runs, new names further down cannot be attributed to it
                saved = [*linked, *(path for each in names.values() for path in each.links)]
                ending = self._begin(names, saved, [path for each in names.values() for path in each.present], watch)
            variables = (*self._environment("/tmp").items(), *(PROXY_VARIABLES.items() if proxy_fd >= 0 else ()))
            settings = [word for name, value in variables for word in ("--setenv", name, value)]
            words = [*tree.options(), *settings, "--chdir", str(cwd), ""]
            descriptors.args_fd = in_memory(os.fsencode("\0".join(words)))
            descriptors.status = in_memory(b"")
            if self._filter:
                descriptors.filter = in_memory(self._filter)
            line = self._line(descriptors)
        except (OSError, ToolError) as error:
            Cleanup(descriptors.own_fds, ending)()
            if isinstance(error, ToolError):
                raise
            raise cannot_apply(error) from error
        cleanup = Cleanup(descriptors.own_fds, ending, status_fd=descriptors.status)
        why = str if watch is None else watch.why_and_where if in_background else watch.why
        return SandboxedCommand((*line, *argv), descriptors.passed, cleanup, cleanup.has_begun, why_ended=why)

    def _line(self, descriptors: Descriptors) -> list[str]:
        """Command line that sets up the mounts and runs what follows."""
        namespaces = _ROOT_NAMESPACES if self._of_others else _NAMESPACES
        line = [self._program, "--args", str(descriptors.args_fd), "--json-status-fd", str(descriptors.status), *namespaces]
        if descriptors.filter >= 0:
            line += ["--seccomp", str(descriptors.filter)]
        descriptors.code = in_memory(self._inner)
        writable = ("/dev", *(path for path in TEMPORARY if Path(path).is_dir()), *self._profile.writable)
        descriptors.writable = in_memory(b"".join(os.fsencode(path) + b"\0" for path in writable))
        kept = ROOT_CAPABILITIES if self._of_others else 0
        arguments = map(str, (-1, -1, kept, descriptors.writable, descriptors.watch))
        return [*line, "--", *line_for(descriptors.code), *arguments, *descriptors.last_words]

    def _tree(self, names: Mapping[str, Names]) -> Tree:
        """The mounts of the command. Nothing is writable without `names`. Raises OSError and ToolError."""
        tree = Tree(str(self._scratch.tmp), closed_by_mode=self._closes_by_mode)
        profile = self._profile
        for root in profile.writable:
            if names:
                tree.write(root)
            else:
                tree.show(root)
        for path in profile.closed:
            tree.hide(path)
        for path in (*profile.needed, *profile.writable):
            tree.show(path)
        for path in profile.own if names else ():
            if any(is_below(path, root) for root in names):
                make_private(Path(path))  # missing, it could not be hidden from a command
        for path in (*profile.hidden, *profile.own):
            tree.hide(path)
        for path in (*profile.shown, *profile.writable):
            tree.show(path)
        for path in host_sockets(by_modes=self._goes_by_modes, is_seen=tree.is_seen):
            tree.hide(path, for_long=False)
        for path in profile.kept:
            around = next((root for root in profile.writable if is_below(path, root)), "")
            if around and Path(path).is_symlink():  # nothing can be mounted on a link, so its folder is made read-only instead
                link, path = path, os.path.dirname(path)  # text all along
                if path == around:
                    raise ToolError(
                        f"sandbox denied: {link} is a link to a program that a hook or a server runs, and the sandbox cannot "
                        "prevent it from being replaced, so the command was not run."
                    )
            if around and os.path.lexists(path):
                for folder in folders_between(around, path) if names else ():
                    if not is_protected_name(folder):  # those are read-only completely
                        tree.keep_in_place(folder)
                tree.protect(path)
        for each in names.values():
            for path in each.kept_in_place:
                tree.keep_in_place(path)
            for path in each.present:
                tree.protect(path)
        return tree


class Cleanup:
    """Releases the resources of one command; may be called twice."""

    def __init__(self, fds: Iterable[int], ending: Ending, *, status_fd: int = -1) -> None:
        self._fds = list(fds)
        self._ending = ending
        self._status_fd = status_fd
        self._status = b""

    def has_begun(self) -> bool:
        """Reads bwrap's status file, which says how a command ended, not why bwrap failed."""
        if self._status_fd in self._fds:
            self._status = os.pread(self._status_fd, _MOST_STATUS_BYTES, 0)
        return b"exit-code" in self._status

    def __call__(self) -> None:
        self.has_begun()
        while self._fds:
            os.close(self._fds.pop())
        ending, self._ending = self._ending, do_nothing
        ending()


COMPILED_LAUNCHER = str(Path(__file__).with_name("namespace_launcher"))


def find_launcher(writable: Sequence[str]) -> str:
    """Path of the compiled launcher; empty if it was not compiled, or the workspace or another user could have made it."""
    launcher = os.path.realpath(COMPILED_LAUNCHER)
    can_be_changed = any(is_below(launcher, root) for root in writable)
    return launcher if _is_of_the_system(launcher) and not can_be_changed else ""


def can_use_namespaces(launcher: str = "") -> bool:
    """The system call filter is required: without it a command could make mounts itself."""
    return bool(launcher or bare_python()) and bool(seccomp.program(in_namespaces=True))


class Namespaces(Bubblewrap):
    """Builds the same mounts as bubblewrap; needs Linux 5.12 and user namespaces, or root."""

    backend = "namespaces"

    def __init__(self, profile: SandboxProfile, *, of_others: bool = False, launcher: str = "") -> None:
        """`launcher` is the compiled one; without it the launcher runs in Python."""
        super().__init__(launcher, profile, of_others=of_others)

    @cached_property
    def _inner(self) -> bytes:
        return pack_programs("calls", "namespace_launcher")

    def _line(self, descriptors: Descriptors) -> list[str]:
        line = [self._program]
        if not self._program:
            descriptors.code = in_memory(self._inner)
            line = line_for(descriptors.code)
        kept = ROOT_CAPABILITIES if self._of_others else 0
        fds = (descriptors.args_fd, descriptors.status, descriptors.watch, descriptors.filter)
        return [*line, *map(str, (*fds, kept)), *descriptors.last_words]
