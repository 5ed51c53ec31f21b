"""The HTTP API of a real `wolo serve` process."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_limits import limit
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, text
from tests.frontends.server.running_server import Server, kind, running
from wolo.fleet.ledger.hosts import Host
from wolo.fleet.ledger.ledger_folder import create_ledger
from wolo.fleet.ledger.outcomes import AttemptOutcome, Failure, Spent
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.tasks import BatchTask
from wolo.frontends.server.http_errors import HttpError
from wolo.frontends.server.http_server import FILES, PAGE
from wolo.frontends.server.request_bodies import Image, read_images
from wolo.places import find_places
from wolo.sessions.exchange.format_table import EXPORT_FORMATS

ASK = {"path": "made.py", "content": "print(1)\n"}


@pytest.fixture
def server(provider: ProviderServer) -> Iterator[Server]:
    with running(provider, "--yolo") as server:
        yield server


def test_task_with_approval_is_driven_from_outside(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done."))
    id = server.new(mode="ask")
    events = server.events(id)
    server.prompt(id, "create it")
    asked = events.wait(lambda line: kind(line) == "approval")
    assert (asked["name"], asked["input"]) == ("write", ASK)
    assert not Path("made.py").exists()
    server.prompt(id, "another", 409)
    server.post(f"/v1/sessions/{id}/approve", call_id=asked["call_id"], decision="once")
    result = events.result()
    assert (result["result"], result["exit_code"], result["files_changed"]) == ("Done.", 0, ["made.py"])
    assert Path("made.py").read_text() == "print(1)\n"
    (done,) = [line for line in events.of("user") if line["message"]["content"][0]["type"] == "tool_result"]
    assert done["view"]["type"] == "diff"
    assert len(events.of("approval_given")) == 1
    assert "+print(1)" in server.get(f"/v1/sessions/{id}/diff")["patch"]
    (row,) = server.get("/v1/sessions")
    assert (row["id"], row["turns"], row["busy"], row["title"]) == (id, 1, False, "create it")
    server.post(f"/v1/sessions/{id}/approve", 409, call_id=asked["call_id"], decision="once")
    assert server.post(f"/v1/sessions/{id}/undo")["removed"] == ["made.py"]
    assert not Path("made.py").exists()
    assert [kind(line) for line in server.get(f"/v1/sessions/{id}")["messages"]] == ["notice"]


def test_an_undo_is_previewed_and_redone(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done."))
    id, made = server.new(mode="edit"), Path("made.py")
    events, path = server.events(id), f"/v1/sessions/{id}"
    server.prompt(id, "create it")
    events.result()
    planned = server.post(f"{path}/undo", preview=True)
    assert (planned["removed"], planned["done"], made.exists()) == (["made.py"], False, True)
    server.post(f"{path}/redo", 422)
    assert server.post(f"{path}/undo", paths=["other.py"])["removed"] == []
    assert server.post(f"{path}/undo")["draft"] == "create it"
    assert not made.exists()
    assert events.wait(lambda line: kind(line) == "reverted" and line["removed"] != [])["kind"] == "undo"
    made.write_text("mine\n")
    assert "made.py" in server.post(f"{path}/redo", 409)["error"]["message"]
    made.unlink()
    assert server.post(f"{path}/redo")["restored"] == ["made.py"]
    assert made.read_text() == "print(1)\n"
    assert kind(server.get(path)["messages"][0]) == "user"


def test_the_command_line_undoes_through_the_server(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Done."))
    id, made = server.new(mode="edit"), Path("made.py")
    server.prompt(id, "create it")
    server.events(id).result()
    assert run_wolo("undo", "--dry-run").stdout.splitlines()[1:] == ["  removed   made.py", "Nothing was changed."]
    assert (run_wolo("undo", "--json").json["removed"], made.exists()) == (["made.py"], False)
    redone = run_wolo("redo")
    assert (redone.exit_code, "restored  made.py" in redone.stdout, made.exists()) == (0, True, True)
    again = run_wolo("redo")
    assert (again.exit_code, "Nothing to redo" in again.stderr) == (2, True)
    made.write_text("mine\n")
    assert (run_wolo("undo").exit_code, made.read_text()) == (1, "mine\n")


def test_denied_call_reaches_the_model_with_reason(server: Server, provider: ProviderServer) -> None:
    provider.script(call("write", ASK), text("Then not."))
    id = server.new(mode="ask")
    events = server.events(id)
    server.prompt(id, "create it")
    asked = events.wait(lambda line: kind(line) == "approval")
    server.post(f"/v1/sessions/{id}/approve", call_id=asked["approval_id"], decision="no", reason="use TypeScript")
    assert events.result()["exit_code"] == 4
    assert "use TypeScript" in provider.requests[1].results[0]


def test_questions_are_answered(server: Server, provider: ProviderServer) -> None:
    question = {"question": "Which one?", "options": [{"label": "red"}, {"label": "blue"}]}
    provider.script(call("ask", {"questions": [question]}), text("Blue it is."))
    id = server.new()
    events = server.events(id)
    server.prompt(id, "ask me")
    asked = events.wait(lambda line: kind(line) == "questions")
    assert asked["questions"][0]["options"][1]["label"] == "blue"
    path = f"/v1/sessions/{id}/answer"
    server.post(path, 422, call_id=asked["call_id"], answers=["a", "b"])
    server.post(path, call_id=asked["call_id"], answers=[["blue"]])
    assert events.result()["result"] == "Blue it is."
    assert "blue" in provider.requests[1].results[0]


def test_plan_is_answered_and_switches_the_mode(server: Server, provider: ProviderServer) -> None:
    provider.script(call("present_plan", {"plan": "1. Measure"}), text("Fine."))
    id = server.new(mode="plan")
    events = server.events(id)
    server.prompt(id, "go")
    path = f"/v1/sessions/{id}/answer"
    for answer, plan in (({"chosen": ["revise"], "text": "1. Cache"}, "1. Measure"), (["edit"], "1. Cache")):
        asked = events.wait(lambda line, plan=plan: kind(line) == "questions" and line["questions"][0]["text"] == plan)
        assert asked["questions"][0]["is_plan"]
        server.post(path, call_id=asked["question_id"], answers=[answer])
    assert events.wait(lambda line: kind(line) == "mode")["mode"] == "edit"
    assert events.wait(lambda line: kind(line) == "status" and line["mode"] == "edit")["busy"]
    assert events.wait(lambda line: kind(line) == "todo")["items"] == [{"text": "Cache", "status": "pending"}]
    events.result()
    contents = [line["message"]["content"] for line in events.lines if line["type"] == "user"]
    assert contents[0] == [{"type": "text", "text": "go"}]
    assert provider.requests[1].results[0].endswith("\n\n1. Cache")


def test_a_stream_resumes_where_it_ended(server: Server, provider: ProviderServer) -> None:
    hold = Hold()
    reply = text("one two three four")
    provider.script(reply.__class__(pieces=(*reply.pieces[:2], hold, *reply.pieces[2:])))
    id = server.new()
    first = server.events(id)
    server.prompt(id, "count")
    hold.wait_until_reached()
    first.wait(lambda line: line["type"] == "stream_event")
    seen = len(first.ids)
    late = server.events(id)
    resumed = server.events(id, first.ids[seen - 1])
    unknown = server.events(id, 7)
    hold.release()
    for stream in (first, late, resumed, unknown):
        assert stream.result()["result"] == "one two three four"
        stream.wait(lambda line: kind(line) == "status" and not line["busy"], after=len(stream.lines) - 2)
    assert late.ids == first.ids == unknown.ids == list(range(first.ids[0], first.ids[-1] + 1))
    assert resumed.ids == first.ids[seen:]


def test_model_and_mode_are_chosen_and_changed(server: Server, provider: ProviderServer) -> None:
    known = server.get("/v1/choices")
    assert (known["model"], known["cwd"]) == ("custom/test-model", str(Path.cwd()))
    assert [each["name"] for each in known["modes"]] == ["plan", "ask", "edit", "auto", "yolo"]
    assert server.request("GET", "/v1/choices?cwd=/no/such").status_code == 422
    id = server.new(mode="ask")
    events = server.events(id)
    provider.script(call("write", ASK), text("Done."))
    server.prompt(id, "create it")
    asked = events.wait(lambda line: kind(line) == "approval")
    assert (asked["view"]["type"], asked["view"]["added"], asked["outside"]) == ("diff", 1, [])
    change = f"/v1/sessions/{id}/change"
    server.post(change, 409, model="custom/other-model")
    assert server.post(change, mode="edit")["mode"] == "edit"
    server.post(f"/v1/sessions/{id}/approve", call_id=asked["call_id"], decision="once")
    events.result()
    events.wait(lambda line: kind(line) == "status" and not line["busy"] and line["mode"] == "edit")
    server.post(change, 422, mode="wild")
    assert server.post(change, model="custom/other-model")["model"] == "custom/other-model"
    provider.script(text("Here."))
    provider.forget_prefix()
    seen = len(events.lines)
    server.prompt(id, "who is there?")
    events.result(after=seen)
    assert provider.requests[-1].json["model"] == "other-model"
    assert "init" in {each["name"] for each in server.get(f"/v1/sessions/{id}/commands")}


def test_yolo_is_chosen_on_the_command_line(provider: ProviderServer) -> None:
    """As in editors and over MCP: no client can choose it where the server was not started so."""
    with running(provider) as server:
        assert [each["name"] for each in server.get("/v1/choices")["modes"]] == ["plan", "ask", "edit", "auto"]
        refused = server.post("/v1/sessions", 422, mode="yolo")
        assert "command line" in refused["error"]["message"]
        for options in ({"mode": "yolo"}, {"set": ["mode=yolo"]}):
            server.post("/v1/sessions", 422, options=options)
            server.post("/v1/sessions", 422, options=options, background=True)
        assert server.get("/v1/sessions") == []
        provider.script(text("Hi."))
        id = server.new(mode="edit")
        server.prompt(id, "hello")
        server.events(id).result()
        server.post("/v1/sessions", 422, options={"resume": id, "fork": True, "mode": "yolo"})
        assert [row["id"] for row in server.get("/v1/sessions")] == [id], "a refused session leaves no copy"
        server.post(f"/v1/sessions/{id}/change", 422, mode="yolo", title="no")
        assert server.get(f"/v1/sessions/{id}")["mode"] == "edit"


@pytest.mark.parametrize("name", ["colour", "yolo", "output_format", "file", "cd"])
def test_unknown_option_of_a_session_is_refused(server: Server, name: str) -> None:
    """Nothing is accepted and then ignored."""
    refused = server.post("/v1/sessions", 422, options={"max_turns": "2", name: "red"})
    assert f"{name!r} is unknown" in refused["error"]["message"]
    assert server.get("/v1/sessions") == []


def test_options_of_a_session_have_their_types(server: Server) -> None:
    for options in ({"deny": "shell"}, {"max_turns": True}, {"safe_mode": "no"}, {"trust": True}):
        refused = server.post("/v1/sessions", 422, options=options)
        assert "must be of type" in refused["error"]["message"]
    server.new(options={"deny": ["shell:rm *"], "max_turns": "2", "safe_mode": True})


def test_a_session_is_renamed_open_or_not(server: Server, provider: ProviderServer) -> None:
    def titles() -> list[str]:
        return [row["title"] for row in server.get("/v1/sessions")]

    provider.script(text("Fine."))
    id, change = (it := server.new(name="first")), f"/v1/sessions/{it}/change"
    server.post(change, title="before\x1b[31m it\nbegins")
    assert titles() == ["before [31m it begins"]
    server.prompt(id, "hello")
    server.events(id).result()
    assert titles() == ["before [31m it begins"]
    server.post(change, title="open")
    fork = server.post(f"/v1/sessions/{id}/fork", 201)["id"]
    server.post(f"/v1/sessions/{fork}/change", title="saved")
    assert sorted(titles()) == ["open", "saved"]
    server.post(change, 422, title=" \n")
    server.post(f"/v1/sessions/{fork}/change", 409, title="first")
    assert sorted(titles()) == ["open", "saved"]


def test_steering_and_interrupting(server: Server, provider: ProviderServer) -> None:
    hold = Hold()
    reply = text("long story")
    provider.script(reply.__class__(pieces=(*reply.pieces[:1], hold)).ends("stall"), text("Short one."))
    id = server.new()
    server.post(f"/v1/sessions/{id}/steer", 409, text="too early")
    events = server.events(id)
    server.prompt(id, "tell")
    hold.wait_until_reached()
    server.post(f"/v1/sessions/{id}/steer", 202, text="be brief")
    assert server.post(f"/v1/sessions/{id}/interrupt") == {"interrupted": True}
    assert events.result()["subtype"] == "error_interrupted"
    hold.release()
    again = events.wait(lambda line: line["type"] == "result" and line["subtype"] == "success")
    assert again["result"] == "Short one."
    assert provider.requests[1].messages[-1]["content"].endswith("be brief")
    assert server.post(f"/v1/sessions/{id}/interrupt") == {"interrupted": False}


def test_wait_for_a_limit_can_be_ended(provider: ProviderServer) -> None:
    provider.script(lambda _: limit(7180), text("Here again."))
    find_places().config.mkdir(parents=True)
    (find_places().config / "config.toml").write_text("[retry]\nresume_windows = 1\n")
    with running(provider) as server:
        id = server.new()
        events = server.events(id)
        assert server.post(f"/v1/sessions/{id}/resume", 409)["error"]["message"] == "No turn is running."
        server.prompt(id, "hello")
        line = events.wait(lambda line: line.get("subtype") == "retry")
        assert (line["is_limit"], line["delay_s"] > 7000) == (True, True)
        unknown = server.post(f"/v1/sessions/{id}/resume", 422, model="anthropic/none")
        assert "no model `none`" in unknown["error"]["message"]
        assert server.post(f"/v1/sessions/{id}/resume") == {"resumed": True}
        assert events.result()["result"] == "Here again."


def test_an_interrupt_before_the_turn_refuses_the_prompt(provider: ProviderServer) -> None:
    reached, config = Path.home() / "reached", find_places().config
    os.mkfifo(reached)
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f"[[hooks.UserPromptSubmit]]\ncommand = 'echo > {reached}; exec sleep 60'\n")
    with running(provider) as server, ThreadPoolExecutor() as pool:
        id = server.new()
        answer = pool.submit(server.prompt, id, "go", 409)
        reached.read_text()
        assert server.post(f"/v1/sessions/{id}/interrupt") == {"interrupted": True}
        assert answer.result()["error"]["message"] == "The turn was interrupted before it began."
    assert not provider.requests


def test_parallel_sessions_work_in_their_own_folders(server: Server, provider: ProviderServer, tmp_path: Path) -> None:
    ids = {}
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        ids[name] = server.new(cwd=str(tmp_path / name), mode="edit")
    for name, id in ids.items():
        provider.script(call("write", {"path": "here.txt", "content": name}), text("ok"))
        provider.forget_prefix()
        events = server.events(id)
        server.prompt(id, "go")
        events.result()
    assert [(tmp_path / name / "here.txt").read_text() for name in ids] == ["one", "two", "three"]
    assert {row["cwd"] for row in server.get("/v1/sessions")} == {str(tmp_path / name) for name in ids}


def test_session_is_forked_exported_found_and_continued_elsewhere(server: Server, provider: ProviderServer) -> None:
    provider.script(text("A zebra."))
    id = server.new(name="animals")
    events = server.events(id)
    server.prompt(id, "name an animal")
    events.result()
    copy = server.post(f"/v1/sessions/{id}/fork", 201)["id"]
    assert copy != id
    assert kind(server.get(f"/v1/sessions/{copy}")["messages"][1]) == "assistant"
    exported = server.request("GET", f"/v1/sessions/{id}/export?format=markdown")
    assert "A zebra." in exported.text
    assert server.request("GET", f"/v1/sessions/{id}/export?format=nope").status_code == 422
    assert {hit["id"] for hit in server.get("/v1/search?q=zebra")} == {id, copy}
    assert server.get("/v1/sessions/animals")["id"] == id
    assert server.stop() == 130
    with running(provider) as later:
        provider.script(text("A lion."))
        again = later.events(id, events.ids[-1])
        assert again.wait(lambda line: line["type"] == "assistant")["message"]["content"][0]["text"] == "A zebra."
        later.prompt(id, "another")
        assert again.result()["result"] == "A lion."


def test_bad_request_gets_a_sentence_and_status(server: Server, provider: ProviderServer) -> None:
    id = server.new()

    def status(path: str, body: bytes, method: str = "POST") -> int:
        response = server.request(method, path, content=body)
        error = response.json()["error"]
        assert error["message"].endswith(".")
        assert error["status"] == response.status_code
        return response.status_code

    prompt = f"/v1/sessions/{id}/prompt"
    for body in (
        {"name": "a\nb"},
        {"name": "n" * 201},
        {"name": "../x"},
        {"name": " "},
        {"model": "custom/\0"},
        {"model": "m\x9b31m"},
    ):
        server.post("/v1/sessions", 422, **body)
    assert server.request("GET", f"/v1/sessions/{id}/export").status_code == 409, "it has no messages yet"
    assert status(prompt, b"{") == 400
    assert status(prompt, b"\xff") == 400
    assert status(prompt, b'{"txt": "a"}') == 422
    assert status(prompt, b'{"text": "  "}') == 422
    assert status(prompt, b'{"text": "/nonsense", "typed": true}') == 422
    assert status(prompt, b'{"text": "a", "images": [{"data": "%%"}]}') == 422
    assert status("/v1/sessions/nope/prompt", b'{"text": "a"}') == 404
    assert status("/v1/sessions", json.dumps({"cwd": "/no/such"}).encode()) == 422
    assert status("/v1/sessions", json.dumps({"cwd": "a\0b"}).encode()) == 422
    assert status("/v1/sessions", b'{"mode": "wild"}') == 422
    assert status(f"/v1/sessions/{id}/approve", b'{"call_id": "x", "decision": "once"}') == 404
    assert status(f"/v1/sessions/{id}/answer", b'{"call_id": "x", "answers": null}') == 404
    assert status(f"/v1/sessions/{id}/prompt", b"", "GET") == 405
    assert status("/v1/nothing", b"", "GET") == 404
    assert status("/v1/sessions/", b"", "GET") == 404
    assert status("/v1/search", b"", "GET") == 422
    assert status("/page/../application.py", b"", "GET") == 404
    assert status(prompt, b" " * (33 * 1024 * 1024)) == 413
    assert not provider.requests


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_strangers_are_refused(server: Server, headers: dict[str, str], status: int) -> None:
    for path in ("/", "/openapi.json", "/v1/sessions"):
        response = server.request("GET", path, headers)
        assert response.status_code == status
        assert response.headers["x-content-type-options"] == "nosniff"


def test_the_page_is_guarded_and_small(server: Server) -> None:
    page = server.request("GET", f"/?token={server.token}", {"Authorization": "", "Origin": server.origin})
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    refused = server.request("GET", "/?token=wrong", {"Authorization": "", "Accept": "text/html,*/*"})
    assert (refused.status_code, refused.headers["content-type"]) == (401, "text/plain; charset=utf-8")
    assert "wolo serve" in refused.text
    assert sum((PAGE / name).stat().st_size for name in FILES) <= 150_000


def test_browser_gets_a_private_file_without_token(provider: ProviderServer, tmp_path: Path) -> None:
    """A command line can be read by every user of the machine."""
    seen, program = tmp_path / "seen", tmp_path / "browser"
    os.mkfifo(seen)
    program.write_text(
        f"#!{sys.executable}\nimport os, sys, urllib.parse\npath = urllib.parse.urlsplit(sys.argv[1]).path\n"
        "rows = [open('/proc/self/cmdline').read(), oct(os.stat(path).st_mode), open(path).read()]\n"
        f"with open({str(seen)!r}, 'w') as pipe: pipe.write('\\x1e'.join(rows))\nsys.stdin.read()\n"
    )
    program.chmod(0o755)
    with running(provider, "--open", BROWSER=str(program)) as server:
        command_line, mode, page = seen.read_text().split("\x1e")
        assert server.token not in command_line
        assert (mode, f'url={server.address}"' in page) == ("0o100600", True)
        assert server.stop() == 130
    assert not list(Path(os.environ["WOLO_HOME"], "data", "servers").iterdir())


def test_no_file_but_one_has_the_token(server: Server, provider: ProviderServer) -> None:
    """Neither logs nor crash reports, nor what a command of the model sees."""
    provider.script(call("shell", {"command": "cat /proc/self/environ /proc/$PPID/cmdline"}), text("Done."))
    id = server.new(mode="yolo")
    server.request("GET", f"/?token={server.token}", {"Authorization": "", "Accept": "text/html"})
    server.request("GET", f"/v1/sessions/%00?token={server.token}")
    server.prompt(id, "look around")
    result = server.events(id).result()
    assert server.token not in f"{result} {provider.requests[-1].json}"
    files = [path for path in Path(os.environ["WOLO_HOME"]).rglob("*") if path.is_file()]
    assert [path.parent.name for path in files if server.token.encode() in path.read_bytes()] == ["servers"]


def test_the_openapi_document_says_what_the_routes_do(server: Server, provider: ProviderServer) -> None:
    document = server.get("/openapi.json")
    id = server.new()
    operations = [(path, method, about) for path, methods in document["paths"].items() for method, about in methods.items()]
    assert len(operations) == 27
    for path, method, about in operations:
        url = path.replace("{id}", "session_nobody")
        good = {status for status in about["responses"] if status.startswith("2")}
        assert len(good) == 1
        if "{id}" in path:
            body: dict[str, Any] = {"json": _example(document, about)} if "requestBody" in about else {}
            assert server.request(method.upper(), url, **body).status_code == 404
            assert server.request("PUT", url).status_code == 405
        if "requestBody" in about:
            assert server.request(method.upper(), path.replace("{id}", id), json={"no such field": 1}).status_code == 422


def test_exports_have_a_documented_type(server: Server, provider: ProviderServer) -> None:
    provider.script(text("Fine."))
    id = server.new()
    server.prompt(id, "hello")
    server.events(id).result()
    documented = server.get("/openapi.json")["paths"]["/v1/sessions/{id}/export"]["get"]["responses"]["200"]["content"]
    for format in EXPORT_FORMATS:
        assert server.request("GET", f"/v1/sessions/{id}/export?format={format}").headers["content-type"] in documented


def _example(document: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    name = about["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document["components"]["schemas"][name]
    values = {"text": "a", "call_id": "c", "decision": "once", "answers": None}
    return {field: values[field] for field in schema.get("required", ())}


def test_ctrl_c_in_a_turn_saves_the_session(server: Server, provider: ProviderServer) -> None:
    hold = Hold()
    reply = text("half of it")
    provider.script(reply.__class__(pieces=(*reply.pieces[:2], hold)).ends("stall"))
    id = server.new()
    events = server.events(id)
    server.prompt(id, "begin")
    hold.wait_until_reached()
    events.wait(lambda line: line["type"] == "stream_event")
    assert server.stop(signal.SIGTERM) == 143
    hold.release()
    with running(provider) as later:
        messages = later.get(f"/v1/sessions/{id}")["messages"]
    assert messages[0]["message"]["content"][0]["text"] == "begin"


def test_a_port_in_use_is_a_usage_error(server: Server, provider: ProviderServer) -> None:
    import subprocess
    import sys

    port = server.origin.rpartition(":")[2]
    command = [sys.executable, "-m", "wolo", "serve", "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"Port {port} cannot be used" in done.stderr


def batch_run(folder: Path) -> Path:
    """A run with a failed task and a queued one."""
    run = folder / "nightly"
    run.mkdir()
    with closing(create_ledger(run, Meta(version="1"))) as ledger:
        ledger.add([(BatchTask(id="a", prompt="go"), "key-a"), (BatchTask(id="b", prompt="go"), "key-b")])
        lease = ledger.lease(Host().owner())
        assert lease is not None
        outcome = AttemptOutcome(
            state="failed",
            started="2026-01-02T03:04:05Z",
            ended="2026-01-02T03:04:06Z",
            host="here",
            engine="local",
            error=Failure("verify", "The verify command failed."),
            usage=Spent(7, 1),
        )
        ledger.publish(lease, outcome)
    return run


def test_runs_of_batches_are_shown_with_their_tasks(provider: ProviderServer, tmp_path: Path) -> None:
    run = batch_run(tmp_path)
    with running(provider, "--run", str(run)) as server:
        (overview,) = server.get("/v1/runs")
        assert (overview["name"], overview["states"], overview["tokens"]) == ("nightly", {"failed": 1, "queued": 1}, 8)
        shown = server.get("/v1/runs/0")
        assert [(task["id"], task["state"]) for task in shown["tasks"]] == [("a", "failed"), ("b", "queued")]
        assert shown["tasks"][0]["error"]["message"] == "The verify command failed."
        for unknown in ("1", "x", "-1", "9" * 30):
            assert server.request("GET", f"/v1/runs/{unknown}").status_code == 404
    assert run_wolo("serve", "--run", str(tmp_path / "none")).exit_code == 2


def test_images_of_a_prompt_keep_their_names() -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    (named,) = read_images([Image(data=png, name="dot.png")])
    assert named.name == "dot.png"
    with pytest.raises(HttpError, match=r"Image 1 \(no\.png\) is no image"):
        read_images([Image(data="AAAA", name="no.png")])


def test_goal_holds_the_turn_of_a_server(server: Server, provider: ProviderServer) -> None:
    provider.script(text("Done."), call("write", {"path": "made.txt", "content": "1\n"}), text("There."))
    id = server.new(mode="edit")
    events = server.events(id)
    server.prompt(id, "/goal made.txt exists --until 'test -e made.txt'", typed=True)
    result = events.result()
    assert (result["result"], result["goal"]["status"], result["goal"]["num_rounds"]) == ("There.", "met", 2)
    server.prompt(id, "/goal", typed=True)
    events.wait(lambda line: kind(line) == "notice" and "Status: met" in line["text"])
    assert len(provider.requests) == 3
