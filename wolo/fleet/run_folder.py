"""The folder of a run: where its ledger, attempts and worktrees are."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from wolo.places import make_private


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

    def work(self, name: str) -> Path:
        """Of one attempt; removed after it."""
        return self.path / "work" / name

    def make(self) -> None:
        """Raises OSError."""
        make_private(self.path)
        ignore = self.path / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")  # a run inside a repository does not show up in its status
