"""Simple mode in the dialects of other people's servers: what each is sent, and how its answers are read."""

from __future__ import annotations

from pathlib import Path

from tests.fakes import replies_ollama as ollama
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, error, text
from tests.fakes.turns import PromptRunner, calls_of
from tests.models.conftest import refuse_plain
from tests.models.local.test_simple_mode import said
from wolo.agent.agent import Turn
from wolo.models.catalog import Catalog
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local.driver import LocalDriver
from wolo.models.local.local_chat import ChatServer, LocalChat
from wolo.models.probe_cache import ServerFacts, ServerKind

PROMPT = "create an adder function"
CODE = "def add(a, b):\n    return a + b"


async def turn_at(server: ProviderServer, kind: ServerKind, folder: Path, *replies: Reply, **facts: bool) -> Turn:
    server.script(*replies)
    transport = HttpTransport({})
    known = ServerFacts(kind=kind, **facts)
    chat = LocalChat(transport, ChatServer(url=server.origin, headers={}, model="m", label="here/m", facts=known))
    mode = LocalDriver(chat, Catalog({}).find("custom/m", base_url=server.base_url), Path.cwd(), refuse_plain)
    try:
        return await PromptRunner(mode, folder).ask(PROMPT)
    finally:
        await transport.close()


async def test_ollama_is_asked_in_its_own_api(tmp_path: Path) -> None:
    action = ollama.lines(ollama.said(content='"create"'), ollama.done())
    name = ollama.lines(ollama.said(content='"add.py"'), ollama.done())
    code = ollama.lines(ollama.said(content="def add(a, b):\n"), ollama.said(content="    return a + b"), ollama.done())
    with ProviderServer() as server:
        server.linted = False
        turn = await turn_at(server, "ollama", tmp_path, action, name, code, thinks=True)
        first, _, second = (asked.json for asked in server.requests)
        assert [asked.path for asked in server.requests] == ["/api/chat"] * 3
    assert Path("add.py").read_text() == f"{CODE}\n"
    assert "create" in first["format"]["enum"]
    assert first["think"] is False
    assert first["options"]["temperature"] == 0.0
    assert second["options"]["stop"] == ["\n```"]
    assert second["messages"][-1] == {"role": "assistant", "content": "```python\n"}
    assert turn.ended.usage.input_tokens == 300


async def test_vllm_is_told_to_continue_the_last_message(tmp_path: Path) -> None:
    with ProviderServer() as server:
        server.linted = False
        await turn_at(server, "vllm", tmp_path, said("create"), said("add.py"), text(CODE))
        first, _, second = (asked.json for asked in server.requests)
    assert "continue_final_message" not in first
    assert (second["continue_final_message"], second["add_generation_prompt"]) == (True, False)
    assert second["model"] == "m"
    assert Path("add.py").read_text() == f"{CODE}\n"


async def test_block_without_continuation_is_taken_from_answer(tmp_path: Path) -> None:
    chatty = f"Sure! Here it is:\n\n```python\n{CODE}\n```\n\nIt adds two numbers."
    with ProviderServer() as server:
        server.linted = False
        turn = await turn_at(server, "lmstudio", tmp_path, said("create"), said("add.py"), text(chatty))
        last = server.requests[-1].json
    assert last["messages"][-1]["role"] == "user"
    assert "stop" not in last
    assert Path("add.py").read_text() == f"{CODE}\n"
    assert calls_of(turn)[0].input["content"] == f"{CODE}\n"


async def test_a_server_without_schemas_is_asked_without(tmp_path: Path) -> None:
    refusal = error(400, {"error": {"message": "response_format is not supported"}})
    with ProviderServer() as server:
        server.linted = False
        await turn_at(
            server, "other", tmp_path, refusal, text("I would say: create."), text('"add.py"'), text(f"```python\n{CODE}\n```")
        )
        assert ["response_format" in asked.json for asked in server.requests] == [True, False, False, False]
    assert Path("add.py").exists()


async def test_endless_repetition_is_stopped(tmp_path: Path) -> None:
    loop = text("```python\n" + "x = 1\n" * 2_000, size=6)
    with ProviderServer() as server:
        server.linted = False
        turn = await turn_at(server, "llama.cpp", tmp_path, said("create"), said("add.py"), loop, loop, loop)
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert turn.ended.error.message.startswith("here/m could not write add.py: it did not come to an end")
