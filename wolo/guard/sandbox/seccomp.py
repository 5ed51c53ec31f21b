"""Builds the filter of system calls that commands do not need, in classic BPF."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from wolo.operating_system import os
from wolo.workspace.processes.process_table import MARK_LIMIT

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN, _MASK = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_AT_NUMBER, _AT_MACHINE, _AT_ARGUMENTS = 0, 4, 16
"""Offsets in the kernel's call data; the lower half of each argument is used."""
_NEW_NAMESPACES = 0x7E020000
_FAKED_KEYS = (0x5412, 0x541C)
"""ioctl TIOCSTI and TIOCLINUX, which fake keyboard input."""
_UNIX, _STREAM, _SEQUENCE = 1, 1, 5
_FAMILIES = (_UNIX, 2, 10, 16)
"""Socket families that a network namespace confines: Unix, IPv4, IPv6, netlink. Others (vsock) lead out of it."""
_KIND_OF_SOCKET = 0xF
_X32 = 0x40000000
_SET_ID_BITS = 0o6000
_CREATES = os.O_CREAT | getattr(os, "O_TMPFILE", os.O_CREAT) & ~os.O_DIRECTORY


class _Numbers(Struct, frozen=True):
    """Call numbers on one architecture; -1 if a call does not exist."""

    machine: int
    refused: str
    shared: str
    """Memory, semaphores and queues that all processes share by number or name."""
    of_others: str
    """Calls whose first argument is another process, or 0 for the caller."""
    of_other_groups: str
    """The same for the second argument."""
    prlimit: int
    setrlimit: int
    clone: int
    unshare: int
    ioctl: int
    socket: int
    socketpair: int
    modes: tuple[tuple[int, int], ...]
    """Calls that set a file mode, with the index of that argument."""
    opens: tuple[tuple[int, int], ...]
    """Calls that may create a file, with the index of the flags; the mode follows."""


_SINCE_4_19 = "425 426 427 428 429 430 431 432 433 438 442 443"
"""Equal on all architectures: io_uring, new mount calls, pidfd_getfd, quotactl_fd."""
_CLONE3, _OPENAT2, _FCHMODAT2 = 435, 437, 452
_GENERIC = _Numbers(
    machine=0,
    refused="""
    117 270 271 272 219 217 218 280 241 282 104 294 105 273 106 142 224 225 89 60 265 40 39 41 268 116 170 112 161 162 58
    """,
    shared="180 181 186 187 188 189 190 191 192 193 194 195 196 197",
    of_others="118 119 122 274 238 239",
    of_other_groups="140 30",
    prlimit=261,
    setrlimit=164,
    clone=220,
    unshare=97,
    ioctl=29,
    socket=198,
    socketpair=199,
    modes=((52, 1), (53, 2), (_FCHMODAT2, 2), (33, 2)),
    opens=((56, 2),),
)
_MACHINES = {
    # ptrace process_vm_readv process_vm_writev kcmp keyctl add_key request_key bpf perf_event_open userfaultfd kexec_load
    # kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl open_by_handle_at mount
    # umount2 pivot_root setns syslog settimeofday clock_settime sethostname setdomainname vhangup; iopl ioperm
    # shared: shm*, sem*, msg*, mq_open, mq_unlink
    # of_others: sched_setparam sched_setscheduler sched_setaffinity sched_setattr migrate_pages move_pages;
    # of_other_groups: setpriority ioprio_set; modes: (chmod) fchmod fchmodat fchmodat2 (mknod) mknodat (creat)
    "x86_64": _Numbers(
        machine=0xC000003E,
        refused="""
        101 310 311 312 250 248 249 321 298 323 246 320 175 313 176 169 167 168 163 179 304 165 166 155 308 103 164 227 170 171
        153 172 173
        """,
        shared="29 30 31 64 65 66 67 68 69 70 71 220 240 241",
        of_others="142 144 203 314 256 279",
        of_other_groups="141 251",
        prlimit=302,
        setrlimit=160,
        clone=56,
        unshare=272,
        ioctl=16,
        socket=41,
        socketpair=53,
        modes=((90, 1), (91, 1), (268, 2), (_FCHMODAT2, 2), (133, 1), (259, 2), (85, 1)),
        opens=((2, 1), (257, 2)),
    ),
    "aarch64": replace(_GENERIC, machine=0xC00000B7),
    "riscv64": replace(_GENERIC, machine=0xC00000F3),
}


def program(*, in_namespaces: bool) -> bytes:
    """The filter for this machine; empty for unknown architectures.

    Without namespaces the filter alone separates commands from the host: it forbids sockets, shared memory and changes to other
    processes.
    """
    return _program(os.uname().machine, in_namespaces)


@cache
def _program(machine: str, in_namespaces: bool) -> bytes:
    numbers = _MACHINES.get(machine)
    if numbers is None:
        return b""
    lines = [
        _line(_LOAD, _AT_MACHINE),
        _line(_JUMP_EQUAL, numbers.machine, 1, 0),
        _refuse(errno.EPERM),  # 32-bit calls have other numbers
        _line(_LOAD, _AT_NUMBER),
    ]
    if machine == "x86_64":
        lines += [_line(_JUMP_ABOVE, _X32, 0, 1), _refuse(errno.ENOSYS)]
    shared = "" if in_namespaces else numbers.shared
    for number in map(int, f"{numbers.refused} {_SINCE_4_19} {shared}".split()):
        lines += [_line(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    for number in (_CLONE3, _OPENAT2):  # their flags are in memory; programs fall back to older calls
        lines += [_line(_JUMP_EQUAL, number, 0, 1), _refuse(errno.ENOSYS)]
    for number in (numbers.clone, numbers.unshare):
        lines += _for_call(number, [_argument(0), _line(_JUMP_BITS, _NEW_NAMESPACES, 0, 1), _refuse(errno.EPERM)])
    keys = [_line(_JUMP_EQUAL, _FAKED_KEYS[0], 1, 0), _line(_JUMP_EQUAL, _FAKED_KEYS[1], 0, 1), _refuse(errno.EPERM)]
    lines += _for_call(numbers.ioctl, [_argument(1), *keys])
    has_bits = [_line(_JUMP_BITS, _SET_ID_BITS, 0, 1), _refuse(errno.EPERM)]
    for number, mode in numbers.modes:
        lines += _for_call(number, [_argument(mode), *has_bits])
    for number, flags in numbers.opens:
        lines += _for_call(number, [_argument(flags), _line(_JUMP_BITS, _CREATES, 0, 3), _argument(flags + 1), *has_bits])
    if in_namespaces:
        families = [_line(_JUMP_EQUAL, family, len(_FAMILIES) - at, 0) for at, family in enumerate(_FAMILIES)]
        lines += _for_call(numbers.socket, [_argument(0), *families, _refuse(errno.EAFNOSUPPORT)])
    else:
        lines += _without_namespaces(numbers)
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _without_namespaces(numbers: _Numbers) -> Iterator[bytes]:
    """Permits only socket pairs that are not datagram sockets: those can send to any address.

    Also protects the resource limit by which leftover processes are found and killed.
    """
    yield from (_line(_JUMP_EQUAL, numbers.socket, 0, 1), _refuse(errno.EACCES))
    kinds = [_line(_MASK, _KIND_OF_SOCKET), _line(_JUMP_EQUAL, _STREAM, 2, 0), _line(_JUMP_EQUAL, _SEQUENCE, 1, 0)]
    pair = [_argument(0), _line(_JUMP_EQUAL, _UNIX, 1, 0), _refuse(errno.EACCES), _argument(1), *kinds, _refuse(errno.EACCES)]
    yield from _for_call(numbers.socketpair, pair)
    higher_half = _line(_LOAD, _AT_ARGUMENTS + 8 * 2 + 4)
    is_null = [_argument(2), _line(_JUMP_EQUAL, 0, 0, 2), higher_half, _line(_JUMP_EQUAL, 0, 1, 0)]
    keep_mark = [_line(_JUMP_EQUAL, MARK_LIMIT, 0, 5), *is_null, _refuse(errno.EPERM)]
    own = [_argument(0), _line(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EPERM)]
    yield from _for_call(numbers.prlimit, [*own, _argument(1), *keep_mark])
    yield from _for_call(numbers.setrlimit, [_argument(0), _line(_JUMP_EQUAL, MARK_LIMIT, 0, 1), _refuse(errno.EPERM)])
    for calls, which in ((numbers.of_others, 0), (numbers.of_other_groups, 1)):
        for number in map(int, calls.split()):
            yield from _for_call(number, [_argument(which), _line(_JUMP_EQUAL, 0, 1, 0), _refuse(errno.EPERM)])


def _for_call(number: int, body: list[bytes]) -> list[bytes]:
    """`body` refuses, or falls through: then the call is allowed."""
    return [_line(_JUMP_EQUAL, number, 0, len(body) + 1), *body, _line(_RETURN, _ALLOW)]


def _argument(number: int) -> bytes:
    return _line(_LOAD, _AT_ARGUMENTS + 8 * number)


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """Encodes an instruction; jumps count the skipped lines."""
    return struct.pack("=HBBI", code, if_so, if_not, value)


def _refuse(number: int) -> bytes:
    return _line(_RETURN, _ERRNO | number)
