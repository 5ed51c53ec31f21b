"""Which walls there are: the first backend that passes its probe, or none and why.

A pass is remembered for as long as nothing changes that could change it: the program, the kernel, this boot, who asks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.guard.sandbox.bubblewrap import Bubblewrap, Namespaces, can_use_namespaces, find_binary
from wolo.guard.sandbox.profile import VERSION, Profile
from wolo.guard.sandbox_contract import Sandbox
from wolo.places import make_private

if TYPE_CHECKING:
    from wolo.guard.sandbox.landlock_sandbox import Landlock
    from wolo.guard.sandbox.seatbelt import Seatbelt

_OF_THE_MACHINE = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/attr/current",
    "/proc/self/uid_map",
)
_OF_THIS_PROCESS = ("CapEff", "Seccomp", "NoNewPrivs")


class Found(Struct, frozen=True):
    make: Callable[[Profile], Sandbox] | None = None
    backend: str = "none"
    covers: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ("files", "network", "processes")
    is_whole: bool = True
    """False: some protected names can only be restored after a command, and some rights are not held back."""
    tried: tuple[str, ...] = ()
    """Why each better backend was not taken."""


def find(writable: Sequence[Path], state: Path, cache: Path | None) -> Found:
    """`writable` are the directories commands may change: no program that lies there holds anything.

    Without a `cache` nothing is remembered: every backend proves itself now.
    """
    if sys.platform == "darwin":
        return _seatbelt(state, cache)
    tried: list[str] = []
    roots = [os.path.realpath(path) for path in writable]
    if "/" in roots:
        return Found(tried=("The workspace is the whole file tree, so there is nothing to keep a command from.",))
    binary = find_binary(roots)
    if not binary:
        tried.append("bubblewrap: there is no bwrap that belongs to the system")
    for of_others, is_old in product(_ways(roots), (False, True)) if binary else ():
        if is_old and "--perms" not in tried[-1]:
            continue
        make = partial(Bubblewrap, binary, of_others=of_others, is_old=is_old)
        proof = _proven(make, f"bubblewrap {of_others} {is_old} {_identity(binary)}", state, cache)
        if not proof.why:
            return proof.found(make, Bubblewrap, Bubblewrap.not_covered, tried=tried)
        tried.append(f"bubblewrap: {proof.why}")
    found = _namespaces(roots, tried, state, cache)
    return found if found.make is not None else _landlock(tried, state, cache)


def _ways(roots: Sequence[str]) -> tuple[bool, ...]:
    """Whether root needs its rights to other people's files, or can do without: the better way first."""
    if os.getuid() != 0:
        return (False,)
    is_of_others = any(Path(root).exists() and Path(root).stat().st_uid != 0 for root in roots)
    return (True, False) if is_of_others else (False,)


def _seatbelt(state: Path, cache: Path | None) -> Found:
    from wolo.guard.sandbox.seatbelt import BINARY, Seatbelt  # noqa: PLC0415  # macOS alone needs it

    if not Path(BINARY).is_file():
        return Found(tried=(f"Seatbelt: there is no {BINARY}",))
    proof = _proven(Seatbelt, f"seatbelt {_identity(BINARY)}", state, cache)
    if proof.why:
        return Found(tried=(f"Seatbelt: {proof.why}",))
    return proof.found(Seatbelt, Seatbelt, Seatbelt.not_covered)


def _namespaces(roots: Sequence[str], tried: list[str], state: Path, cache: Path | None) -> Found:
    """Adds to `tried` why it cannot be used."""
    if not can_use_namespaces():
        tried.append("namespaces: wolo does not know this kind of processor, or finds no Python to start")
        return Found()
    for of_others in _ways(roots):
        make = partial(Namespaces, of_others=of_others)
        proof = _proven(make, f"namespaces {of_others}", state, cache)
        if not proof.why:
            return proof.found(make, Namespaces, Namespaces.not_covered, tried=tried)
        tried.append(f"namespaces: {proof.why}")
    return Found()


def _landlock(tried: list[str], state: Path, cache: Path | None) -> Found:
    from wolo.guard.sandbox import landlock_sandbox as landlock  # noqa: PLC0415  # it loads ctypes, and most starts do without

    if not landlock.is_possible():
        tried.append("Landlock: this kernel does not have it, or not with a filter of system calls")
        return Found(tried=tuple(tried))
    proof = _proven(landlock.Landlock, f"landlock {landlock.not_covered()}", state, cache)
    if proof.why:
        tried.append(f"Landlock: {proof.why}")
        return Found(tried=tuple(tried))
    return proof.found(landlock.Landlock, landlock.Landlock, landlock.not_covered(), is_whole=False, tried=tried)


class _Proof(Struct, frozen=True):
    why: str = ""
    """It cannot be relied on; empty when its probe passed, now or before."""
    gaps: tuple[str, ...] = ()
    """What the probe did in spite of it."""

    def found(
        self,
        make: Callable[[Profile], Sandbox],
        backend: type[Bubblewrap | Landlock | Seatbelt],
        not_covered: tuple[str, ...],
        *,
        is_whole: bool = True,
        tried: Sequence[str] = (),
    ) -> Found:
        covers = tuple(each for each in backend.covers if each not in self.gaps)
        missing = dict.fromkeys((*self.gaps, *not_covered))
        return Found(make, backend.backend, covers, tuple(missing), is_whole, tuple(tried))


def _proven(make: Callable[[Profile], Sandbox], what: str, state: Path, cache: Path | None) -> _Proof:
    from wolo.guard.sandbox.escape_probe import find_gap  # noqa: PLC0415  # a pass that is remembered needs no probe

    mark = sha256(f"{VERSION} {what} {_circumstances()}".encode()).hexdigest()
    if cache is None:
        return _judged(*find_gap(make, state), what)
    kept = cache / "sandbox-probes"
    with suppress(OSError):
        for line in kept.read_text().splitlines():
            proof, *gaps = line.split("\t")
            if proof == mark:
                return _Proof(gaps=tuple(gaps))
    found = _judged(*find_gap(make, state), what)
    if not found.why:
        with suppress(OSError):
            make_private(cache)
            _remember(kept, "\t".join((mark, *found.gaps)))
    return found


def _judged(why: str, gaps: tuple[str, ...], what: str) -> _Proof:
    """Some backends cannot hold everything on every kernel, and say so; what another one lets through is a reason against it."""
    from wolo.guard.sandbox.escape_probe import FIFOS, SET_ID, SIGNALS  # noqa: PLC0415  # it has just been used

    tolerated = {"landlock": (SIGNALS,), "seatbelt": (FIFOS, SET_ID)}.get(what.split()[0], (FIFOS,))
    reasons = (why, *(f"it does not hold {gap}" for gap in gaps if gap not in tolerated))
    return _Proof(", ".join(filter(None, reasons)), gaps)


def _remember(kept: Path, proof: str) -> None:
    with open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(f"{proof}\n")


def _identity(binary: str) -> str:
    status = os.stat(binary)  # noqa: PTH116  # a path as text
    return f"{binary} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_mode}"


def _circumstances() -> str:
    said = [sys.platform, os.uname().release, os.uname().version, str(os.getuid()), str(os.getgid()), sys.executable]
    for name in _OF_THE_MACHINE:
        with suppress(OSError):
            said.append(Path(name).read_text())
    with suppress(OSError):
        said += [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(_OF_THIS_PROCESS)]
    for name in ("user", "mnt", "net", "pid"):
        with suppress(OSError):
            said.append(str(Path(f"/proc/self/ns/{name}").readlink()))
    return "\n".join(said)
