"""`wolo "create a calculator"`: a prompt goes in, files and an answer come out."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.end_to_end.try_calculator import load, try_functions
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text, usage

CALCULATOR = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n"


def test_it_creates_a_calculator(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "calculator.py", "content": CALCULATOR}), text("Created calculator.py."))
    done = run_wolo("-p", *provider.flags, "create a calculator")
    assert (done.exit_code, done.stdout) == (0, "Created calculator.py.\n")
    assert all(right for _, _, right in try_functions(load(Path("calculator.py"))))
    first, second = provider.requests
    assert first.messages[0]["role"] == "system"
    assert first.messages[0]["content"].startswith("You are Wolo")
    assert first.messages[1] == {"role": "user", "content": "create a calculator"}
    assert "calculator.py" in second.results[0]


def test_request_carries_project_session_and_prompt_ids(provider: ProviderServer) -> None:
    provider.script(text("Hi."))
    answer = run_wolo("--json", *provider.flags, "hi").json
    headers = provider.requests[0].headers
    assert headers["x-opencode-session"] == answer["session_id"]
    assert headers["x-opencode-project"] == "work"
    assert headers["x-opencode-client"] == "cli"
    assert headers["x-opencode-request"].startswith("msg_")
    assert headers["user-agent"].startswith("opencode/1.0.0 (")
    assert "wolo/" in headers["user-agent"]


def test_a_task_of_sixty_steps_runs_through(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("".join(f"line {n}\n" for n in range(100)))
    provider.script(*(call("read", {"path": "notes.txt", "offset": n + 1, "limit": 1}) for n in range(60)), text("All read."))
    done = run_wolo("--json", *provider.flags, "read it line by line", timeout=60)
    assert done.exit_code == 0
    assert done.json["num_turns"] == 61
    assert done.json["usage"]["input_tokens"] == 61 * 100
    bodies = [request.json for request in provider.requests]
    for before, after in pairwise(bodies):
        assert json.dumps(after["tools"]) == json.dumps(before["tools"])
        assert after["messages"][: len(before["messages"])] == before["messages"]


def test_three_results_return_in_call_order(provider: ProviderServer) -> None:
    for name in "abc":
        Path(name).write_text(f"this is {name}\n")
    provider.script(calls(*(("read", {"path": name}, f"call_{name}") for name in "abc")), text("Read."))
    run_wolo("-p", *provider.flags, "read them")
    answers = [message for message in provider.requests[1].messages if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in answers] == ["call_a", "call_b", "call_c"]
    assert [f"this is {name}" in message["content"] for message, name in zip(answers, "abc", strict=True)] == [True] * 3


def test_json_is_one_complete_object_for_scripts(provider: ProviderServer) -> None:
    provider.script(
        call("write", {"path": "sub/new.txt", "content": "x\n"}, usage=usage(50, 5)), text("Done.", usage=usage(80, 7, cached=40))
    )
    done = run_wolo("--json", *provider.flags, "write")
    result = done.json
    assert {name: result[name] for name in ("type", "subtype", "is_error", "result", "num_turns", "exit_code", "error")} == {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "Done.",
        "num_turns": 2,
        "exit_code": 0,
        "error": None,
    }
    assert result["usage"] == {
        "input_tokens": 90,
        "output_tokens": 12,
        "cache_read_tokens": 40,
        "cache_write_tokens": 0,
        "reasoning_tokens": 0,
    }
    assert result["files_changed"] == ["sub/new.txt"]
    assert result["total_cost_usd"] is None
    assert result["model"] == "custom/test-model"
    assert result["stop_reason"] == "stop"
    assert result["permission_denials"] == []
    assert result["session_id"].startswith("session_")


def test_stream_json_tells_the_story_line_by_line(provider: ProviderServer) -> None:
    Path("a.txt").write_text("hello\n")
    provider.script(call("read", {"path": "a.txt"}, content="Looking.", reasoning="hm"), text("It says hello."))
    done = run_wolo("-p", "--output-format", "stream-json", "--include-partial-messages", *provider.flags, "look")
    kinds = [(line["type"], line.get("subtype")) for line in done.lines if line["type"] != "stream_event"]
    assert kinds == [("system", "init"), ("assistant", None), ("user", None), ("assistant", None), ("result", "success")]
    init, assistant, result = (
        next(line for line in done.lines if line["type"] == kind) for kind in ("system", "assistant", "user")
    )
    assert {"read", "write", "edit", "shell", "grep", "glob"} <= set(init["tools"])
    assert [block["type"] for block in assistant["message"]["content"]] == ["thinking", "text", "tool_use"]
    block = result["message"]["content"][0]
    assert block["tool_use_id"] == assistant["message"]["content"][2]["id"]
    assert "hello" in block["content"]
    deltas = [line["event"] for line in done.lines if line["type"] == "stream_event"]
    assert "".join(delta["text"] for delta in deltas if delta["type"] == "text_delta") == "Looking.It says hello."
    assert {delta["type"] for delta in deltas} == {"text_delta", "thinking_delta", "tool_input_delta"}


@pytest.mark.parametrize(
    ("argv", "stdin", "expected"),
    [
        (("fix", "this"), None, "fix this"),
        (("--", "models"), None, "models"),
        (("review", "-"), "diff", "review\n\n<stdin>\ndiff\n</stdin>"),
        (("review",), "diff\n", "review\n\n<stdin>\ndiff\n</stdin>"),
        (("-",), "only this\n", "only this\n"),
        ((), "only that", "only that"),
        ((), "\ufeffsaved by an editor", "saved by an editor"),
        (("undo the last edit",), None, "undo the last edit"),
        (("models", "of", "cars"), None, "models of cars"),
        (("- a list item",), None, "- a list item"),
    ],
)
def test_prompt_is_assembled_in_order(provider: ProviderServer, argv: tuple[str, ...], stdin: str | None, expected: str) -> None:
    provider.script(text("ok"))
    done = run_wolo("-p", *provider.flags, *argv, stdin=stdin)
    assert done.exit_code == 0, done.stderr
    assert provider.requests[0].messages[-1]["content"] == expected


def test_options_may_stand_anywhere(provider: ProviderServer) -> None:
    provider.script(text("ok"))
    assert run_wolo("do", *provider.flags, "it", "-p").stdout == "ok\n"
    assert provider.requests[0].messages[-1]["content"] == "do it"
