"""The filter of system calls, asked by a program that is held by it; and what a program needs stays open."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, need
from wolo.guard.sandbox import seccomp

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="the numbers below are those of one machine"
)

CALLS = {
    "ptrace": "101, 0, 0, 0, 0",
    "process_vm_readv": "310, 1, 0, 0, 0, 0, 0",
    "keyctl": "250, 0, 0, 0, 0, 0",
    "bpf": "321, 0, 0, 0",
    "io_uring_setup": "425, 1, 0",
    "perf_event_open": "298, 0, 0, 0, 0, 0",
    "userfaultfd": "323, 0",
    "mount": "165, 0, 0, 0, 0, 0",
    "new mount calls": "428, -100, 0, 0",
    "setns": "308, 0, 0",
    "unshare a user namespace": "272, 0x10000000",
    "unshare a network": "272, 0x40000000",
    "clone a user namespace": "56, 0x10000011, 0, 0, 0, 0",
    "clone with flags in its upper half": "56, 0x110000011, 0, 0, 0, 0",
    "TIOCSTI": "16, 0, 0x5412, 0",
    "TIOCSTI with rubbish in its upper half": "16, 0, 0xABC00005412, 0",
    "TIOCLINUX": "16, 0, 0x541C, 0",
    "kexec": "246, 0, 0, 0, 0",
    "open_by_handle_at": "304, 0, 0, 0",
}
OTHERS = {"clone3": ("435, 0, 0", errno.ENOSYS), "a call of the x32 kind": ("0x40000027", errno.ENOSYS)}
VSOCK = ("41, 40, 1, 0", errno.EAFNOSUPPORT)
"""Leads to whoever runs this machine, past every network namespace."""
ASK = """
import ctypes, json, sys
ctypes.set_errno(0)
system = ctypes.CDLL(None, use_errno=True)
answers = {}
for name, arguments in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    said = system.syscall(*(ctypes.c_long(int(word, 0)) for word in arguments.split(",")))
    answers[name] = ctypes.get_errno() if said < 0 else 0
print(json.dumps(answers))
"""


def answers(folder: Path, backend: str, asked: dict[str, str]) -> dict[str, int]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        try:
            (ground.work / "ask.py").write_text(ASK)
            done = ground.run(f"\"$PYTHON\" -I -S ask.py '{json.dumps(asked)}'", walls)
            assert done.returncode == 0, done.stderr
            return dict(json.loads(done.stdout))
        finally:
            walls.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_unneeded_system_call_is_closed(backend: str) -> None:
    need(backend)
    asked = {**CALLS, **{name: call for name, (call, _) in OTHERS.items()}, "vsock": VSOCK[0]}
    with land() as folder:
        said = unprivileged.call(answers, folder, backend, asked)
    expected = {**dict.fromkeys(CALLS, errno.EPERM), **{name: number for name, (_, number) in OTHERS.items()}}
    assert said == {**expected, "vsock": errno.EACCES if backend == "landlock" else VSOCK[1]}


@pytest.mark.parametrize("backend", BACKENDS)
def test_needed_system_calls_are_open(backend: str) -> None:
    need(backend)
    with land() as folder:
        assert unprivileged.call(answers, folder, backend, {"getpid": "39", "getuid": "102", "unshare files": "272, 0x400"}) == {
            "getpid": 0,
            "getuid": 0,
            "unshare files": 0,
        }


def test_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    known = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*known[:4], "pdp11")))
    assert seccomp.program(in_namespaces=True) == b""


def test_foreign_program_kind_is_refused_whole() -> None:
    """A 32-bit program has other numbers: 41 is no `socket` there. So the first question is which kind it is."""
    first, second, third = (seccomp.program(in_namespaces=True)[at : at + 8] for at in (0, 8, 16))
    assert (first, second) == (bytes.fromhex("2000000004000000"), bytes.fromhex("150001003e0000c0"))
    assert third == bytes.fromhex("0600000001000500")
