"""Exports a run: JUnit XML, SWE-bench predictions, tables, and a report in one HTML file that needs no server."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TextIO
from xml.sax.saxutils import escape, quoteattr

import msgspec

from wolo.fleet.exports.tables import ExportedRun, as_line, seconds_of, write_csv, write_jsonl
from wolo.fleet.ledger.outcomes import place_in
from wolo.fleet.ledger.results_file import provenance_of
from wolo.fleet.ledger.run_rows import Row
from wolo.messages.terminal_text import quantity
from wolo.places import Notices

_MOST_STEPS, _STEP_CHARS = 300, 400
"""Of one task."""
_PATCH_BYTES = 200_000
_DETAILS_BYTES = 30_000_000
"""Patches and steps of all tasks together; what follows has only its row."""
_NOT_TRIED = ("queued", "leased", "errored", "lost", "cancelled")
_SUMMARY_KEYS = ("path", "command", "pattern", "url", "query", "description", "name")
"""Inputs of a call that say the most about it, in this order."""


def write_html(run: ExportedRun, out: TextIO) -> list[str]:
    """A filterable table; each task opens to its timeline, patch, checks and steps."""
    page = files("wolo.fleet.exports").joinpath("report.html").read_text("utf-8")
    notices = Notices()
    # Content security policy: only this page's own style and script, and no request to anywhere.
    style, script = (re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL) for name in ("style", "script"))
    assert style is not None  # the page is ours
    assert script is not None
    hashes = [base64.b64encode(hashlib.sha256(each[1].encode()).digest()).decode() for each in (style, script)]
    page = page.replace("@TITLE@", html.escape(run.name)).replace(
        "@POLICY@", f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    )
    before, after = page.split("@DATA@")
    out.write(before + f'{{"name":{_in_script(run.name)},"tasks":[')
    began_s: float | None = None
    for number, task in enumerate(_tasks(run, notices)):
        out.write("," * (number > 0) + _in_script(task))
        began_s = min((each for each in (began_s, task["started_s"]) if each is not None), default=None)
    out.write(f'],"began_s":{began_s or 0}}}' + after)
    return list(notices)


def _in_script(value: object) -> str:
    """In a script element only these characters could end it or begin a comment."""
    encoded = msgspec.json.encode(value).decode()
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _tasks(run: ExportedRun, notices: Notices) -> Iterator[dict[str, Any]]:
    left_bytes, without = _DETAILS_BYTES, 0
    for row in run.rows:
        ended = row.outcome
        line = as_line(row)
        task = {
            "id": row.task.id,  # also of a try
            **{name: line[name] for name in ("state", "attempt", "cost_usd", "host", "session_id", "exit_code")},
            "model": run.model_of(row),
            "made_with": provenance_of(ended),
            "tags": row.task.tags,
            "prompt": row.task.prompt[:2000],
            "repo": row.task.repo,
            "tokens": ended.usage.tokens if ended else row.tokens,
            "seconds": seconds_of(ended) if ended else None,
            "started_s": _epoch(ended.started if ended else row.began),
            "error": ended.error.message if ended and ended.error else "",
            "verify": msgspec.to_builtins(ended.verify) if ended and ended.verify else None,
            "files": ended.patch.files if ended and ended.patch else 0,
            "patch_path": ended.patch.path if ended and ended.patch else "",
        }
        if row.outcome is not None and left_bytes > 0:
            stream = place_in(run.folder, f"attempts/{row.task.id}/{row.attempt}-{row.fence}/stream.jsonl")
            patch = row.outcome.patch
            details = {
                "patch": _beginning(patch.file_in(run.folder), patch.size_bytes) if patch else "",
                "steps": _steps(stream),
            }
            left_bytes -= sum(len(str(value)) for value in details.values())
            task |= details
        elif row.outcome is not None:
            without += 1
        yield task
    if without:
        notices.add(f"The report is full: {without} tasks have their row, but no patch and no steps.")


def _epoch(time: str) -> float | None:
    try:
        return round(datetime.fromisoformat(time).timestamp(), 3)
    except ValueError:
        return None


def _beginning(path: Path, size_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_PATCH_BYTES).decode(errors="replace")
    except OSError as error:
        return f"(cannot be read: {error.strerror})"
    return text if size_bytes <= _PATCH_BYTES else f"{text}\n… {size_bytes - _PATCH_BYTES:,} more bytes in {path}"


def _steps(stream: Path) -> list[dict[str, Any]]:
    """What the agent said and called, in order; a damaged line is skipped."""
    steps: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    try:
        lines = stream.open("rb")
    except OSError:
        return steps
    with lines:
        for line in lines:
            try:
                event = msgspec.json.decode(line)
                content = event["message"]["content"]
                items = [item for item in content if isinstance(item, dict)]
            except (msgspec.DecodeError, KeyError, TypeError):
                continue
            for item in items:
                match item.get("type"):
                    case "text":
                        steps.append({"kind": "text", "text": str(item.get("text", ""))[:_STEP_CHARS]})
                    case "tool_use":
                        given = item.get("input")
                        inputs = given if isinstance(given, dict) else {}
                        summary = next((inputs[key] for key in _SUMMARY_KEYS if key in inputs), "")
                        call = {
                            "kind": "call",
                            "tool": str(item.get("name", "")),
                            "text": str(summary)[:_STEP_CHARS],
                            "failed": False,
                        }
                        calls[str(item.get("id"))] = call
                        steps.append(call)
                    case "tool_result" if str(item.get("tool_use_id")) in calls:
                        calls[str(item["tool_use_id"])]["failed"] = bool(item.get("is_error"))
            if len(steps) >= _MOST_STEPS:
                return [*steps, {"kind": "text", "text": "…"}]
    return steps


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML 1.0 document may contain."""
_FAILED, _BROKEN, _ENDED_WELL = ("failed", "timeout", "budget"), ("errored", "lost"), ("passed", "done")


def write_junit(run: ExportedRun, out: TextIO) -> list[str]:
    """One test case per task: `failure` if it failed, `error` for infrastructure, `skipped` without a result."""
    num: Counter[str] = Counter()
    total_s, started = 0.0, ""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as cases:  # their numbers come before them
        for row in run.rows:
            num["tests"] += 1
            num["failures"] += row.state in _FAILED
            num["errors"] += row.state in _BROKEN
            num["skipped"] += row.state not in (*_FAILED, *_BROKEN, *_ENDED_WELL)
            total_s += seconds_of(row.outcome) if row.outcome else 0.0
            started = min(filter(None, (started, row.began)), default="")
            _write_case(run.name, row, cases)
        counts = (
            " ".join(f'{name}="{num[name]}"' for name in ("tests", "failures", "errors", "skipped")) + f' time="{total_s:.3f}"'
        )
        when = f" timestamp={_attribute(started[:19])}" if started else ""
        out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        out.write(f"<testsuites {counts}>\n<testsuite name={_attribute(run.name)} {counts}{when}>\n")
        cases.seek(0)
        shutil.copyfileobj(cases, out)
    out.write("</testsuite>\n</testsuites>\n")
    return []


def _write_case(suite: str, row: Row, out: TextIO) -> None:
    ended = row.outcome
    spent_s = seconds_of(ended) if ended else 0.0
    out.write(f'<testcase classname={_attribute(suite)} name={_attribute(row.task.id)} time="{spent_s:.3f}">')
    made_with = [(name, str(value)) for name, value in provenance_of(ended).items() if value]
    lines = (f"<property name={_attribute(name)} value={_attribute(value)}/>" for name, value in made_with)
    out.write(f"<properties>{''.join(lines)}</properties>" if made_with else "")
    message = ended.error.message if ended and ended.error else ""
    if row.state in _FAILED or row.state in _BROKEN:
        element = "failure" if row.state in _FAILED else "error"
        kind = ended.error.kind if ended and ended.error else row.state
        out.write(f"<{element} type={_attribute(kind)} message={_attribute(message or row.state)}/>")
    elif row.state not in _ENDED_WELL:
        out.write(f"<skipped message={_attribute(message or row.state)}/>")
    if ended and ended.verify and ended.verify.tail:
        tail = _NOT_IN_XML.sub("\ufffd", ended.verify.tail)
        out.write(f"<system-out>{escape(tail)}</system-out>")
    out.write("</testcase>\n")


def _attribute(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


INSTANCE = "instance_id"
"""In `meta`: the instance of a task whose id is another one."""


def write_predictions(run: ExportedRun, out: TextIO) -> list[str]:
    """The fields that `swebench.harness.run_evaluation` reads. A task that changed nothing has an empty patch; one that has no
    result, or could not be run, is left out, so that the harness reports it as missing. Of several tries the first is written,
    as an instance has one patch.

    Source: https://www.swebench.com/SWE-bench/guides/evaluation/
    """
    notices, left_out, num_further = [], 0, 0
    instances = set[str]()
    for row in run.rows:
        if row.outcome is None or row.state in _NOT_TRIED:
            left_out += 1
            continue
        instance = str(row.task.meta.get(INSTANCE) or row.task.base_id)
        if instance in instances:
            num_further += 1
            continue
        instances.add(instance)
        patch, notice = _patch_of(run, row)
        notices += [notice] if notice else []
        prediction = {
            "instance_id": instance,
            "model_name_or_path": run.model_of(row) or "wolo",
            "model_patch": patch,
        }
        out.write(msgspec.json.encode(prediction).decode() + "\n")
    notices += [f"{quantity(left_out, 'task')} without a result left out."] if left_out else []
    notices += [f"{num_further} further tries are left out: the harness takes one patch of an instance."] if num_further else []
    return notices


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
