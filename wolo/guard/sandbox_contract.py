"""Defines what a sandbox promises to the rest of wolo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class SandboxedCommand(Struct, frozen=True):
    """A command line that runs inside the sandbox."""

    argv: tuple[str, ...]
    pass_fds: tuple[int, ...] = ()
    """Descriptors that the program must inherit."""
    cleanup: Callable[[], None] = lambda: None
    """Call once everything it started has ended. Must not raise; may be called again."""
    has_begun: Callable[[], bool] = lambda: True
    """Valid after it has ended. False: the sandbox was not in place in time because something changed underneath. Try again."""
    why_ended: Callable[[], str] = str
    """The reason why the sandbox ends it or has ended it; empty as long as it may run. Whoever runs it asks now and then."""
    is_alone: bool = False
    """Whatever it leaves running must be killed with it: nothing else would confine it."""


class Restored(Protocol):
    """Protected files that a command created or changed, and that were restored afterwards."""

    paths: tuple[str, ...]
    """Without lost ones."""
    lost: tuple[str, ...]
    """The paths that are not what they were."""

    def accept(self) -> None:
        """Applies the command's version of all paths. Raises OSError."""


PROXY_PORT = 61128
"""Where a command in namespaces finds wolo's proxy, on its own loopback address. The launchers have the same number."""
MOST_TRIES = 4
"""Attempts for a command that has not begun."""


class Sandbox(Protocol):
    backend: str
    """`bubblewrap`, `namespaces`, `landlock` or `seatbelt`."""
    covers: tuple[str, ...]
    not_covered: tuple[str, ...]
    has_proxy: bool
    """Commands can reach a proxy of wolo's, and nothing else of the network."""

    def wrap(
        self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False, proxy_fd: int = -1
    ) -> SandboxedCommand:
        """`only_reads`: nothing needs to be writable. `in_background`: the command may outlive the call. `proxy_fd`: one end of
        a pair of sockets, whose other end gets the listener that the command reaches as its proxy; only with `has_proxy`.

        Raises ToolError if the sandbox cannot be applied: the command must not run then.
        """

    def prepare(self) -> None:
        """Does what is slow in a large workspace, so that `wrap` is fast.

        Callable from any thread. Raises ToolError like `wrap`.
        """

    def hides(self, path: str) -> bool:
        """Tells whether a command sees nothing at this absolute path, or may not read it, although something exists."""

    def give_way(self, path: str) -> None:
        """Call before wolo itself writes `path`. Ends running commands if it is protected: nothing holds a new file for them, and
        it could not be told from what they do. Callable from any thread; may block.
        """

    def take_restored(self) -> Restored | None:
        """Files restored after commands that have ended; each result is returned once."""

    def close(self) -> None:
        """Removes the files that the sandbox needed. May be called again."""
