"""Attempts: a fresh worktree, a real `wolo -p` in it, and what is left afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import Hold, call, delta, error, sse, text
from tests.fakes.repositories import commit, git, repository
from wolo.fleet.agent_run import AgentSettings, AgentStream, Allowance
from wolo.fleet.attempts import AttemptRunner, AttemptView
from wolo.fleet.bounded_programs import run_bounded
from wolo.fleet.ledger.outcomes import AttemptOutcome, Lease, Owner
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.tasks import BatchTask, Resources, TaskBudget
from wolo.workspace.processes.process_runner import Processes, ProgramStart


@pytest.fixture(autouse=True)
def model(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    provider.linted = False  # every attempt is a conversation of its own
    monkeypatch.setenv("WOLO_BASE_URL", provider.base_url)
    monkeypatch.setenv("WOLO_API_KEY", KEY)
    monkeypatch.setenv("WOLO_MODEL", f"custom/{MODEL}")
    return provider


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return repository(tmp_path / "source", {"a.txt": "one\n", ".gitignore": "*.tmp\n", "deep/b.txt": "two\n"})


def worktree(tmp_path: Path) -> Path:
    return RunFolder(tmp_path / "run").work("t-1-7")


async def attempt(tmp_path: Path, *, sets: tuple[str, ...] = (), **fields: Any) -> AttemptOutcome:
    folder = RunFolder(tmp_path / "run")
    folder.make()
    runner = AttemptRunner(folder, AgentSettings(sets=("retry.tries=1", *sets)), "local")
    lease = Lease(BatchTask(**{"id": "t", "prompt": "go", **fields}), "key", 1, 7, Owner("here", 1, "0"))
    try:
        return await runner.run(lease, Allowance(), AttemptView(lease))
    finally:
        runner.close()


def state_of(folder: Path) -> str:
    """Content, modes and times of everything in it."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        there = path.lstat()
        found.update(repr((str(path), there.st_mode, there.st_mtime_ns, there.st_ctime_ns, there.st_nlink)).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()


async def test_attempt_leaves_patch_log_session_and_untouched_source(
    provider: ProviderServer, source: Path, tmp_path: Path
) -> None:
    before = state_of(source)
    command = (
        "printf 'three\\n' > a.txt; printf '\\0\\1' > new.bin; touch x.tmp; rm deep/b.txt; git commit -qam wip; echo 2 > c.txt"
    )
    provider.script(call("shell", {"command": command}), text("Done."))
    done = await attempt(tmp_path, repo=str(source), verify="test -f c.txt && echo fine", mode="yolo")
    assert (done.state, done.exit_code, done.error) == ("passed", 0, None), (provider.requests, provider.problems)
    assert done.verify is not None
    assert (done.verify.exit_code, done.verify.tail) == (0, "fine\n")
    assert done.usage.tokens > 0
    assert state_of(source) == before
    assert done.patch is not None
    assert (done.patch.path, done.patch.files) == ("attempts/t/1-7/patch.diff", 4)
    place = tmp_path / "run/attempts/t/1-7"
    assert {path.name for path in place.iterdir()} == {"patch.diff", "log", "stream.jsonl", "verify.log", "session"}
    assert not worktree(tmp_path).exists()
    assert not list((tmp_path / "wolo/data").glob("wolo.db")), "the session is in the run's folder only"
    git(source, "apply", "--index", str(tmp_path / "run" / done.patch.path))
    assert (source / "new.bin").read_bytes() == b"\0\1"
    assert git(source, "status", "--short").split("\n") == ["M  a.txt", "A  c.txt", "D  deep/b.txt", "A  new.bin"]


@pytest.mark.parametrize(
    "commits", ["git -C inner add -A; git -C inner -c user.name=T -c user.email=t@example.com commit -qm one", "true"]
)
async def test_agent_repository_is_logged_and_rest_is_patched(
    provider: ProviderServer, source: Path, tmp_path: Path, commits: str
) -> None:
    command = f"git init -q inner; echo b > inner/b.txt; {commits}; echo c > c.txt; echo z > z.txt"
    provider.script(call("shell", {"command": command}), text("Done."))
    done = await attempt(tmp_path, repo=str(source), mode="yolo")
    assert (done.state, done.patch and done.patch.files) == ("done", 2)
    assert "inner" in (tmp_path / "run/attempts/t/1-7/log").read_text()


async def test_a_repository_that_the_agent_armed_runs_nothing(provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"b.txt": "b\n"})
    git(source, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "inner")
    commit(source, {"c.txt": "c\n"})
    arm = f"git -C inner config filter.evil.clean 'touch {tmp_path}/ran; cat'; echo '*.txt filter=evil' > inner/.gitattributes"
    clone = f"rm -rf inner; git clone -q {inner} inner; {arm}; echo B > inner/b.txt"
    provider.script(call("shell", {"command": f"{clone}; echo d > d.txt"}), text("Done."))
    done = await attempt(tmp_path, repo=str(source), mode="yolo")
    assert (done.state, done.patch and done.patch.files) == ("done", 1)
    assert not (tmp_path / "ran").exists()


async def test_worktree_deeper_than_python_goes_is_removed(provider: ProviderServer, source: Path, tmp_path: Path) -> None:
    provider.script(call("shell", {"command": "mkdir -p $(printf 'd/%.0s' {1..1900}); echo b > b.txt"}), text("Done."))
    done = await attempt(tmp_path, repo=str(source), mode="yolo")
    assert (done.state, done.patch and done.patch.files) == ("done", 1)
    assert not worktree(tmp_path).exists()


async def test_a_folder_that_is_no_repository_is_copied(provider: ProviderServer, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/a.txt").write_text("one\n")
    provider.script(call("write", {"path": "b.txt", "content": "two\n"}), text("Done."))
    done = await attempt(tmp_path, repo=str(tmp_path / "plain"))
    assert (done.state, done.patch and done.patch.files) == ("done", 1)
    assert [path.name for path in (tmp_path / "plain").iterdir()] == ["a.txt"]


async def test_task_without_repo_starts_empty_with_unpatched_setup(provider: ProviderServer, tmp_path: Path) -> None:
    git(repository(tmp_path / "run", {"secret.txt": "around\n"}), "status")
    provider.script(call("shell", {"command": "cat $MADE secret.txt; echo b > b.txt"}), text("Done."))
    os.environ["MADE"] = "made.txt"
    try:
        done = await attempt(tmp_path, setup="echo made by setup > made.txt", env=("MADE",))
    finally:
        del os.environ["MADE"]
    assert (done.state, done.patch and done.patch.files) == ("done", 1)
    said = provider.requests[1].results[0]
    assert "made by setup" in said
    assert "around" not in said


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("replies", "fields", "state", "retryable"),
    [
        ([text("ok")], {"verify": "exit 3"}, "failed", False),
        ([text("ok")] * 3, {"goal": "a.txt exists", "until": "test -e a.txt"}, "failed", False),
        ([error(503, "busy")], {}, "errored", True),
        ([error(401, {"error": {"message": "bad key"}})], {}, "errored", False),
        ([error(400, {"error": {"message": "no such parameter"}})], {}, "errored", False),
        ([error(402, {"error": {"message": "Insufficient balance"}})], {}, "errored", False),
        ([error(403, {"error": {"message": "not in your country"}})], {}, "errored", False),
        ([error(404, {"error": {"message": "The model does not exist", "code": "model_not_found"}})], {}, "errored", False),
        ([error(429, {"error": {"code": "1113", "message": "Your account is in arrears"}})], {}, "errored", False),
        ([error(429, {"error": {"code": "1308", "message": "Usage limit reached"}})], {}, "errored", False),
        ([], {"setup": "echo broken; false"}, "errored", False),
        ([call("read", {"path": "."}), text("ok")], {"budget": TaskBudget(turns=1)}, "budget", False),
        ([sse(delta("so"), Hold())], {"budget": TaskBudget(seconds=2)}, "timeout", False),
        ([text("ok")], {"verify": "sleep 100", "budget": TaskBudget(seconds=4)}, "timeout", False),
        ([], {"budget": TaskBudget(usd=1)}, "errored", False),
    ],
)
async def test_states(
    provider: ProviderServer, tmp_path: Path, replies: list[Any], fields: dict[str, Any], state: str, retryable: bool
) -> None:
    provider.script(*replies)
    done = await attempt(tmp_path, **fields)
    assert (done.state, done.retryable) == (state, retryable), done
    assert done.error is not None
    assert done.error.message in (tmp_path / "run/attempts/t/1-7/log").read_text()


async def test_a_cancelled_attempt_ends_everything_it_has_started(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(call("shell", {"command": "setsid sleep 4711.25 & echo $! > pid; sleep 100"}))
    running = asyncio.ensure_future(attempt(tmp_path, mode="yolo"))
    pid = worktree(tmp_path) / "work" / "pid"
    async with asyncio.timeout(30):
        while not (pid.exists() and pid.read_text().strip()):
            await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert b"4711.25" not in subprocess.run(["ps", "axww"], capture_output=True, check=True).stdout
    assert (tmp_path / "run/attempts/t/1-7/session/wolo.db").exists()
    assert not worktree(tmp_path).exists()


async def test_an_image_needs_docker_or_podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", {"git": "/usr/bin/git"}.get)
    done = await attempt(tmp_path, image="img:1")
    assert done.state == "errored"
    assert done.error is not None
    assert "neither docker nor podman" in done.error.message


def test_agent_waiting_for_a_limit_gets_more_time(tmp_path: Path) -> None:
    line = {"type": "system", "subtype": "retry", "delay_s": 40.0, "error": {"kind": "quota", "message": "used up"}}
    brief = {**line, "delay_s": 5.0, "error": {"kind": "rate_limited", "message": "slow down"}}
    file = tmp_path / "stream.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in (line, brief)))
    stream = AgentStream(file)
    assert stream.read_slept_s() == 40.0
    assert stream.line == "the key sleeps for 0:40"


async def test_slept_time_extends_the_timeout() -> None:
    processes = Processes()
    start = ProgramStart(argv=["sleep", "1.2"], cwd=Path.cwd(), env=dict(os.environ))
    ends = [
        await run_bounded(processes, start, lambda _: None, timeout_s=0.3, resources=Resources(), seat=0, slept_s=lambda s=s: s)  # type: ignore[misc]
        for s in (0.0, 60.0)
    ]
    assert [end.how for end in ends] == ["timed_out", "exited"]
