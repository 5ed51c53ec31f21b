"""Jobs run in the background: they are looked at, told of when they end, stopped, detached, and gone with the conversation."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.tools.harness import ToolHarness
from tests.workspace.living import alive, gone, unique_seconds
from wolo.errors import ToolError
from wolo.guard.intents import RunIntent
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.secret_values import Secret
from wolo.tools.background import job_output
from wolo.tools.background.background_jobs import BackgroundJobs, Job
from wolo.tools.shell import ShellArgs
from wolo.tools.tool_values import CallResult
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart


def jobs_of(harness: ToolHarness) -> BackgroundJobs:
    assert harness.services.shell.jobs is not None
    return harness.services.shell.jobs


class Sandbox:
    """They hold nothing and tell when they are taken down."""

    backend = "bubblewrap"
    covers: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()

    def __init__(self, cleanup: Callable[[], None] = lambda: None) -> None:
        self._cleanup = cleanup

    def wrap(self, argv: Sequence[str], cwd: Path, *, only_reads: bool = False, in_background: bool = False) -> SandboxedCommand:
        return SandboxedCommand(tuple(argv), cleanup=self._cleanup)

    def prepare(self) -> None: ...

    def hides(self, path: str) -> bool:
        return False

    def give_way(self, path: str) -> None: ...

    def take_restored(self) -> None: ...

    def close(self) -> None: ...


async def begin(harness: ToolHarness, command: str, **more: object) -> CallResult:
    return await harness.call("shell", command=command, background=True, **more)


async def test_old_output_is_removed_when_a_job_begins(harness: ToolHarness) -> None:
    folder = harness.folder / "jobs"
    folder.mkdir()
    old, recent = folder / "old", folder / "recent"
    for path in (old, recent):
        path.touch()
    os.utime(old, (0, 0))
    await begin(harness, "true")
    assert (old.exists(), recent.exists()) == (False, True)


async def test_background_server_is_inspected_and_stopped(harness: ToolHarness) -> None:
    n = unique_seconds()
    begun = await begin(harness, f"echo ready; sleep {n} & sleep {n}")
    assert begun.text.startswith(f"ready\n[job 1 (echo ready; sleep {n} & sleep {n}): runs, 1 s, pid ")
    assert not begun.is_error
    assert (await harness.call("jobs")).text.startswith("job 1 (")
    again = await harness.call("jobs", action="output", id=1)
    assert again.text.startswith("(nothing new was printed)\n[job 1")
    stopped = await harness.call("jobs", action="stop", id=1)
    assert "stopped after" in stopped.text
    assert gone(n)
    assert jobs_of(harness).news() == []  # the model has just been told


async def test_immediate_failure_is_reported_at_once(harness: ToolHarness) -> None:
    failed = await begin(harness, "echo no such port >&2; exit 3")
    assert failed.is_error
    assert failed.text == "no such port\n[job 1 (echo no such port >&2; exit 3): ended: exit 3 after 0 s]\n"


async def test_call_returns_soon_and_end_is_reported_once(harness: ToolHarness) -> None:
    command = "while [ ! -e on ]; do sleep 0.05; done; echo done; exit 4"
    await begin(harness, command)
    assert jobs_of(harness).news() == []
    harness.put("on", "")
    await jobs_of(harness).find(1).wait(60)
    (told,) = jobs_of(harness).news()
    assert re.sub(r"after \d+ s", "after N s", told) == f"[job 1 ({command}) has ended: exit 4 after N s]"
    assert jobs_of(harness).news() == []
    assert (await harness.call("jobs", action="output")).text.startswith("done\n[job 1")


async def test_a_look_may_wait_for_the_end(harness: ToolHarness) -> None:
    command = "while [ ! -e on ]; do sleep 0.05; done; echo done"
    await begin(harness, command)
    looking = asyncio.create_task(harness.call("jobs", action="output", id=1, wait_s=10))
    await asyncio.sleep(0)  # the look begins
    harness.put("on", "")
    looked = (await looking).text
    assert re.sub(r"after \d+ s", "after N s", looked) == f"done\n[job 1 ({command}): ended: exit 0 after N s]\n"


async def test_each_look_tells_what_is_new(harness: ToolHarness) -> None:
    await begin(harness, "echo one; while [ ! -e two ]; do sleep 0.05; done; echo two; sleep 60")
    harness.put("two", "")
    await until_news(harness)
    assert (await harness.call("jobs", action="output", id=1)).text.startswith("two\n[job 1")


async def test_unfinished_lines_and_progress_show_as_seen(harness: ToolHarness) -> None:
    begun = await begin(harness, r"printf '10%%\r20%%\r\033[31mListening on 8000'; sleep 60")
    assert begun.text.startswith("Listening on 8000\n[job 1")


async def test_job_keeps_the_directory_and_is_judged_normally(harness: ToolHarness) -> None:
    (harness.root / "sub").mkdir()
    await begin(harness, "cd sub; pwd")
    assert (await harness.call("shell", command="pwd")).text == f"{harness.root}\n[exit 0]\n"
    tool, _ = harness.toolbox.decode("shell", {"command": "x"})
    args = ShellArgs("rm -r x", background=True)
    assert tool.intents(args, harness.services) == (RunIntent("rm -r x", harness.root),)


async def test_a_time_limit_holds_for_a_job_too(harness: ToolHarness) -> None:
    n = unique_seconds()
    await begin(harness, f"sleep {n}", timeout_s=1.3)
    assert re.search(r"timed out after \d+ s", (await harness.call("jobs", action="output", wait_s=9)).text)
    assert gone(n)


async def test_flood_stays_bounded_with_both_ends_kept(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_output, "MAX_FILE_BYTES", 100_000)
    command = "echo first; seq 300000; echo last"
    await begin(harness, command)
    told = await harness.call("jobs", action="output", id=1, wait_s=20)
    job = jobs_of(harness).find(1)
    assert len(told.text) < 40_000
    file = job.spool.path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    kept = file.read_text()
    assert kept.startswith("first\n1\n2\n")
    assert kept.endswith("300000\nlast\n")
    assert "bytes were not saved; their end follows" in kept
    assert file.stat().st_size < 130_000


async def test_large_job_output_stays_with_the_session(harness: ToolHarness) -> None:
    told = await begin(harness, "seq 20000")
    path = Path(told.text.split("all it printed: ")[1].split(" — ")[0])
    assert path.parent == harness.folder
    assert path.read_text().splitlines() == [str(n) for n in range(1, 20001)]


async def test_secrets_do_not_reach_the_file(harness: ToolHarness) -> None:
    secrets = Secrets([Secret("PASSWORD", "hunter22-of-mine")])
    jobs = BackgroundJobs(harness.services.shell.processes, harness.folder / "jobs", secrets)
    harness.services.shell.jobs = jobs
    await begin(harness, "printf hunt; printf 'er22-of-mine\\n'; sleep 60")
    assert jobs.find(1).spool.path.read_text() == f"{secrets.hide('hunter22-of-mine')}\n"


async def test_half_a_secret_waits_for_the_other_half(harness: ToolHarness) -> None:
    secrets = Secrets([Secret("PASSWORD", "hunter22-of-mine")])
    jobs = BackgroundJobs(harness.services.shell.processes, harness.folder / "jobs", secrets)
    harness.services.shell.jobs = jobs
    waits = "while [ ! -e go ]; do sleep 0.01; done"
    told = await begin(harness, f"printf 'as hunter2'; {waits}; printf '2-of-mine ok\\nhunt'; sleep 60")
    harness.put("go", "")
    while jobs.find(1).spool.size_bytes < len("as SECRET"):
        await asyncio.sleep(0.01)
    second = (await harness.call("jobs", action="output", id=1)).text
    await jobs.stop(jobs.find(1))
    third = (await harness.call("jobs", action="output", id=1)).text
    hidden = secrets.hide("hunter22-of-mine")
    assert [text.split("\n[")[0] for text in (told.text, second, third)] == ["as ", f"{hidden} ok", "hunt"]
    assert jobs.find(1).spool.path.read_text() == f"as {hidden} ok\nhunt"


async def test_jobs_end_with_the_conversation_and_leave_nothing(harness: ToolHarness) -> None:
    n = unique_seconds()
    await begin(harness, f"trap '' TERM; (env -i setsid sleep {n} &) ; sleep {n}")
    harness.services.shell.close()
    assert gone(n)
    assert list((harness.folder / "jobs").iterdir()) == []
    assert list((harness.folder / "commands").iterdir()) == []


async def test_detached_job_continues_with_output_beyond_wolo(harness: ToolHarness) -> None:
    n = unique_seconds()
    await begin(
        harness, f"echo one; while [ ! -e go ]; do sleep 0.05; done; head -c 300000 /dev/zero | tr '\\0' x; echo two; sleep {n}"
    )
    jobs = jobs_of(harness)
    jobs.detach(jobs.find(1))
    assert "detached, runs" in (await harness.call("jobs")).text
    path = jobs.find(1).spool.path
    harness.services.shell.close()
    harness.put("go", "")
    await until(lambda: path.read_bytes().endswith(b"x\ntwo\n") or path.read_bytes().endswith(b"xtwo\n"))
    next_one = Processes(harness.folder / "commands")
    await next_one.run(ProgramStart(argv=["true"], cwd=harness.root, env={}), 5, CapturedOutput())
    next_one.close_all()
    assert len(alive(n)) == 1
    assert len(list((harness.folder / "commands").iterdir())) == 1
    os.kill(alive(n)[0], 9)
    assert gone(n)
    await until(lambda: _forgets(harness))


async def test_killed_job_has_the_shell_exit_code(harness: ToolHarness) -> None:
    result = await harness.call("shell", command="kill -9 $$", background=True)
    assert "exit 137 after" in result.text


def _forgets(harness: ToolHarness) -> bool:
    """The note that it is detached goes once it has ended."""
    processes = Processes(harness.folder / "commands")
    processes._next_mark()
    processes.close_all()
    return not list((harness.folder / "commands").iterdir())


async def test_undetached_job_is_ended_by_the_next_wolo(harness: ToolHarness) -> None:
    """The twin of the test above: without the note, closing ends it."""
    n = unique_seconds()
    await begin(harness, f"sleep {n}")
    harness.services.shell.close()
    assert gone(n)


async def test_undetachable_job_says_why(harness: ToolHarness) -> None:
    jobs = jobs_of(harness)
    await begin(harness, "true")
    with pytest.raises(ToolError, match="has ended"):
        jobs.detach(jobs.find(1))

    harness.services.sandbox.made = Sandbox()
    harness.confined = True
    await begin(harness, "sleep 60")
    with pytest.raises(ToolError, match="inside the sandbox"):
        jobs.detach(jobs.find(2))


async def test_sandbox_ends_after_everything_of_its_job(harness: ToolHarness) -> None:
    tidied: list[str] = []

    harness.services.sandbox.made = Sandbox(lambda: tidied.append("tidied"))
    harness.confined = True
    await begin(harness, "sleep 60")
    assert tidied == []
    await harness.call("jobs", action="stop")
    assert tidied == ["tidied"]
    await harness.call("shell", command="sleep 61 &")
    assert tidied == ["tidied"]  # something of it still runs
    harness.services.shell.close()
    assert tidied == ["tidied"] * 2


async def test_starts_and_ends_are_heard(harness: ToolHarness) -> None:
    heard: list[tuple[int, str]] = []

    def hear(job: Job) -> None:
        heard.append((job.id, "started" if job.ending is None else "ended"))

    jobs_of(harness).on_change = hear
    await begin(harness, "true")
    await begin(harness, "sleep 60")
    await harness.call("jobs", action="stop", id=2)
    assert heard == [(1, "started"), (1, "ended"), (2, "started"), (2, "ended")]


async def test_interrupted_call_takes_its_job_along(harness: ToolHarness) -> None:
    n = unique_seconds()
    call = asyncio.ensure_future(begin(harness, f"sleep {n}"))
    await until(lambda: alive(n))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert gone(n)


async def test_immediately_detached_job_outlives_its_call(harness: ToolHarness) -> None:
    n = unique_seconds()
    call = asyncio.ensure_future(begin(harness, f"echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; sleep {n}"))
    await until(lambda: bool(jobs_of(harness).running))
    (job,) = jobs_of(harness).running
    jobs_of(harness).detach(job)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    harness.services.shell.close()
    harness.put("go", "")
    await until(lambda: job.spool.path.read_bytes() == b"one\ntwo\n")
    await until(lambda: bool(alive(n)))
    os.kill(alive(n)[0], 9)
    assert gone(n)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"action": "output"}, "There are no jobs."),
        ({"action": "stop", "id": 3}, "There are no jobs."),
        ({"action": "start"}, "action"),
        ({"id": "first"}, "id"),
        ({"action": "output", "wait_s": -1}, "wait_s is in seconds"),
        ({"action": "output", "wait_s": 1e9}, "wait_s is in seconds"),
        ({"action": "wait"}, "needs a `pattern`"),
        ({"action": "output", "pattern": "x"}, "for the actions `wait` and `watch`"),
        ({"action": "wait", "pattern": ""}, "1 to 1,000"),
        ({"action": "wait", "pattern": "a|"}, "every line would match"),
        ({"action": "wait", "pattern": "(a+)+b"}, "is text"),
        ({"action": "wait", "pattern": r"\d"}, "is text"),
    ],
)
async def test_senseless_arguments_are_refused_with_the_reason(
    harness: ToolHarness, arguments: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ToolError, match=complaint):
        await harness.call("jobs", **arguments)


async def test_job_among_several_is_named_by_number(harness: ToolHarness) -> None:
    await begin(harness, "true")
    await begin(harness, "true")
    with pytest.raises(ToolError, match=r"Which job\? There are 1, 2\."):
        await harness.call("jobs", action="output")
    with pytest.raises(ToolError, match=r"There is no job 3; there are 1, 2\."):
        await harness.call("jobs", action="output", id=3)
    assert "job 2" in (await harness.call("jobs", action="output", job_id="2")).text


async def test_wait_returns_at_a_matching_line(harness: ToolHarness) -> None:
    await begin(harness, "echo one; while [ ! -e on ]; do sleep 0.05; done; echo two; echo Listening on [::]:80; sleep 60")
    wait = asyncio.create_task(harness.call("jobs", action="wait", id=1, pattern=r"error|Listening.*\[::\]", wait_s=60))
    await asyncio.sleep(0)  # the wait begins
    harness.put("on", "")
    text = (await wait).text
    assert text.startswith("two\nListening on [::]:80\n[job 1")
    assert text.endswith("[a line matches: Listening on [::]:80]\n")
    assert jobs_of(harness).find(1).spool.listeners == []


async def test_wait_sees_unread_and_unfinished_lines(harness: ToolHarness) -> None:
    await begin(harness, "while [ ! -e on ]; do sleep 0.05; done; echo early; printf 'Continue? '; sleep 60")
    harness.put("on", "")
    spool = jobs_of(harness).find(1).spool
    await until(lambda: b"Continue?" in spool.peek())
    assert "[a line matches: early]" in (await harness.call("jobs", action="wait", id=1, pattern="early")).text
    await until(lambda: not spool.has_unread)
    late = await harness.call("jobs", action="wait", id=1, pattern="early", wait_s=0)
    assert late.text.endswith("[no line matched within 0 s]\n")


async def test_wait_ends_with_its_job(harness: ToolHarness) -> None:
    await begin(harness, "while [ ! -e on ]; do sleep 0.05; done; echo other")
    wait = asyncio.create_task(harness.call("jobs", action="wait", id=1, pattern="ready", wait_s=60))
    await asyncio.sleep(0)  # the wait begins
    harness.put("on", "")
    assert (await wait).text.endswith("[no line matched before it ended]\n")


async def test_secret_is_no_match_of_a_wait(harness: ToolHarness) -> None:
    secrets = Secrets([Secret("PASSWORD", "hunter22-of-mine")])
    harness.services.shell.jobs = BackgroundJobs(harness.services.shell.processes, harness.folder / "jobs", secrets)
    await begin(harness, "while [ ! -e on ]; do sleep 0.05; done; echo hunter22-of-mine; printf hunter22; exit 0")
    wait = asyncio.create_task(harness.call("jobs", action="wait", id=1, pattern="22-of", wait_s=60))
    await asyncio.sleep(0)  # the wait begins
    harness.put("on", "")
    assert (await wait).text.endswith("[no line matched before it ended]\n")


async def until_news(harness: ToolHarness) -> None:
    job = jobs_of(harness).find(1)
    await until(lambda: job.spool.has_unread)


async def until(is_so: Callable[[], object], limit_s: float = 10) -> None:
    async with asyncio.timeout(limit_s):
        while not is_so():
            await asyncio.sleep(0.02)
