"""Exports of one row per task: JSON Lines and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

import msgspec
from msgspec import Struct

from wolo.fleet.ledger.outcomes import AttemptOutcome
from wolo.fleet.ledger.results_file import provenance_of, result_fields
from wolo.fleet.ledger.run_rows import Row


class ExportedRun(Struct, frozen=True, kw_only=True):
    folder: Path
    model: str
    """Of the tasks that name none; empty: the user's default."""
    rows: Iterable[Row]
    """Gone through once, so that they need not be in memory."""

    @property
    def name(self) -> str:
        return self.folder.name

    def model_of(self, row: Row) -> str:
        return (row.outcome.provenance.model if row.outcome else "") or row.task.model or self.model


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins so for a formula (OWASP, CSV injection)."""


def write_jsonl(run: ExportedRun, out: TextIO) -> list[str]:
    """The fields of results.jsonl, with `tags` and `meta`; a task without a result has its state and nulls."""
    for row in run.rows:
        out.write(msgspec.json.encode(as_line(row)).decode() + "\n")
    return []


def as_line(row: Row) -> dict[str, Any]:
    ended = row.outcome or AttemptOutcome(state="lost", started=row.began, ended="", host=row.host, engine="")
    line = result_fields(row.task.base_id, row.task.try_number, row.key, row.attempt, ended) | {"state": row.state}
    if row.outcome is None:
        line |= {"usage": None, "cost_usd": row.cost_usd, "started": row.began or None, "ended": None}
    return {**line, "tags": row.task.tags, "meta": row.task.meta}


def write_csv(run: ExportedRun, out: TextIO) -> list[str]:
    """A header and one row per task (RFC 4180); times in seconds, cost in US dollars."""
    writer: csv.DictWriter[str] | None = None
    for row in run.rows:
        ended = row.outcome
        patch, verify, usage = (ended.patch, ended.verify, ended.usage) if ended else (None, None, None)
        cells = {
            "id": row.task.base_id,
            "try": row.task.try_number,
            "state": row.state,
            "attempt": row.attempt,
            "model": run.model_of(row),
            "exit_code": ended.exit_code if ended else None,
            "verify_exit_code": verify.exit_code if verify else None,
            "seconds": seconds_of(ended) if ended else None,
            "cost_usd": usage.cost_usd if usage else None,
            "input_tokens": usage.input_tokens if usage else None,
            "output_tokens": usage.output_tokens if usage else None,
            "cache_read_tokens": usage.cache_read_tokens if usage else None,
            "cache_write_tokens": usage.cache_write_tokens if usage else None,
            "patch": patch.path if patch else "",
            "patch_bytes": patch.size_bytes if patch else 0,
            "patch_files": patch.files if patch else 0,
            "session_id": ended.session_id if ended else "",
            "started": ended.started if ended else row.began,
            "ended": ended.ended if ended else "",
            "host": ended.host if ended else row.host,
            "engine": ended.engine if ended else "",
            "error": ended.error.message if ended and ended.error else "",
            **{name: value for name, value in provenance_of(ended).items() if name != "model"},
            "tags": " ".join(row.task.tags),
        }
        if writer is None:
            writer = csv.DictWriter(out, list(cells))
            writer.writeheader()
        formulas = {name: f"'{value}" for name, value in cells.items() if isinstance(value, str) and value.startswith(_FORMULA)}
        writer.writerow({**cells, **formulas})
    return []


def seconds_of(outcome: AttemptOutcome) -> float:
    """Wall time of an attempt; 0 for times that make no sense."""
    try:
        spent = datetime.fromisoformat(outcome.ended) - datetime.fromisoformat(outcome.started)
    except ValueError:
        return 0.0
    return max(round(spent.total_seconds(), 3), 0.0)
