"""Selects the first sandbox backend that passes its probe.

A pass is cached until something changes that could affect it: the program, the kernel, the boot, the user. A failure of the
compiled launcher, which others replace, is cached for a day.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from wolo.guard.sandbox.backend import SandboxFactory
from wolo.guard.sandbox.bubblewrap import Bubblewrap, Namespaces, can_use_namespaces, find_binary, find_launcher
from wolo.guard.sandbox.profile import VERSION
from wolo.operating_system import os, resource
from wolo.places import make_private

if TYPE_CHECKING:
    from wolo.guard.sandbox.landlock_sandbox import Landlock
    from wolo.guard.sandbox.seatbelt import Seatbelt

_MACHINE_FILES = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/attr/current",
    "/proc/self/uid_map",
)
_DAY_S = 86400
_PROCESS_FIELDS = ("CapEff", "Seccomp", "NoNewPrivs")


class SandboxSelection(Struct, frozen=True):
    make: SandboxFactory | None = None
    backend: str = "none"
    covers: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ("files", "network", "processes")
    is_whole: bool = True
    """False: some protected names are only restored after a command, and some rights are not confined."""
    tried: tuple[str, ...] = ()
    """The reason why each better backend was rejected."""


def find(writable: Sequence[Path], state: Path, cache: Path | None) -> SandboxSelection:
    """`writable` are the directories that commands may change: programs in them are not trusted.

    Without a `cache` every backend is probed now.
    """
    if sys.platform == "darwin":
        from wolo.guard.sandbox.seatbelt import BINARY, Seatbelt  # noqa: PLC0415  # only for macOS

        if not Path(BINARY).is_file():
            return SandboxSelection(tried=(f"Seatbelt: there is no {BINARY}",))
        proof = _prove(Seatbelt, f"seatbelt {_identity(BINARY)}", state, cache)
        if proof.why:
            return SandboxSelection(tried=(f"Seatbelt: {proof.why}",))
        return proof.selection(Seatbelt, Seatbelt, Seatbelt.not_covered)
    if resource is None:
        return SandboxSelection(tried=("This system has no limits for processes; the sandboxes of wolo need Linux or macOS.",))
    tried: list[str] = []
    roots = [os.path.realpath(path) for path in writable]
    if "/" in roots:
        return SandboxSelection(tried=("The workspace is the whole file system, so there is nothing to protect.",))
    if (launcher := find_launcher(roots)) and (selection := _namespaces(roots, tried, state, cache, launcher)).make is not None:
        return selection
    for look in (_bubblewrap, _namespaces):
        selection = look(roots, tried, state, cache)
        if selection.make is not None:
            return selection
    return _landlock(tried, state, cache)


def _bubblewrap(roots: Sequence[str], tried: list[str], state: Path, cache: Path | None) -> SandboxSelection:
    """Appends the reason to `tried` if it cannot be used."""
    binary = find_binary(roots)
    if not binary:
        tried.append("bubblewrap: no bwrap is installed system-wide")
    for of_others, is_old in product(_ways(roots), (False, True)) if binary else ():
        if is_old and "--perms" not in tried[-1]:
            continue
        make = partial(Bubblewrap, binary, of_others=of_others, is_old=is_old)
        proof = _prove(make, f"bubblewrap {of_others} {is_old} {_identity(binary)}", state, cache)
        if not proof.why:
            return proof.selection(make, Bubblewrap, Bubblewrap.not_covered, tried=tried)
        tried.append(f"bubblewrap: {proof.why}")
    return SandboxSelection()


def _ways(roots: Sequence[str]) -> tuple[bool, ...]:
    """Tells whether root should keep its rights to other users' files: the better option first."""
    if os.getuid() != 0:
        return (False,)
    is_of_others = any(Path(root).exists() and Path(root).stat().st_uid != 0 for root in roots)
    return (True, False) if is_of_others else (False,)


def _namespaces(roots: Sequence[str], tried: list[str], state: Path, cache: Path | None, launcher: str = "") -> SandboxSelection:
    """Appends the reason to `tried` if it cannot be used. `launcher` is the compiled one, which is faster than bubblewrap."""
    if not can_use_namespaces(launcher):
        tried.append("namespaces: this processor is unknown, or there is no Python to start")
        return SandboxSelection()
    for of_others in _ways(roots):
        make = partial(Namespaces, of_others=of_others, launcher=launcher)
        what = f"namespaces {of_others} {launcher and _identity(launcher)}"
        proof = _prove(make, what, state, cache, is_replaceable=bool(launcher))
        if not proof.why:
            return proof.selection(make, Namespaces, Namespaces.not_covered, tried=tried)
        tried.append(f"namespaces: {proof.why}")
    return SandboxSelection()


def _landlock(tried: list[str], state: Path, cache: Path | None) -> SandboxSelection:
    from wolo.guard.sandbox import landlock_sandbox as landlock  # noqa: PLC0415  # loads ctypes, rarely needed

    if not landlock.is_possible():
        tried.append("Landlock: this kernel lacks it, or system call filters")
        return SandboxSelection(tried=tuple(tried))
    proof = _prove(landlock.Landlock, f"landlock {landlock.not_covered()}", state, cache)
    if proof.why:
        tried.append(f"Landlock: {proof.why}")
        return SandboxSelection(tried=tuple(tried))
    return proof.selection(landlock.Landlock, landlock.Landlock, landlock.not_covered(), is_whole=False, tried=tried)


class _Proof(Struct, frozen=True):
    why: str = ""
    """Reason not to rely on it; empty if its probe passed, now or before."""
    gaps: tuple[str, ...] = ()
    """Gaps that the probe found."""

    def selection(
        self,
        make: SandboxFactory,
        backend: type[Bubblewrap | Landlock | Seatbelt],
        not_covered: tuple[str, ...],
        *,
        is_whole: bool = True,
        tried: Sequence[str] = (),
    ) -> SandboxSelection:
        covers = tuple(each for each in backend.covers if each not in self.gaps)
        missing = dict.fromkeys((*self.gaps, *not_covered))
        return SandboxSelection(make, backend.backend, covers, tuple(missing), is_whole, tuple(tried))


def _prove(make: SandboxFactory, what: str, state: Path, cache: Path | None, *, is_replaceable: bool = False) -> _Proof:
    """`is_replaceable`: other backends do the same, so a failure is remembered too."""
    mark = sha256(f"{VERSION} {what} {_environment_facts(os.getpid())}".encode()).hexdigest()
    failure = f"{mark}-{int(time.time() // _DAY_S)}"
    proofs = cache / "sandbox-probes" if cache else None
    if proofs is not None:
        with suppress(OSError):
            for line in proofs.read_text().splitlines():
                known, *details = line.split("\t")
                if known == mark:
                    return _Proof(gaps=tuple(details))
                if known == failure:
                    return _Proof(" ".join(details) or "it failed")
    from wolo.guard.sandbox.escape_probe import find_gap  # noqa: PLC0415  # not needed after a cached pass

    proof = _evaluate(*find_gap(make, state), what)
    if proofs is not None and (not proof.why or is_replaceable):
        with suppress(OSError):
            make_private(proofs.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(proofs, flags, 0o600), "w") as file:
                words = (failure, " ".join(proof.why.split())) if proof.why else (mark, *proof.gaps)
                file.write("\t".join(words) + "\n")
    return proof


def _evaluate(why: str, gaps: tuple[str, ...], what: str) -> _Proof:
    """Tolerates gaps that a backend cannot close; any other gap is a reason against it."""
    from wolo.guard.sandbox.escape_probe import FIFOS, SET_ID, SIGNALS  # noqa: PLC0415  # already loaded

    tolerated = {"landlock": (SIGNALS,), "seatbelt": (FIFOS, SET_ID)}.get(what.split()[0], (FIFOS,))
    reasons = (why, *(f"it does not confine {gap}" for gap in gaps if gap not in tolerated))
    return _Proof(", ".join(filter(None, reasons)), gaps)


def _identity(binary: str) -> str:
    status = os.stat(binary)  # a path as text
    return f"{binary} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_mode}"


@cache
def _environment_facts(process: int) -> str:
    facts = [sys.platform, os.uname().release, os.uname().version, str(os.getuid()), str(os.getgid()), sys.executable]
    for name in _MACHINE_FILES:
        with suppress(OSError):
            facts.append(Path(name).read_text())
    with suppress(OSError):
        facts += [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(_PROCESS_FIELDS)]
    for name in ("user", "mnt", "net", "pid"):
        with suppress(OSError):
            facts.append(str(Path(f"/proc/self/ns/{name}").readlink()))
    return "\n".join(facts)
