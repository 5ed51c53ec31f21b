"""Agents forked by a warm parent: each is what a new interpreter would be, and the run does not depend on the parent."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, delta, finish, sse, usage
from wolo.fleet.agent_run import AgentSettings, AgentStream, Allowance, agent_argv, agent_environment
from wolo.fleet.bounded_programs import ProgramEnd, run_bounded
from wolo.fleet.engines.warm_parent import ForkedAgent, WarmParent
from wolo.fleet.tasks import BatchTask, Resources
from wolo.workspace.processes.process_runner import Processes, ProgramStart
from wolo.workspace.processes.process_tree import children_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each agent is a new interpreter")
STATUS = r"^(Umask|Groups|Uid|Gid|Threads|Sig(?:Pnd|Blk|Ign|Cgt)|ShdPnd|Cap\w+|NoNewPrivs|Seccomp|Cpus_allowed_list|TracerPid):.*"


class Agents:
    """Starts agents one after another, and looks at each while it waits for its first answer."""

    def __init__(self, provider: ProviderServer, folder: Path) -> None:
        self.provider, self.folder = provider, folder
        self.warm, self.processes = WarmParent(), Processes(folder / "traces")
        self.started: list[Any] = []
        self.count = 0

    def spawn(self, argv: list[str], **options: Any) -> Any:
        self.started.append(self.warm.spawn(argv, **options))
        return self.started[-1]

    async def run(self, look: Callable[[int], Any] = lambda pid: None) -> tuple[ProgramEnd, str, Any]:
        """How it ended, the session, and what was seen."""
        self.count += 1
        hold = Hold()
        self.provider.script(sse(delta("So."), hold, finish("stop", usage())))
        stream, work = self.folder / f"stream{self.count}", self.folder / "work"
        work.mkdir(exist_ok=True)
        (self.folder / "prompt").write_text("go")
        before = len(self.provider.requests)
        with stream.open("wb") as output, (self.folder / "prompt").open("rb") as prompt:
            task = BatchTask(id="t", prompt="go", mode="yolo")
            start = ProgramStart(
                argv=agent_argv(task, AgentSettings(sets=("retry.tries=1",)), Allowance(), ()),
                cwd=work,
                env=agent_environment(self.folder / f"data{self.count}", ""),
                stdin=prompt.fileno(),
                stdout=output.fileno(),
            )
            log = bytearray()
            self.warm.prepare()
            running = asyncio.ensure_future(
                run_bounded(
                    self.processes, start, log.extend, timeout_s=60, resources=Resources(cpus=1), seat=1, spawn=self.spawn
                )
            )
            await asyncio.to_thread(wait_for, lambda: len(self.provider.requests) > before or running.done(), timeout_s=60)
            assert not running.done(), log
            seen = look(self.started[-1].pid)
            hold.release()
            ended = await running
        followed = AgentStream(stream)
        followed.follow()
        return ended, followed.session_id, seen

    async def warm_up(self) -> int:
        """Two agents that are started anew; the pid of the parent, which is ready then."""
        while self.count < 2:
            await self.run()
        assert self.warm._socket is not None
        assert self.warm._process is not None
        assert self.warm._is_ready or select.select([self.warm._socket], [], [], 60)[0]
        return self.warm._process.pid


@pytest.fixture
def agents(provider: ProviderServer, env: dict[str, str], tmp_path: Path) -> Iterator[Agents]:
    made = Agents(provider, tmp_path)
    yield made
    made.processes.close_all()
    made.warm.close()


def facts(pid: int) -> dict[str, Any]:
    """All that an agent has from its start, without numbers of this one."""
    place = Path(f"/proc/{pid}")
    parent, group, session, terminal = (place / "stat").read_text().rpartition(")")[2].split()[1:5]
    limits = re.sub(r"Max (file locks|processes).*", "", (place / "limits").read_text())
    links = [str(each.readlink()) for each in (place / "fd").iterdir()]
    others = {re.sub(r"\d+", "N", link) for link in links if not re.match(r"pipe|socket|anon|.*/data\d+/", link)}
    return {
        "limits": limits,
        "status": re.findall(STATUS, (place / "status").read_text(), re.MULTILINE),
        "lines": [each[0] for each in re.finditer(STATUS, (place / "status").read_text(), re.MULTILINE)],
        "relations": (int(parent) == os.getpid(), int(group) == pid, int(session) == pid, terminal),
        "cwd": (place / "cwd").readlink(),
        "links": (others, sum(link.startswith("pipe") for link in links)),
        "sockets": {link for link in links if link.startswith("socket")},
        "mark": "inf" not in re.search(r"Max file locks.*", (place / "limits").read_text())[0],  # type: ignore[index]
        "oom": (place / "oom_score_adj").read_text(),
    }


async def test_forked_agent_equals_one_started_anew(agents: Agents) -> None:
    _, _, anew = await agents.run(facts)
    parent = await agents.warm_up()
    assert len(list(Path(f"/proc/{parent}/task").iterdir())) == 1, "a fork would lose the other threads"
    descriptors = {path.name: str(path.readlink()) for path in Path(f"/proc/{parent}/fd").iterdir()}
    assert sum(not link.startswith("/dev/null") for link in descriptors.values()) == 1, descriptors
    ended, session, forked = await agents.run(facts)
    assert isinstance(agents.started[-1], ForkedAgent)
    assert not forked.pop("sockets") & {*descriptors.values()}
    del anew["sockets"]
    assert forked == anew
    assert (ended.exit_code, ended.how) == (0, "exited")
    _, other, _ = await agents.run(facts)
    assert session
    assert session != other


async def test_commands_of_forked_agent_get_its_environment(agents: Agents, provider: ProviderServer) -> None:
    seen = []
    old = os.umask(0o022)
    try:
        for number in range(3):
            if number == 2:
                await agents.warm_up()
            os.umask(0o022 if number == 1 else 0o027)  # the parent starts before the second one
            os.environ["MADE"] = f"by {number % 2}"
            provider.script(call("shell", {"command": "umask; pwd -P; env | sort; ulimit -n"}))
            await agents.run()
            seen.append(re.sub(r"data\d+|OWNER=\S+|\b\d{5,}\b", "N", provider.requests[-1].results[-1]))
    finally:
        os.umask(old)
        os.environ.pop("MADE", None)
    assert isinstance(agents.started[-1], ForkedAgent)
    assert seen[2] == seen[0]
    assert "0027" in seen[2]


async def test_cancelled_forked_agent_leaves_nothing(agents: Agents) -> None:
    await agents.warm_up()
    others = {*children_of(os.getpid())}  # also what tests before this one have left to this process

    def look(pid: int) -> int:
        os.kill(pid, signal.SIGKILL)
        return pid

    ended, _, pid = await agents.run(look)
    assert ended.exit_code == -signal.SIGKILL
    assert not Path(f"/proc/{pid}").exists()
    assert not {*children_of(os.getpid())} - others


async def test_run_goes_on_without_its_parent(agents: Agents) -> None:
    parent = await agents.warm_up()
    os.kill(parent, signal.SIGKILL)
    ended, _, _ = await agents.run()
    assert ended.exit_code == 0
    assert isinstance(agents.started[-1], subprocess.Popen)


async def test_parent_ends_with_the_run(agents: Agents) -> None:
    parent = await agents.warm_up()
    agents.warm.close()
    assert not Path(f"/proc/{parent}").exists()


async def test_parent_of_a_killed_run_ends(env: dict[str, str]) -> None:
    code = (
        "from wolo.fleet.engines.warm_parent import WarmParent; import os, signal, subprocess, select\n"
        "warm = WarmParent(); warm.prepare(); warm.prepare()\n"
        "select.select([warm._socket], [], []); print(warm._process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    wait_for(lambda: not is_alive(int(done.stdout)), timeout_s=30)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
