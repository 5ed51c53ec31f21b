"""A process that has loaded what an agent loads, and forks each agent of a run; run as a program, it ends with its socket.

It only imports: it has no thread, no connection, no file but the socket, and nothing that a start by exec would not have anew
(`random` seeds itself after a fork). An agent is forked twice, so that the process of the run adopts it as its child, whose
signals, exit status and end are those of a program started by exec.
"""

from __future__ import annotations

import errno
import gc
import importlib
import marshal
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from wolo.fleet.bounded_programs import binding
from wolo.operating_system import resource
from wolo.workspace.processes.process_tree import adopt_orphans

_SIZE = struct.Struct("=q")
_READY = b"\1"
_ANSWER_S = 30.0
_POLL_S = 0.002
_MOST_DESCRIPTORS = 1 << 20
_LIMITS = range(16)
"""All that Linux has (RLIM_NLIMITS), also the one that marks processes."""
_LOADED = """
wolo.__main__ wolo.cli.app wolo.cli.run wolo.cli.protocols.detection wolo.frontends.headless.headless_run
wolo.frontends.stream_json wolo.conversation.factory wolo.conversation.project_checks wolo.conversation.prompt_attachments
wolo.agent.finish.finish_check wolo.agent.sandbox_escape wolo.models.client wolo.models.http.http_transport
wolo.models.http.tls wolo.models.prompt_cache wolo.formats.openai_chat.encode wolo.formats.openai_chat.decode
wolo.tools.shell wolo.tools.todo wolo.guard.sandbox.file_restore wolo.guard.sandbox.escape_probe wolo.guard.denial_detection
wolo.guard.loss_detection wolo.guard.affected_files wolo.guard.shell.nested_commands wolo.workspace.checkpoints.tracker
wolo.workspace.git_branch wolo.extensions.custom_tools.tool_packages tree_sitter tree_sitter_bash ctypes random tempfile
tomllib
"""
"""Modules of a turn with a command; what an agent needs besides it loads itself."""


class ForkedAgent:
    """Has what is used of `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # it was waited for elsewhere; as `Popen` says
                pid, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout_s: float | None = None, /) -> int:
        end_at = None if timeout_s is None else time.monotonic() + timeout_s
        while (code := self.poll()) is None:
            if end_at is not None and time.monotonic() >= end_at:
                raise subprocess.TimeoutExpired("wolo", timeout_s or 0.0)
            time.sleep(_POLL_S)
        return code


class WarmParent:
    """The side of the run. The first agent is started anew: a run of one task needs no parent."""

    def __init__(self) -> None:
        self._count = 0
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def prepare(self) -> None:
        """Called before each agent, outside of the limits that are for it."""
        self._count += 1
        if self._count == 2 and sys.platform == "linux" and adopt_orphans():
            self._socket, theirs = socket.socketpair()
            self._socket.settimeout(_ANSWER_S)
            number = theirs.fileno()
            argv = [sys.executable, "-P", "-m", __name__, str(number)]
            streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            # in a group of its own, which no Ctrl-C reaches, and in this session: it is none of the run's commands
            self._process = subprocess.Popen(argv, pass_fds=[number], cwd="/", process_group=0, **streams)  # type: ignore[call-overload]
            theirs.close()

    def spawn(
        self, argv: Sequence[str], *, processors: Collection[int] = (), **options: Any
    ) -> subprocess.Popen[bytes] | ForkedAgent:
        """As `Popen` with these options, forked where that is possible."""
        try:
            if self._socket is not None and self._looks_ready():
                return ForkedAgent(self._fork(argv, processors, options))
        except (OSError, EOFError, struct.error):
            self.close()
        return subprocess.Popen(argv, **options)

    def _looks_ready(self) -> bool:
        assert self._socket is not None
        if not self._is_ready and select.select([self._socket], [], [], 0)[0]:
            self._is_ready = self._socket.recv(1) == _READY
        return self._is_ready

    def _fork(self, argv: Sequence[str], processors: Collection[int], options: Mapping[str, Any]) -> int:
        assert self._socket is not None
        umask = os.umask(0o077)
        os.umask(umask)
        limits = [(kind, *resource.getrlimit(kind)) for kind in _LIMITS]
        words = [*argv[argv.index("wolo") + 1 :]]
        request = (words, dict(options["env"]), os.fspath(options["cwd"]), umask, limits, list(processors), os.getpid())
        body = marshal.dumps(request)
        streams = [options[name] for name in ("stdin", "stdout", "stderr")]
        socket.send_fds(self._socket, [_SIZE.pack(len(body))], streams)
        self._socket.sendall(body)
        (pid,) = _SIZE.unpack(_receive(self._socket, _SIZE.size))
        if pid <= 0:
            raise OSError(-pid, os.strerror(-pid))
        return int(pid)

    def close(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.kill()
            self._process.wait()
        self._socket, self._is_ready = None, False


class _Request(Struct, frozen=True):
    words: list[str]
    env: dict[str, str]
    cwd: str
    umask: int
    limits: list[tuple[int, int, int]]
    processors: list[int]
    parent: int


def _serve(connection: socket.socket) -> None:
    """Returns in each fork."""
    connection.sendall(_READY)
    while True:
        head, streams, *_ = socket.recv_fds(connection, _SIZE.size, 3)
        if not head:
            os._exit(0)
        (size,) = _SIZE.unpack(head + _receive(connection, _SIZE.size - len(head)))
        request = _Request(*marshal.loads(_receive(connection, size)))  # from the process that started this one
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            pid, answer = -1, _SIZE.pack(-(error.errno or 1))
        if pid == 0 and _fork_again(request):
            _become(request, streams)
            os.write(writing, _SIZE.pack(os.getpid()))
            os.closerange(3, _MOST_DESCRIPTORS)
            return
        for descriptor in (writing, *streams):
            os.close(descriptor)
        if pid > 0:
            os.waitpid(pid, 0)
            answer = os.read(reading, _SIZE.size) or _SIZE.pack(-errno.EIO)
        os.close(reading)
        connection.sendall(answer)


def _fork_again(request: _Request) -> bool:
    """In a process between this one and the agent, whose end gives the agent to the process of the run. Does not return in it."""
    for kind, *limits in request.limits:
        if resource.getrlimit(kind) != tuple(limits):
            resource.setrlimit(kind, (limits[0], limits[1]))
    between = os.getpid()
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        os._exit(1)
    while os.getppid() == between:
        time.sleep(_POLL_S / 10)
    return True


def _become(request: _Request, streams: Sequence[int]) -> None:
    """What exec and the start of an interpreter would have set, but for the limits, which are inherited."""
    os.setsid()
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
    os.umask(request.umask)
    if bind := binding(request.parent, request.processors):
        bind()
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    main_file = importlib.import_module("wolo.__main__").__file__ or ""
    sys.argv = [main_file, *request.words]
    sys.orig_argv = [sys.executable, "-P", "-m", "wolo", *request.words]


def _receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes; raises EOFError when the other side has ended."""
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)


def main() -> None:
    for name in _LOADED.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    importlib.import_module("wolo.__main__").main()


if __name__ == "__main__":
    main()
