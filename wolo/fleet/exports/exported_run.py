"""Input of every export: the rows of a run and where its files are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from wolo.fleet.ledger.run_rows import Row


class ExportedRun(Struct, frozen=True, kw_only=True):
    folder: Path
    model: str
    """Of the tasks that name none; empty: the user's default."""
    rows: Sequence[Row]

    @property
    def name(self) -> str:
        return self.folder.name
