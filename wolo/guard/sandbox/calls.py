"""System calls that drop rights before a launcher becomes the command.

A launcher runs for every command, so it uses the modules that `os`, `signal`, `struct` and `ctypes` are made of: these themselves
take as long to load as Python takes to start.
"""

import _ctypes
import _signal as signal  # type: ignore[import-not-found]
import _struct as struct
import errno
import posix as os
import resource
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE, REFER = 1 << 1, 1 << 13
NO_NEW_PRIVILEGES, SECCOMP, FILTER, DROP_FROM_BOUNDING_SET, AMBIENT, CLEAR = 38, 22, 2, 24, 47, 4
CAPABILITY_VERSION = 0x20080522
FILE_BYTES, PROCESSOR_S = 16 << 30, 14400
FAILED = "Cannot set up the sandbox"
NOW = 2
"""RTLD_NOW"""
CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x8, 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, UNMOUNT, OVERFLOW = 0x400, 0x800, 0x2000, 0x4000
WATCHED = CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
"""Events of names in a folder, and its own."""
DEFAULT_PATH = b"/bin:/usr/bin"
PROXY_PORT = 61128
"""That of `sandbox_contract`."""
CHANGED_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)
"""Python changes their default."""


class Integer(_ctypes._SimpleCData):  # type: ignore[type-arg]  # generic in its description only
    _type_ = "i"


class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]  # the same
    _type_ = "l"


class Character(_ctypes._SimpleCData):  # type: ignore[type-arg]  # the same
    _type_ = "c"


class LibraryFunction(_ctypes.CFuncPtr):
    """A function of the C library. Takes integers, `Long`, None, and bytes and buffers as pointers."""

    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = Integer


functions: dict[str, LibraryFunction] = {}


def function(name: str) -> LibraryFunction:
    """Raises OSError if the C library lacks it."""
    if name not in functions:
        functions[name] = LibraryFunction(_ctypes.dlsym(_ctypes.dlopen(None, NOW), name))  # type: ignore[arg-type]  # None: this program
    return functions[name]


def buffer_of(data: bytes) -> "_ctypes.Array":  # type: ignore[type-arg]  # generic in its description only
    """A changeable copy in memory."""
    buffer: _ctypes.Array = type("Buffer", (_ctypes.Array,), {"_type_": Character, "_length_": len(data)})()  # type: ignore[type-arg]  # the same
    buffer.raw = data
    return buffer


system_call, process_control = function("syscall"), function("prctl")


def check(result: int) -> int:
    if result < 0:
        number = _ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def attempt(number: int, *arguments: object) -> int:
    """Returns a negative number on failure."""
    converted = (Long(each) if isinstance(each, int) else each for each in arguments)
    return int(system_call(Long(number), *converted))


def call(number: int, *arguments: object) -> int:
    """Passes integers as longs and bytes as a pointer. Raises OSError."""
    return check(attempt(number, *arguments))


def new_inotify() -> int:
    """A descriptor of events that does not block. Raises OSError."""
    return check(int(function("inotify_init1")(Long(os.O_CLOEXEC | os.O_NONBLOCK))))


def watch_folder(inotify: int, folder: str) -> int:
    """Returns its number in events. Raises OSError."""
    return check(int(function("inotify_add_watch")(Long(inotify), encode_text(folder), Long(WATCHED))))


def control(*arguments: int, is_optional: bool = False) -> None:
    result = int(process_control(*map(Long, (*arguments, 0, 0, 0, 0)[:5])))
    if not is_optional:
        check(result)


def encode_text(text: str) -> bytes:
    return text.encode(sys.getfilesystemencoding(), "surrogateescape")


def decode_words(data: bytes) -> list[str]:
    """The words of a list in which each ends with a NUL."""
    return [word.decode(sys.getfilesystemencoding(), "surrogateescape") for word in data.split(b"\0")[:-1]]


def lower_limits() -> None:
    """Disables core files and limits file size and processor time."""
    for which, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_CPU, PROCESSOR_S)):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def drop_capabilities(remaining: int) -> None:
    """Drops root's capabilities, which lead out of the sandbox (for example by reading other processes' memory)."""
    for capability in range(64):
        if not remaining >> capability & 1:
            control(DROP_FROM_BOUNDING_SET, capability, is_optional=True)
    control(AMBIENT, CLEAR, is_optional=True)
    header, sets = struct.pack("=Ii", CAPABILITY_VERSION, 0), buffer_of(bytes(24))
    check(int(function("capget")(header, sets)))
    effective, permitted, *_ = struct.unpack("=6I", sets.raw)
    check(int(function("capset")(header, struct.pack("=6I", effective & remaining, permitted & remaining, 0, 0, 0, 0))))


def restrict(ruleset: int) -> None:
    """Applies Landlock rules from now on."""
    control(NO_NEW_PRIVILEGES, 1)
    call(RESTRICT_SELF, ruleset, 0)


def write_only_below(paths: list[str]) -> None:
    """Restricts writing to these paths with Landlock, version 2 or later.

    Read-only mounts protect files, but a FIFO on one stays writable, and its reader is outside.
    """
    if attempt(CREATE_RULESET, None, 0, 1) < 2:
        return
    handled = struct.pack("=Q", WRITE_FILE | REFER)
    ruleset = call(CREATE_RULESET, handled, len(handled), 0)
    for path, rights in (("/", REFER), *((path, WRITE_FILE) for path in paths)):
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        call(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    restrict(ruleset)
    os.close(ruleset)


def close_calls(text: bytes) -> None:
    control(NO_NEW_PRIVILEGES, 1)
    program = buffer_of(text)
    packed = buffer_of(struct.pack("@HP", len(text) // 8, _ctypes.addressof(program)))
    control(SECCOMP, FILTER, _ctypes.addressof(packed))


def read_whole(fd: int) -> bytes:
    """Closes the descriptor; returns nothing for -1."""
    if fd < 0:
        return b""
    with open(fd, "rb") as file:
        return file.read()


def read_filter(fd: int) -> bytes:
    """As `read_whole`. Raises OSError for one that is empty: the command would have every system call."""
    text = read_whole(fd)
    if fd >= 0 and not text:
        raise OSError(22, "The filter of system calls is empty")
    return text


def report_begin(watch: int) -> None:
    """Closes the descriptor: the command must not have it."""
    if watch >= 0:
        os.write(watch, b"r")
        os.close(watch)


def hand_over_listener(proxy: int) -> None:
    """Listens where the command finds its proxy, and gives the socket to wolo, which accepts the connections from outside.

    Closes the descriptor: the command must not have it. -1: no proxy.
    """
    if proxy < 0:
        return
    import _socket  # noqa: PLC0415  # only for commands with a proxy

    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, proxy)
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", PROXY_PORT))
    listener.listen(128)
    channel.sendmsg([b"l"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener.fileno()))])
    listener.close()
    channel.close()


def become(command: list[str], variables: dict[str, str]) -> None:
    """Raises OSError if the command cannot be started."""
    for number in CHANGED_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    find_and_start(os.execve, command, variables)


def spawn(command: list[str], variables: dict[str, str]) -> int:
    """Starts a child without copying this process; returns its id. Raises OSError."""

    def start(path: bytes, arguments: list[str], environment: dict[bytes, bytes]) -> int:
        return os.posix_spawn(path, arguments, environment, setsigdef=CHANGED_SIGNALS)

    return find_and_start(start, command, variables)


def find_and_start(start, command: list[str], variables: dict[str, str]) -> int:  # type: ignore[no-untyped-def]  # typing is slow to load
    environment = {**os.environ, **{encode_text(name): encode_text(value) for name, value in variables.items()}}
    program, failure = encode_text(command[0]), OSError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    folders = [b""] if b"/" in program else environment.get(b"PATH", DEFAULT_PATH).split(b":")
    for folder in folders:
        try:
            return start(b"/".join((folder, program)) if folder else program, command, environment)  # type: ignore[no-any-return]
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                failure = error
    raise failure


def complain(error: Exception) -> None:
    os.write(2, f"{FAILED}: {error}\n".encode(errors="replace"))


def stamp_of(path: str) -> tuple[int, ...]:
    """What another file in its place differs by; empty for a missing path.

    The next file may get the number of a removed one (ext4 does), so the time of the last change counts too.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_ctime_ns
