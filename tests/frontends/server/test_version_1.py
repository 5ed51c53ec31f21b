"""Version 1 of the HTTP API: paging, deletion, files, searches, other sites, and what was before it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, text
from tests.frontends.server.running_server import Server, kind, running
from wolo.frontends.background_sessions import read_session
from wolo.places import find_places

SITE = "https://app.example.com"


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[Server]:
    with running(provider) as server:
        yield server


def status(server: Server, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> int:
    response = server.request(method, path, headers)
    if response.status_code >= 400:
        error = response.json()["error"]
        assert (error["status"], error["message"][-1]) == (response.status_code, ".")
    return response.status_code


def test_sessions_and_messages_come_in_pages(server: Server, provider: ProviderServer) -> None:
    ids = []
    for number in range(3):
        provider.script(text(f"Answer {number}."))
        provider.forget_prefix()
        ids.append(server.new())
        server.prompt(ids[-1], f"prompt {number}")
        server.events(ids[-1]).result()
    newest = [row["id"] for row in server.get("/v1/sessions")]
    assert newest == ids[::-1]
    assert [row["id"] for row in server.get("/v1/sessions?limit=2")] == newest[:2]
    assert [row["id"] for row in server.get(f"/v1/sessions?limit=2&before={newest[1]}")] == newest[2:]
    path = f"/v1/sessions/{ids[0]}"
    prompt, answer = server.get(path)["messages"]
    assert server.get(f"{path}?limit=1")["messages"] == [answer]
    assert server.get(f"{path}?limit=5&before={answer['message']['id']}")["messages"] == [prompt]
    for wrong in ("limit=0", "limit=-1", "limit=x", "limit=99999999999", "before=nobody", "limit=%D9%A1"):
        assert status(server, f"/v1/sessions?{wrong}") == 422
        assert status(server, f"{path}?{wrong}") == 422


@pytest.mark.parametrize("path", ["/v1/find?query=a", "/v1/sessions?limit=1&page=2", "/api/sessions?offset=3"])
def test_unknown_parameters_are_refused(server: Server, path: str) -> None:
    answer = server.request("GET", path)
    assert answer.status_code == 422
    assert "There is no parameter" in answer.json()["error"]["message"]


def test_old_paths_answer_with_a_deprecation(server: Server, provider: ProviderServer) -> None:
    provider.script(text("Fine."))
    id = server.post("/api/sessions", 201)["id"]
    server.post(f"/api/sessions/{id}/prompt", 202, text="hello")
    server.events(id).result()
    old, new = server.request("GET", "/api/sessions"), server.request("GET", "/v1/sessions")
    assert old.json() == new.json()
    assert old.headers["deprecation"].startswith("@")
    assert old.headers["link"] == '</v1/sessions>; rel="successor-version"'
    assert "deprecation" not in new.headers
    unknown = server.request("GET", "/api/sessions/nobody")
    assert (unknown.status_code, "deprecation" in unknown.headers) == (404, True)
    with server.stream(f"/api/sessions/{id}/events") as events:
        assert events.headers["deprecation"].startswith("@")
    assert status(server, "/v2/sessions") == 404


def test_deleted_session_is_gone_everywhere(server: Server, provider: ProviderServer) -> None:
    hold = Hold()
    reply = text("slow one")
    provider.script(reply.__class__(pieces=(*reply.pieces[:2], hold, *reply.pieces[2:])))
    id, unused = server.new(background=True), server.new()
    events = server.events(id)
    server.prompt(id, "go")
    hold.wait_until_reached()
    server.delete(f"/v1/sessions/{id}", 409)
    hold.release()
    events.wait(lambda line: kind(line) == "status" and not line["busy"], after=1)
    events.result()
    assert read_session(find_places().data, id)
    assert server.delete(f"/v1/sessions/{id}") == {"deleted": id}
    assert server.delete(f"/v1/sessions/{unused}") == {"deleted": unused}
    assert server.get("/v1/sessions") == []
    assert read_session(find_places().data, id) is None
    assert run_wolo("sessions", "list", "--json").json == []
    for path in (f"/v1/sessions/{id}", "/v1/sessions/nobody"):
        server.delete(path, 404)
        assert status(server, path) == 404


def test_session_open_elsewhere_is_not_deleted(server: Server, provider: ProviderServer) -> None:
    provider.script(text("Fine."))
    id = server.new()
    server.prompt(id, "hello")
    server.events(id).result()
    with running(provider) as other:
        refused = other.delete(f"/v1/sessions/{id}", 409)["error"]
        assert refused["hint"]
    assert [row["id"] for row in server.get("/v1/sessions")] == [id]


def test_todo_and_children_are_listed(server: Server, provider: ProviderServer) -> None:
    item = {"text": "measure", "status": "in_progress"}
    provider.script(call("todo", {"items": [item]}), call("task", {"prompt": "look"}), text("Seen."), text("Done."))
    id = server.new()
    assert server.get(f"/v1/sessions/{id}/todo") == {"items": []}
    server.prompt(id, "go")
    server.events(id).result()
    assert server.get(f"/v1/sessions/{id}/todo") == {"items": [item]}
    (child,) = server.get(f"/v1/sessions/{id}/children")
    assert (child["task_of"], child["agent"]) == (id, "general")
    assert server.get(f"/v1/sessions/{child['id']}/children") == []
    assert server.get("/v1/health")["status"] == "ok"
    assert status(server, "/v1/health", headers={"Authorization": ""}) == 401


def test_files_are_read_as_the_model_may(server: Server, tmp_path: Path) -> None:
    secret = "sk-live-" + "k3Jd82mNqP7xYw4T" * 2
    Path("src").mkdir()
    Path("src/a.py").write_text("one\ntwo\nthree\n")
    Path("src/picture.bin").write_bytes(b"\x00\x01\x02" * 50)
    Path(".env").write_text(f"API_KEY={secret}\n")
    Path("notes.txt").write_text(f"the key is {secret}\n")
    (tmp_path / "outside.txt").write_text("private\n")
    Path("link.txt").symlink_to(tmp_path / "outside.txt")
    listed = server.get("/v1/files?path=src")
    assert (listed["type"], [each["name"] for each in listed["entries"]]) == ("folder", ["a.py", "picture.bin"])
    whole = server.get("/v1/files?path=src/a.py")
    assert (whole["path"], whole["text"], whole["total_lines"], whole["is_cut"]) == ("src/a.py", "one\ntwo\nthree\n", 3, False)
    assert server.get("/v1/files?path=src/a.py&offset=3")["text"] == "three\n"
    assert server.get("/v1/files?path=src/picture.bin")["is_binary"]
    shown = server.get("/v1/files?path=notes.txt")["text"]
    assert shown.startswith("the key is ")
    assert secret not in shown
    found = server.get("/v1/find?q=the%20key&in=text")["matches"]
    assert [line.partition(" is ")[0] for line in found] == ["notes.txt:1:the key"]
    assert secret not in str(found)
    for path in ("../outside.txt", str(tmp_path / "outside.txt"), "link.txt", ".env", "/etc/passwd", "/"):
        assert status(server, f"/v1/files?path={path}") == 403, path
    assert status(server, "/v1/files?path=nothing.py") == 404
    for path in ("a%00b", "%20", "src/a.py&offset=0", "src/a.py&cwd=/no/such"):
        assert status(server, f"/v1/files?path={path}") == 422, path
    assert status(server, "/v1/files?session=nobody") == 404


def test_find_leaves_out_what_may_not_be_read(server: Server, tmp_path: Path) -> None:
    Path("src").mkdir()
    Path("src/main.py").write_text("print('Needle')\n")
    Path(".env").write_text("NEEDLE=1\n")
    (find_places().config).mkdir(parents=True, exist_ok=True)
    (find_places().config / "config.toml").write_text('[permissions]\ndeny = ["read:hidden.py"]\n')
    Path("hidden.py").write_text("needle\n")
    assert server.get("/v1/find?q=smain")["matches"] == ["src/main.py"]
    assert server.get("/v1/find?q=hidden")["matches"] == []
    assert server.get("/v1/find?q=needle&in=text")["matches"] == ["src/main.py:1:print('Needle')"]
    assert server.get("/v1/find?q=%5B(&in=text")["matches"] == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "there.py").touch()
    id = server.new(cwd=str(other))
    assert server.get(f"/v1/find?q=th&session={id}")["matches"] == ["there.py"]
    assert server.get(f"/v1/find?q=th&cwd={other}")["matches"] == ["there.py"]
    for wrong in ("q=&in=text", "q=a&in=all", f"q={'a' * 2000}&in=text"):
        assert status(server, f"/v1/find?{wrong}") == 422


def test_permitted_site_may_use_the_api(provider: ProviderServer) -> None:
    find_places().config.mkdir(parents=True, exist_ok=True)
    (find_places().config / "config.toml").write_text(f'server.cors = ["{SITE}"]\n')
    with running(provider) as server:
        asks = {"Origin": SITE, "Access-Control-Request-Method": "DELETE", "Authorization": ""}
        preflight = server.request("OPTIONS", "/v1/sessions", asks)
        assert (preflight.status_code, preflight.text) == (204, "")
        assert preflight.headers["access-control-allow-origin"] == SITE
        assert "Authorization" in preflight.headers["access-control-allow-headers"]
        used = server.request("GET", "/v1/sessions", {"Origin": SITE})
        assert (used.status_code, used.headers["access-control-allow-origin"]) == (200, SITE)
        refused = server.request("GET", "/v1/sessions", {"Origin": SITE, "Authorization": ""})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, SITE)
        for origin in ("https://evil.example", "http://app.example.com", f"{SITE}:8443", f"{SITE}.evil.example", "null"):
            other = server.request("GET", "/v1/sessions", {"Origin": origin})
            assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)
            assert status(server, "/v1/sessions", "OPTIONS", {**asks, "Origin": origin}) == 403
        assert status(server, "/v1/sessions", headers={"Origin": SITE, "Host": "app.example.com"}) == 403


def test_no_other_site_may_without_the_setting(server: Server) -> None:
    asks = {"Origin": SITE, "Access-Control-Request-Method": "GET"}
    assert status(server, "/v1/sessions", "OPTIONS", asks) == 403
    assert status(server, "/v1/sessions", headers={"Origin": SITE}) == 403


@pytest.mark.parametrize("origin", ["*", "app.example.com", f"{SITE}/", "https://*.example.com", "null"])
def test_setting_takes_no_pattern_of_sites(origin: str) -> None:
    find_places().config.mkdir(parents=True, exist_ok=True)
    (find_places().config / "config.toml").write_text(f'server.cors = ["{origin}"]\n')
    refused = run_wolo("serve")
    assert (refused.exit_code, "server.cors" in refused.stderr) == (2, True)


def test_openapi_is_printed_without_a_server() -> None:
    document = json.loads(run_wolo("serve", "--openapi").stdout)
    assert document["openapi"].startswith("3.1")
    assert all(path.startswith("/v1/") for path in document["paths"])
    assert len(document["components"]["schemas"]["Event"]["oneOf"]) == 28
    assert not (find_places().data / "servers").exists()
