"""System calls by which a launcher gives up rights before it becomes the command; imports as little as can be."""

import _signal as signal  # type: ignore[import-not-found]  # the rest of `signal` takes longer to load than a sandbox to build
import ctypes
import os
import resource
import struct

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
WRITE_FILE, REFER = 1 << 1, 1 << 13
NO_NEW_PRIVILEGES, SECCOMP, FILTER, DROP_FROM_BOUNDING_SET, AMBIENT, CLEAR = 38, 22, 2, 24, 47, 4
CAPABILITY_VERSION = 0x20080522
FILE_BYTES, PROCESSOR_S = 16 << 30, 14400
FAILED = "The sandbox cannot be put up"

system = ctypes.CDLL(None, use_errno=True)


def check(said: int) -> int:
    if said < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return said


def call(number: int, *arguments: object) -> int:
    """Numbers are passed whole, bytes as a pointer. Raises OSError."""
    passed = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    return check(int(system.syscall(ctypes.c_long(number), *passed)))


def control(*arguments: int) -> None:
    check(int(system.prctl(*map(ctypes.c_ulong, (*arguments, 0, 0, 0, 0)[:5]))))


def lower_limits() -> None:
    """No core file, a most for the size of a file and for processor time."""
    for which, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CPU, PROCESSOR_S),
    ):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def drop_capabilities(kept: int) -> None:
    """What root may do beyond others leads out of the sandbox (reading the memory of other processes, for one)."""
    for capability in range(64):
        if not kept >> capability & 1:
            system.prctl(DROP_FROM_BOUNDING_SET, *map(ctypes.c_ulong, (capability, 0, 0, 0)))
    system.prctl(AMBIENT, *map(ctypes.c_ulong, (CLEAR, 0, 0, 0)))
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    check(int(system.capget(header, sets)))
    fewer = (ctypes.c_uint32 * 6)(sets[0] & kept, sets[1] & kept)
    check(int(system.capset(header, fewer)))


def restrict(ruleset: int) -> None:
    """Landlock: from now on the rules hold."""
    control(NO_NEW_PRIVILEGES, 1)
    call(RESTRICT_SELF, ruleset, 0)


def write_only_below(paths: list[str]) -> None:
    """Landlock holds writing to these, where the kernel has it in its second version.

    Mounts that cannot be written keep files as they are, but a FIFO on one can be written, and whoever reads it is outside.
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
    """Also closes it; empty for -1."""
    if fd < 0:
        return b""
    with open(fd, "rb") as file:
        return file.read()


def become(command: list[str]) -> None:
    """Raises OSError where it cannot be started."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # Python has changed what they do
    os.execvp(command[0], command)


def complain(error: Exception) -> None:
    os.write(2, f"{FAILED}: {error}\n".encode(errors="replace"))
