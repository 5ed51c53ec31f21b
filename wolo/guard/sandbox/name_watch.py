"""Starts and asks the process that watches protected names while sandboxed commands run."""

from __future__ import annotations

import errno
import marshal
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.sandbox.python_launcher import bare_python, line_for, pack_programs
from wolo.operating_system import hold_open, in_memory
from wolo.places import make_private

_PATIENCE_S = 30.0
_PAUSE_S = 0.002
_MOST_BYTES = 1 << 18
_MOST_NAMED = 3
_NO_WATCH = "sandbox denied: protected names cannot be watched ({reason}), so the command was not run."
_ALL_TAKEN = "all watches that fs.inotify.max_user_watches allows are taken; other programs hold them, or raise it"
_UNREACHABLE = (errno.EACCES, errno.ENOENT, errno.ENOTDIR)
"""Errors of a folder that this user cannot list, so that only root could lift a mount in it."""
_WRITTEN = "{path} was written outside, which the sandbox cannot protect from a command that runs already"
_DIED = "the process that watches protected names has ended"


class Watched(Struct, frozen=True):
    tops: tuple[str, ...] = ()
    """Directories in which every protected name counts."""
    below: tuple[str, ...] = ()
    """Folders in them, such as `.github`, in which some names count."""
    awaited: tuple[str, ...] = ()
    """Other paths that are missing and must not appear."""
    covered: tuple[str, ...] = ()
    """Paths that mounts hold."""
    known: tuple[str, ...] = ()
    """Protected names that are there."""
    is_apart: bool = True
    """The command has process ids of its own."""
    is_job: bool = False
    """Ended at once: nobody waits for what it writes."""


class Seen(Struct, frozen=True):
    why: str = ""
    """The reason why the command was ended; empty if it was not."""
    seized: tuple[tuple[str, str], ...] = ()
    """Each path that was set aside, and its place now."""
    lost: tuple[str, ...] = ()
    """Paths that could not be set aside."""
    has_ended: bool = False
    """The first process of the command has ended."""


class Watch:
    """The watch over one command."""

    def __init__(self, channel: socket.socket, forget: Callable[[Watch], None]) -> None:
        self._channel = channel
        self._forget = forget
        self._seen = Seen()
        self._lock = threading.Lock()
        self.allowed: set[str] = set()
        """Paths that wolo itself wrote meanwhile."""

    @property
    def fd(self) -> int:
        """The launcher tells by this descriptor that the command begins."""
        return self._channel.fileno()

    def why(self) -> str:
        """The reason why the command must not run on; empty as long as it may."""
        with self._lock:
            while self._channel.fileno() >= 0 and self._take(socket.MSG_DONTWAIT) is False:
                pass
        return self._seen.why

    def why_and_where(self) -> str:
        """With the places of what was set aside: nobody is asked about what a job made."""
        why, places = self.why(), ", ".join(place for _, place in self._seen.seized[:_MOST_NAMED])
        return f"{why}; it was set aside as {places}" if places else why

    def give_way(self, path: str) -> None:
        """Ends the command before wolo itself writes this path."""
        self.allowed.add(path)
        until = time.monotonic() + _PATIENCE_S
        with suppress(OSError):
            self._channel.send(b"k" + b"\0".join(map(os.fsencode, (path, _WRITTEN.format(path=path)))))
            while self.why() != _DIED and not self._seen.has_ended and self._channel.fileno() >= 0 and time.monotonic() < until:
                time.sleep(_PAUSE_S)

    def finish(self) -> Seen:
        """Call once when everything that the command started has ended. Must not raise."""
        with self._lock:
            self._channel.settimeout(_PATIENCE_S)
            try:
                self._channel.send(b"e")
                while self._take() is False:
                    pass
            except OSError:
                self._seen = Seen(_DIED, self._seen.seized, self._seen.lost)
            self._forget(self)
            self._channel.close()
            return self._seen

    def close(self) -> None:
        self.finish()

    def _take(self, flags: int = 0) -> bool | None:
        """Receives a report: tells whether it is the last; None if there is none yet."""
        try:
            data = self._channel.recv(_MOST_BYTES, flags)
        except BlockingIOError:
            return None
        if not data:
            self._seen = Seen(_DIED, self._seen.seized, self._seen.lost)
            return True
        why, seized, lost, has_ended, is_last = marshal.loads(data)
        self._seen = Seen(why, tuple(seized), tuple(lost), has_ended)
        return bool(is_last)


class WatchProcess:
    """The process that watches for one conversation, started for the first command."""

    def __init__(self, state: Path) -> None:
        self._aside = state / "put-aside"
        self._text = pack_programs("..protected_paths", "calls", "watcher")
        self._process: subprocess.Popen[bytes] | None = None
        self._control = self._inotify = -1
        self._running: list[Watch] = []

    def add(self, folders: Iterable[str], needed: Sequence[str]) -> dict[int, str]:
        """Watches these folders, and the `needed` ones, from now on; returns their numbers.

        Raises OSError if one that is needed cannot be watched, and ToolError if nothing can be.
        """
        from wolo.guard.sandbox.calls import watch_folder  # noqa: PLC0415  # for the first command

        self._begin()
        numbers: dict[int, str] = {}
        for folder in dict.fromkeys((*needed, *folders)):
            try:
                numbers[watch_folder(self._inotify, folder)] = folder
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise ToolError(_NO_WATCH.format(reason=_ALL_TAKEN)) from error
                if folder in needed or error.errno not in _UNREACHABLE:
                    raise OSError(error.errno, error.strerror, folder) from error
        return numbers

    def drain(self) -> None:
        """Forgets what happened while no command ran."""
        while self._inotify >= 0 and not self._running:
            try:
                os.read(self._inotify, _MOST_BYTES)
            except BlockingIOError:
                return

    def watch(self, watched: Watched, folders: dict[int, str]) -> Watch:
        """Raises OSError."""
        from wolo.guard.sandbox.calls import stamp_of  # noqa: PLC0415  # for the first command

        fields = {name: getattr(watched, name) for name in watched.__struct_fields__}
        fields["covered"] = {path: stamp_of(path) for path in watched.covered}
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        its.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        payload = marshal.dumps({"folders": folders, **fields}, 2)
        try:
            with its, hold_open(in_memory(payload)) as fd, socket.socket(fileno=os.dup(self._control)) as control:
                socket.send_fds(control, [b"b"], [fd, its.fileno()])
        except OSError:
            mine.close()
            raise
        watch = Watch(mine, self._running.remove)
        self._running.append(watch)
        return watch

    def give_way(self, path: str) -> None:
        """Callable from any thread."""
        for watch in tuple(self._running):
            watch.give_way(path)

    def close(self) -> None:
        process, self._process = self._process, None
        for fd in (self._inotify, self._control):  # the last to close a watch waits for it
            if fd >= 0:
                os.close(fd)
        self._control = self._inotify = -1
        if process is None:
            return
        threading.Thread(target=process.wait, daemon=True).start()  # the kernel takes some 10 ms to end a watch

    def _begin(self) -> None:
        """Starts the process, again if it has ended. Raises ToolError and OSError."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        python = bare_python()
        if not python:
            raise ToolError(_NO_WATCH.format(reason="there is no Python to start"))
        from wolo.guard.sandbox.calls import new_inotify  # noqa: PLC0415  # for the first command

        make_private(self._aside)
        try:
            self._inotify = new_inotify()
        except OSError as error:
            raise ToolError(_NO_WATCH.format(reason=error.strerror)) from error
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with mine, its, hold_open(in_memory(self._text)) as code:
            self._process = subprocess.Popen(
                [*line_for(code), str(its.fileno()), str(self._inotify), str(self._aside)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                pass_fds=(its.fileno(), self._inotify, code),
                process_group=0,  # in wolo's session, unlike what a command leaves behind
            )
            self._control = mine.detach()
