"""Grades the patches of a run with SWE-bench's own program, in its images: a run of it for each try, as it takes one patch of an
instance."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from wolo.errors import WoloError
from wolo.fleet.exports.export_formats import INSTANCE, write_predictions
from wolo.fleet.exports.tables import ExportedRun
from wolo.fleet.ledger.run_rows import Row

MODULE = "swebench.harness.run_evaluation"
_DATA_SET = "SWE-bench/SWE-bench_Verified"
_FIND = "import importlib.util, sys; sys.exit(importlib.util.find_spec('swebench') is None)"


class HarnessFailed(WoloError):
    """Nothing was graded."""


def find_harness() -> tuple[str, ...]:
    """The words that start it; empty: it, or docker, is not on this machine. May block."""
    if shutil.which("docker") is None:
        return ()
    for python in dict.fromkeys((sys.executable, shutil.which("python3"), shutil.which("python"))):
        if python and subprocess.run([python, "-c", _FIND], capture_output=True, check=False).returncode == 0:
            return (python, "-m", MODULE)
    return ()


def grade_rows(rows: Sequence[Row], run: ExportedRun, data: Path, harness: Sequence[str], jobs: int) -> list[Row]:
    """The rows with the states that it found; those that could not be run stay as they are. May block. Raises HarnessFailed."""
    graded = []
    for number in sorted({row.task.try_number for row in rows}):
        tried = [row for row in rows if row.task.try_number == number]
        text = io.StringIO()
        write_predictions(ExportedRun(folder=run.folder, model=run.model, rows=tried), text)
        verdicts = _verdicts(_grade(text.getvalue(), run.folder, data, harness, jobs)) if text.getvalue() else {}
        for row in tried:
            state = verdicts.get(str(row.task.meta.get(INSTANCE) or row.task.base_id))
            graded.append(replace(row, state=state) if state else row)
    return graded


def _grade(predictions: str, folder: Path, data: Path, harness: Sequence[str], jobs: int) -> dict[str, Any]:
    """The report; one of the same predictions is used again. Raises HarnessFailed."""
    name = f"wolo-{hashlib.sha256(predictions.encode()).hexdigest()[:12]}"
    place = folder / "swebench"
    place.mkdir(exist_ok=True)
    file, log = place / f"{name}.jsonl", place / f"{name}.log"
    file.write_text(predictions, "utf-8")
    if not [*place.glob(f"*.{name}.json")]:
        source = str(data.absolute()) if data.suffix in (".json", ".jsonl") else _DATA_SET
        words = ("--dataset_name", source, "--predictions_path", str(file), "--run_id", name, "--report_dir", str(place))
        with log.open("wb") as output:
            argv = [*harness, *words, "--max_workers", str(jobs)]
            done = subprocess.run(argv, cwd=place, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
        if done.returncode or not [*place.glob(f"*.{name}.json")]:
            lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()] or ["it printed nothing"]
            raise HarnessFailed(f"The program of SWE-bench ended with status {done.returncode}: {lines[-1]}", hint=f"See {log}.")
    try:
        report: dict[str, Any] = json.loads(next(place.glob(f"*.{name}.json")).read_text("utf-8"))
    except ValueError as error:
        raise HarnessFailed(f"The report of SWE-bench's program cannot be read: {error}.", hint=f"See {place}.") from error
    return report


def _verdicts(report: dict[str, Any]) -> dict[str, Any]:
    """States by instance. An error is a failure, as on the leaderboard, where the report tells those of its infrastructure."""
    is_classified = "infra_failure_ids" in report
    return {
        **dict.fromkeys(report.get("error_ids", ()), "failed" if is_classified else "errored"),
        **dict.fromkeys((*report.get("unresolved_ids", ()), *report.get("empty_patch_ids", ())), "failed"),
        **dict.fromkeys(report.get("infra_failure_ids", ()), "errored"),
        **dict.fromkeys(report.get("resolved_ids", ()), "passed"),
    }
