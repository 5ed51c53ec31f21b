"""Exports a run as one HTML file that needs no server and no other host."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

import msgspec

from wolo.fleet.exports.tables import ExportedRun, as_line, seconds_of
from wolo.fleet.ledger.outcomes import place_in
from wolo.fleet.ledger.run_rows import Row
from wolo.places import Notices

_MOST_STEPS, _STEP_CHARS = 300, 400
"""Of one task."""
_PATCH_BYTES = 200_000
_DETAILS_BYTES = 30_000_000
"""Patches and steps of all tasks together; what follows has only its row."""
_SUMMARY_KEYS = ("path", "command", "pattern", "url", "query", "description", "name")
"""Inputs of a call that say the most about it, in this order."""


def write_html(run: ExportedRun, out: TextIO) -> list[str]:
    """A filterable table; each task opens to its timeline, patch, checks and steps."""
    page = files("wolo.fleet.exports").joinpath("report.html").read_text("utf-8")
    notices = Notices()
    tasks = list(_tasks(run, notices))
    starts = [task["started_s"] for task in tasks if task["started_s"] is not None]
    data = {"name": run.name, "began_s": min(starts, default=0), "tasks": tasks}
    encoded = msgspec.json.encode(data).decode()
    # in a script element only these could end it or begin a comment
    safe = encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    page = page.replace("@TITLE@", html.escape(run.name)).replace("@POLICY@", _policy(page))
    before, after = page.split("@DATA@")
    out.writelines((before, safe, after))
    return list(notices)


def _policy(page: str) -> str:
    """Content security policy: only this page's own style and script, and no request to anywhere."""
    style, script = (re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL) for name in ("style", "script"))
    assert style is not None  # the page is ours
    assert script is not None
    hashes = [base64.b64encode(hashlib.sha256(each[1].encode()).digest()).decode() for each in (style, script)]
    return f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"


def _tasks(run: ExportedRun, notices: Notices) -> Iterator[dict[str, Any]]:
    left_bytes, without = _DETAILS_BYTES, 0
    for row in run.rows:
        task = _row(row, run.model)
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


def _row(row: Row, model: str) -> dict[str, Any]:
    ended = row.outcome
    line = as_line(row)
    return {
        **{name: line[name] for name in ("id", "state", "attempt", "cost_usd", "host", "session_id", "exit_code")},
        "model": row.task.model or model,
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
