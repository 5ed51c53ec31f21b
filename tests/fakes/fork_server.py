"""Starts `wolo` by forking a process that has imported it already: a quarter of the time that a new interpreter takes.

A fork has its own process id, environment, directory, standard streams, terminal and signals. It is a child of the test process,
which waits for it and kills it like any other. It differs from a true start in one way: all modules are loaded. Tests of a start
(imports, the installed script, interpreter options, a signal in the first moments) run a new interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import fcntl
import gc
import importlib
import inspect
import io
import os
import pickle
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

MODULE = "tests.fakes.fork_server"
READ_AT_START = ("PYTHON", "LC_", "LANG")
"""Beginnings of environment names that Python reads when it starts and never again."""
FOLLOWED = ("PYTHONPATH", "PYTHON_KEYRING_BACKEND")
"""Names among them that a fork follows: it adds to its path, and runs a `sitecustomize.py` that is there."""
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_PARENT = 0x8000
"""The new process is a child of the caller's parent (clone(2))."""
ALSO_LOADED = (
    *("anyio._backends._asyncio", "encodings.idna", "encodings.utf_8_sig", "httpcore2", "httpx2", "rapidfuzz", "rich.markdown"),
    *("prompt_toolkit.key_binding.bindings.search", "ssl", "tomlkit", "tree_sitter", "tree_sitter_bash", "truststore", "typer"),
    "typer._click.decorators",
)
"""Modules of libraries that `wolo`, or the libraries themselves, import inside functions."""
NOT_LOADED = (
    "wolo.__main__",
    "wolo.contrib.harbor_agent",
    "wolo.guard.sandbox.launcher",
    "wolo.guard.sandbox.namespace_launcher",
    "wolo.guard.sandbox.watcher",
    "wolo.models.local.embedded_server",
)
"""Scripts that run when they are imported, and a module for programs that load wolo."""
PROBES = "sandbox-probes"
"""The file in the cache that says which sandbox has passed."""

_environment_at_start = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""As every test begins (`tests/conftest.py`)."""


@dataclass(frozen=True)
class Start:
    """A run to fork; its standard streams are sent with it as descriptors."""

    args: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    umask: int
    leads_session: bool = False
    owns_terminal: bool = False
    """Standard input is a terminal, and controls the session that the run leads."""
    is_series: bool = False
    """The fork runs what comes through standard input, a socket: see `tests/fakes/reused_process.py`."""


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a fork behaves as a new interpreter would in this environment, on this machine."""
    is_linux = sys.platform == "linux" and os.uname().machine in SYS_CLONE
    return is_linux and _read_at_start(env) == _read_at_start(_environment_at_start)


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START) and name not in FOLLOWED}


class Forked(subprocess.Popen[bytes]):
    """A forked run of `wolo`, with everything that `Popen` offers."""

    def __init__(self, args: Sequence[str], **options: Any) -> None:
        self._start_args = args
        super().__init__([sys.executable, "-m", "wolo", *args], **options)

    def _begin(self, start: Start, streams: Sequence[int]) -> int:
        """The process id."""
        return fork(start, *streams)

    def _execute_child(self, *values: Any) -> None:
        """Takes the place of fork and exec in `Popen`, whose argument names are the same from CPython 3.11 on."""
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *values).arguments
        streams = [own if fd == -1 else fd for own, fd in enumerate((given["p2cread"], given["c2pwrite"], given["errwrite"]))]
        cwd = str(Path(given["cwd"] or "").absolute())
        start = Start(self._start_args, dict(given["env"]), cwd, current_umask(), leads_session=given["start_new_session"])
        self.pid = self._begin(start, streams)
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))


class _Client:
    """The connection to the process that forks, which ends with this one."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={**_environment_at_start, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        theirs.close()
        self._lock = threading.Lock()
        self.is_usable = True
        atexit.register(self._end)

    def fork(self, start: Start, stdin: int, stdout: int, stderr: int) -> int:
        with self._lock:
            try:
                send_start(self._socket, start, [stdin, stdout, stderr])
                (pid,) = struct.unpack("=q", receive(self._socket, 8))
            except BaseException:  # the time of a test is over: the next start would get this answer
                self.is_usable = False
                self._socket.close()
                raise
        return int(pid)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()


_client: _Client | None = None
_client_lock = threading.Lock()


def fork(start: Start, stdin: int, stdout: int, stderr: int) -> int:
    """The process id of a new run, a child of this process."""
    global _client
    if not Path(start.cwd).is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), start.cwd)
    with _client_lock:
        if _client is None or not _client.is_usable:
            _client = _Client()
    return _client.fork(start, stdin, stdout, stderr)


def current_umask() -> int:
    """The file mode bits that new files of this process lack; reading them takes writing them."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def send_start(connection: socket.socket, start: Start, streams: Sequence[int]) -> None:
    said = pickle.dumps(start)
    socket.send_fds(connection, [struct.pack("=Q", len(said))], streams)
    connection.sendall(said)


def receive_start(connection: socket.socket) -> tuple[Start, list[int]] | None:
    """With the descriptors of its standard streams; None at the end of the connection."""
    size, streams, *_ = socket.recv_fds(connection, 8, 3)
    if not size:
        return None
    size += receive(connection, 8 - len(size))
    return pickle.loads(receive(connection, struct.unpack("=Q", size)[0])), streams


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly so many bytes; raises EOFError when the other side has ended."""
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise EOFError("the fork server has ended")
        received += piece
    return bytes(received)


# The process that forks


def _serve(connection: socket.socket) -> Start:
    """Forks a run for each request; returns in the fork, with its streams in place. Ends with the connection."""
    clone = _clone_function()
    while True:
        received = receive_start(connection)
        if received is None:
            os._exit(0)
        start, streams = received
        pid = clone()
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            for target, stream in enumerate(streams):
                os.dup2(stream, target)
            os.closerange(3, 4_096)
            return start
        for stream in streams:
            os.close(stream)
        connection.sendall(struct.pack("=q", pid))


def _clone_function() -> Any:
    """Returns 0 in the new process. `os.fork` cannot make a sibling."""
    syscall = ctypes.PyDLL(None).syscall
    syscall.restype = ctypes.c_long
    number, flags = SYS_CLONE[os.uname().machine], CLONE_PARENT | signal.SIGCHLD
    return lambda: syscall(ctypes.c_long(number), ctypes.c_long(flags), *(ctypes.c_long(0) for _ in range(4)))


def become(start: Start) -> None:
    """What exec and the start of an interpreter would have set."""
    if start.leads_session:
        os.setsid()
    if start.owns_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.umask(start.umask)
    os.chdir(start.cwd)
    os.environ.clear()
    os.environ.update(start.env)
    time.tzset()
    sys.argv = [str(Path(importlib.import_module("wolo").__file__ or "").with_name("__main__.py")), *start.args]
    sys.orig_argv = [sys.executable, "-m", "wolo", *start.args]
    sys.stdin, sys.stdout, sys.stderr = (_text_stream(fd, like) for fd, like in enumerate((sys.stdin, sys.stdout, sys.stderr)))
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    added = [folder for folder in start.env.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:0] = added
    if any((Path(folder) / "sitecustomize.py").exists() for folder in added):
        sys.modules.pop("sitecustomize", None)
        importlib.import_module("sitecustomize")


def _text_stream(fd: int, like: TextIO) -> TextIO:
    """A standard stream as the interpreter makes it; encoding and errors are those of its own."""
    binary = open(fd, "rb" if fd == 0 else "wb", closefd=False)  # noqa: SIM115  # lives as long as the process
    is_line_buffered = fd == 2 or binary.isatty()
    stream = io.TextIOWrapper(binary, like.encoding, like.errors, newline="\n", line_buffering=is_line_buffered)
    stream.mode = "r" if fd == 0 else "w"
    return stream


def _load() -> None:
    import wolo

    for found in pkgutil.walk_packages(wolo.__path__, "wolo."):
        if found.name not in NOT_LOADED:
            importlib.import_module(found.name)
    for name in ALSO_LOADED:
        importlib.import_module(name)


def _remember_probes() -> None:
    """The sandbox is probed once for all forks: each finds in its new home what a first start there would have left."""
    from wolo.guard.sandbox import selection
    from wolo.places import make_private

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work").mkdir()
        selection.find((folder / "work",), folder / "state", folder)
        known = (folder / PROBES).read_bytes() if (folder / PROBES).exists() else b""
    tempfile.tempdir = None  # a fork has its own
    prove = selection._prove

    def remembering(make: Any, what: str, state: Path, cache: Path | None, **options: Any) -> Any:
        if cache is not None and not (cache / PROBES).exists():
            with contextlib.suppress(OSError):
                make_private(cache)
                (cache / PROBES).touch(0o600)
                (cache / PROBES).write_bytes(known)
        return prove(make, what, state, cache, **options)

    selection._prove = remembering


def main() -> None:
    _load()
    _remember_probes()
    gc.collect()
    gc.freeze()
    import tests.fakes.reused_process  # noqa: F401  # a fork cannot find it

    os.environ.pop("PYTHONPATH")
    sys.path.remove(str(Path(__file__).parents[2]))
    start = _serve(socket.socket(fileno=int(sys.argv[1])))
    if start.is_series:
        from tests.fakes.reused_process import run_series

        run_series(socket.socket(fileno=os.dup(0)))
    become(start)
    code = run()
    threading._shutdown()
    os._exit(finish(code))


def run() -> object:
    """Runs `wolo`; returns what it leaves with."""
    from wolo.__main__ import main as run_main

    try:
        run_main()
    except SystemExit as end:
        return end.code
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def finish(code: object) -> int:
    """Ends as an interpreter does, but for taking apart the modules, which costs more than most runs; the exit status."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120  # as CPython does
    if isinstance(code, str):
        print(code, file=sys.stderr, flush=True)
    return code & 0xFF if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    main()
