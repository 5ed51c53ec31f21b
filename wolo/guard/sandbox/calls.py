"""System calls that drop rights before a launcher becomes the command. Imports as little as possible."""

import _signal as signal  # type: ignore[import-not-found]  # `signal` itself is slow to load
import ctypes
import os
import resource
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE, REFER = 1 << 1, 1 << 13
NO_NEW_PRIVILEGES, SECCOMP, FILTER, DROP_FROM_BOUNDING_SET, AMBIENT, CLEAR = 38, 22, 2, 24, 47, 4
CAPABILITY_VERSION = 0x20080522
FILE_BYTES, PROCESSOR_S = 16 << 30, 14400
FAILED = "Cannot set up the sandbox"

system = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def call(number: int, *arguments: object) -> int:
    """Passes integers as longs and bytes as a pointer. Raises OSError."""
    converted = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return check(int(system.syscall(ctypes.c_long(number), *converted)))


def control(*arguments: int) -> None:
    check(int(system.prctl(*map(ctypes.c_ulong, (*arguments, 0, 0, 0, 0)[:5]))))


def lower_limits() -> None:
    """Disables core files and limits file size and processor time."""
    for which, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CPU, PROCESSOR_S),
    ):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def drop_capabilities(remaining: int) -> None:
    """Drops root's capabilities, which lead out of the sandbox (for example by reading other processes' memory)."""
    for capability in range(64):
        if not remaining >> capability & 1:
            system.prctl(DROP_FROM_BOUNDING_SET, *map(ctypes.c_ulong, (capability, 0, 0, 0)))
    system.prctl(AMBIENT, *map(ctypes.c_ulong, (CLEAR, 0, 0, 0)))
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    check(int(system.capget(header, sets)))
    fewer = (ctypes.c_uint32 * 6)(sets[0] & remaining, sets[1] & remaining)
    check(int(system.capset(header, fewer)))


def restrict(ruleset: int) -> None:
    """Applies Landlock rules from now on."""
    control(NO_NEW_PRIVILEGES, 1)
    call(RESTRICT_SELF, ruleset, 0)


def write_only_below(paths: list[str]) -> None:
    """Restricts writing to these paths with Landlock, version 2 or later.

    Read-only mounts protect files, but a FIFO on one stays writable, and its reader is outside.
    """
    if system.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1)) < 2:
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
    program = ctypes.create_string_buffer(text, len(text))
    packed = ctypes.create_string_buffer(struct.pack("@HP", len(text) // 8, ctypes.addressof(program)))
    check(int(system.prctl(SECCOMP, *map(ctypes.c_ulong, (FILTER, ctypes.addressof(packed), 0, 0)))))


def read_whole(fd: int) -> bytes:
    """Closes the descriptor; returns nothing for -1."""
    if fd < 0:
        return b""
    with open(fd, "rb") as file:
        return file.read()


def become(command: list[str]) -> None:
    """Raises OSError if the command cannot be started."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # Python changes their default
    os.execvp(command[0], command)


def complain(error: Exception) -> None:
    os.write(2, f"{FAILED}: {error}\n".encode(errors="replace"))
