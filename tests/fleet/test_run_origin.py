"""Modes and settings of a run come from a command line of its user; files loosen nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fleet.batches import results, write_tasks

pytestmark = pytest.mark.usefixtures("env")


def test_no_file_sets_a_looser_mode(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 2, mode="yolo")
    for given in ((), ("--mode", "plan")):
        refused = run_wolo("batch", "run", str(tasks), "--out", "x", *given)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert [line.partition(" is looser")[0] for line in refused.stderr.splitlines()] == [
            f"{tasks}:{line}:{len(json.dumps({'id': 't0', 'prompt': 'go'})) + 2}: mode: yolo" for line in (1, 2)
        ]
        assert not Path("x").exists()
    Path("pages.csv").write_text("name,mode\na,yolo\n")
    made = run_wolo("batch", "make", "go", "--csv", "pages.csv")
    refused = run_wolo("batch", "run", "-", "--out", "x", stdin=made.stdout)
    assert (refused.exit_code, "mode: yolo is looser than auto" in refused.stderr) == (2, True)
    assert run_wolo("batch", "run", str(tasks), "--out", "x", "--mode", "yolo").exit_code == 0


def test_foreign_run_is_continued_only_as_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 2)
    made = run_wolo("batch", "run", str(tasks), "--out", "x", "-j", "0", "--mode", "yolo", "--set", "retry.tries=1")
    assert made.exit_code == 0, made.stderr
    assert run_wolo("batch", "work", "x", "--max", "1").exit_code == 0, "the run of its maker"
    monkeypatch.setenv("WOLO_HOME", str(tmp_path / "other"))
    for command in ("work", "resume"):
        refused = run_wolo("batch", command, "x")
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "was not made here, and its maker has chosen --mode yolo, --set retry.tries=1." in refused.stderr
    assert len(results(Path("x"))) == 1
    assert run_wolo("batch", "resume", "x", "--as-saved").exit_code == 0
    assert len(results(Path("x"))) == 2


def test_foreign_run_in_usual_mode_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    assert run_wolo("batch", "run", str(tasks), "--out", "x", "-j", "0", "--mode", "plan").exit_code == 0
    monkeypatch.setenv("WOLO_HOME", str(tmp_path / "other"))
    assert run_wolo("batch", "work", "x").exit_code == 0


@pytest.mark.parametrize("changed", ["$.settings.agent.mode", "$.settings.agent.sets", "task"])
def test_a_changed_ledger_loosens_nothing(tmp_path: Path, changed: str) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    assert run_wolo("batch", "run", str(tasks), "--out", "x", "-j", "0").exit_code == 0
    with sqlite3.connect("x/ledger.db") as database:
        if changed == "task":
            database.execute("UPDATE tasks SET task = json_set(task, '$.mode', 'yolo')")
        else:
            value = "json('[\"mode=yolo\"]')" if changed.endswith("sets") else "'yolo'"
            database.execute(f"UPDATE run SET meta = json_set(meta, '{changed}', {value})")
    refused = run_wolo("batch", "resume", "x")
    assert (refused.exit_code, refused.stdout, "yolo" in refused.stderr) == (2, "", True)


def test_no_file_chooses_an_image(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1, image="img:1")
    for given in ((), ("--image", "img:2")):
        refused = run_wolo("batch", "run", str(tasks), "--out", "x", *given)
        assert (refused.exit_code, refused.stdout, Path("x").exists()) == (2, "", False)
        assert "image: img:1 would get your keys and the network; --image img:1 allows it" in refused.stderr
    assert run_wolo("batch", "run", str(tasks), "--out", "x", "-j", "0", "--image", "img:1").exit_code == 0
    with sqlite3.connect("x/ledger.db") as database:
        database.execute("UPDATE tasks SET task = json_set(task, '$.image', 'img:2')")
    refused = run_wolo("batch", "resume", "x")
    assert (refused.exit_code, "name images that were not chosen" in refused.stderr) == (2, True)


def test_images_of_somebody_else_count_only_as_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1, image="img:1")
    assert run_wolo("batch", "run", str(tasks), "--out", "x", "-j", "0", "--image", "img:1").exit_code == 0
    monkeypatch.setenv("WOLO_HOME", str(tmp_path / "other"))
    refused = run_wolo("batch", "resume", "x")
    assert (refused.exit_code, "its maker has chosen --image img:1." in refused.stderr) == (2, True)
