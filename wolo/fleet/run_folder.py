"""The folder of a run: where its ledger, attempts and worktrees are."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from wolo.fleet.ledger.outcomes import Lease
from wolo.fleet.ledger.run_rows import Row
from wolo.places import make_private


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
        """Folders of attempts that run, or whose worker was killed."""
        works = [path for path in self.path.glob("work/*") if path != self.mirrors]
        return [*works, *self.path.glob("attempts/*/.*.part")]

    def work(self, name: str) -> Path:
        """Of one attempt; removed after it."""
        return self.path / "work" / name

    def make(self) -> None:
        """Raises OSError."""
        make_private(self.path)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")  # a run inside a repository does not show up in its status
