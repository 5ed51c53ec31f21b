"""`wolo attach`: a real process, in a pipe and in a terminal, with a real server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pexpect
import pytest

from tests.end_to_end.test_limits import limit
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, text
from tests.frontends.server.running_server import Server, running
from wolo.errors import Unreachable
from wolo.frontends.attach.server_client import ServerClient
from wolo.places import find_places

ASK = {"path": "made.py", "content": "print(1)\n"}


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[Server]:
    with running(provider, "--yolo") as server:
        yield server


def attach(*arguments: str, typed: str = "", **environment: str) -> Completed:
    return run_wolo("attach", *arguments, stdin=typed, env=environment)


def test_a_pipe_drives_a_session(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done \x1b[31mred."), text("Again."))
    id = server.new(mode="ask")
    done = attach(server.address, "--session", id, typed="create it\nperhaps\nyes\nonce more")
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("> ")] == ["> create it", "> once more"]
    assert lines.count("    +print(1)") == 3, "asked twice, then done"
    assert any(line.startswith('* write {"path":"made.py",') for line in lines)
    assert "Done \\x1b[31mred." in lines
    assert lines[-1] == "Again."
    assert Path("made.py").read_text() == "print(1)\n"
    again = attach(server.origin, "--session", id, WOLO_SERVER_TOKEN=server.token).stdout.splitlines()
    assert [line for line in again if line in lines] == again, "the history looks as it looked live"
    assert again[-1] == "Again."


def test_unapproved_call_waits_and_says_so(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Then not."))
    id = server.new(mode="ask")
    left = attach(server.address, "--session", id, typed="create it\n")
    assert left.exit_code == 4
    assert "waits for an answer" in left.stderr
    assert server.get(f"/v1/sessions/{id}")["busy"]
    done = attach(server.address, "--session", id, typed="no use TypeScript\n")
    assert done.exit_code == 4, "a call was denied"
    assert "Then not." in done.stdout
    assert "use TypeScript" in provider.requests[1].results[0]


def test_questions_are_answered_in_order(server: Server, provider: ProviderServer) -> None:
    questions = [
        {"question": "Which one?", "options": [{"label": "red"}, {"label": "blue"}]},
        {"question": "Why?", "options": [{"label": "because"}, {"label": "why not"}]},
    ]
    provider.script(call("ask", {"questions": questions}), text("Blue it is."))
    done = attach(server.address, "--new", typed="ask me\n2\nit is calm\n")
    assert done.stdout.endswith("Blue it is.\n"), done
    assert "blue" in provider.requests[1].results[0]
    assert "it is calm" in provider.requests[1].results[0]


def test_plan_is_decided_about(server: Server, provider: ProviderServer) -> None:
    provider.script(call("present_plan", {"plan": "1. Measure"}), text("Fine."))
    done = attach(server.address, "--session", server.new(mode="plan"), typed="go\n2\n")
    assert "(Mode edit: " in done.stdout
    assert "the mode is now `edit`" in provider.requests[1].results[0]


def test_a_turn_is_undone_and_redone(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done."))
    id, made = server.new(mode="edit"), Path("made.py")
    done = attach("--session", id, typed="create it\n/undo\n")
    assert ("removed made.py" in done.stdout, made.exists()) == (True, False)
    done = attach("--session", id, typed="/redo\n/redo\n")
    assert ("restored made.py" in done.stdout, made.exists()) == (True, True)
    assert "Nothing to redo" in done.stderr
    assert len(provider.requests) == 2


def test_mistakes_are_sentences(server: Server, provider: ProviderServer) -> None:
    id = server.new()
    for arguments, code, words in (
        ((server.address + "x", "--session", id), 2, "token is missing or wrong"),
        (("http://127.0.0.1:1/", "--session", id), 2, "has no token"),
        (("http://[::1]:1/", "--session", id), 2, "has no token"),
        ((server.address, "--session", "no-such"), 3, "no session"),
        ((server.address, "--session", ".."), 3, "no session"),
        ((server.address, "--session", id, "--new"), 2, "exclude each other"),
        ((server.address,), 2, "No session was chosen"),
        (("http://127.0.0.1:1/?token=a", "--session", id), 75, "No server answers"),
        ((f"{provider.base_url}/?token=a", "--session", id), 2, "no wolo server"),
        (("ftp://127.0.0.1/?token=a",), 2, "not the address"),
        (("http://127.0.0.1:99999/?token=a",), 2, "not the address"),
        (("http://build.example:8000/?token=a",), 2, "unencrypted"),
    ):
        refused = attach(*arguments)
        assert (refused.exit_code, words in refused.stderr) == (code, True), (arguments, refused)
        assert "Traceback" not in refused.stderr
    assert id in attach(server.address).stdout, "without a session it lists them"


def test_a_terminal_chooses_steers_interrupts_and_leaves(server: Server, provider: ProviderServer) -> None:
    holds = Hold(), Hold()
    provider.script(
        call("shell", {"command": "echo one"}),
        (steered := text("Steered words.")).__class__(pieces=(holds[0], *steered.pieces)),
        (slow := text("one two three four")).__class__(pieces=(*slow.pieces[:2], holds[1], *slow.pieces[2:])),
    )
    id = server.new(mode="yolo")
    terminal = pexpect.spawn(sys.executable, ["-m", "wolo", "attach", server.address], encoding="utf-8", timeout=20)
    terminal.expect("1. " + id)
    terminal.expect("n for a new session: ")
    terminal.sendline("1")
    terminal.expect(f"Session {id}.*\r\n> ")
    terminal.sendline("go")
    holds[0].wait_until_reached()
    terminal.sendline("and this")
    server.events(id).wait(lambda line: line.get("subtype") == "steered")
    holds[0].release()
    terminal.expect("Steered words")
    holds[1].wait_until_reached()
    assert "and this" in str(provider.requests[2].messages[-1])
    terminal.sendintr()
    terminal.expect("Interrupting")
    terminal.expect("\r\n> ")
    terminal.sendline("/quit")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert not server.get(f"/v1/sessions/{id}")["busy"]


@pytest.fixture
def waiting(provider: ProviderServer) -> Iterator[Server]:
    """Waits for limits."""
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text("[retry]\nresume_windows = 1\n")
    with running(provider) as server:
        yield server


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("", "Here again."), ("s", "Interrupted"), ("m custom/other", "answers instead")],
    ids=["now", "stop", "model"],
)
def test_limit_wait_is_ended_from_the_terminal(waiting: Server, provider: ProviderServer, typed: str, answer: str) -> None:
    provider.script(lambda _: limit(7180), *([text("Here again.")] if typed != "s" else []))
    id = waiting.new()
    argv = ["-m", "wolo", "attach", waiting.address, "--session", id]
    terminal = pexpect.spawn(sys.executable, argv, encoding="utf-8", timeout=20, dimensions=(40, 160))
    terminal.expect("\r\n> ")
    terminal.sendline("hello")
    terminal.expect("Limit until .* \\(1:59:")
    terminal.expect("Enter asks now · m MODEL lets another answer · s stops: ")
    if not typed:
        terminal.sendline("m anthropic/none")
        terminal.expect("no model `none`")
        terminal.sendline("m")
        terminal.expect("s stops: ")
    terminal.sendline(typed)
    terminal.expect(answer)
    terminal.expect("\r\n> ")
    terminal.sendline("/quit")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert not waiting.get(f"/api/sessions/{id}")["busy"]


@contextmanager
def cutting_proxy(server: Server, sizes: list[int]) -> Iterator[str]:
    """Passes connections on; each that listens to events is cut after so many bytes."""
    port = int(server.origin.rpartition(":")[2])
    listener = socket.create_server(("127.0.0.1", 0))
    here, there = (f"127.0.0.1:{each}".encode() for each in (listener.getsockname()[1], port))

    def pump(source: socket.socket, target: socket.socket, cuts: dict[str, int]) -> None:
        with suppress(OSError):
            while data := source.recv(100):
                if b"/events " in data and sizes:
                    cuts["left"] = sizes.pop(0)
                target.sendall(data.replace(here, there))
                if source.getpeername()[1] == port and "left" in cuts:
                    cuts["left"] -= len(data)
                    if cuts["left"] < 0:
                        break
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()

    def accept() -> None:
        with suppress(OSError):
            while True:
                one, other = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
                cuts: dict[str, int] = {}
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=pump, args=(*pair, cuts), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://{here.decode()}/?token={server.token}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_a_lost_connection_loses_and_doubles_nothing(server: Server, provider: ProviderServer) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    provider.script(text(words), text("The end."))
    id = server.new()
    sizes = [1500, 900, 2500, 1200]
    with cutting_proxy(server, sizes) as address:
        done = attach(address, "--session", id, typed="count\nand end\n")
    assert not sizes, "every cut was made"
    assert done.stdout.splitlines()[1:] == ["> count", words, "> and end", "The end."]


def test_late_answer_is_no_prompt(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done."))
    id = server.new(mode="ask")
    first, second = (
        pexpect.spawn(sys.executable, ["-m", "wolo", "attach", server.address, "--session", id], encoding="utf-8", timeout=20)
        for _ in range(2)
    )
    first.expect("\n> ")
    second.expect("\n> ")
    first.sendline("go")
    first.expect("Approve")
    second.expect("Approve")
    first.sendline("y")
    second.expect("Done")
    second.expect("\n> ")
    second.sendline("n")
    second.expect("answered elsewhere")
    for terminal in (first, second):
        terminal.sendline("/quit")
        terminal.expect(pexpect.EOF)
        terminal.close()
    assert len(provider.requests) == 2


def test_the_token_of_a_running_server_is_found(server: Server, provider: ProviderServer, tmp_path: Path) -> None:
    entry = next(Path(os.environ["WOLO_HOME"], "data", "servers").glob("*.json"))
    assert (entry.stat().st_mode & 0o777, entry.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    id, port = server.new(), server.origin.rpartition(":")[2]
    for arguments in ((), (server.origin,), (f"http://localhost:{port}",)):
        found = attach(*arguments, "--session", id)
        assert (found.exit_code, found.stderr, id in found.stdout) == (0, "", True), arguments
    entry.chmod(0o640)
    assert "open to other users" in attach("--session", id).stderr
    entry.chmod(0o600)
    (real := tmp_path / "elsewhere").write_bytes(entry.read_bytes())
    entry.unlink()
    entry.symlink_to(real)
    assert "No `wolo serve`" in attach("--session", id).stderr, "a link is nobody's entry"


def test_servers_that_were_killed_are_not_found(provider: ProviderServer) -> None:
    folder = Path(os.environ["WOLO_HOME"], "data", "servers")
    with running(provider) as first:
        first.stop(signal.SIGKILL)
        assert len(list(folder.iterdir())) == 1
        refused = attach("--new")
        assert (refused.exit_code, "No `wolo serve`" in refused.stderr) == (2, True)
    with running(provider) as one, running(provider) as two:
        assert {each.stem for each in folder.iterdir()} == {each.origin.rpartition(":")[2] for each in (one, two)}
        refused = attach("--new")
        assert (refused.exit_code, "2 servers are running" in refused.stderr, one.origin in refused.stderr) == (2, True, True)
        assert one.token not in refused.stderr
    assert not list(folder.iterdir())


def test_the_end_of_the_server_is_said(server: Server) -> None:
    id = server.new()
    process = subprocess.Popen(
        [sys.executable, "-m", "wolo", "attach", server.address, "--session", id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert id in process.stdout.readline()
    server.stop(signal.SIGKILL)
    _, errors = process.communicate(timeout=30) if process.wait(timeout=30) else ("", "")
    assert process.returncode == 75
    assert f"`wolo --resume {id}`" in errors


def test_it_loads_neither_the_server_nor_a_conversation() -> None:
    program = (
        "import sys; from wolo.frontends.attach import attached_session, server_client; "
        "print(*(name for name in sys.modules if name.partition('.')[0] in sys.argv[1:] or name in sys.argv[1:]))"
    )
    heavy = ("starlette", "uvicorn", "mcp", "pydantic", "prompt_toolkit", "wolo.conversation", "wolo.agent", "wolo.sessions")
    done = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == []


async def test_a_server_that_was_started_again_is_told(server: Server) -> None:
    async with ServerClient(server.origin, "the-token-of-before") as client:
        with pytest.raises(Unreachable, match="started again") as caught:
            await anext(client.events("session_1", lambda: None))
    assert "wolo --resume session_1" in caught.value.hint
