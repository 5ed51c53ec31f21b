"""The sandbox of bubblewrap on machines without bubblewrap: a small program of wolo's makes the namespaces and mounts."""

from __future__ import annotations

from wolo.guard.sandbox import seccomp
from wolo.guard.sandbox.bare import bare_python, compiled, line_for, text_of
from wolo.guard.sandbox.bubblewrap import Bubblewrap, Handed
from wolo.guard.sandbox.memory import in_memory
from wolo.guard.sandbox.profile import Profile

_KEPT_OF_ROOT = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
"""CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER and CAP_FSETID: what root needs in a workspace of another user."""


def is_possible() -> bool:
    """Without the filter of system calls a command could make mounts of its own."""
    return bool(bare_python()) and bool(seccomp.program(sockets=True))


class Namespaces(Bubblewrap):
    """Lays out the same mounts as bubblewrap does; needs Linux 5.12 and user namespaces, or root."""

    backend = "namespaces"

    def __init__(self, profile: Profile, *, of_others: bool = False) -> None:
        super().__init__(bare_python(), profile, of_others=of_others)
        self._code = compiled(text_of("namespace_launcher"))

    def _line(self, handed: Handed) -> list[str]:
        handed.code = in_memory(self._code)
        numbers = (handed.words, handed.status, handed.janitor, handed.filter, _KEPT_OF_ROOT if self._of_others else 0)
        return [*line_for(handed.code), *map(str, numbers)]
