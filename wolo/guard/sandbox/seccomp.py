"""System calls a command has no use for: a filter, in the machine language that the kernel reads (classic BPF)."""

from __future__ import annotations

import errno
import os
import struct

from msgspec import Struct

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AT_NUMBER, _AT_MACHINE, _AT_FIRST, _AT_SECOND = 0, 4, 16, 24
"""Where the kernel lays out what a call is; of its arguments the lower half."""
_NEW_NAMESPACES = 0x7E020000
_FAKED_KEYS = (0x5412, 0x541C)
"""ioctl TIOCSTI and TIOCLINUX: typing in a person's name."""
_FAMILIES = (1, 2, 10, 16)
"""Sockets that a network namespace holds: Unix, IPv4, IPv6, netlink. Others (vsock) lead out of it."""
_X32 = 0x40000000


class _Numbers(Struct, frozen=True):
    """The calls by their numbers on one kind of machine."""

    machine: int
    refused: str
    clone: int
    unshare: int
    ioctl: int
    socket: int


_SINCE_4_19 = "425 426 427 428 429 430 431 432 433 438 442 443"
"""The same everywhere: io_uring, the mount calls of today, pidfd_getfd, quotactl_fd."""
_CLONE3 = 435
_GENERIC = """
117 270 271 272 219 217 218 280 241 282 104 294 105 273 106 142 224 225 89 60 265 40 39 41 268 116 170 112 161 162 58
"""
_MACHINES = {
    # ptrace process_vm_readv process_vm_writev kcmp keyctl add_key request_key bpf perf_event_open userfaultfd kexec_load
    # kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl open_by_handle_at mount
    # umount2 pivot_root setns syslog settimeofday clock_settime sethostname setdomainname vhangup; iopl ioperm
    "x86_64": _Numbers(
        machine=0xC000003E,
        refused="""
        101 310 311 312 250 248 249 321 298 323 246 320 175 313 176 169 167 168 163 179 304 165 166 155 308 103 164 227 170 171
        153 172 173
        """,
        clone=56,
        unshare=272,
        ioctl=16,
        socket=41,
    ),
    "aarch64": _Numbers(machine=0xC00000B7, refused=_GENERIC, clone=220, unshare=97, ioctl=29, socket=198),
    "riscv64": _Numbers(machine=0xC00000F3, refused=_GENERIC, clone=220, unshare=97, ioctl=29, socket=198),
}


def program(*, sockets: bool) -> bytes:
    """The filter for this machine; without `sockets` no socket of any kind can be made. Empty for a machine it does not know."""
    numbers = _MACHINES.get(os.uname().machine)
    if numbers is None:
        return b""
    lines = [
        _line(_LOAD, _AT_MACHINE),
        _line(_JUMP_EQUAL, numbers.machine, 1, 0),
        _refuse(errno.EPERM),  # the 32-bit calls of the same machine have other numbers
        _line(_LOAD, _AT_NUMBER),
    ]
    if os.uname().machine == "x86_64":
        lines += [_line(_JUMP_ABOVE, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for number in map(int, f"{numbers.refused} {_SINCE_4_19}".split()):
        lines += [_line(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EPERM)]
    lines += [_line(_JUMP_EQUAL, _CLONE3, 0, 1), _refuse(errno.ENOSYS)]  # its flags lie in memory; libraries then use clone
    for number in (numbers.clone, numbers.unshare):
        lines += [_line(_JUMP_EQUAL, number, 0, 4), _line(_LOAD, _AT_FIRST), _line(_JUMP_BITS, _NEW_NAMESPACES, 0, 1)]
        lines += [_refuse(errno.EPERM), _line(_RETURN, _ALLOW)]
    lines += [_line(_JUMP_EQUAL, numbers.ioctl, 0, 5), _line(_LOAD, _AT_SECOND)]
    lines += [_line(_JUMP_EQUAL, _FAKED_KEYS[0], 1, 0), _line(_JUMP_EQUAL, _FAKED_KEYS[1], 0, 1)]
    lines += [_refuse(errno.EPERM), _line(_RETURN, _ALLOW)]
    lines += _socket_lines(numbers.socket, sockets)
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _socket_lines(number: int, some: bool) -> list[bytes]:
    if not some:
        return [_line(_JUMP_EQUAL, number, 0, 1), _refuse(errno.EACCES)]
    allowed = [_line(_JUMP_EQUAL, family, len(_FAMILIES) - at, 0) for at, family in enumerate(_FAMILIES)]
    body = [_line(_LOAD, _AT_FIRST), *allowed, _refuse(errno.EAFNOSUPPORT), _line(_RETURN, _ALLOW)]
    return [_line(_JUMP_EQUAL, number, 0, len(body)), *body]


def _line(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """One instruction; the jumps count the lines that are left out."""
    return struct.pack("=HBBI", code, if_so, if_not, value)


def _refuse(number: int) -> bytes:
    return _line(_RETURN, _ERRNO | number)
