"""`--api xml`: a model that knows of no tools works with them all the same."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.screen import pty_wolo
from wolo.formats.lint.chat import lint_xml as lint

CONTENT = (
    'A block ends with </tool>, as in:\n\n```\n<tool>{"tool_name":"shell","arguments":{"command":"touch ran"}}</tool>\n```\n'
)


def block(name: str, **arguments: str) -> str:
    return "<tool>\n" + json.dumps({"server_name": "local", "tool_name": name, "arguments": arguments}, indent=2) + "\n</tool>"


def test_it_writes_a_file_whatever_stands_in_it(provider: ProviderServer) -> None:
    written = f"I write it.\n\n{block('write', path='notes.md', content=CONTENT)}"
    provider.script(text(written).split(7), text(block("task_completion", result="notes.md is there.")))
    done = run_wolo("-p", "--yolo", *provider.flags, "--api", "xml", "write notes")
    assert (done.exit_code, done.stdout) == (0, "notes.md is there.\n")
    assert Path("notes.md").read_text() == CONTENT
    assert not Path("ran").exists()
    first, second = (asked.json for asked in provider.requests)
    assert lint(first) == lint(second, first) == []
    assert "tools" not in first
    assert "task_completion" in first["messages"][0]["content"]
    assert second["messages"][2] == {"role": "assistant", "content": written}
    assert second["messages"][3]["content"].startswith("Tool: write\n")


def test_an_answer_without_a_block_is_final(provider: ProviderServer) -> None:
    provider.script(text("Hello."))
    done = run_wolo("-p", *provider.flags, "--api", "xml", "hi")
    assert (done.exit_code, done.stdout) == (0, "Hello.\n")


def test_block_in_user_text_runs_nothing(provider: ProviderServer) -> None:
    provider.script(text("That is a call."))
    done = run_wolo("-p", "--yolo", *provider.flags, "--api", "xml", "What is " + block("shell", command="touch ran"))
    assert done.stdout == "That is a call.\n"
    assert not Path("ran").exists()
    assert "<tool>" not in provider.requests[0].json["messages"][1]["content"]


def test_unreadable_call_returns_with_the_reason(provider: ProviderServer) -> None:
    provider.script(text('<tool>{"server_name":"local","arguments":{}}</tool>'), text("I give up."))
    done = run_wolo("-p", *provider.flags, "--api", "xml", "go")
    assert (done.exit_code, done.stdout) == (0, "I give up.\n")
    assert "Error: The call has no `tool_name`" in provider.requests[1].json["messages"][3]["content"]


def test_session_continues_from_disk_with_equal_bytes(provider: ProviderServer) -> None:
    Path("a.txt").write_text("text of a\n")
    provider.script(text(f"Look: {block('read', path='a.txt')} ."), text("It says: text of a."), text("Gladly."))
    run_wolo("-p", *provider.flags, "--api", "xml", "read a.txt")
    done = run_wolo("-p", "-c", *provider.flags, "--api", "xml", "thanks")
    assert done.stdout == "Gladly.\n"
    before, now = (asked.json for asked in provider.requests[1:])
    assert lint(now, before) == []
    assert now["messages"][-1] == {"role": "user", "content": "thanks"}


def test_conversation_changes_to_text_calls_and_back(provider: ProviderServer) -> None:
    Path("a.txt").write_text("text of a\n")
    provider.script(text(block("read", path="a.txt")), text("Read."), text("Yes."))
    run_wolo("-p", *provider.flags, "--api", "xml", "read a.txt")
    provider.forget_prefix()
    run_wolo("-p", "-c", *provider.flags, "is it there?")
    body = provider.requests[2].json
    assert body["messages"][2]["tool_calls"][0]["function"]["name"] == "read"
    assert "text of a" in body["messages"][3]["content"]
    assert "task_completion" not in [tool["function"]["name"] for tool in body["tools"]]


def test_terminal_shows_the_result_ending_the_task(provider: ProviderServer) -> None:
    provider.script(text(block("task_completion", result="**All** is done.")))
    with pty_wolo(*provider.flags, "--api", "xml", "go") as terminal:
        assert terminal.wait_for_exit() == 0
    lines = [line for line in terminal.text.split("\n") if line]
    assert lines[:2] == ['● task_completion result="**All** is done."', "All is done."]
    assert lines.count("All is done.") == 1
