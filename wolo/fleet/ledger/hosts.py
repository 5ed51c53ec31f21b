"""Identifies processes and machines, so that a dead owner of a lease is known at once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from wolo.fleet.ledger.outcomes import Owner


class Host:
    """This machine: its clocks and its processes."""

    def __init__(self) -> None:
        self.name = socket.gethostname()
        self.boot = _boot()

    def now(self) -> float:
        """Seconds that no change of the clock moves; comparable between processes of one boot."""
        return time.monotonic()

    def owner(self, pid: int | None = None) -> Owner:
        """A running process; None: this one."""
        pid = pid or os.getpid()
        return Owner(self.name, pid, f"{self.boot}/{_processes()}/{_start_of(pid)}")

    def is_dead(self, owner: Owner) -> bool:
        """True only if this machine can tell."""
        boot, processes, started = owner.started.split("/", 2)
        if (owner.host, boot, processes) != (self.name, self.boot, _processes()):
            return False
        return _start_of(owner.pid) != started

    def was_restarted_since(self, owner: Owner) -> bool:
        """Tells whether the owner ran before this machine's last start, given that only this machine has its name."""
        return owner.host == self.name and boot_of(owner) != self.boot


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def boot_of(owner: Owner) -> str:
    return owner.started.split("/", 1)[0]


def _boot() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    if sys.platform == "darwin":
        asked = subprocess.run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
        return asked.stdout.strip()
    return ""


def _processes() -> str:
    """The namespace in which process numbers mean something."""
    with suppress(OSError):
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    return ""


def _start_of(pid: int) -> str:
    """Start time of a process; empty: it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return ""
    except ProcessLookupError:
        return ""
    else:
        return "" if fields[0] in (b"Z", b"X") else fields[19].decode()
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()
