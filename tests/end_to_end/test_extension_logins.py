"""Logins to a provider that an extension adds: at the terminal, in an editor, and in the web server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_repl import leave, repl, wait_for_prompt
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo
from wolo.places import find_places

HEADER = """
import json, urllib.request
from wolo.extension import Extension, LoginStep

def post(path, **fields):
    request = urllib.request.Request("AUTH" + path, json.dumps(fields).encode())
    return json.load(urllib.request.urlopen(request))
"""
DEVICE = """
def dialog():
    device = post("/device")
    yield LoginStep(url=device["page"], code=device["code"])
    while "refresh" not in (answer := post("/token", device=device["id"])):
        yield LoginStep(wait_s=0.05)
    return answer["refresh"]

def login(saved):
    answer = post("/token", refresh=saved)
    return answer["access"], answer["refresh"]

def extend(ext: Extension) -> None:
    ext.provider("company", base_url="BASE", default_model="large", models=[{"id": "large"}], login=login, dialog=dialog)
"""
CODE = """
def dialog():
    code = yield LoginStep(url="AUTH/authorize", ask="Paste the code of the page")
    return post("/token", code=code)["key"]

def extend(ext: Extension) -> None:
    ext.provider("company", base_url="BASE", default_model="large", models=[{"id": "large"}], dialog=dialog)
"""


class AuthServer:
    """Device and code flow; refresh tokens are good for one use."""

    address = ""

    def __init__(self) -> None:
        self.is_confirmed = threading.Event()
        self.num_polls = 0
        self.refresh = 0

    def answer(self, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        if path == "/device":
            return {"id": "d1", "code": "WDJB-MJHT", "page": "https://company.example/device"}
        if "device" in fields:
            self.num_polls += 1
            if self.num_polls > 2:
                self.is_confirmed.wait(30)
            return {"refresh": f"refresh-secret-{self.refresh}"} if self.is_confirmed.is_set() else {"error": "pending"}
        if "refresh" in fields:
            if fields["refresh"] != f"refresh-secret-{self.refresh}":
                return {"error": "the token was used"}
            self.refresh += 1
            return {"access": f"access-secret-{self.refresh}", "refresh": f"refresh-secret-{self.refresh}"}
        return {"key": "key-secret-of-ada"} if fields.get("code") == "ada-code" else {"error": "wrong code"}


@pytest.fixture
def auth(provider: ProviderServer) -> Iterator[AuthServer]:
    found = AuthServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fields = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(found.answer(self.path, fields)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        found.address = f"http://127.0.0.1:{server.server_port}"
        yield found
        found.is_confirmed.set()
        server.shutdown()
        serving.join()


def install(body: str, auth: AuthServer, provider: ProviderServer) -> None:
    folder = find_places().config / "extensions"
    folder.mkdir(parents=True)
    source = (HEADER + body).replace("AUTH", auth.address).replace("BASE", provider.base_url)
    (folder / "company.py").write_text(source)


def saved() -> str:
    path = find_places().config / "keys.toml"
    return path.read_text() if path.exists() else ""


def test_device_login_refreshes_its_token(auth: AuthServer, provider: ProviderServer, tmp_path: Path) -> None:
    install(DEVICE, auth, provider)
    before = run_wolo("-p", "-m", "company/large", "go")
    assert (before.exit_code, "wolo auth login company" in before.stderr) == (2, True), before.stderr
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    with pty_wolo("login", "company", env={"BROWSER": str(browser)}) as terminal:
        terminal.wait_for("Open https://company.example/device to log in, and enter the code WDJB-MJHT there.")
        auth.is_confirmed.set()
        assert terminal.wait_for_exit() == 0
        assert b"refresh-secret" not in terminal.raw
    assert saved() == 'company = "refresh-secret-0"\n'
    assert (tmp_path / "opened").read_text() == "https://company.example/device\n"
    for number in (1, 2):
        provider.script(text("Hi."))
        ran = run_wolo("-p", "-m", "company/large", "go")
        assert (ran.exit_code, ran.stdout) == (0, "Hi.\n"), ran.stderr
        assert provider.requests[-1].headers["authorization"] == f"Bearer access-secret-{number}"
        assert saved() == f'company = "refresh-secret-{number}"\n'
    assert run_wolo("logout", "company").exit_code == 0
    assert run_wolo("-p", "-m", "company/large", "go").exit_code == 2


@pytest.mark.parametrize(("key", "exit_code"), [("ctrl-c", 130), ("ctrl-d", 1)])
def test_cancelled_login_saves_nothing(auth: AuthServer, provider: ProviderServer, key: str, exit_code: int) -> None:
    install(CODE, auth, provider)
    with pty_wolo("login", "company", env={"BROWSER": "true"}) as terminal:
        terminal.wait_for("Paste the code of the page")
        terminal.wait_for("Enter continue")
        terminal.press(key)
        assert terminal.wait_for_exit() == exit_code
    assert not saved()


def test_wait_for_the_user_can_be_cancelled(auth: AuthServer, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    install(DEVICE.replace('post("/token", device=device["id"])', "{}"), auth, provider)
    with pty_wolo("login", "company", env={"BROWSER": "true"}) as terminal:
        terminal.wait_for("enter the code WDJB-MJHT there.")
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
        assert not terminal.shows("Traceback")
    monkeypatch.setenv("BROWSER", "true")
    with repl(provider, columns=120) as terminal:
        terminal.enter("/login company")
        terminal.wait_for("enter the code WDJB-MJHT there.")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)
        leave(terminal)
    assert not saved()


def test_token_for_one_use_survives_parallel_starts(auth: AuthServer, provider: ProviderServer) -> None:
    install(DEVICE, auth, provider)
    keys = find_places().config / "keys.toml"
    keys.write_text('company = "refresh-secret-0"\n')
    keys.chmod(0o600)
    with ThreadPoolExecutor(3) as threads:
        runs = list(threads.map(lambda _: run_wolo("extensions", "key", "company", "company"), range(3)))
    assert sorted(run.stdout for run in runs) == [f"access-secret-{number}\n" for number in (1, 2, 3)], [
        run.stderr for run in runs
    ]
    assert saved() == 'company = "refresh-secret-3"\n'


def test_failed_login_is_one_sentence(auth: AuthServer, provider: ProviderServer) -> None:
    install(CODE, auth, provider)
    with pty_wolo("login", "company", env={"BROWSER": "true"}) as terminal:
        terminal.wait_for("Enter continue")
        terminal.enter("bob-code")
        terminal.wait_for("The extension company has fetched no key for company: KeyError: 'key'")
        assert terminal.wait_for_exit() == 2
        assert not terminal.shows("Traceback")
    assert not saved()


def test_address_that_is_no_page_is_not_opened(auth: AuthServer, provider: ProviderServer, tmp_path: Path) -> None:
    install(CODE.replace('"AUTH/authorize"', '"file:///etc/passwd"'), auth, provider)
    with pty_wolo("login", "company", env={"BROWSER": f"touch {tmp_path}/opened"}) as terminal:
        terminal.wait_for("names no address of a page: file:///etc/passwd")
        assert terminal.wait_for_exit() == 2
    assert not (tmp_path / "opened").exists()


async def test_editor_logs_in_with_a_form(auth: AuthServer, provider: ProviderServer, isolated: Path) -> None:
    pytest.importorskip("acp", reason="needs the extra acp")
    from acp.exceptions import RequestError
    from acp.schema import AcceptElicitationResponse

    from tests.fakes.acp_client import editor

    install(CODE, auth, provider)
    async with editor(*provider.flags, forms=True) as client:
        session = (await client.new(isolated / "work")).session_id
        with pytest.raises(RequestError, match="login was cancelled"):
            await client.say(session, "/login company")
        assert not saved()
        client.fill_in = lambda message: AcceptElicitationResponse(action="accept", content={"answer_1": "ada-code"})
        await client.say(session, "/login company")
        assert "Logged in to company" in client.text()
        assert f"Open {auth.address}/authorize to log in." in client.forms[-1][0]
    assert saved() == 'company = "key-secret-of-ada"\n'
    provider.script(text("Hi."))
    assert run_wolo("-p", "-m", "company/large", "go").stdout == "Hi.\n"
    assert provider.requests[-1].headers["authorization"] == "Bearer key-secret-of-ada"


def test_web_server_asks_for_the_steps(auth: AuthServer, provider: ProviderServer) -> None:
    pytest.importorskip("starlette", reason="needs the extra web")
    from tests.frontends.server.running_server import kind, running

    install(DEVICE, auth, provider)
    with running(provider) as server:
        id = server.new()
        events = server.events(id)
        work = threading.Thread(target=server.prompt, args=(id, "/login company"), kwargs={"typed": True})
        work.start()
        asked = events.wait(lambda line: kind(line) == "questions")
        assert "enter the code WDJB-MJHT there" in asked["questions"][0]["text"]
        auth.is_confirmed.set()
        server.post(f"/v1/sessions/{id}/answer", call_id=asked["call_id"], answers=[["Continue"]])
        events.wait(lambda line: "Logged in to company" in json.dumps(line))
        work.join()
    assert saved() == 'company = "refresh-secret-0"\n'


def test_script_without_user_logs_in_nowhere(auth: AuthServer, provider: ProviderServer) -> None:
    install(DEVICE, auth, provider)
    ran = run_wolo("-p", *provider.flags, "/login company")
    assert (ran.exit_code, "needs an interactive terminal" in ran.stderr) == (2, True), ran.stderr
