"""Runs of `wolo batch` that the page shows: counts, totals and one line per task, read from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from wolo.errors import UsageError
from wolo.fleet.exports.tables import as_line
from wolo.fleet.ledger.ledger_folder import has_ledger, open_ledger
from wolo.frontends.server.http_errors import HttpError

MOST_TASKS = 2000
"""Shown of one run; the report of `wolo batch export` has all."""


class BatchRuns:
    def __init__(self, folders: Sequence[Path] = ()) -> None:
        """Raises UsageError for a folder without a run."""
        for folder in folders:
            if not has_ledger(folder):
                raise UsageError(f"{folder} holds no run.", hint="`wolo batch run TASKS --out FOLDER` makes one.")
        self._folders = tuple(folders)

    def overview(self) -> list[dict[str, Any]]:
        """Blocks. The number of a run is its place."""
        return [self._totals(folder) for folder in self._folders]

    def run(self, number: int) -> dict[str, Any]:
        """Blocks. Raises HttpError for an unknown number."""
        if not 0 <= number < len(self._folders):
            raise HttpError(404, f"There is no run {number}.", "GET /v1/runs lists them.")
        with closing(open_ledger(self._folders[number], reads=True)) as ledger:
            rows = ledger.rows()
        tasks = [as_line(row) | {"note": row.note} for row in rows[:MOST_TASKS]]
        return {
            **self._totals(self._folders[number]),
            "tasks": msgspec.to_builtins(tasks),
            "left_out": max(len(rows) - MOST_TASKS, 0),
        }

    def _totals(self, folder: Path) -> dict[str, Any]:
        with closing(open_ledger(folder, reads=True)) as ledger:
            spent = ledger.totals()
            return {
                "name": folder.name,
                "folder": str(folder),
                "states": ledger.counts(),
                "tokens": spent.tokens,
                "cost_usd": spent.cost_usd,
            }
