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
from pathlib import Path

from msgspec import Struct

from wolo.guard.sandbox import landlock, seatbelt
from wolo.guard.sandbox.bubblewrap import Bubblewrap, find_binary
from wolo.guard.sandbox.probe import shortcoming
from wolo.guard.sandbox.profile import VERSION, Profile
from wolo.guard.sandbox.seatbelt import Seatbelt
from wolo.guard.walls import Walls
from wolo.workspace.landlock import version

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
    make: Callable[[Profile], Walls] | None = None
    backend: str = "none"
    covers: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ("files", "network", "processes")
    tried: tuple[str, ...] = ()
    """Why each better backend was not taken."""


def find(writable: Sequence[Path], state: Path, cache: Path | None) -> Found:
    """`writable` are the directories commands may change: no program that lies there holds anything.

    Without a `cache` nothing is remembered: every backend proves itself now.
    """
    if sys.platform == "darwin":
        return _only(Seatbelt, "Seatbelt", Path(seatbelt.BINARY), state, cache)
    tried: list[str] = []
    binary = find_binary([os.path.realpath(path) for path in writable])
    if not binary:
        tried.append("bubblewrap: there is no bwrap that belongs to the system")
    else:
        make = partial(Bubblewrap, binary)
        why = _proven(make, f"bubblewrap {_identity(binary)}", state, cache)
        if not why:
            return Found(make, Bubblewrap.backend, Bubblewrap.covers, Bubblewrap.not_covered)
        tried.append(f"bubblewrap: {why}")
    return _second(tried, state, cache)


def _only(made: type[Seatbelt], name: str, binary: Path, state: Path, cache: Path | None) -> Found:
    if not binary.is_file():
        return Found(tried=(f"{name}: there is no {binary}",))
    why = _proven(made, f"{name} {_identity(str(binary))}", state, cache)
    return Found(tried=(f"{name}: {why}",)) if why else Found(made, made.backend, made.covers, made.not_covered)


def _second(tried: list[str], state: Path, cache: Path | None) -> Found:
    if not landlock.is_possible():
        tried.append("Landlock: this kernel does not have it, or not with a filter of system calls")
        return Found(tried=tuple(tried))
    why = _proven(landlock.Landlock, f"landlock {version()}", state, cache)
    if why:
        tried.append(f"Landlock: {why}")
        return Found(tried=tuple(tried))
    made = landlock.Landlock
    return Found(made, made.backend, made.covers, landlock.not_covered(), tuple(tried))


def _proven(make: Callable[[Profile], Walls], what: str, state: Path, cache: Path | None) -> str:
    """Why the backend cannot be relied on; empty when its probe passed, now or before."""
    proof = sha256(f"{VERSION} {what} {_circumstances()}".encode()).hexdigest()
    if cache is None:
        return shortcoming(make, state)
    kept = cache / "sandbox-probes"
    with suppress(OSError):
        if proof in kept.read_text().split():
            return ""
    why = shortcoming(make, state)
    if not why:
        with suppress(OSError):
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
            _remember(kept, proof)
    return why


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
