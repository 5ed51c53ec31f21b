"""Takes on the walls that wolo made, then becomes the command: `launcher RULESET FILTER NAME=VALUE… -- COMMAND…`.

Its text is handed to a bare Python as it was when wolo started, so it stands alone and imports next to nothing.
"""

import ctypes
import os
import resource
import sys

RESTRICT_SELF, NO_NEW_PRIVILEGES, SECCOMP, FILTER = 446, 38, 22, 2
DROP_FROM_BOUNDING_SET, CAPABILITY_VERSION = 24, 0x20080522
KEPT = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID."""
FILE_BYTES, PROCESSOR_S = 16 << 30, 14400


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))


def limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def take_on(ruleset: int, text: bytes) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    program = Program(len(text) // 8, text)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    limit(resource.RLIMIT_CPU, PROCESSOR_S)
    drop_capabilities(system)
    for failed in (
        system.prctl(NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))),
        system.syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)),
        system.prctl(SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)),
    ):
        if failed:
            sys.exit("The sandbox cannot be put up.")


def drop_capabilities(system: ctypes.CDLL) -> None:
    """What root may do beyond others leads around the walls (reading the memory of processes outside, for one).

    Only the rights to other people's files stay: the rules hold for these, too.
    """
    for capability in range(64):
        if not KEPT >> capability & 1:
            system.prctl(DROP_FROM_BOUNDING_SET, *map(ctypes.c_ulong, (capability, 0, 0, 0)))
    kept = KEPT if os.geteuid() == 0 else 0
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if system.capget(header, sets):
        sys.exit("The sandbox cannot be put up.")
    fewer = (ctypes.c_uint32 * 6)(sets[0] & kept, sets[1] & kept)
    if system.capset(header, fewer):
        sys.exit("The sandbox cannot be put up.")


def main() -> None:
    ruleset, filter_fd = int(sys.argv[1]), int(sys.argv[2])
    at = sys.argv.index("--")
    os.environ.update({name: value for name, _, value in (word.partition("=") for word in sys.argv[3:at])})
    command = sys.argv[at + 1 :]
    with open(filter_fd, "rb") as file:
        text = file.read()
    take_on(ruleset, text)
    os.close(ruleset)
    os.execvp(command[0], command)


main()
