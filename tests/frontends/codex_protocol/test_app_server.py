"""`wolo app-server`, as a client of Codex's app server sees it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import KEY, MODEL, ProviderServer
from tests.fakes.replies import call, calls, error, text
from tests.frontends.sdks import at

Line = dict[str, Any]
Decide = Callable[[Line], Any]


class AppClient:
    """`decide` answers approvals while a turn is awaited; None: no answer."""

    def __init__(self, provider: ProviderServer, *options: str, decide: Decide = lambda request: {"decision": "accept"}) -> None:
        env = at(provider.base_url, KEY, MODEL)
        self.process: subprocess.Popen[bytes] = start_wolo("app-server", *options, stdin_pipe=True, env=env)
        self.asked: list[Line] = []
        self.lines: list[Line] = []
        """Notifications so far."""
        self._decide = decide
        self._num_requests = 0

    def __enter__(self) -> Self:
        self.process.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            self.process.kill()
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.__exit__(kind, error, trace)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps(message) + "\n")

    def read(self) -> Line:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        message: Line = json.loads(line)
        if "method" in message and "id" in message:
            self.asked.append(message)
            if (result := self._decide(message)) is not None:
                self.send({"id": message["id"], "result": result})
        elif "method" in message:
            self.lines.append(message)
        return message

    def request(self, method: str, **params: Any) -> Line:
        """The whole response."""
        self._num_requests += 1
        self.send({"method": method, "id": self._num_requests, "params": params})
        while (message := self.read()).get("id") != self._num_requests or "method" in message:
            pass
        return message

    def initialize(self, **capabilities: Any) -> Line:
        response = self.request("initialize", clientInfo={"name": "test", "version": "1"}, capabilities=capabilities)
        self.send({"method": "initialized"})
        return response

    def start(self, **params: Any) -> str:
        """The id of a new thread."""
        response = self.request("thread/start", **{"cwd": str(Path.cwd()), **params})
        assert "result" in response, response
        id: str = response["result"]["thread"]["id"]
        return id

    def turn(self, thread: str, prompt: str = "go", **params: Any) -> list[Line]:
        """The notifications of a turn, up to its end."""
        begin = len(self.lines)
        response = self.request("turn/start", threadId=thread, input=[{"type": "text", "text": prompt}], **params)
        assert "result" in response, response
        while not any(line["method"] == "turn/completed" for line in self.lines[begin:]):
            self.read()
        return self.lines[begin:]

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(30)


def items(lines: list[Line], kind: str, method: str = "item/completed") -> list[Line]:
    found = [line["params"]["item"] for line in lines if line["method"] == method]
    return [item for item in found if item["type"] == kind]


def status(lines: list[Line]) -> str:
    last: str = next(line["params"]["turn"]["status"] for line in lines if line["method"] == "turn/completed")
    return last


def test_turn_is_told_in_items(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "echo hello"}), content="I begin."), text("Done.", reasoning="Good."))
    with AppClient(provider) as client:
        assert client.initialize()["result"]["userAgent"].startswith("wolo/")
        thread = client.start(sandbox="danger-full-access")
        lines = client.turn(thread)
        assert client.end() == 0
    [command] = items(lines, "commandExecution")
    assert command["command"] == "echo hello"
    assert (command["status"], command["exitCode"]) == ("completed", 0)
    assert "hello" in command["aggregatedOutput"]
    assert [item["text"] for item in items(lines, "agentMessage")] == ["I begin.", "Done."]
    assert items(lines, "reasoning")[0]["content"] == ["Good."]
    assert items(lines, "userMessage")[0]["content"] == [{"type": "text", "text": "go"}]
    message = items(lines, "agentMessage")[-1]
    deltas = [line["params"] for line in lines if line["method"] == "item/agentMessage/delta"]
    assert "".join(each["delta"] for each in deltas if each["itemId"] == message["id"]) == "Done."
    assert {line["params"]["threadId"] for line in lines if line["method"] != "thread/started"} == {thread}
    assert status(lines) == "completed"
    [usage] = [line["params"]["tokenUsage"] for line in lines if line["method"] == "thread/tokenUsage/updated"]
    assert usage["total"]["totalTokens"] == 220
    assert not provider.problems


def test_client_decides_about_commands_and_changes(provider: ProviderServer) -> None:
    script = calls(("write", {"path": "a.txt", "content": "a\n"}), ("shell", {"command": "touch made"}))
    provider.script(script, text("Done."))

    def decide(request: Line) -> Line:
        return {"decision": "accept" if "fileChange" in request["method"] else "decline"}

    with AppClient(provider, decide=decide) as client:
        client.initialize()
        lines = client.turn(client.start(sandbox="workspace-write", approvalPolicy="untrusted"))
    assert [each["method"] for each in client.asked] == [
        "item/fileChange/requestApproval",
        "item/commandExecution/requestApproval",
    ]
    assert client.asked[1]["params"]["command"] == "touch made"
    [proposed] = items(lines, "fileChange", "item/started")
    assert proposed["id"] == client.asked[0]["params"]["itemId"]
    assert proposed["changes"] == [{"path": str(Path("a.txt").resolve()), "kind": {"type": "add"}, "diff": "a\n"}]
    assert items(lines, "fileChange")[0]["status"] == "completed"
    assert items(lines, "commandExecution")[0]["status"] == "declined"
    assert Path("a.txt").exists()
    assert not Path("made").exists()
    assert len([line for line in lines if line["method"] == "serverRequest/resolved"]) == 2


@pytest.mark.parametrize("answer", [{}, {"decision": "perhaps"}, "yes", {"decision": {"acceptWithExecpolicyAmendment": {}}}])
def test_answer_that_makes_no_sense_denies(provider: ProviderServer, answer: object) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with AppClient(provider, decide=lambda request: answer) as client:
        client.initialize()
        client.turn(client.start(sandbox="workspace-write", approvalPolicy="untrusted"))
    assert not Path("made").exists()


def test_cancel_ends_the_turn(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}))
    with AppClient(provider, decide=lambda request: {"decision": "cancel"}) as client:
        client.initialize()
        assert status(client.turn(client.start(approvalPolicy="untrusted"))) == "interrupted"
    assert not Path("made").exists()


def test_hang_up_denies_and_leaves_nothing(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with AppClient(provider, decide=lambda request: None) as client:
        client.initialize()
        thread = client.start(approvalPolicy="untrusted")
        client.request("turn/start", threadId=thread, input=[{"type": "text", "text": "go"}])
        while not client.asked:
            client.read()
        assert client.end() == 0
    assert not Path("made").exists()
    assert run_wolo("sessions", "list", "--json").json[0]["id"] == thread, "the session is saved"


def test_policy_never_asks_nobody(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "a"}), text("Done."))
    with AppClient(provider) as client:
        client.initialize()
        client.turn(client.start(sandbox="read-only", approvalPolicy="never"))
    assert not client.asked
    assert not Path("a.txt").exists()


def test_interrupt_ends_the_turn(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "sleep 60"}), text("Here."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start(sandbox="danger-full-access")
        turn = client.request("turn/start", threadId=thread, input=[{"type": "text", "text": "go"}])["result"]["turn"]
        while not items(client.lines, "commandExecution", "item/started"):
            client.read()
        again = client.request("turn/start", threadId=thread, input=[{"type": "text", "text": "x"}])
        assert "running" in again["error"]["message"]
        client.request("turn/interrupt", threadId=thread, turnId=turn["id"])
        while not any(line["method"] == "turn/completed" for line in client.lines):
            client.read()
        assert status(client.lines) == "interrupted"
        assert status(client.turn(thread)) == "completed"


def test_threads_are_listed_and_resumed(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start()
        client.turn(thread, "first")
        client.request("thread/name/set", threadId=thread, name="The first one")
    with AppClient(provider) as client:
        client.initialize()
        [listed] = client.request("thread/list", cwd=str(Path.cwd()))["result"]["data"]
        assert (listed["id"], listed["name"], listed["status"]) == (thread, "The first one", {"type": "notLoaded"})
        assert client.request("thread/resume", threadId=thread)["result"]["thread"]["id"] == thread
        assert client.request("thread/loaded/list")["result"]["data"] == [thread]
        client.turn(thread, "second")
    prompts = [message["content"] for message in provider.requests[1].messages if message["role"] == "user"]
    assert prompts == ["first", "second"]


def test_fork_continues_beside_its_origin(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."), text("Three."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start(sandbox="workspace-write", approvalPolicy="never")
        client.turn(thread, "first", sandboxPolicy={"type": "workspaceWrite"})
        response = client.request("thread/fork", threadId=thread)["result"]
        fork = response["thread"]["id"]
        assert (response["thread"]["forkedFromId"], fork != thread) == (thread, True)
        assert (response["sandbox"]["type"], response["approvalPolicy"]) == ("workspaceWrite", "never")
        while client.lines[-1]["method"] != "thread/started" or client.lines[-1]["params"]["thread"]["id"] != fork:
            client.read()
        client.turn(fork, "in the fork")
        client.turn(thread, "in the thread")
        assert "no session" in client.request("thread/fork", threadId="none")["error"]["message"].lower()
    prompts = [[each["content"] for each in asked.messages if each["role"] == "user"] for asked in provider.requests]
    assert prompts == [["first"], ["first", "in the fork"], ["first", "in the thread"]]


def test_fork_is_no_looser_than_its_origin(provider: ProviderServer) -> None:
    provider.script(text("One."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start(sandbox="workspace-write", approvalPolicy="on-request")
        client.turn(thread, sandboxPolicy={"type": "readOnly"})
        assert client.request("thread/fork", threadId=thread)["result"]["sandbox"]["type"] == "readOnly"
        widened = client.request("thread/fork", threadId=thread, sandbox="workspace-write")["result"]
        assert widened["sandbox"]["type"] == "workspaceWrite"


def test_null_in_a_fork_widens_nothing(provider: ProviderServer) -> None:
    provider.script(text("One."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start(sandbox="read-only", approvalPolicy="never")
        client.turn(thread)
        fork = client.request("thread/fork", threadId=thread, sandbox=None, approvalPolicy=None, config=None)["result"]
        assert (fork["sandbox"]["type"], fork["approvalPolicy"]) == ("readOnly", "never")
        assert "no session" in client.request("thread/fork", threadId=thread[:-1])["error"]["message"]


def test_ephemeral_threads_are_not_forked(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    with AppClient(provider) as client:
        client.initialize()
        thread, unsaved = client.start(), client.start(ephemeral=True)
        client.turn(thread)
        client.turn(unsaved)
        assert "no session" in client.request("thread/fork", threadId=unsaved)["error"]["message"]
        assert "must be numbers" in client.request("thread/list", limit="all")["error"]["message"]
        for method in ("thread/fork", "thread/resume"):
            refused = client.request(method, threadId=thread, ephemeral=True)["error"]["message"]
            assert "ephemeral" in refused


@pytest.mark.parametrize("delivery", ["inline", "detached"])
def test_review_has_its_items(provider: ProviderServer, delivery: str) -> None:
    provider.script(text("One."), text("Looks fine."))
    with AppClient(provider) as client:
        client.initialize()
        thread = client.start()
        client.turn(thread, "first")
        begin = len(client.lines)
        target = {"type": "commit", "sha": "1234567", "title": "Polish colours"}
        response = client.request("review/start", threadId=thread, target=target, delivery=delivery)["result"]
        assert (response["reviewThreadId"] == thread) == (delivery == "inline")
        while not any(line["method"] == "turn/completed" for line in client.lines[begin:]):
            client.read()
        lines = client.lines[begin:]
        assert [item["review"] for item in items(lines, "enteredReviewMode")] == ["the commit 1234567 Polish colours"]
        assert [item["review"] for item in items(lines, "exitedReviewMode")] == ["Looks fine."]
        assert {line["params"]["threadId"] for line in lines if "turn" in line["method"]} == {response["reviewThreadId"]}
        for bad in ({"type": "commit"}, {"type": "moon"}, {}):
            assert "target" in client.request("review/start", threadId=thread, target=bad)["error"]["message"]
        assert (
            "sideways" in client.request("review/start", threadId=thread, target=target, delivery="sideways")["error"]["message"]
        )
        assert "thread/archive" in client.request("thread/archive", threadId=thread)["error"]["message"]
    assert "Review this: the commit 1234567 Polish colours." in provider.requests[1].messages[-1]["content"]


def test_settings_of_a_turn_apply(provider: ProviderServer) -> None:
    provider.script(text('{"x": 1}'))
    with AppClient(provider) as client:
        client.initialize(optOutNotificationMethods=["turn/started"])
        thread = client.start(developerInstructions="Be brief.", config={"web_search": "disabled"})
        schema = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
        lines = client.turn(thread, model="custom/other", effort="low", outputSchema=schema)
    assert "turn/started" not in [line["method"] for line in lines]
    asked = provider.requests[0]
    assert asked.json["model"] == "other"
    assert "Be brief." in asked.messages[0]["content"]
    assert "fetch" not in [tool["function"]["name"] for tool in asked.json["tools"]]


def test_failure_of_the_model_fails_the_turn(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "bad key"}}))
    with AppClient(provider) as client:
        client.initialize()
        lines = client.turn(client.start())
    assert status(lines) == "failed"
    assert "bad key" in next(line for line in lines if line["method"] == "error")["params"]["error"]["message"]


def test_requests_that_make_no_sense_are_refused(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    with AppClient(provider) as client:
        assert client.request("thread/start")["error"]["message"] == "Not initialized"
        client.initialize()
        assert client.initialize()["error"]["message"] == "Already initialized"
        assert "fs/readFile" in client.request("fs/readFile", path="/etc/passwd")["error"]["message"]
        for params, name in (
            ({"sandbox": "sideways"}, "sideways"),
            ({"approvalPolicy": "perhaps"}, "perhaps"),
            ({"approvalsReviewer": "guardian_subagent"}, "approvalsReviewer"),
            ({"dynamicTools": [{"name": "x"}]}, "dynamicTools"),
            ({"config": {"features": {"x": True}}}, "features"),
            ({"cwd": "missing"}, "missing"),
        ):
            assert name in client.request("thread/start", **params)["error"]["message"]
        assert "not found" in client.request("turn/start", threadId="thr_x", input=[])["error"]["message"]
        thread = client.start()
        assert "empty" in client.request("turn/start", threadId=thread, input=[])["error"]["message"]
        skill = [{"type": "skill", "name": "x"}]
        assert "skill" in client.request("turn/start", threadId=thread, input=skill)["error"]["message"]
        for limit in ("ten", -1):
            assert "limit" in client.request("thread/list", limit=limit)["error"]["message"]
        params = {"threadId": thread, "input": [{"type": "text", "text": "go"}], "sandboxPolicy": {"type": "dangerFullAccess"}}
        for name in ("outputSchema", "effort"):
            assert name in client.request("turn/start", **params, **{name: ["x"]})["error"]["message"]
        client.write("no json\n[]\n")
        client.send({"id": 99, "result": {"decision": "accept"}})
        assert [client.read()["error"]["code"] for _ in range(2)] == [-32700, -32600]
        assert status(client.turn(thread)) == "completed"


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ({"outputSchema": {"type": "sideways"}}, "schema is invalid"),
        ({"input": []}, "input is empty"),
    ],
)
def test_refused_turn_changes_no_settings(provider: ProviderServer, refused: dict[str, Any], why: str) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with AppClient(provider, decide=lambda request: {"decision": "decline"}) as client:
        client.initialize()
        thread = client.start(sandbox="read-only", approvalPolicy="untrusted")
        looser = {"sandboxPolicy": {"type": "dangerFullAccess"}, "input": [{"type": "text", "text": "go"}]}
        refusal = client.request("turn/start", threadId=thread, **{**looser, **refused})
        assert why in refusal["error"]["message"]
        client.turn(thread)
    assert not Path("made").exists()


def test_unknown_option_is_refused() -> None:
    run = run_wolo("app-server", "--listen", "ws://127.0.0.1:1")
    assert run.exit_code == 2
    assert "--listen" in run.stderr
    assert "app-server" in run_wolo("app-server", "--help").stdout
