"""Batches that go wrong in what surrounds them: folders, limits, prices, repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import commit, git, repository
from tests.fleet.batches import results, write_tasks
from wolo.errors import UsageError
from wolo.fleet.coordinator import BatchLimits, BatchOptions, create_run
from wolo.fleet.ledger.ledger import Ledger
from wolo.fleet.ledger.ledger_folder import create_ledger
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.preflight import slow_ledger
from wolo.fleet.tasks import BatchTask


def test_an_unknown_cost_is_never_zero(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    done = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x")
    assert done.stdout.startswith("1 done · ")
    assert done.stdout.endswith(" tokens · ?\n")
    assert run_wolo("batch", "status", "x", "--json").json["cost_usd"] is None
    assert json.loads(Path("x/summary.json").read_text())["cost_usd"] is None
    assert results(Path("x"))[0]["cost_usd"] is None


def test_a_raised_limit_in_dollars_needs_prices(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    assert run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x", "-j", "0").exit_code == 0
    refused = run_wolo("batch", "resume", "x", "--max-cost", "3")
    assert (refused.exit_code, "is unknown" in refused.stderr) == (2, True)
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"queued": 1}


def test_a_run_that_cannot_be_made_leaves_nothing(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    Path("file").write_text("")
    for more in (("--out", "file/x"), ("--out", "x", "--store", "postgresql://nobody@127.0.0.1:1/none")):
        refused = run_wolo("batch", "run", "--mode", "yolo", str(tasks), *more)
        assert (refused.exit_code, "crashed" in refused.stderr) == (2, False), refused.stderr
    assert not Path("x").exists()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Ledger, "add", fail)
    with pytest.raises(UsageError, match="No space left"):
        create_run(tmp_path / "y", [BatchTask(id="t", prompt="go")], BatchOptions(), BatchLimits(), {})
    assert not (tmp_path / "y").exists()


def test_never_filled_queue_is_no_finished_run(env: dict[str, str], tmp_path: Path) -> None:
    Path("x").mkdir()
    create_ledger(Path("x"), Meta(version="1")).close()
    for command in ("resume", "status", "work"):
        refused = run_wolo("batch", command, "x")
        assert (refused.exit_code, "its queue is empty" in refused.stderr) == (2, True)
    Path("x/ledger.db").unlink()
    write_tasks(Path("x/tasks.jsonl"), 1)
    assert "x/tasks.jsonl" in run_wolo("batch", "resume", "x").stderr


def test_patch_applies_to_whole_repository_from_a_folder(env: dict[str, str], tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"deep/a.txt": "one\n"})
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/b.txt").write_text("two\n")
    lines = [{"id": name, "prompt": "go", "mode": "yolo", "repo": repo} for name, repo in (("r", "source"), ("p", "plain"))]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x").exit_code == 0
    assert run_wolo("batch", "apply", "x", "r", "--to", str(source / "deep"), "--yes").exit_code == 0
    assert git(source, "status", "--short") == "?? made.txt"
    assert run_wolo("batch", "apply", "x", "p", "--to", str(source / "deep"), "--yes").exit_code == 0
    assert (source / "deep/made.txt").read_text() == "made\n", "the folder of the task was no repository"
    again = run_wolo("batch", "apply", "x", "p", "--to", str(source / "deep"), "--yes")
    assert (again.exit_code, "already has these changes" in again.stderr) == (0, True)


def test_missing_commits_are_mistakes_of_the_file(env: dict[str, str], tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n"})
    git(source, "branch", "there")
    git(tmp_path, "init", "-q", "empty")
    wanted = [("source", "there"), ("source", "gone"), ("empty", "HEAD")]
    lines = [{"id": f"t{n}", "prompt": "go", "repo": repo, "ref": ref} for n, (repo, ref) in enumerate(wanted)]
    lines.append({"id": "t3", "prompt": "go", "repo": "empty"})
    Path("t.jsonl").write_text("".join(json.dumps(line | {"repo": str(tmp_path / line["repo"])}) + "\n" for line in lines))
    refused = run_wolo("batch", "run", "--mode", "yolo", "t.jsonl", "--out", "x")
    assert refused.exit_code == 2
    assert [line.split(":")[1] for line in refused.stderr.splitlines()] == ["2", "3", "4"]
    assert "has no branch, tag or commit gone" in refused.stderr
    assert "has no commit yet" in refused.stderr.splitlines()[2]


def test_command_killing_its_parent_costs_only_itself(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1, verify="kill -9 $PPID; sleep 60")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x").exit_code == 1
    (result,) = results(Path("x"))
    assert (result["state"], result["error"]["message"]) == (
        "failed",
        "The verify command was ended by SIGKILL (without a sandbox, with network).",
    )


def test_ledger_file_on_network_file_system_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert slow_ledger(tmp_path, "sqlite") == ""
    monkeypatch.setattr("wolo.fleet.preflight.is_remote", lambda folder: True)
    assert "network file system" in slow_ledger(tmp_path, "sqlite")
    assert slow_ledger(tmp_path, "postgresql://x") == ""


def test_tasks_naming_their_models_need_no_default(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WOLO_MODEL")
    tasks = write_tasks(tmp_path / "t.jsonl", 1, model=env["WOLO_MODEL"])
    queued = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x", "-j", "0")
    assert (queued.exit_code, queued.stderr) == (0, "")
    assert queued.stdout.startswith("1 task is queued in x. ")
    unnamed = run_wolo("batch", "run", "--mode", "yolo", str(write_tasks(tmp_path / "u.jsonl", 1)), "--out", "y", "-j", "0")
    assert (unnamed.exit_code, "A base URL needs a model." in unnamed.stderr) == (2, True)


def test_files_with_conflicts_are_named_as_they_are(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    source = repository(tmp_path / "source", {"ä b.txt": "one\n"})
    provider.otherwise = lambda asked: (
        text("Done.") if asked.results else call("shell", {"command": "echo two > 'ä b.txt'; echo c > c.txt"})
    )
    tasks = write_tasks(tmp_path / "t.jsonl", 1, repo="source")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x").exit_code == 0
    commit(source, {"ä b.txt": "other\n"})
    applied = run_wolo("batch", "apply", "x", "t0", "--yes")
    assert (applied.exit_code, "Merged with conflicts in ä b.txt." in applied.stderr) == (1, True), applied.stderr
