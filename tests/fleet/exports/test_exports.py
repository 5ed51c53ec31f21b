"""Exports of a run that another program reads: every row, the right fields, and hostile text stays text."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import tracemalloc
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.fakes.repositories import repository
from tests.frontends.server.test_web_page import all_of, browser, say_in, wait
from wolo.fleet.exports.export_formats import WRITERS
from wolo.fleet.exports.tables import ExportedRun
from wolo.fleet.ledger.ledger_folder import create_ledger
from wolo.fleet.ledger.outcomes import AttemptOutcome, Failure, Patch, Spent, State, VerifyResult
from wolo.fleet.ledger.run_rows import Meta, Row
from wolo.fleet.tasks import BatchTask

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> ]]> \x00\x1b[31m & \u2028 =1+1"
PATCH = """diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
"""


def row(id: str, state: State, *, error: str = "", patch: Patch | None = None, tail: str = "", **task: object) -> Row:
    ended = state not in ("queued", "leased")
    outcome = AttemptOutcome(
        state=state,  # type: ignore[arg-type]  # an ended one
        exit_code=0,
        session_id="session_1",
        patch=patch,
        verify=VerifyResult(1 if state == "failed" else 0, 0.5, tail) if tail else None,
        usage=Spent(10, 5, cost_usd=None if state == "errored" else 0.01),
        started="2026-01-02T03:04:05.000+00:00",
        ended="2026-01-02T03:04:07.500+00:00",
        host="here",
        engine="local",
        error=Failure("verify", error) if error else None,
    )
    return Row(
        task=BatchTask(id=id, prompt=HOSTILE, **task),  # type: ignore[arg-type]
        key="k" * 64,
        state=state,
        attempt=1 if ended else 0,
        fence=3,
        host="here",
        began="2026-01-02T03:04:05.000+00:00" if ended else "",
        note="",
        tokens=15,
        cost_usd=0.01,
        outcome=outcome if ended else None,
    )


@pytest.fixture
def exported(tmp_path: Path) -> ExportedRun:
    place = tmp_path / "x" / "attempts/good/1-3"
    place.mkdir(parents=True)
    (place / "patch.diff").write_text(PATCH)
    steps = [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": HOSTILE}]}},
        {
            "type": "assistant",
            "message": {"content": [{"type": "tool_use", "id": "c", "name": "edit", "input": {"path": "a.txt"}}]},
        },
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True}]}},
    ]
    (place / "stream.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps) + '{"torn')
    kept = Patch("attempts/good/1-3/patch.diff", "0" * 64, len(PATCH), 1)
    rows = (
        row("good", "passed", patch=kept, tail="ok\n", meta={"instance_id": "astropy__astropy-1"}, model="zai/glm-5.2"),
        row("bad", "failed", error=HOSTILE, tail=HOSTILE, tags=("slow",)),
        row("broken", "errored", error="the worker vanished"),
        row("late", "timeout"),
        row("waiting", "queued"),
    )
    return ExportedRun(folder=tmp_path / "x", model="default/m", rows=rows)


def export(run: ExportedRun, name: str) -> tuple[str, list[str]]:
    out = io.StringIO()
    notices = WRITERS[name](run, out)
    return out.getvalue(), notices


def test_json_lines_hold_result_fields_of_every_task(exported: ExportedRun) -> None:
    lines = [json.loads(line) for line in export(exported, "jsonl")[0].rstrip("\n").split("\n")]
    assert [(line["id"], line["state"]) for line in lines] == [(each.task.id, each.state) for each in exported.rows]
    wanted = "id try key attempt state session_id exit_code patch verify usage cost_usd started ended host engine error"
    made = "model model_resolved thinking wolo_version prefix_hash image_digest verify_hash sandbox tags meta"
    assert {tuple(line) for line in lines} == {(*wanted.split(), *made.split())}
    assert lines[2]["cost_usd"] is None, "an unknown price is never 0"


def test_csv_is_a_table_without_formulas(exported: ExportedRun) -> None:
    formula = row("=1+1", "failed", error="=cmd|' /C calc'!A0")
    text, _ = export(ExportedRun(folder=exported.folder, model="m", rows=(*exported.rows, formula)), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [each["state"] for each in rows] == ["passed", "failed", "errored", "timeout", "queued", "failed"]
    assert rows[0]["seconds"] == "2.5"
    assert rows[-1]["id"] == "'=1+1"
    assert rows[-1]["error"].startswith("'=")


def test_junit_counts_each_task_once(exported: ExportedRun) -> None:
    suite = ElementTree.fromstring(export(exported, "junit")[0])[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    assert [[part.tag for part in case] for case in suite] == [
        ["system-out"],
        ["failure", "system-out"],
        ["error"],
        ["failure"],
        ["skipped"],
    ]


def test_predictions_hold_harness_fields_and_applicable_patches(exported: ExportedRun, tmp_path: Path) -> None:
    text, notices = export(exported, "swebench")
    good, *others = map(json.loads, text.splitlines())
    assert [good["instance_id"], good["model_name_or_path"]] == ["astropy__astropy-1", "zai/glm-5.2"]
    assert [list(other.values()) for other in others] == [[id, "default/m", ""] for id in ("bad", "late")]
    assert notices == ["2 tasks without a result left out."]
    source = repository(tmp_path / "source", {"a.txt": "one\n"})
    subprocess.run(["git", "apply", "--check", "-"], cwd=source, input=good["model_patch"].encode(), check=True)


@pytest.mark.parametrize("name", WRITERS)
def test_large_run_is_never_whole_in_memory(run: Path, name: str) -> None:
    ledger = create_ledger(run, Meta(version="1"))
    ledger.add((BatchTask(id=f"t{number}", prompt="x" * 4000), str(number)) for number in range(3000))
    with (run / "out").open("w", encoding="utf-8") as out:
        tracemalloc.start()
        WRITERS[name](ExportedRun(folder=run, model="m", rows=ledger.each_row()), out)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 8_000_000, "the tasks are 12 MB, and as much again when they are read"
    assert [each.task.id for each in ledger.each_row()] == [each.task.id for each in ledger.rows()]
    ledger.close()


def test_report_filters_opens_and_keeps_hostile_text_inert(exported: ExportedRun, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(export(exported, "html")[0])
    with browser() as driver:
        driver.get(page.as_uri())
        assert [len(all_of(driver, "#rows > tr")), len(all_of(driver, "#rows svg rect.span"))] == [5, 4]
        driver.find_element("css selector", "#rows button").click()
        opened = wait(driver, lambda: all_of(driver, ".details"))[0].text
        assert all(words in opened for words in (HOSTILE[:20], "edit a.txt (failed)", "+two", "exit code 0"))
        say_in(driver, "text", "vanished")
        wait(driver, lambda: [each.text for each in all_of(driver, "#rows td.id")] == ["broken"])
        assert "owned" not in driver.title
        assert driver.get_log("browser") == [], "also nothing that the policy refused"
