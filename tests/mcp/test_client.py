"""Real servers, started and called: what comes back, what a person hears of those that fail, and that none is left behind."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.fakes.mcp_server import PIXEL
from wolo.errors import ToolError, UsageError
from wolo.guard.intents import CallIntent
from wolo.mcp.listings import MOST_TOOLS, CachedListings
from wolo.mcp.mcp_tool import RemoteTool, recorded_tools
from wolo.mcp.server import ConfiguredServer, Server, ServerEnvironment, fingerprint
from wolo.mcp.servers import Servers
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import CallResult, Interrupted
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

FAKES = Path(__file__).parents[1] / "fakes"


def plain(mode: str, *options: str, **more: object) -> Server:
    args = (str(FAKES / "mcp_plain.py"), *options, mode)
    return Server(command=sys.executable, args=args, **more)  # type: ignore[arg-type]  # fields of a server


def with_sdk(**more: object) -> Server:
    return Server(command=sys.executable, args=(str(FAKES / "mcp_server.py"),), **more)  # type: ignore[arg-type]  # the same


@asynccontextmanager
async def serving(_attended: bool = False, _allowed: bool = True, **servers: Server) -> AsyncIterator[Servers]:
    """What a conversation has of these; the cache lasts for the test."""
    work = Path.cwd()
    around = ServerEnvironment(Workspace(work), work, os.environ, Processes(work.parent / "traces"))
    wanted = [
        ConfiguredServer(name=name.replace("_", "-"), server=server, source="the test", is_allowed=_allowed)
        for name, server in servers.items()
    ]
    found = Servers(wanted, around, CachedListings(work.parent / "cache"), attended=_attended)
    try:
        yield found
    finally:
        await found.close()


async def settled(servers: Servers) -> Servers:
    """Waits for all of them, however slow this machine is."""
    await servers.prepare()
    for each in servers.statuses():
        await servers.until_settled(each.name)
    await servers.prepare()
    return servers


def context(progress: Callable[[str], None] = lambda text: None) -> CallContext:
    work = Path.cwd()

    def keep(name: str, data: bytes) -> Path:
        Path(name).write_bytes(data)
        return Path(name)

    found = ToolServices(
        workspace=Workspace(work), ledger=FileLedger(work.parent / "locks"), save_output=keep, shell=ShellState(work)
    )
    return found.for_call("call_1", progress)


def tool(servers: Servers, name: str) -> RemoteTool:
    return next(each for each in servers.tools if each.name == name)


async def call(servers: Servers, name: str, /, **arguments: object) -> CallResult:
    return await tool(servers, name).run(arguments, context())


def read_log(path: Path) -> Iterator[dict[str, object]]:
    return (json.loads(line) for line in path.read_text().splitlines())


def is_alive(pid: object) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def test_sdk_server_is_listed_and_called() -> None:
    told: list[str] = []
    async with serving(good=with_sdk()) as servers:
        await settled(servers)
        assert [each.name for each in servers.tools] == [
            f"mcp__good__{name}" for name in ("add", "count", "echo", "environment", "fail", "show")
        ]
        assert (await call(servers, "mcp__good__echo", text="hi")).text == "You said: hi"
        assert (await call(servers, "mcp__good__add", a=1, b=2)).text == "3"
        failed = await call(servers, "mcp__good__fail")
        assert failed.is_error
        assert "fail" in failed.text
        shown = await call(servers, "mcp__good__show")
        assert shown.text == "Look:\n[notes://1]\nwhat the file says"
        assert [part.data for part in shown.media] == [PIXEL]
        counted = await tool(servers, "mcp__good__count").run({"to": 3}, context(told.append))
        assert counted.text == "counted"
    assert "".join(told) == "1/3 at 1\n2/3 at 2\n3/3 at 3\n"


@contextmanager
def answering(headers: Mapping[str, str], piece: bytes) -> Iterator[str]:
    """An address where every answer is a first piece without end."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                while True:
                    self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("headers", "piece", "why"),
    [
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, gzip.compress(b"x" * 1_000_000), "compresses"),
        ({"Content-Type": "application/json"}, b"\n\n" * 50_000, "too large"),
        ({"Content-Type": "text/event-stream"}, b"x" * 100_000, "the connection was closed"),
    ],
)
async def test_no_answer_over_http_is_taken_without_bounds(headers: Mapping[str, str], piece: bytes, why: str) -> None:
    with answering(headers, piece) as url:
        async with serving(web=Server(url=url)) as servers:
            (standing,) = (await settled(servers)).statuses()
    assert standing.state == "failed"
    assert why in standing.why


async def test_malformed_letters_cost_themselves_not_the_answer() -> None:
    async with serving(good=plain("illegible")) as servers:
        assert (await call(await settled(servers), "mcp__good__say")).text == "caf\ufffd ?"


async def test_refusal_is_short_without_control_characters() -> None:
    async with serving(good=plain("rant")) as servers:
        with pytest.raises(ToolError, match=r"refused: \\u\{202e\}no x+…$") as refused:
            await call(await settled(servers), "mcp__good__say")
    assert len(refused.value.message) < 5000


async def test_endless_tool_list_ends_at_its_bound() -> None:
    async with serving(good=plain("rotate")) as servers:
        await settled(servers)
        while len(servers.tools) < MOST_TOOLS:
            await asyncio.sleep(0.1)
            await servers.prepare()
        assert len(servers.tools) == MOST_TOOLS


async def test_server_sees_command_variables_and_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "canary-1")
    monkeypatch.setenv("HARMLESS", "canary-2")
    monkeypatch.setenv("MINE", "canary-3")
    env = {"TOKEN": "${MINE}", "OTHER": "x${MISSING:-default}y"}
    async with serving(good=with_sdk(env=env)) as servers:
        seen = (await call(await settled(servers), "mcp__good__environment")).text
    assert "canary-1" not in seen
    assert "canary-2" not in seen
    assert "TOKEN=canary-3" in seen
    assert "OTHER=xdefaulty" in seen


def test_recorded_tool_intends_its_server_call_finder_nothing() -> None:
    finder, remote = recorded_tools(["find_tools", "read", "mcp__hub__get", "mcp__hub__get"])
    services = context().services
    assert finder.intents({}, services) == ()
    assert remote.intents({}, services) == (CallIntent("mcp:hub/get"),)


async def test_failed_servers_are_reported_together_with_last_words() -> None:
    servers = {
        "dies": plain("dies"),
        "silent": plain("silent", startup_timeout_s=0.5),
        "nowhere": Server(command="no-such-program"),
        "unset": plain("good", env={"TOKEN": "${NOT_SET}"}),
        "closed": Server(url="http://127.0.0.1:9/mcp"),
        "good": plain("good"),
    }
    async with serving(**servers) as found:
        await settled(found)
        news = found.news().splitlines()
        assert found.news() == ""
        assert [tool.name for tool in found.tools] == ["mcp__good__say"]
    assert news[0] == "5 MCP servers cannot be used (`wolo mcp list` shows them all):"
    assert [line.split(":")[0].strip() for line in news[1:]] == ["closed", "dies", "nowhere", "silent", "unset"]
    assert news[2] == "  dies: it ended with exit code 1; it said: first ⏎ no key found, giving up"
    assert news[3] == "  nowhere: there is no program no-such-program on the PATH"
    assert news[4] == "  silent: it was not ready within 0.5 s"
    assert news[5] == "  unset: env.TOKEN refers to $NOT_SET, which is not set"


async def test_garbage_before_the_first_message_is_harmless() -> None:
    async with serving(noisy=plain("garbage")) as servers:
        assert (await call(await settled(servers), "mcp__noisy__say", text="hi")).text == 'say: {"text": "hi"}'


async def test_a_list_comes_in_pages() -> None:
    async with serving(paged=plain("pages")) as servers:
        assert [each.name for each in (await settled(servers)).tools] == [f"mcp__paged__tool{number}" for number in range(3)]


async def test_last_listing_is_known_without_starting_anything() -> None:
    log = Path("log")
    async with serving(good=plain("good", "--log", str(log))) as servers:
        await settled(servers)
    first = log.read_text()
    async with serving(good=plain("good", "--log", str(log))) as servers:
        assert [each.name for each in servers.tools] == ["mcp__good__say"]
        await servers.prepare()
        assert [each.state for each in servers.statuses()] == ["known"]
        assert log.read_text() == first
        assert (await call(servers, "mcp__good__say", text="now")).text == 'say: {"text": "now"}'
        assert [each.state for each in servers.statuses()] == ["ready"]


async def test_a_server_that_offered_nothing_is_asked_again() -> None:
    async with serving(late=plain("late")) as servers:
        assert (await settled(servers)).tools == ()
    async with serving(late=plain("late")) as servers:
        await servers.prepare()
        assert [each.name for each in servers.tools] == ["mcp__late__say"]


async def test_task_only_tool_is_not_offered_and_named() -> None:
    async with serving(odd=plain("tasks")) as servers:
        await settled(servers)
        assert [each.name for each in servers.tools] == ["mcp__odd__say"]
        assert servers.news() == "MCP server odd: research is not offered: it runs as an MCP task only."


async def test_task_is_awaited_with_its_progress() -> None:
    async with serving(odd=plain("tasks-end")) as servers:
        await settled(servers)
        shown: list[str] = []
        assert (await tool(servers, "mcp__odd__research").run({}, context(shown.append))).text == "result of t1"
        assert shown == ["half way\n"]
        assert (await call(servers, "mcp__odd__say", text="hi")).text == 'say: {"text": "hi"}'


async def test_cancelled_call_cancels_its_task() -> None:
    log = Path("log")
    async with serving(odd=plain("tasks-hang", "--log", str(log))) as servers:
        await settled(servers)
        calling = asyncio.create_task(call(servers, "mcp__odd__research"))
        while "tasks/get" not in log.read_text():
            await asyncio.sleep(0.01)
        calling.cancel()
        with pytest.raises(Interrupted):
            await calling
        assert '"tasks/cancel","params":{"taskId":"t1"}' in log.read_text()
        assert [each.state for each in servers.statuses()] == ["ready"]


async def test_late_task_is_cancelled() -> None:
    log = Path("log")
    async with serving(odd=plain("tasks-hang", "--log", str(log), tool_timeout_s=0.05)) as servers:
        await settled(servers)
        with pytest.raises(ToolError, match="did not answer in time"):
            await call(servers, "mcp__odd__research")
        assert "tasks/cancel" in log.read_text()


async def test_other_command_line_is_another_unknown_server() -> None:
    async with serving(good=plain("good")) as servers:
        await settled(servers)
    async with serving(good=plain("good", cwd="/")) as servers:
        assert servers.tools == ()


async def test_last_failed_server_is_not_awaited_again() -> None:
    async with serving(silent=plain("silent", startup_timeout_s=0.3)) as servers:
        await settled(servers)
    async with serving(silent=plain("silent", startup_timeout_s=600)) as servers:
        await asyncio.wait_for(servers.prepare(), 60)
        assert [each.state for each in servers.statuses()] == ["starting"]


async def test_late_tool_stands_behind_all_others() -> None:
    async with serving(zebra=plain("grow"), ape=plain("good")) as servers:
        await settled(servers)
        before = [each.name for each in servers.tools]
        await call(servers, "mcp__zebra__say", text="hi")
        while len(servers.tools) == len(before):
            await asyncio.sleep(0.01)
            await servers.prepare()
        assert [each.name for each in servers.tools] == [*before, "mcp__zebra__another"]
        assert before == ["mcp__ape__say", "mcp__zebra__say"]


async def test_server_ending_in_a_call_restarts_next_time() -> None:
    async with serving(weak=plain("crash-once")) as servers:
        await settled(servers)
        with pytest.raises(ToolError, match="the call may have had effects: it ended with exit code 7"):
            await call(servers, "mcp__weak__say", text="one")
        assert (await call(servers, "mcp__weak__say", text="two")).text == 'say: {"text": "two"}'


async def test_last_words_of_ended_server_reach_the_model() -> None:
    async with serving(weak=plain("crash")) as servers:
        await settled(servers)
        with pytest.raises(ToolError, match="it ended with exit code 7; it said: fatal: out of cheese"):
            await call(servers, "mcp__weak__say")


async def test_late_answer_costs_its_call_only() -> None:
    async with serving(slow=plain("hang", tool_timeout_s=0.3)) as servers:
        await settled(servers)
        with pytest.raises(ToolError, match="did not answer in time"):
            await call(servers, "mcp__slow__say")
        assert [each.state for each in servers.statuses()] == ["ready"]


async def test_whoever_stops_a_call_has_the_server_told() -> None:
    log = Path("log")
    async with serving(slow=plain("hang", "--log", str(log))) as servers:
        await settled(servers)
        calling = asyncio.create_task(call(servers, "mcp__slow__say"))
        while "tools/call" not in log.read_text():
            await asyncio.sleep(0.01)
        calling.cancel()
        with pytest.raises(Interrupted) as stopped:
            await calling
        assert "may have had effects" in stopped.value.result.text
        while "notifications/cancelled" not in log.read_text():
            await asyncio.sleep(0.01)
        assert [each.state for each in servers.statuses()] == ["ready"]


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("nonsense", "its answer does not follow the protocol"),
        ("broken", "its answer does not follow the protocol"),
        ("refuse", "refused: not today"),
    ],
)
async def test_senseless_answer_is_explained_to_the_model(mode: str, said: str) -> None:
    async with serving(odd=plain(mode)) as servers:
        with pytest.raises(ToolError, match=said):
            await call(await settled(servers), "mcp__odd__say")


async def test_structured_content_shows_where_text_is_missing() -> None:
    async with serving(odd=plain("structured"), list=plain("structured-list")) as servers:
        assert json.loads((await call(await settled(servers), "mcp__odd__say")).text) == {"temperature": 21}
        assert json.loads((await call(servers, "mcp__list__say")).text) == [21, 22]


async def test_long_answer_is_cut_and_kept_without_controls() -> None:
    async with serving(big=plain("big"), escape=plain("escape")) as servers:
        long = await call(await settled(servers), "mcp__big__say")
        assert len(long.text) < 40_000
        assert "Whole output, 50,000 lines" in long.text
        assert (await call(servers, "mcp__escape__say")).text == "red  text"


async def test_none_is_left_when_the_conversation_ends(tmp_path: Path) -> None:
    names = ("good", "stubborn", "family", "silent")
    logs = {name: tmp_path / name for name in names}
    async with serving(**{name: plain(name, "--log", str(log)) for name, log in logs.items()}) as servers:
        while not all(log.exists() and log.read_text() for log in logs.values()):
            await asyncio.sleep(0.01)
        for name in ("good", "stubborn", "family"):
            await servers.until_settled(name)
    for log in logs.values():
        pid = next(read_log(log))["pid"]
        assert not is_alive(pid), log.name


async def test_restarting_one_gives_it_another_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with serving(good=plain("good", "--log", str(log))) as servers:
        await settled(servers)
        await servers.restart("good")
        await servers.until_settled("good")
        assert (await call(servers, "mcp__good__say")).text == "say: {}"
    assert len([entry for entry in read_log(log) if "pid" in entry]) == 2


async def test_server_waiting_for_consent_starts_when_given() -> None:
    async with serving(_allowed=False, db=plain("fine")) as servers:
        waiting = servers.waits_for_consent("db")
        assert (waiting.name, waiting.is_allowed) == ("db", False)
        assert servers.allow("db").is_allowed
        with pytest.raises(UsageError, match="needs no consent"):
            servers.waits_for_consent("db")
        await settled(servers)
        assert servers.statuses()[0].state.startswith("ready")


async def test_the_first_turn_waits_a_moment_only() -> None:
    async with serving(True, silent=plain("silent"), good=plain("good")) as servers:
        started = time.monotonic()
        await servers.prepare()
        waited = time.monotonic() - started
        assert [each.state for each in servers.statuses() if each.name == "silent"] == ["starting"]
        await servers.until_settled("good")
        await servers.prepare()
        assert [each.name for each in servers.tools] == ["mcp__good__say"]
    assert waited < 20  # it is one second, on any machine that is not busy


async def test_only_some_of_its_tools_are_offered() -> None:
    async with serving(one=plain("nasty", enabled_tools=("cycle", "tree"), disabled_tools=("tree",))) as servers:
        assert [each.name for each in (await settled(servers)).tools] == ["mcp__one__cycle"]


async def test_server_without_tools_is_ready_and_offers_none() -> None:
    async with serving(notes=plain("no-tools")) as servers:
        await settled(servers)
        assert [(each.state, each.tools) for each in servers.statuses()] == [("ready", ())]


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (401, "application/json", "it requires a login: `wolo mcp login web`"),
        (403, "text/plain", "access is denied (403)"),
        (404, "text/plain", "not found (404)"),
        (500, "text/plain", "it answered with HTTP status 500"),
        (200, "text/html", "Unexpected content type: text/html"),
    ],
)
async def test_an_address_that_is_no_server_says_why(status: int, kind: str, said: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
        writer.write(head.encode())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        async with serving(web=Server(url=f"http://127.0.0.1:{port}/mcp")) as servers:
            await settled(servers)
            (standing,) = servers.statuses()
            assert (standing.state, standing.why) == ("failed", said)


async def test_variables_stand_in_addresses_headers_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "canary-1")
    monkeypatch.setenv("ODD", "$WORD")
    env = {"BARE": "x $WORD-y", "LATER": "${ODD}", "PASSWORD_OF_IT": "a$bc$1$$", "HERE": "${CLAUDE_PROJECT_DIR}/x"}
    async with serving(good=with_sdk(env=env)) as servers:
        seen = (await call(await settled(servers), "mcp__good__environment")).text
    here = f"HERE={Path.cwd()}/x"
    for line in ("BARE=x canary-1-y", "LATER=$WORD", "PASSWORD_OF_IT=a$bc$1$$", here, f"CLAUDE_PROJECT_DIR={Path.cwd()}"):
        assert line in seen
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(f"{self.path} {self.headers['Authorization']}")
            self.send_error(403)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        monkeypatch.setenv("BASE", f"http://127.0.0.1:{http.server_port}")
        web = Server(url="${BASE}/${WORD}", headers={"Authorization": "Bearer $WORD"})
        bad = Server(url="${WORD}/mcp")
        unset = Server(url="${BASE}/mcp", headers={"Authorization": "Bearer $NOT_THERE"})
        async with serving(web=web, bad=bad, unset=unset) as servers:
            why = {each.name: each.why for each in (await settled(servers)).statuses()}
        http.shutdown()
    assert set(heard) == {"/canary-1 Bearer canary-1"}
    assert why["web"] == "access is denied (403)"
    assert "does not begin with http:// or https://" in why["bad"]
    assert why["unset"] == "headers.Authorization refers to $NOT_THERE, which is not set"


async def test_one_that_is_still_starting_has_not_failed() -> None:
    cached = CachedListings(Path.cwd().parent / "cache")
    server = plain("silent")
    async with serving(True, silent=server) as servers:
        await servers.prepare()
        told = "The MCP server silent is still starting; its tools join when it is ready."
        assert (servers.statuses()[0].state, servers.news(), servers.news()) == ("starting", told, "")
    assert cached.read(fingerprint(ConfiguredServer(name="silent", server=server, source="the test"))) is None


@pytest.mark.parametrize(("mode", "tools"), [("announces", ["mcp__odd__say"]), ("announces-all", [])])
async def test_list_unknown_to_the_server_is_empty(mode: str, tools: list[str]) -> None:
    """It announced tools, prompts and resources, and answers -32601 when they are listed."""
    async with serving(odd=plain(mode)) as servers:
        (status,) = (await settled(servers)).statuses()
        assert (status.state, status.why, status.notices) == ("ready", "", ())
        assert [each.name for each in servers.tools] == tools
