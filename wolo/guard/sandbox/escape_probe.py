"""Proves that a sandbox holds: real attempts to escape, checked from outside, and one write that must work."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from wolo.errors import ToolError
from wolo.guard.sandbox.backend import SandboxFactory, mark_in_use, remove, remove_abandoned
from wolo.guard.sandbox.profile import SandboxProfile
from wolo.guard.sandbox.python_launcher import bare_python
from wolo.guard.sandbox_contract import MOST_TRIES, SandboxedCommand
from wolo.places import make_private

_PATIENCE_S = 5.0
_MAX_ERROR_BYTES = 4096
_ATTEMPTS = """
import os, socket, sys
folder, word, tcp, udp, name, victim = sys.argv[1:]
INET, UNIX, STREAM, DATAGRAM = socket.AF_INET, socket.AF_UNIX, socket.SOCK_STREAM, socket.SOCK_DGRAM

def write(path, mode):
    with open(folder + path, mode) as file:
        file.write(word)

def write_through_first_process():
    for fd in os.listdir("/proc/1/fd"):
        if os.path.exists(f"/proc/1/fd/{fd}{folder}/outside"):
            os.close(os.open(f"/proc/1/fd/{fd}{folder}/outside/new", os.O_CREAT | os.O_WRONLY))

def feed(path):
    os.write(os.open(folder + path, os.O_WRONLY | os.O_NONBLOCK), b"out")

def connect_beside(name):
    os.chdir(folder + "/own")  # addresses are short
    connect(UNIX, name)

def connect(family, address):
    with socket.socket(family, STREAM) as caller:
        caller.settimeout(1)
        caller.connect(address)

def send(port):
    with socket.socket(INET, DATAGRAM) as sender:
        sender.sendto(b"out", ("127.0.0.1", port))

def send_from_pair(address):
    socket.socketpair(UNIX, DATAGRAM)[0].sendto(b"out", address)

def set_mode(path, mode):
    write(path, "x")
    os.chmod(folder + path, mode)

def make(path, mode):
    os.close(os.open(folder + path, os.O_CREAT | os.O_WRONLY, mode))

def make_node(path, mode):
    os.mknod(folder + path, mode)

def lower_limit(pid):
    import resource
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))

def share_memory(key):
    import ctypes
    ctypes.CDLL(None).shmget(key, 4096, 0o1600)

def open_setting():
    os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    write("/inside/set", "x")

for attempt, *arguments in (
    (write, "/outside/new", "x"),
    (write, "/outside/kept", "w"),
    (write_through_first_process,),
    (feed, "/outside/fifo"),
    (connect, INET, ("127.0.0.1", int(tcp))),
    (send, int(udp)),
    (connect, UNIX, "\\0" + name),
    (send_from_pair, "\\0datagrams-" + name),
    (connect_beside, "socket"),
    (set_mode, "/inside/set-user", 0o4755),
    (set_mode, "/inside/set-group", 0o2755),
    (make, "/inside/made-set-user", 0o4755),
    (make_node, "/inside/node-set-user", 0o104755),
    (lower_limit, int(victim)),
    (os.kill, int(victim), 9),
    (share_memory, int(word[:6], 16)),
    (open_setting,),
):
    try:
        attempt(*arguments)
    except Exception:
        pass
write("/inside/new", "x")
"""
FIFOS, SIGNALS, SET_ID = "FIFOs of the host", "signals to other processes", "set-user-ID bits"


def find_gap(make: SandboxFactory, state: Path) -> tuple[str, tuple[str, ...]]:
    """Returns why the sandbox that `make` creates cannot be relied on; empty if it can.

    The second value names gaps that some backends cannot close; they are reported.
    """
    try:
        with _test_folders(state / "sandbox") as folder:
            return _try(make, folder)
    except OSError as error:
        return f"it could not be tested ({error.strerror or error})", ()


def _try(make: SandboxFactory, folder: Path) -> tuple[str, tuple[str, ...]]:
    word, name = os.urandom(8).hex(), f"wolo-{os.urandom(8).hex()}"
    with ExitStack() as stack:
        listeners = {
            "a TCP connection": stack.enter_context(_listening(socket.AF_INET, ("127.0.0.1", 0))),
            "a UDP packet": stack.enter_context(_listening(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)),
            "a socket of the host": stack.enter_context(_listening_in(folder / "own")),
        }
        if sys.platform == "linux":
            listeners["an abstract socket"] = stack.enter_context(_listening(socket.AF_UNIX, f"\0{name}"))
            datagrams = _listening(socket.AF_UNIX, f"\0datagrams-{name}", socket.SOCK_DGRAM)
            listeners["a datagram from a pair of sockets"] = stack.enter_context(datagrams)
        fifo_path = folder / "outside" / "fifo"
        os.mkfifo(fifo_path, 0o600)
        fifo = os.open(fifo_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        stack.callback(os.close, fifo)
        victim = stack.enter_context(_victim())
        limit = _limit_of(victim)
        tcp, udp, *_ = (listener.getsockname()[1] for listener in list(listeners.values())[:2])
        failure = _run(make, folder, [str(folder), word, str(tcp), str(udp), name, str(victim.pid)])
        within = folder / "inside" / "new"
        if not within.is_file() or within.read_text() != word:
            return f"no command could run in it{failure}", ()
        escapes: list[str] = []
        if (folder / "outside" / "new").exists() or (folder / "outside" / "kept").read_text() != "kept":
            escapes.append("a command in it could write outside the workspace")
        if (folder / "inside" / "set").exists():
            escapes.append("a command in it could change kernel settings")
        with suppress(OSError):
            key = str(int(word[:6], 16))
            if any(line.split()[:1] == [key] for line in Path("/proc/sysvipc/shm").read_text().splitlines()):
                escapes.append("a command in it shares memory with this machine")
        escapes += [f"{way} got out of it" for way, listener in listeners.items() if _was_reached(listener)]
        if limit != _limit_of(victim):
            escapes.append("a command in it could change the limits of another process")
        was_fed = False
        with suppress(BlockingIOError):
            was_fed = bool(os.read(fifo, 16))
        victim.communicate(b"\n")  # it ends by itself then, unless a signal is pending
        has_set_id = any(path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) for path in (folder / "inside").iterdir())
        gaps = (FIFOS if was_fed else "", SIGNALS if victim.returncode else "", SET_ID if has_set_id else "")
        return ", ".join(escapes), tuple(filter(None, gaps))


def _limit_of(victim: subprocess.Popen[bytes]) -> object:
    """Also of a process that was killed, as long as nothing waits for it."""
    return resource.prlimit(victim.pid, resource.RLIMIT_CORE) if sys.platform == "linux" else None


@contextmanager
def _victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside that waits for the end of its stdin."""
    argv, env = ["/bin/sh", "-c", "read line"], {"PATH": os.defpath}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=env, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _run(make: SandboxFactory, folder: Path, words: list[str]) -> str:
    """Error text if the attempts did not run."""
    work, own, state = (os.path.realpath(folder / name) for name in ("inside", "own", "state"))
    programs = tuple(os.path.realpath(place) for place in (sys.base_prefix, sys.prefix))
    profile = SandboxProfile(
        home=work + "/none", writable=(work,), hidden=(), own=(own,), shown=(), needed=programs, state=Path(state)
    )
    walls = make(profile)
    channel, proxy = socket.socketpair()
    proxy_fd = proxy.fileno() if walls.has_proxy else -1
    try:
        for _ in range(MOST_TRIES):
            command = [bare_python() or sys.executable, "-I", "-S", "-c", _ATTEMPTS, *words]
            enclosed = walls.wrap(command, Path(work), proxy_fd=proxy_fd)
            try:
                last_words = _last_words(enclosed)
            finally:
                enclosed.cleanup()
            if enclosed.has_begun():
                break
    except ToolError as error:
        return f": {error.message}"
    except TimeoutError:
        return f" within {_PATIENCE_S:g} s"
    finally:
        channel.close()
        proxy.close()
        walls.close()
    return f" ({last_words[:200]})" if last_words else ""


def _last_words(enclosed: SandboxedCommand) -> str:
    """Last line of stderr. Raises TimeoutError; everything started is killed."""
    until = time.monotonic() + _PATIENCE_S
    kept = b""
    process = subprocess.Popen(
        enclosed.argv,
        pass_fds=enclosed.pass_fds,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={"PATH": os.defpath},
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        while select.select([process.stderr], [], [], max(until - time.monotonic(), 0))[0]:
            if not (chunk := os.read(process.stderr.fileno(), _MAX_ERROR_BYTES)):
                process.wait(max(until - time.monotonic(), 0))
                return kept.decode(errors="replace").strip().rpartition("\n")[2]
            kept = (kept + chunk)[-_MAX_ERROR_BYTES:]
        raise TimeoutError
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    finally:
        process.stderr.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _test_folders(above: Path) -> Iterator[Path]:
    make_private(above)
    remove_abandoned(above)
    folder = above / f".probe-{os.urandom(6).hex()}"
    folder.mkdir(mode=0o700)
    lock = mark_in_use(folder)
    try:
        for each in (folder / "inside", folder / "outside", folder / "own", folder / "state"):
            each.mkdir(mode=0o700)
        (folder / "outside" / "kept").write_text("kept")
        yield folder
    finally:
        remove(folder)
        os.close(lock)


@contextmanager
def _listening(family: int, address: object, kind: int = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as listener:
        listener.setblocking(False)
        listener.bind(address)  # type: ignore[arg-type]  # matches the family
        if kind == socket.SOCK_STREAM:
            listener.listen(1)
        yield listener


@contextmanager
def _listening_in(folder: Path) -> Iterator[socket.socket]:
    """Uses the descriptor of the directory where possible, because socket addresses are short."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        place = f"/proc/self/fd/{fd}" if sys.platform == "linux" else str(folder)
        with _listening(socket.AF_UNIX, f"{place}/socket") as listener:
            yield listener
    finally:
        os.close(fd)


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_DGRAM:
            listener.recv(16)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True
