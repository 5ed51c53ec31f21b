"""Exports a run as SWE-bench predictions, one JSON object per line."""

from __future__ import annotations

from typing import TextIO

import msgspec

from wolo.fleet.exports.exported_run import ExportedRun
from wolo.fleet.ledger.run_rows import Row

INSTANCE = "instance_id"
"""In `meta`: the instance of a task whose id is another one."""


def write_predictions(run: ExportedRun, out: TextIO) -> list[str]:
    """The fields that `swebench.harness.run_evaluation` reads. A task that changed nothing has an empty patch; one without a
    result is left out, so that the harness reports it as missing.

    Source: https://www.swebench.com/SWE-bench/guides/evaluation/
    """
    notices, left_out = [], 0
    for row in run.rows:
        if row.outcome is None or row.state in ("queued", "leased"):
            left_out += 1
            continue
        patch, notice = _patch_of(run, row)
        notices += [notice] if notice else []
        prediction = {
            "instance_id": str(row.task.meta.get(INSTANCE) or row.task.id),
            "model_name_or_path": row.task.model or run.model or "wolo",
            "model_patch": patch,
        }
        out.write(msgspec.json.encode(prediction).decode() + "\n")
    return [*notices, *([f"{left_out} tasks have no result yet and are left out."] if left_out else [])]


def _patch_of(run: ExportedRun, row: Row) -> tuple[str, str]:
    """The text of the patch, and a notice when it is not the whole one."""
    if row.outcome is None or row.outcome.patch is None:
        return "", ""
    try:
        data = row.outcome.patch.file_in(run.folder).read_bytes()
    except OSError as error:
        return "", f"{row.task.id}: its patch cannot be read, {error.strerror}; exported as empty."
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return data.decode(errors="replace"), f"{row.task.id}: its patch is not UTF-8 and may not apply."
