"""Programs end: when they are done, when their time is up, when they are cancelled, and when wolo goes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import unprivileged
from tests.clock import clock_counts
from tests.end_to_end.waiting import wait_for
from tests.workspace.living import alive, gone
from wolo.workspace.processes import process_table
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Finished, Processes, ProgramStart
from wolo.workspace.processes.process_tree import end_orphans

OPEN = Path("/proc/self/fd")
ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture
def processes() -> Iterator[Processes]:
    processes = Processes()
    yield processes
    processes.close_all()


@pytest.fixture(params=["adopting", "scanning"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a tree is found: old kernels do not list children."""
    if request.param == "scanning":
        monkeypatch.setattr("wolo.workspace.processes.process_tree.adopt_orphans", lambda: False)
    return str(request.param)


async def run(
    processes: Processes, script: str, *, timeout_s: float = 60, printed: CapturedOutput | None = None
) -> tuple[Finished, bytes]:
    printed = printed or CapturedOutput()
    start = ProgramStart(argv=["bash", "--noprofile", "--norc", "-c", script], cwd=Path.cwd(), env=ENV)
    finished = await processes.run(start, timeout_s, printed)
    return finished, b"".join(printed.take())


async def run_until(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, script: str, is_time_up: Callable[[CapturedOutput], object]
) -> tuple[Finished, bytes]:
    """Its time limit passes at the moment that the test names."""
    limits: list[asyncio.Timeout] = []

    def timeout(seconds: float | None) -> asyncio.Timeout:
        limits.append(asyncio.timeouts.timeout(seconds))
        return limits[-1]

    printed = CapturedOutput()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "timeout", timeout)
        running = asyncio.create_task(run(processes, script, printed=printed))
        while not limits:
            await asyncio.sleep(0)
    await until(lambda: is_time_up(printed))
    limits[0].reschedule(asyncio.get_running_loop().time())
    return await running


async def test_program_gives_output_and_exit_code(processes: Processes) -> None:
    finished, output = await run(processes, "echo out; echo err >&2; exit 7")
    assert (finished.exit_code, finished.timed_out, finished.leftovers, output) == (7, False, (), b"out\nerr\n")


async def test_program_ended_by_signal_has_negative_code(processes: Processes) -> None:
    assert (await run(processes, "kill -SEGV $$"))[0].exit_code == -signal.SIGSEGV


async def test_unstartable_program_is_an_oserror_without_leaks(processes: Processes) -> None:
    before = len(list(OPEN.iterdir()))
    for argv, cwd in ((["/no/such/program"], Path.cwd()), (["true"], Path("/no/such/folder"))):
        with pytest.raises(FileNotFoundError):
            await processes.run(ProgramStart(argv=argv, cwd=cwd, env=ENV), 5, CapturedOutput())
    assert len(list(OPEN.iterdir())) == before


async def test_many_programs_leave_no_descriptor_open(processes: Processes) -> None:
    await run(processes, "true")
    before = len(list(OPEN.iterdir()))
    for _ in range(20):
        await run(processes, "echo x")
    assert len(list(OPEN.iterdir())) == before


@pytest.fixture
def keyboard() -> Iterator[None]:
    """A standard input on which nobody ever types."""
    saved = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    yield
    os.dup2(saved, 0)
    for fd in (saved, reading, writing):
        os.close(fd)


@pytest.mark.usefixtures("keyboard")
async def test_program_has_own_session_without_keyboard_and_terminal(processes: Processes) -> None:
    _, output = await run(processes, "cat; (: </dev/tty) 2>&1 | head -1; ps -o sid= -p $$ | tr -d ' '; echo $$")
    complaint, session, pid = output.decode().splitlines()
    assert "/dev/tty" in complaint
    assert session == pid


DAEMON = (
    'import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); os.execlp("sleep", "sleep", sys.argv[1])'
)
BACKGROUND = {
    "plain": "sleep {n} &",
    "own session": "setsid sleep {n} &",
    "nohup": "nohup sleep {n} &",
    "silent": "setsid nohup sleep {n} </dev/null >/dev/null 2>&1 &",
    "double fork": "(setsid sh -c 'sleep {n} & exit' &) &",
    "silent double fork": "(setsid sh -c 'sleep {n} >/dev/null 2>&1 & exit' >/dev/null 2>&1 &)",
    "daemon": f"{sys.executable} -c '{DAEMON}' {{n}}",
    "disowned": "sleep {n} & disown",
    "writer": "(echo more; sleep {n}) &",
    "wiped environment": "(env -i setsid sh -c 'sleep {n} >/dev/null 2>&1 & exit' >/dev/null 2>&1 &)",
    "wiped daemon": f"env -i {sys.executable} -I -c '{DAEMON}' {{n}}",
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("script", BACKGROUND.values(), ids=BACKGROUND)
async def test_background_process_blocks_nothing_and_ends_with_wolo(processes: Processes, script: str) -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    finished, output = await run(processes, f"echo before\n{script.format(n=n)}\nexit 3")
    assert finished.exit_code == 3
    assert output.startswith(b"before\n")
    assert finished.leftovers
    await until(lambda: alive(n))
    processes.close_all()
    assert gone(n)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a tree is its process group")
async def test_limit_mark_finds_a_process_without_environment(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.workspace.processes.process_runner.fix_mark", lambda pid, number: None)
    monkeypatch.setattr("wolo.workspace.processes.process_runner.limit", lambda number, num_tasks: nullcontext())
    n = f"7{time.monotonic_ns() % 10**9}"
    await run(processes, f"{BACKGROUND['wiped environment'].format(n=n)}\nsleep 1")
    processes.close_all()
    await until(lambda: alive(n))
    os.kill(alive(n)[0], signal.SIGKILL)


async def test_background_server_serves_without_a_reader(processes: Processes) -> None:
    script = (
        "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n"
        "for n in range(400): print('x' * 2000)\nopen('done', 'w').close()\ntime.sleep(60)"
    )
    finished, _ = await run(processes, f'{sys.executable} -u -c "{script}" &')
    assert finished.leftovers
    Path("go").touch()
    await until(Path("done").exists)


async def test_background_flood_never_blocks_or_starves(processes: Processes) -> None:
    await run(processes, "(sleep 0.5; head -c 40000000 /dev/zero; touch done; sleep 60) &")
    pauses = []
    while not Path("done").exists():
        before = time.thread_time()
        await asyncio.sleep(0.01)
        pauses.append(time.thread_time() - before)
    assert max(pauses, default=0) < 0.5 or not clock_counts()


async def test_late_writing_child_is_still_heard(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.workspace.processes.process_runner._DRAIN_S", 30)
    _, output = await run(processes, "exec > >(sleep 0.1; cat); echo late")
    assert output == b"late\n"


async def test_crowd_left_by_a_command_is_ended(processes: Processes) -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    finished, _ = await run(processes, f"for i in $(seq 40); do sleep {n} & done")
    assert finished.overrun
    assert gone(n)


STUBBORN = {
    "deaf to TERM": "trap '' TERM; (sleep {n}) & echo before; sleep {n}",
    "own session": "echo before; setsid sleep {n}; true",
    "own session and wiped environment": "echo before; env -i setsid /bin/sleep {n} & sleep {n}",
    "deaf, detached, silent": "echo before; (setsid bash -c 'trap \"\" TERM; sleep {n}; sleep {n}' >/dev/null 2>&1 &); sleep {n}",
    "double fork": "echo before; (setsid sh -c 'sleep {n} & exit' &) & sleep {n}",
    "stopped": "echo before; bash -c 'kill -STOP $$; sleep {n}' & sleep {n}",
    "restarting": "echo before; while :; do sleep {n}; done",
}


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("script", STUBBORN.values(), ids=STUBBORN)
async def test_timeout_leaves_nobody_and_keeps_the_output(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    finished, output = await run_until(
        processes, monkeypatch, script.format(n=n), lambda printed: printed.size_bytes and alive(n)
    )
    assert finished.timed_out
    assert output == b"before\n"
    assert gone(n)


async def test_time_stands_still_while_the_user_is_asked(processes: Processes) -> None:
    looks: list[None] = []

    def is_held() -> bool:
        looks.append(None)
        return True

    command = ["bash", "--noprofile", "--norc", "-c", "read -t 3 < <(sleep 60); exit 3"]
    printed = CapturedOutput()
    finished = await processes.run(ProgramStart(argv=command, cwd=Path.cwd(), env=ENV), 1.5, printed, is_held=is_held)
    assert (finished.timed_out, finished.exit_code) == (False, 3)
    assert len(looks) > 1


async def test_program_may_clean_up_before_its_kill(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.workspace.processes.process_runner.GRACE_S", 30)
    script = "trap 'echo tidy; exit 9' TERM; echo start; sleep 60 & wait"
    finished, output = await run_until(processes, monkeypatch, script, lambda printed: printed.size_bytes)
    assert (finished.exit_code, output) == (9, b"start\ntidy\n")


async def test_cancelled_program_ends_with_output_kept(processes: Processes) -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    printed = CapturedOutput()
    task = asyncio.create_task(run(processes, f"echo part; (setsid sleep {n} &); sleep {n}", printed=printed))
    await until(lambda: printed.size_bytes > 0 and alive(n))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(n)
    assert printed.take() == (b"part\n", b"")


async def test_second_cancellation_kills_without_waiting(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.workspace.processes.process_runner.INTERRUPT_GRACE_S", 3600)
    n = f"7{time.monotonic_ns() % 10**9}"
    task = asyncio.create_task(run(processes, f"trap '' TERM; sleep {n} & while :; do sleep {n}; done"))
    await until(lambda: alive(n))
    task.cancel()
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert gone(n)


async def test_group_ends_without_process_table_and_pidfd_too(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_table, "has_table", lambda: False)  # as on macOS
    monkeypatch.delattr(os, "pidfd_open")
    n = f"7{time.monotonic_ns() % 10**9}"
    finished, output = await run_until(
        processes, monkeypatch, f"echo before; sleep {n} & sleep {n}", lambda printed: printed.size_bytes and alive(n)
    )
    assert (finished.timed_out, output, gone(n)) == (True, b"before\n", True)
    finished, _ = await run(processes, f"sleep {n} & exit 4")
    assert (finished.exit_code, len(finished.leftovers)) == (4, 1)
    processes.close_all()
    assert gone(n)


def test_both_output_ends_stay_in_bounded_memory() -> None:
    printed = CapturedOutput(kept_bytes=1_000_000)
    for number in range(300_000):
        printed.add(b"%09d\n" % number)
    head, tail = printed.take()
    assert head.startswith(b"000000000\n")
    assert tail.endswith(b"000299999\n")
    assert len(head) == 1_000_000
    assert 1_000_000 <= len(tail) < 1_600_000
    assert printed.size_bytes == len(head) + len(tail) + printed.omitted_bytes == 3_000_000


def test_short_output_is_kept_whole_however_it_comes() -> None:
    printed = CapturedOutput(kept_bytes=10)
    for piece in (b"abc", b"", b"defghijkl", b"mnop"):
        printed.add(piece)
    assert printed.take() == (b"abcdefghij", b"klmnop")
    assert printed.omitted_bytes == 0


async def test_command_limits_leave_room_for_others(processes: Processes) -> None:
    _, output = await run(processes, "ulimit -Su; ulimit -Sc; ulimit -Sf; ulimit -St")
    tasks, core, file_blocks, cpu_s = map(int, output.split())
    assert tasks < 100_000
    assert core == 0
    assert 64 << 20 < file_blocks < 1 << 40
    assert cpu_s >= 24 * 3600


async def test_a_crowd_is_ended_while_it_grows(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on processes does not bind root."""
    monkeypatch.setattr("wolo.workspace.processes.process_runner.MOST_PROCESSES", 40)
    n = f"7{time.monotonic_ns() % 10**9}"
    finished, output = await run(processes, f"echo before; while :; do sleep {n} & sleep 0.01; done")
    assert finished.cause == "crowded"
    assert output == b"before\n"
    assert gone(n)


def explode(folder: str) -> tuple[str, bytes]:
    async def play() -> tuple[str, bytes]:
        processes, printed = Processes(), CapturedOutput()
        shell = ["bash", "--noprofile", "--norc", "-c"]
        bomb = ProgramStart(argv=[*shell, ":(){ :|:& };:; sleep 60"], cwd=Path(folder), env=ENV)
        ended = await processes.run(bomb, 60, CapturedOutput())
        await processes.run(replace(bomb, argv=[*shell, "echo still here"]), 60, printed)
        processes.close_all()
        return ended.cause, printed.take()[0]

    return asyncio.run(play())


def test_fork_bomb_ends_and_next_command_runs() -> None:
    with unprivileged.folder() as folder:
        cause, output = unprivileged.call(explode, str(folder))
    assert (cause, output) == ("crowded", b"still here\n")


OWNER = """
import asyncio, os, sys
from pathlib import Path
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart
processes = Processes()
async def main():
    await processes.run(ProgramStart(argv=["bash", "-c", sys.argv[1]], cwd=Path.cwd(), env=dict(os.environ)), 9, CapturedOutput())
    print("ready", flush=True)
    if sys.argv[2] == "wait":
        await asyncio.sleep(60)
asyncio.run(main())
"""


LEAVES_SLEEPING = 'read up < <(exec setsid sh -c "echo up; exec sleep {0} >/dev/null 2>&1")'
"""Ends when the process that it leaves behind has a session of its own: before, it would end with the command."""


def start_owner(script: str, then: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", OWNER, script, then], stdout=subprocess.PIPE, text=True)


def test_exiting_wolo_takes_its_running_commands_along() -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    with start_owner(LEAVES_SLEEPING.format(n), "exit") as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        assert owner.wait(timeout=60) == 0
    assert gone(n)


def test_killed_wolo_leftovers_end_at_next_start_only() -> None:
    n = f"7{time.monotonic_ns() % 10**9}"
    m = f"8{time.monotonic_ns() % 10**9}"
    with start_owner(LEAVES_SLEEPING.format(n), "wait") as dead, start_owner(LEAVES_SLEEPING.format(m), "wait") as living:
        assert dead.stdout is not None
        assert living.stdout is not None
        dead.stdout.readline()
        living.stdout.readline()
        wait_for(lambda: bool(alive(n) and alive(m)))  # from the kill on, any wolo of another test may end what is left
        dead.kill()
        dead.wait()
        end_orphans()
        assert gone(n)
        assert alive(m)
        living.terminate()
        living.wait()
    end_orphans()
    assert gone(m)


async def until(is_so: Callable[[], object], limit_s: float = 30) -> None:
    async with asyncio.timeout(limit_s):
        while not is_so():
            await asyncio.sleep(0.01)
