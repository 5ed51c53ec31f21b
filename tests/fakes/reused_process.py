"""Runs one `wolo` after another in one forked process: a third of the time that a fork for each takes.

After each run the process must be as before: one thread, no children, the same open files, limits and signal mask. Otherwise it
ends as any process does, and the next run gets a new one.
"""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import gc
import logging
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence

from tests.fakes import fork_server
from tests.fakes.fork_server import Forked, Start, fork, receive, receive_start, send_start

MOST_RUNS = 50
"""A leak that is not looked for stays small."""
LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class _Series:
    """The process, and the connection to it."""

    def __init__(self, start: Start) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs, open(os.devnull, "wb") as nowhere:
            self.pid = fork(start, theirs.fileno(), nowhere.fileno(), nowhere.fileno())
        atexit.register(self._end)

    def start(self, start: Start, streams: Sequence[int]) -> None:
        send_start(self._socket, start, streams)

    def _end(self) -> None:
        """Once it is known that no more is to be run, or that nothing can be."""
        atexit.unregister(self._end)
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def wait(self, timeout_s: float | None) -> tuple[int, bool]:
        """The exit status of the run, and whether the process goes on; raises TimeoutError."""
        self._socket.settimeout(timeout_s)
        try:
            status, goes_on = struct.unpack("=q?", receive(self._socket, 9))
        except (EOFError, ConnectionResetError):
            status, goes_on = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), False
        if not goes_on:
            self._end()  # only then is free what it held
        return status, goes_on


_series: _Series | None = None
_in_use = threading.Lock()


def can_reuse(env: Mapping[str, str]) -> bool:
    return fork_server.can_fork(env) and "PYTHONPATH" not in env and not _in_use.locked()


class Reused(Forked):
    """A run in the process of the one before it; it can be waited for, and killed."""

    _has_lock = False

    def _begin(self, start: Start, streams: Sequence[int]) -> int:
        global _series
        _in_use.acquire()
        self._has_lock = True
        _series = _series or _Series(Start([], start.env, "/", start.umask, is_series=True))
        _series.start(start, streams)
        return _series.pid

    def wait(self, timeout: float | None = None) -> int:
        global _series
        if self.returncode is None and _series is not None:
            try:
                self.returncode, goes_on = _series.wait(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            _series = _series if goes_on else None
            self._has_lock = False
            _in_use.release()
        return int(self.returncode or 0)

    def poll(self) -> int | None:
        return self.returncode


# The process that runs


def run_series(connection: socket.socket) -> None:
    """Never returns."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    gc.freeze = lambda: None  # type: ignore[method-assign]  # what is frozen would never be freed, nor its files closed
    for _ in range(MOST_RUNS - 1):
        _run_one(connection, nowhere, is_last=False)
    _run_one(connection, nowhere, is_last=True)


def _run_one(connection: socket.socket, nowhere: int, *, is_last: bool) -> None:
    _place((nowhere, nowhere, nowhere))
    received = receive_start(connection)
    if received is None:
        os._exit(0)
    start, streams = received
    _place(streams)
    for stream in streams:
        os.close(stream)
    before = _state()
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    log_handlers, log_level = list(logging.root.handlers), logging.root.level
    fork_server.become(start)
    code = contextvars.copy_context().run(fork_server.run)
    goes_on = not is_last and threading.active_count() == 1
    if not goes_on:
        threading._shutdown()
    status = fork_server.finish(code)
    if goes_on:
        weakref.finalize._registered_with_atexit = weakref.finalize._shutdown = False  # type: ignore[attr-defined]
        gc.collect()
        goes_on = _state() == before
    if goes_on:
        for number, handler in handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        logging.root.handlers[:] = log_handlers
        logging.root.setLevel(log_level)
        tempfile.tempdir = None
        gc.enable()
        os.chdir("/")
    _place((nowhere, nowhere, nowhere))
    with contextlib.suppress(BrokenPipeError):
        connection.sendall(struct.pack("=q?", status, goes_on))
    if not goes_on:
        os._exit(0)


def _place(streams: Sequence[int]) -> None:
    for target, stream in enumerate(streams):
        os.dup2(stream, target)


def _state() -> object:
    """Everything that a run could leave behind."""
    try:
        has_children = bool(os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        has_children = False
    return (
        has_children,
        threading.enumerate(),
        {entry.name for entry in os.scandir("/proc/self/fd")},
        signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        [resource.getrlimit(limit) for limit in LIMITS],
        sys.gettrace(),
    )
