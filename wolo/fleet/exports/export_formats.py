"""Exports a run for other programs: JUnit XML, SWE-bench predictions, and those of tables and reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TextIO
from xml.sax.saxutils import escape, quoteattr

import msgspec

from wolo.fleet.exports.html_report import write_html
from wolo.fleet.exports.tables import ExportedRun, seconds_of, write_csv, write_jsonl
from wolo.fleet.ledger.run_rows import Row

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may contain."""
_FAILED, _BROKEN, _ENDED_WELL = ("failed", "timeout", "budget"), ("errored", "lost"), ("passed", "done")


def write_junit(run: ExportedRun, out: TextIO) -> list[str]:
    """One test case per task: `failure` if it failed, `error` for infrastructure, `skipped` without a result."""
    rows = run.rows
    states = [row.state for row in rows]
    failed, broken = (sum(state in some for state in states) for some in (_FAILED, _BROKEN))
    skipped = len(rows) - failed - broken - sum(state in _ENDED_WELL for state in states)
    total_s = sum(seconds_of(row.outcome) for row in rows if row.outcome)
    counts = f'tests="{len(rows)}" failures="{failed}" errors="{broken}" skipped="{skipped}" time="{total_s:.3f}"'
    started = min((row.began for row in rows if row.began), default="")
    when = f" timestamp={_attribute(started[:19])}" if started else ""
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    out.write(f"<testsuites {counts}>\n<testsuite name={_attribute(run.name)} {counts}{when}>\n")
    for row in rows:
        _write_case(row, run.name, out)
    out.write("</testsuite>\n</testsuites>\n")
    return []


def _write_case(row: Row, suite: str, out: TextIO) -> None:
    ended = row.outcome
    spent_s = seconds_of(ended) if ended else 0.0
    out.write(f'<testcase classname={_attribute(suite)} name={_attribute(row.task.id)} time="{spent_s:.3f}">')
    message = ended.error.message if ended and ended.error else ""
    if row.state in _FAILED or row.state in _BROKEN:
        element = "failure" if row.state in _FAILED else "error"
        kind = ended.error.kind if ended and ended.error else row.state
        out.write(f"<{element} type={_attribute(kind)} message={_attribute(message or row.state)}/>")
    elif row.state not in _ENDED_WELL:
        out.write(f"<skipped message={_attribute(message or row.state)}/>")
    if ended and ended.verify and ended.verify.tail:
        out.write(f"<system-out>{_text(ended.verify.tail)}</system-out>")
    out.write("</testcase>\n")


def _text(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


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


WRITERS: Final[Mapping[str, Callable[[ExportedRun, TextIO], list[str]]]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "junit": write_junit,
    "swebench": write_predictions,
    "html": write_html,
}
"""Each writes UTF-8 text with its own line ends, and returns notices about what could not be exported whole."""
