"""The sandbox of bubblewrap on machines without bubblewrap: a small program of wolo's makes the namespaces and mounts."""

from __future__ import annotations

from wolo.guard.sandbox import seccomp
from wolo.guard.sandbox.bubblewrap import KEPT_OF_ROOT, Bubblewrap, Handed
from wolo.guard.sandbox.memfd import in_memory
from wolo.guard.sandbox.profile import Profile
from wolo.guard.sandbox.python_launcher import bare_python, line_for, packed


def is_possible() -> bool:
    """Without the filter of system calls a command could make mounts of its own."""
    return bool(bare_python()) and bool(seccomp.program(in_namespaces=True))


class Namespaces(Bubblewrap):
    """Lays out the same mounts as bubblewrap does; needs Linux 5.12 and user namespaces, or root."""

    backend = "namespaces"

    def __init__(self, profile: Profile, *, of_others: bool = False) -> None:
        super().__init__("", profile, of_others=of_others)
        self._code = packed("calls", "namespace_launcher")

    def _line(self, handed: Handed) -> list[str]:
        handed.code = in_memory(self._code)
        kept = KEPT_OF_ROOT if self._of_others else 0
        return [*line_for(handed.code), *map(str, (handed.words, handed.status, handed.janitor, handed.filter, kept)), "--"]
