"""Exports a run as a JUnit XML file, which CI systems show."""

from __future__ import annotations

import re
from typing import TextIO
from xml.sax.saxutils import escape, quoteattr

from wolo.fleet.exports.exported_run import ExportedRun
from wolo.fleet.exports.tables import seconds_of
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
