"""The walls around a command: what a sandbox promises, as the rest of wolo sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class SandboxedCommand(Struct, frozen=True):
    """A command line that runs inside the walls."""

    argv: tuple[str, ...]
    pass_fds: tuple[int, ...] = ()
    """Descriptors the program must inherit."""
    tidy: Callable[[], None] = lambda: None
    """To be called once everything it started has ended. Must not raise; may be called again."""
    has_begun: Callable[[], bool] = lambda: True
    """After it has ended: False where the walls were not up in time, for what they were to stand on had changed. Try again."""
    is_alone: bool = False
    """All it leaves running must be ended with it: nothing else would hold that."""


class Restored(Protocol):
    """Protected files that a command made or changed, and that were restored after it."""

    @property
    def paths(self) -> tuple[str, ...]: ...

    @property
    def lost(self) -> tuple[str, ...]:
        """Those of them that could not be restored as they were."""
        ...

    def accept(self) -> None:
        """The user wants the command's version of all. Raises OSError."""
        ...


MOST_TRIES = 4
"""For a command that has not begun."""


class Sandbox(Protocol):
    @property
    def backend(self) -> str:
        """`bubblewrap`, `namespaces`, `landlock` or `seatbelt`."""
        ...

    @property
    def covers(self) -> tuple[str, ...]: ...

    @property
    def not_covered(self) -> tuple[str, ...]: ...

    def wrap(self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False) -> SandboxedCommand:
        """`only_reads`: nothing need be writable. `lasts`: it runs on in the background.

        Raises ToolError where the walls cannot be put up: the command must not run then.
        """
        ...

    def prepare(self) -> None:
        """Does what takes long in a large workspace, so that `enclose` is quick. May be called from any thread.

        Raises ToolError as `enclose` does.
        """
        ...

    def hides(self, path: str) -> bool:
        """Whether a command finds nothing at this absolute path, or may not read it, although something is there."""
        ...

    def take_restored(self) -> Restored | None:
        """What was restored after commands that have ended since; each is told once."""
        ...

    def close(self) -> None:
        """The conversation has ended: what the walls needed goes. May be called again."""
        ...
