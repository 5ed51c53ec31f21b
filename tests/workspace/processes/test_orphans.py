"""A command's orphans become children of wolo: found without a scan, waited for, and never mixed up with other children."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.workspace.living import alive, gone, unique_seconds
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Finished, Processes, ProgramStart
from wolo.workspace.processes.process_table import limit
from wolo.workspace.processes.process_tree import adopt_orphans, children_of

pytestmark = pytest.mark.skipif(not adopt_orphans(), reason="this system does not list children")
ENV = {"PATH": os.environ["PATH"]}
DETACHED = "(setsid sh -c 'exec sleep {n}' >/dev/null 2>&1 &)"
SEEN: list[str] = []
"""Files and folders that this process opened in /proc, while `watched` is used."""
WATCHING = [False]


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if WATCHING[0] and event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc"):
        SEEN.append(str(arguments[0]))


@pytest.fixture
def watched() -> Iterator[list[str]]:
    if not SEEN:
        sys.addaudithook(_note)
    SEEN[:] = ["hooked"]
    WATCHING[0] = True
    yield SEEN
    WATCHING[0] = False


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.close_all()


async def run(processes: Processes, script: str, *, timeout_s: float = 60) -> Finished:
    argv = ["bash", "--noprofile", "--norc", "-c", script]
    return await processes.run(ProgramStart(argv=argv, cwd=Path.cwd(), env=ENV), timeout_s, CapturedOutput())


@pytest.fixture
def earlier() -> list[int]:
    """Zombies that other tests left in this process."""
    return zombies()


def zombies(earlier: Sequence[int] = ()) -> list[int]:
    found = []
    for pid in children_of(os.getpid()):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        found += [pid] if state == "Z" and pid not in earlier else []
    return found


async def test_foreign_processes_are_not_looked_at(processes: Processes, watched: list[str]) -> None:
    n = unique_seconds()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        await run(processes, "true")
        others = [pid for pid in children_of(os.getpid()) if pid != stranger.pid]  # left over from other tests
        watched[:] = ["hooked"]
        await run(processes, "true; (true)")
        left = await run(processes, DETACHED.format(n=n))
        WATCHING[0] = False
        stranger.kill()
    (member,) = left.leftovers
    own = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
    known = tuple(f"/proc/{pid}/" for pid in (member.pid, *others))
    assert {path for path in watched if not path.startswith(known)} == {"hooked", "/proc/loadavg", own}


async def test_command_sees_the_end_of_detached_processes(processes: Processes) -> None:
    """One that nobody waits for would seem to be alive for ever."""
    detached = "(setsid sh -c 'echo $$ > pid; exec sleep 0.2' >/dev/null 2>&1 &)"
    finished = await run(
        processes, f"{detached}; until [ -s pid ]; do sleep 0.02; done; while kill -0 $(cat pid); do sleep 0.02; done"
    )
    assert (finished.cause, finished.exit_code, finished.leftovers) == ("exited", 0, ())


async def test_process_left_by_an_ended_program_is_known(processes: Processes, earlier: list[int]) -> None:
    await run(processes, "true")
    assert not processes.has_orphans() or earlier
    await run(processes, DETACHED.format(n=unique_seconds()))
    assert processes.has_orphans()


async def test_later_command_sees_their_end_too(processes: Processes, earlier: list[int]) -> None:
    assert (await run(processes, "(setsid sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 &); sleep 0.1")).leftovers
    finished = await run(processes, "kill $(cat pid); while kill -0 $(cat pid); do sleep 0.02; done")
    assert (finished.cause, finished.leftovers) == ("exited", ())
    assert zombies(earlier) == []


async def test_ended_orphans_do_not_pile_up(processes: Processes, earlier: list[int]) -> None:
    for _ in range(5):
        await run(processes, "for i in 1 2 3 4; do (setsid true &); done; sleep 0.05")
    await run(processes, "true")
    assert zombies(earlier) == []


@pytest.mark.parametrize("own_session", [True, False])
async def test_other_children_keep_lives_and_exit_codes(own_session: bool) -> None:
    processes = Processes()
    await run(processes, "true")
    with (
        subprocess.Popen(["sleep", "60"], start_new_session=own_session) as living,
        subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=own_session) as ended,
    ):
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        await run(processes, DETACHED.format(n=unique_seconds()))
        timed_out = await run(processes, "(setsid sleep 60 &); sleep 60", timeout_s=0.2)
        processes.close_all()
        assert timed_out.timed_out
        assert (living.poll(), ended.wait()) == (None, 7)
        living.kill()


async def test_child_started_simultaneously_is_left_alone() -> None:
    """It inherits the mark, because wolo itself has it for that moment."""
    processes, printed = Processes(), CapturedOutput()
    argv = ["sh", "-c", "echo ${WOLO_OWNER##*/}"]
    await processes.run(ProgramStart(argv=argv, cwd=Path.cwd(), env=ENV), 9, printed)
    with (
        limit(int(printed.take()[0]), 0),
        subprocess.Popen(["sh", "-c", "exit 7"]) as ended,
        subprocess.Popen(["sleep", "60"]) as living,
    ):
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        await run(processes, "true")
        processes.close_all()
        assert (living.poll(), ended.wait()) == (None, 7)
        living.kill()


async def test_command_end_is_left_to_its_waiter(processes: Processes) -> None:
    start = ProgramStart(argv=["sh", "-c", "exit 7"], cwd=Path.cwd(), env=ENV)
    program = processes.start(start, lambda chunk: None)
    os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    await run(processes, "true")
    assert (await program.wait(60), program.exit_code) == ("exited", 7)
    await processes.finish(program)


async def test_conversations_end_only_their_own_commands() -> None:
    n, m = unique_seconds(), f"1{unique_seconds()}"
    first, second = Processes(), Processes()
    await asyncio.gather(run(first, DETACHED.format(n=n)), run(second, DETACHED.format(n=m)))
    job = asyncio.create_task(run(second, f"sleep {m}1"))
    while not alive(f"{m}1"):
        await asyncio.sleep(0.01)
    first.close_all()
    assert gone(n)
    assert alive(m)
    assert alive(f"{m}1")
    job.cancel()
    await asyncio.wait([job])
    second.close_all()
    assert gone(m)


async def test_process_detached_in_another_thread_is_found() -> None:
    n = unique_seconds()

    async def leave() -> Finished:
        processes = Processes()
        try:
            return await run(processes, DETACHED.format(n=n))
        finally:
            processes.close_all()

    finished = await asyncio.to_thread(asyncio.run, leave())
    assert len(finished.leftovers) == 1
    assert gone(n)


FIRST = """
import asyncio, os, sys
from pathlib import Path
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart
async def main():
    processes, other = Processes(), os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
    finished = await processes.run(
        ProgramStart(argv=["sh", "-c", sys.argv[1]], cwd=Path.cwd(), env=dict(os.environ)), 9, CapturedOutput())
    processes.close_all()
    print(os.getpid(), len(finished.leftovers), os.waitpid(other, os.WNOHANG))
asyncio.run(main())
"""


def test_container_init_wolo_ends_the_same_processes() -> None:
    unshare = shutil.which("unshare")
    argv = [unshare or "", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if unshare is None or subprocess.run([*argv, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no process namespaces here")
    n = unique_seconds()
    done = subprocess.run([*argv, sys.executable, "-c", FIRST, DETACHED.format(n=n)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1 1 (0, 0)\n", "")
    assert gone(n)


async def test_process_ignoring_term_is_killed_anywhere(processes: Processes, earlier: list[int]) -> None:
    n = unique_seconds()
    script = f"(setsid bash -c 'trap \"\" TERM; (setsid sleep {n} &); while :; do sleep {n}; done' >/dev/null 2>&1 &); sleep {n}"
    finished = await run(processes, script, timeout_s=0.5)
    assert finished.timed_out
    assert gone(n)
    assert zombies(earlier) == []
