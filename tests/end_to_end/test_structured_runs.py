"""Answers that fit a JSON schema, and prompts as JSON lines on stdin."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, sse, text
from tests.fakes.written import command
from wolo.places import find_home

SCHEMA = json.dumps({"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]})
STREAM = ("--input-format", "stream-json", "--output-format", "stream-json")


def prompt(content: Any) -> str:
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n"


def test_the_answer_is_json_that_fits(provider: ProviderServer) -> None:
    provider.script(call("read", {"path": "invoice.txt"}), text('It is this:\n```json\n{"total": 3}\n```'))
    Path("invoice.txt").write_text("3 EUR\n")
    Path("schema.json").write_text(f"\ufeff{SCHEMA}")
    done = run_wolo("-p", *provider.flags, "--json-schema", "schema.json", "-o", "answer.json", "read invoice.txt")
    assert (done.exit_code, done.stdout, Path("answer.json").read_text()) == (0, '{"total": 3}\n', '{"total": 3}\n')
    assert '"required": ["total"]' in provider.requests[0].messages[1]["content"]


def test_unfitting_answer_is_sent_back_once(provider: ProviderServer) -> None:
    provider.script(text('{"total": "three"}'), text('{"total": 3}'))
    result = run_wolo("--json", *provider.flags, "--json-schema", SCHEMA, "how much?").json
    assert (result["structured_output"], result["num_turns"], result["exit_code"]) == ({"total": 3}, 2, 0)
    assert result["usage"]["input_tokens"] == 200
    provider.script(text("three"), text("still three"))
    result = run_wolo("--json", *provider.flags, "--json-schema", SCHEMA, "how much?").json
    assert (result["result"], result["exit_code"], result["subtype"]) == ("still three", 1, "error_model")
    assert "structured_output" not in result


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "no JSON"),
        ("none.json", "cannot be read"),
        ('{"type": 3}', "is invalid"),
        ("", "is empty"),
        ("[]", "must be a JSON object"),
    ],
)
def test_a_wrong_schema_sends_nothing(provider: ProviderServer, schema: str, said: str) -> None:
    done = run_wolo("-p", *provider.flags, "--json-schema", schema, "go")
    assert done.exit_code == 2
    assert said in done.stderr
    assert provider.requests == []


def test_each_line_is_a_turn_of_one_session(provider: ProviderServer) -> None:
    provider.script(text("one"), text("two"))
    lines = prompt("first") + "\n" + prompt([{"type": "text", "text": "second"}])
    done = run_wolo(*provider.flags, *STREAM, stdin=lines)
    results = [line for line in done.lines if line["type"] == "result"]
    assert [result["result"] for result in results] == ["one", "two"]
    assert len({line["session_id"] for line in done.lines}) == 1
    assert [line.get("subtype") for line in done.lines].count("init") == 1
    assert [message["role"] for message in provider.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert done.exit_code == 0


def test_a_line_with_a_slash_is_text(provider: ProviderServer) -> None:
    command(find_home() / ".claude/commands", "fix", "Fix issue $1.")
    provider.script(text("one"), text("two"))
    done = run_wolo(*provider.flags, *STREAM, stdin=prompt("/fix 12") + prompt("/etc/hosts is wrong"))
    assert [request.messages[-1]["content"] for request in provider.requests] == ["/fix 12", "/etc/hosts is wrong"]
    assert (done.exit_code, done.stderr.count("is sent as text")) == (0, 1)


def test_a_line_attaches_the_files_that_it_mentions(provider: ProviderServer, tmp_path: Path) -> None:
    Path("a.py").write_text("x = 1\n")
    (tmp_path / "far.txt").write_text("far away\n")
    provider.script(text("one"), text("two"))
    lines = prompt(f"see @a.py, not @{tmp_path}/far.txt") + prompt(
        [{"type": "text", "text": "a"}, {"type": "text", "text": "@a.py"}]
    )
    done = run_wolo(*provider.flags, *STREAM, stdin=lines)
    assert done.exit_code == 0
    assert ["x = 1" in str(request.messages[-1]["content"]) for request in provider.requests] == [True, False]
    assert "far away" not in str(provider.requests[0].messages)
    assert "outside the workspace" in done.stderr


@pytest.mark.parametrize("line", ["{", '{"type": "control"}', prompt([{"type": "video"}]), prompt(" "), prompt(3)])
def test_line_without_prompt_ends_with_status_two(provider: ProviderServer, line: str) -> None:
    provider.script(text("one"))
    done = run_wolo(*provider.flags, *STREAM, stdin=prompt("first") + line)
    assert done.exit_code == 2
    assert [each["subtype"] for each in done.lines if each["type"] == "result"] == ["success", "error_config"]


@pytest.mark.parametrize(
    ("more", "said"), [(("--output-format", "json"), "needs --output-format stream-json"), (("hello",), "from stdin only")]
)
def test_options_that_do_not_fit_are_refused(provider: ProviderServer, more: tuple[str, ...], said: str) -> None:
    done = run_wolo(*provider.flags, *STREAM, *more, stdin=prompt("first"))
    assert done.exit_code == 2
    assert said in done.stdout + done.stderr


def test_signal_while_awaiting_a_line_ends_it(provider: ProviderServer) -> None:
    provider.script(text("one"))
    with start_wolo(*provider.flags, *STREAM, stdin_pipe=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(prompt("first").encode())
        running.stdin.flush()
        while json.loads(running.stdout.readline())["type"] != "result":
            pass
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 143


def test_a_control_line_interrupts_the_running_turn(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(hold), text("two"))
    with start_wolo(*provider.flags, *STREAM, stdin_pipe=True) as running:
        stdin, stdout = running.stdin, running.stdout
        assert stdin is not None
        assert stdout is not None

        def say(line: str) -> None:
            stdin.write(line.encode())
            stdin.flush()

        said: list[dict[str, Any]] = []

        def hear(kind: str) -> dict[str, Any]:
            while not said or said[-1]["type"] != kind:
                said.append(json.loads(stdout.readline()))
            return said.pop()

        say(prompt("first"))
        hold.wait_until_reached()
        say(control("set_model"))
        assert hear("control_response")["response"]["subtype"] == "error"
        say(control("interrupt"))
        assert hear("control_response")["response"] == {"subtype": "success", "request_id": "r1"}
        assert hear("result")["subtype"] == "error_interrupted"
        hold.release()
        say(prompt("second"))
        assert hear("result")["result"] == "two"
        stdin.close()
        assert running.wait(60) == 130


def control(subtype: str) -> str:
    return json.dumps({"type": "control_request", "request_id": "r1", "request": {"subtype": subtype}}) + "\n"
