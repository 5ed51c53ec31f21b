"""`wolo batch` as a user runs it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.test_limits import limit
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from tests.fakes.repositories import commit, files, git, repository
from tests.fleet.batches import agents, results, write_tasks
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.coordinator import BatchLimits, BatchOptions, create_run, make_engine
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.outcomes import Owner
from wolo.fleet.tasks import BatchTask
from wolo.fleet.workers import Workers


def test_twenty_tasks_end_once_each(env: dict[str, str], tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n"})
    tasks = write_tasks(tmp_path / "t.jsonl", 20, repo="source", verify="test -f made.txt && ! test -f no")
    with tasks.open("a") as file:
        file.write(json.dumps({"id": "bad", "prompt": "go", "verify": "exit 1"}))
    done = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "runs/x", "-j", "4", timeout=120)
    assert done.exit_code == 1, done.stderr
    assert done.stdout.startswith("20 passed, 1 failed · ")
    found = results(Path("runs/x"))
    assert sorted(result["id"] for result in found) == sorted([f"t{number}" for number in range(20)] + ["bad"])
    assert {result["attempt"] for result in found} == {1}
    with contextlib.closing(sqlite3.connect("runs/x/ledger.db")) as ledger:
        ((limit,),) = ledger.execute("SELECT state FROM limits")
    assert json.loads(limit)["count"] + json.loads(limit).get("before", 0) >= 21, "all agents share one limit"
    assert git(source, "status", "--short") == ""
    assert json.loads(Path("runs/x/summary.json").read_text())["states"] == {"failed": 1, "passed": 20}
    again = run_wolo("batch", "resume", "runs/x")
    assert (again.exit_code, results(Path("runs/x"))) == (1, found), "what has ended is not run again"
    assert run_wolo("batch", "retry", "runs/x", "--state", "failed").stdout == "1 task is queued again.\n"
    assert run_wolo("batch", "status", "runs/x", "--json").json["states"] == {"queued": 1, "passed": 20}


def test_attempts_share_a_worktree_and_see_no_trace(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n", "b.txt": "two\n", ".gitignore": "*.tmp\n"})
    look = "stat -c %i b.txt; cat a.txt; ls -A; git status --porcelain --ignored; git log --format=%s"
    spoil = "cp -p a.txt was; echo ohn >a.txt; touch -r was a.txt; touch x.tmp; (git update-index --skip-worktree a.txt) 2>&- ||:"
    provider.otherwise = lambda asked: text("Done.") if asked.results else call("shell", {"command": f"{look}; {spoil}"})
    for mode in ("auto", "yolo"):
        look += "; ls -A ../.." * (mode == "yolo")
        provider.requests.clear()
        tasks = write_tasks(tmp_path / "t.jsonl", 3, repo="source")
        assert run_wolo("batch", "run", str(tasks), "--mode", mode, "--out", mode, "-j", "1", timeout=120).exit_code == 0
        seen = [asked.results[0] for asked in provider.requests if asked.results]
        inodes = {re.search(r"\d{2,}", each)[0] for each in seen}  # type: ignore[index]  # the first line is one
        assert len({re.sub(r"\d{2,}|\bt\d-1-\d", "N", each) for each in seen}) == 1, seen
        assert len(inodes) == 1 or mode == "yolo"
        assert not any(".pool" in each for each in seen), "without a sandbox each is new"
        assert not [path for path in Path(mode, "work").iterdir() if path.name != "mirrors"]
        assert "+ohn" in next(Path(mode).glob("attempts/t2/*/patch.diff")).read_text()
    assert git(source, "status", "--short") == ""


def test_lost_cluster_is_replaced_by_another_engine(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 2)
    where = ("--engine", "ray", "--ray-address", "127.0.0.1:1")
    assert run_wolo("batch", "run", str(tasks), "--mode", "yolo", "--out", "q", "-j", "0", *where).exit_code == 0
    for wrong, told in (
        (("--engine", "moon"), "There is no engine moon"),
        (("--engine", "local", where[2], "x"), "needs --engine ray"),
    ):
        refused = run_wolo("batch", "resume", "q", *wrong)
        assert (refused.exit_code, told in refused.stderr) == (2, True)
    assert run_wolo("batch", "work", "q", "--engine", "local", "--max", "1", timeout=120).exit_code == 0
    assert run_wolo("batch", "resume", "q", "--engine", "local", timeout=120).exit_code == 0
    assert [line["engine"] for line in results(Path("q"))] == ["local", "local"]


def test_limits_of_settings_hold_for_all_agents(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    limits = ("--set", "batch.requests_per_minute=9000", "--set", "batch.tokens_per_minute=8000000")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "q", *limits).exit_code == 0
    with contextlib.closing(sqlite3.connect("q/ledger.db")) as ledger:
        ((limit,),) = ledger.execute("SELECT state FROM limits")
    assert (json.loads(limit)["requests"], json.loads(limit)["tokens"]) == (9000, 8000000)


def test_key_sleeps_until_its_limit_ends(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    answer, ends = provider.otherwise, []

    def limited(asked: Asked) -> Reply:
        ends.append(time.time() + 6 if not ends else ends[0])
        left_s = ends[0] - time.time()
        return limit(left_s) if left_s > 0 else answer(asked)

    provider.otherwise = limited
    tasks = write_tasks(tmp_path / "t.jsonl", 3)
    done = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "runs/x", "-j", "3", timeout=120)
    assert done.exit_code == 0, done.stderr
    assert [(each["state"], each["attempt"]) for each in results(Path("runs/x"))] == [("done", 1)] * 3
    assert len(provider.requests) <= 6 + 3, "the key sleeps for all tasks"
    with contextlib.closing(sqlite3.connect("runs/x/ledger.db")) as ledger:
        ((state,),) = ledger.execute("SELECT state FROM limits")
    assert "pace" not in json.loads(state) or json.loads(state)["pace"] is None


def test_task_file_mistakes_are_named_without_a_folder(env: dict[str, str]) -> None:
    Path("t.jsonl").write_text('{"id": "a"}\n{"id": "b", "prompt": "x", "model": "a b"}\n')
    done = run_wolo("batch", "run", "--mode", "yolo", "t.jsonl", "--out", "runs/x")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "t.jsonl:1:1: a prompt is missing",
        "t.jsonl:2:28: model: 'a b' is not a model; write PROVIDER/MODEL",
    ]
    assert not Path("runs").exists()


def test_queue_is_made_first_and_worked_later(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 3)
    assert (
        run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "q", "-j", "0", "--set", "batch.lease_s=7").exit_code == 0
    )
    with sqlite3.connect("q/ledger.db") as database:
        assert database.execute("SELECT json_extract(meta, '$.lease_s') FROM run").fetchone() == (7.0,)
    refused = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "q")
    assert (refused.exit_code, "batch resume" in refused.stderr) == (2, True)
    assert run_wolo("batch", "work", "q", "--max", "1").exit_code == 0
    assert run_wolo("batch", "status", "q", "--json").json["states"] == {"queued": 2, "done": 1}
    with sqlite3.connect("q/ledger.db") as database:
        database.execute("UPDATE run SET meta = json_set(meta, '$.version', '0.0.1')")
    other = run_wolo("batch", "work", "q")
    assert (other.exit_code, "--any-version" in other.stderr) == (2, True)
    assert run_wolo("batch", "work", "q", "--any-version").exit_code == 0
    assert [result["state"] for result in results(Path("q"))] == ["done"] * 3


def test_run_budget_leaves_tasks_in_the_queue(env: dict[str, str], tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "t.jsonl", 3)
    done = run_wolo("batch", "run", "--mode", "yolo", str(tasks), "--out", "x", "-j", "1", "--max-tokens", "300")
    states = run_wolo("batch", "status", "x", "--json").json["states"]
    assert (done.exit_code, states) == (1, {"queued": 1, "done": 1, "budget": 1})


def _wait_until(condition: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_interrupt_drains_and_two_cancel(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    write_tasks(tmp_path / "t.jsonl", 3, prompt="HOLD ON")
    with start_wolo(
        "batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", "-j", "2", forked=False
    ) as running:
        provider.wait_for_requests(2, 60)
        running.send_signal(signal.SIGINT)
        assert running.stderr is not None
        assert b"Finishing 2 running tasks" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 1
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"queued": 1, "cancelled": 2}
    assert agents(Path("x")) == []


def test_killed_coordinator_stops_all_and_resume_completes_once(
    env: dict[str, str], tmp_path: Path, provider: ProviderServer
) -> None:
    write_tasks(tmp_path / "t.jsonl", 5, prompt="HOLD ON")
    with start_wolo(
        "batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", "-j", "2", forked=False
    ) as running:
        provider.wait_for_requests(2, 60)
        running.kill()
        running.wait(30)
    _wait_until(lambda: not agents(Path("x")))
    assert len(list(Path("x/work").iterdir())) == 2
    provider.otherwise = text("Done.")
    done = run_wolo("batch", "resume", "x", "-j", "2", timeout=60)
    assert done.exit_code == 0, done.stderr
    assert sorted((result["id"], result["state"]) for result in results(Path("x"))) == [(f"t{n}", "done") for n in range(5)]
    assert {result["attempt"] for result in results(Path("x"))} == {1, 2}
    assert [*Path("x/work").iterdir(), *Path("x/attempts").glob("*/.*")] == [], "what the killed one left is removed"


def test_killed_agent_is_lost_and_its_task_reruns(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    write_tasks(tmp_path / "t.jsonl", 1, prompt="HOLD ON")
    with start_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", forked=False) as running:
        for attempt in (1, 2, 3):
            provider.wait_for_requests(attempt, 60)
            os.kill(min(agents(Path("x"))), signal.SIGKILL)
        assert running.wait(60) == 2
    (result,) = results(Path("x"))
    assert (result["state"], result["attempt"], result["error"]["kind"]) == ("lost", 3, "killed")


async def test_a_worker_that_was_given_up_publishes_nothing(env: dict[str, str], tmp_path: Path) -> None:
    run = tmp_path / "x"
    options = BatchOptions(agent=AgentSettings(mode="yolo"))
    ledger = create_run(run, [BatchTask(id="t", prompt="HOLD ON")], options, BatchLimits(), {}, lease_s=2)
    here = Host().owner()
    ended = subprocess.Popen(["true"])
    ended.wait()
    engine = make_engine(run, options)
    zombie = Workers(ledger, engine, Owner(here.host, ended.pid, here.started), 1)
    await asyncio.wait_for(zombie.run(), 60)
    assert [(result["state"], result["attempt"]) for result in results(run)] == [("lost", 3)]
    assert list((run / "attempts/t").iterdir()) == []
    await engine.close()
    ledger.close()


def test_a_patch_is_shown_applied_once_and_merged(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    source = repository(tmp_path / "source", {"made.txt": "".join(f"{n}\n" for n in range(20))})
    write_tasks(tmp_path / "t.jsonl", 1, repo="source")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x").exit_code == 0
    shown = run_wolo("batch", "apply", "x", "t0")
    assert (shown.exit_code, "+made" in shown.stdout) == (2, True)
    files(source, {"made.txt": "unsaved\n"})
    refused = run_wolo("batch", "apply", "x", "t0", "--yes")
    assert (refused.exit_code, "uncommitted changes" in refused.stderr) == (1, True)
    git(source, "checkout", "made.txt")
    commit(source, {"made.txt": "first\n" + "".join(f"{n}\n" for n in range(20))})
    assert run_wolo("batch", "apply", "x", "t0", "--yes").exit_code == 0
    assert (source / "made.txt").read_text().endswith("19\nmade\n")
    again = run_wolo("batch", "apply", "x", "t0", "--yes")
    assert (again.exit_code, "already has these changes" in again.stderr) == (0, True)
    assert run_wolo("batch", "apply", "x", "t9").exit_code == 2
    assert "made.txt" not in run_wolo("batch", "show", "x", "t0").stdout


def test_run_is_exported_whole_or_not_at_all(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    write_tasks(tmp_path / "t.jsonl", 2)
    assert run_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", "-j", "0").exit_code == 0
    assert run_wolo("batch", "work", "x", "--max", "1").exit_code == 0
    exported = run_wolo("batch", "export", "x", "--format", "jsonl")
    assert [line["state"] for line in exported.lines] == ["done", "queued"], "also of a run that has not ended"
    predictions = run_wolo("batch", "export", "x", "--format", "swebench")
    assert ["made.txt" in line["model_patch"] for line in predictions.lines] == [True]
    assert "1 task without a result left out." in predictions.stderr
    for format in ("csv", "junit", "html"):
        shown = run_wolo("batch", "export", "x", "--format", format)
        written = run_wolo("batch", "export", "x", "--format", format, "--out", f"out.{format}")
        assert (written.exit_code, written.stdout, written.stderr) == (0, "", "")
        assert Path(f"out.{format}").read_bytes().decode() == shown.stdout != ""
    full = run_wolo("batch", "export", "x", "--format", "html", "--out", "/dev/full")
    assert (full.exit_code, full.stderr) == (1, "wolo: Cannot write /dev/full: no space left on device.\n")
    gone = run_wolo("batch", "export", "x", "--format", "csv", "--out", "none/out.csv")
    assert (gone.exit_code, "no such file or directory" in gone.stderr) == (1, True)
    for wrong in (("x", "--format", "pdf"), ("nowhere", "--format", "csv")):
        assert run_wolo("batch", "export", *wrong).exit_code == 2


def test_tasks_are_made_from_files_and_rows(tmp_path: Path) -> None:
    files(Path(), {"src/a.py": "", "src/deep/b.py": "", "t.csv": 'name,id\n"x, ""y""",one\nz,\n'})
    made = run_wolo("batch", "make", "fix {path} {{now}}", "src/**/*.py", "--verify", "true").lines
    here = str(Path.cwd())
    assert made == [
        {"id": "src-a.py", "prompt": "fix src/a.py {now}", "repo": here, "verify": "true"},
        {"id": "src-deep-b.py", "prompt": "fix src/deep/b.py {now}", "repo": here, "verify": "true"},
    ]
    rows = run_wolo("batch", "make", "do {name}", "--csv", "t.csv").lines
    assert [(row["id"], row["prompt"]) for row in rows] == [("one", 'do x, "y"'), ("z", "do z")]
    for argv in (("{pat}", "*"), ("x", "*.none"), ("{", "*"), ("x",), ("{nam}", "--csv", "t.csv"), ("x", "--csv", "gone")):
        refused = run_wolo("batch", "make", *argv)
        assert (refused.exit_code, refused.stdout) == (2, ""), argv


def test_full_disk_stops_the_run_and_resume_continues(env: dict[str, str], tmp_path: Path) -> None:
    write_tasks(tmp_path / "t.jsonl", 2, verify="head -c 3000000 /dev/zero | tr '\\0' x > big; cat big")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", "-j", "0").exit_code == 0
    limited = "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)); os.execv(sys.executable, sys.argv[1:])"
    limit = f"import os, resource, sys; {limited}"
    argv = [sys.executable, "-c", limit, sys.executable, "-m", "wolo", "batch", "resume", "x", "-j", "1"]
    full = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert full.returncode == 2, full.stderr
    assert "Traceback" not in full.stderr
    done = run_wolo("batch", "resume", "x")
    assert done.exit_code in (0, 2), done.stderr
    assert len(results(Path("x"))) == 2


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_tasks_survive_agent_and_coordinator_kills(env: dict[str, str], tmp_path: Path) -> None:
    repository(tmp_path / "source", {"a.txt": "one\n"})
    write_tasks(tmp_path / "t.jsonl", 200, repo="source", verify="test -f made.txt")
    run = Path("x")
    assert run_wolo("batch", "run", "--mode", "yolo", str(tmp_path / "t.jsonl"), "--out", "x", "-j", "0").exit_code == 0
    chance, kills = random.Random(7), 0
    for _ in range(20):
        with start_wolo("batch", "resume", "x", "-j", "4", forked=False) as running:
            for _ in range(3):
                time.sleep(chance.uniform(0.5, 2))  # any moment will do
                if running.poll() is None and (running_agents := agents(run)) and kills < 50:
                    with contextlib.suppress(ProcessLookupError):  # it may end by itself now
                        os.kill(chance.choice(running_agents), signal.SIGKILL)
                        kills += 1
            running.kill()
            running.wait()
        _wait_until(lambda: not agents(run))
    run_wolo("batch", "resume", "x", "-j", "4", timeout=600)
    while run_wolo("batch", "retry", "x", "--state", "lost,errored,failed").stdout != "0 tasks are queued again.\n":
        run_wolo("batch", "resume", "x", "-j", "4", timeout=600)
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"passed": 200}
    passed = [result["id"] for result in results(run) if result["state"] == "passed"]
    assert len(passed) == len(set(passed)) == 200
    assert [path.name for path in (run / "work").iterdir() if path.name != "mirrors"] == []


def test_refused_key_stops_run_and_retry_finds_tasks(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    answers = provider.otherwise
    provider.otherwise = lambda asked: error(402, {"error": {"message": "Insufficient balance"}})
    done = run_wolo("batch", "run", str(write_tasks(tmp_path / "t.jsonl", 5)), "--out", "x", "-j", "1")
    assert done.exit_code == 2, done.stderr
    status = run_wolo("batch", "status", "x", "--json").json
    assert status["states"] == {"errored": 1, "queued": 4}
    assert len(status["stopped"]) == 1
    assert status["stopped"][0].startswith("custom refuses: ")
    assert "Insufficient balance" in status["stopped"][0]
    assert f"stopped: {status['stopped'][0]}" in done.stdout
    assert json.loads(Path("x/summary.json").read_text())["stopped"] == status["stopped"]
    asked = len(provider.requests)
    assert run_wolo("batch", "work", "x").exit_code == 2, "another worker starts nothing"
    assert len(provider.requests) == asked
    provider.otherwise = answers
    assert "1 task is queued again" in run_wolo("batch", "retry", "x", "--state", "errored").stdout
    assert run_wolo("batch", "work", "x").exit_code == 0
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"done": 5}


def test_max_errors_stops_the_run(env: dict[str, str], tmp_path: Path, provider: ProviderServer) -> None:
    provider.otherwise = lambda asked: error(400, {"error": {"message": "no such parameter"}})
    tasks = str(write_tasks(tmp_path / "t.jsonl", 6))
    done = run_wolo("batch", "run", tasks, "--out", "x", "-j", "1", "--max-errors", "2")
    assert (done.exit_code, "stopped: 2 tasks errored, the last with: " in done.stdout) == (2, True)
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"errored": 2, "queued": 4}
    assert run_wolo("batch", "resume", "x", "-j", "1", "--max-errors", "1").exit_code == 2
    assert run_wolo("batch", "status", "x", "--json").json["states"] == {"errored": 3, "queued": 3}
    assert run_wolo("batch", "run", tasks, "--out", "y", "--max-errors", "0").exit_code == 2
