"""Ollama's own API through the whole program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes import replies
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply
from tests.fakes.replies_ollama import NOT_PULLED, REFUSES_THINKING, REFUSES_TOOLS, call, calls, done, lines, said, text


def ask(provider: ProviderServer, *args: str, model: str = "ollama/qwen3") -> Completed:
    return run_wolo("-m", model, "--mode", "yolo", "-p", *args, env={"OLLAMA_HOST": provider.origin})


def test_a_task_with_tools_is_done(provider: ProviderServer) -> None:
    Path("a.txt").write_text("alpha\n")
    wanted = calls(("read", {"path": "a.txt"}), ("write", {"path": "b.txt", "content": "beta"}), thinking="Hm.", together=True)
    provider.script(wanted.split(5), text("Both are done."))
    ended = ask(provider, "work")
    assert (ended.stdout, ended.exit_code) == ("Both are done.\n", 0)
    assert Path("b.txt").read_text() == "beta"
    first, second = provider.requests
    assert first.path == "/api/chat"
    assert first.json["options"]["num_ctx"] == 65536
    assert "authorization" not in first.headers
    _, _, assistant, *results = second.messages
    assert assistant["thinking"] == "Hm."
    assert [result["tool_name"] for result in results] == ["read", "write"]
    assert "alpha" in results[0]["content"]


@pytest.mark.parametrize("path", ["", "/"])
def test_any_address_may_be_asked_in_it(provider: ProviderServer, path: str) -> None:
    provider.script(text("Hi."))
    flags = ("--base-url", provider.origin + path, "--api", "ollama", "--api-key", "k-1", "-m", "custom/qwen3")
    assert run_wolo(*flags, "-p", "hello").stdout == "Hi.\n"
    assert provider.requests[0].path == "/api/chat"
    assert provider.requests[0].headers["authorization"] == "Bearer k-1"


def test_address_ending_in_v1_uses_chat_completions(provider: ProviderServer) -> None:
    provider.script(replies.text("Hi."))
    assert run_wolo("--base-url", provider.base_url, "-m", "ollama/qwen3", "-p", "hello").stdout == "Hi.\n"
    assert provider.requests[0].path == "/v1/chat/completions"


def test_a_conversation_goes_on(provider: ProviderServer) -> None:
    provider.script(text("Four.", thinking="2+2"), text("Five."))
    ask(provider, "2+2?")
    ask(provider, "--continue", "and one?")
    assert [message["role"] for message in provider.requests[1].messages] == ["system", "user", "assistant", "user"]
    assert provider.requests[1].messages[2] == {"role": "assistant", "content": "Four.", "thinking": "2+2"}


def test_model_without_thinking_is_asked_again_without_it(provider: ProviderServer) -> None:
    provider.script(REFUSES_THINKING, text("Hi."))
    ended = ask(provider, "hello", model="ollama/llama3.2:high")
    assert ended.stdout == "Hi.\n"
    assert provider.requests[0].json["think"] is True
    assert "think" not in provider.requests[1].json


@pytest.mark.parametrize(
    ("refusal", "words"), [(REFUSES_TOOLS, "Choose a model that can call tools"), (NOT_PULLED, "ollama pull")]
)
def test_unavoidable_failure_is_reported_with_hint(provider: ProviderServer, refusal: Reply, words: str) -> None:
    provider.script(refusal)
    ended = ask(provider, "hello")
    assert ended.exit_code != 0
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_server_reading_less_than_sent_is_detected(provider: ProviderServer) -> None:
    provider.script(text("Hi.", prompt=2_048))
    ended = ask(provider, "word " * 12_000)
    assert "read only 2,048" in ended.stderr
    assert ended.stdout == "Hi.\n"


@pytest.mark.parametrize(
    "broken", [lines(said(content="Hal"), {"error": "model runner has unexpectedly stopped"}), lines(said(content="Hal"))]
)
def test_broken_answer_is_asked_for_again(provider: ProviderServer, broken: Reply) -> None:
    provider.script(broken, text("Whole."))
    assert ask(provider, "hello").stdout == "Whole.\n"


def test_call_in_a_broken_answer_is_not_run(provider: ProviderServer) -> None:
    wanted = call("write", {"path": "b.txt", "content": "beta"})
    provider.script(wanted.cut_at(len(wanted.body) - len(lines(done()).body)), text("Nothing."))
    assert ask(provider, "work").stdout == "Nothing.\n"
    assert not Path("b.txt").exists()


def test_answer_in_one_document_is_an_answer(provider: ProviderServer) -> None:
    provider.script(replies.whole({**said(content="Hi."), "done": True, "done_reason": "stop"}))
    assert ask(provider, "hello").stdout == "Hi.\n"
