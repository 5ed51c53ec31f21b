"""The folder of a run: where its ledger, attempts and worktrees are."""

from __future__ import annotations

import secrets
from pathlib import Path

from msgspec import Struct

from wolo.fleet.ledger.outcomes import Lease, place_in
from wolo.fleet.ledger.run_rows import Row
from wolo.operating_system import LOCK_EX, LOCK_NB, flock, os
from wolo.places import make_private

_LOCK = "lock"


def work_name(lease: Lease | Row) -> str:
    """Name of the folder with the worktree of an attempt."""
    return f"{lease.task.id}-{lease.attempt}-{lease.fence}"


class RunFolder(Struct, frozen=True):
    path: Path
    """Absolute."""

    @property
    def tasks(self) -> Path:
        """The tasks of the run, checked and complete."""
        return self.path / "tasks.jsonl"

    @property
    def mirrors(self) -> Path:
        return self.path / "work/mirrors"

    def leftovers(self) -> list[Path]:
        """Folders of attempts that run, or whose worker was killed. Raises WoloError for a run with links to elsewhere."""
        for name in ("work/mirrors", "attempts"):
            place_in(self.path, name)
        works = [path for path in self.path.glob("work/*") if path != self.mirrors and not _is_in_use(path)]
        parts = self.path.glob("attempts/*/.*.part")
        return [*works, *(place_in(self.path, str(path.relative_to(self.path))) for path in parts)]

    def work(self, name: str) -> Path:
        """Of one attempt; removed after it. Raises WoloError for a run with links to elsewhere."""
        return place_in(self.path, f"work/{name}")

    def make_pool(self) -> tuple[Path, int]:
        """A folder for idle worktrees, which stands while its lock is held: the descriptor. Raises OSError, WoloError."""
        place = self.work(f".pool-{secrets.token_hex(8)}")
        make_private(place)
        lock = os.open(place / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        flock(lock, LOCK_EX | LOCK_NB)
        return place, lock

    def make(self) -> None:
        """Raises OSError."""
        make_private(self.path)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")  # a run inside a repository does not show up in its status


def _is_in_use(pool: Path) -> bool:
    try:
        lock = os.open(pool / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        flock(lock, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False
