"""The formats in which a run is exported for other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TextIO

from wolo.fleet.exports.exported_run import ExportedRun
from wolo.fleet.exports.html_report import write_html
from wolo.fleet.exports.junit import write_junit
from wolo.fleet.exports.swebench import write_predictions
from wolo.fleet.exports.tables import write_csv, write_jsonl

WRITERS: Final[Mapping[str, Callable[[ExportedRun, TextIO], list[str]]]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "junit": write_junit,
    "swebench": write_predictions,
    "html": write_html,
}
"""Each writes UTF-8 text with its own line ends, and returns notices about what could not be exported whole."""
