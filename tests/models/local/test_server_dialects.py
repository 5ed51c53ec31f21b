"""Simple mode in the dialects of other people's servers: what each is sent, and how its answers are read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.fakes import replies_ollama as ollama
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, delta, error, finish, sse, text
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


async def turn_at(
    server: ProviderServer, kind: ServerKind, folder: Path, *replies: Reply, waits: list[float] | None = None, **facts: bool
) -> Turn:
    async def sleep(seconds: float) -> None:
        assert waits is not None
        waits.append(seconds)

    server.script(*replies)
    transport = HttpTransport({})
    known = ServerFacts(kind=kind, **facts)
    chat = LocalChat(transport, ChatServer(url=server.origin, headers={}, model="m", label="here/m", facts=known))
    mode = LocalDriver(chat, Catalog({}).find("custom/m", base_url=server.base_url), Path.cwd(), refuse_plain, sleep)
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


async def test_server_that_ignores_schemas_is_understood(tmp_path: Path) -> None:
    with ProviderServer() as server:
        server.linted = False
        name = text("The file is `add.py`.")
        await turn_at(server, "llama.cpp", tmp_path, text("You want to create a program."), name, text(f"```python\n{CODE}"))
    assert Path("add.py").read_text() == f"{CODE}\n"


async def test_server_that_pauses_is_waited_for(tmp_path: Path) -> None:
    hold = Hold()
    slow = sse(delta("def add(a, b):\n"), hold, delta("    return a + b"), finish("stop"))
    with ProviderServer() as server:
        server.linted = False
        turn = asyncio.create_task(turn_at(server, "llama.cpp", tmp_path, said("create"), said("add.py"), slow))
        await asyncio.to_thread(hold.wait_until_reached)
        hold.release()
        await turn
    assert Path("add.py").read_text() == f"{CODE}\n"


async def test_server_restarted_in_the_middle_is_asked_again(tmp_path: Path) -> None:
    loading = error(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    waits: list[float] = []
    again = (said("create"), said("add.py"), text(f"```python\n{CODE}"))
    with ProviderServer() as server:
        server.linted = False
        lost = text(CODE).cut_at(200)
        turn = await turn_at(server, "llama.cpp", tmp_path, said("create"), said("add.py"), lost, loading, *again, waits=waits)
    assert turn.ended.exit_code == 0
    assert Path("add.py").read_text() == f"{CODE}\n"
    assert len(waits) == 2


async def test_server_that_stays_away_is_reported(tmp_path: Path) -> None:
    waits: list[float] = []
    with ProviderServer() as server:
        server.linted = False
        turn = await turn_at(
            server, "llama.cpp", tmp_path, *[error(503, {"error": {"message": "Loading model"}})] * 5, waits=waits
        )
    assert turn.ended.exit_code == 75
    assert turn.ended.error is not None
    assert turn.ended.error.message == "The server of here/m is not ready: Loading model"
    assert len(waits) == 4


async def test_endless_repetition_is_stopped(tmp_path: Path) -> None:
    loop = text("```python\n" + "x = 1\n" * 2_000, size=6)
    with ProviderServer() as server:
        server.linted = False
        turn = await turn_at(server, "llama.cpp", tmp_path, said("create"), said("add.py"), loop, loop, loop)
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert turn.ended.error.message.startswith("here/m could not write add.py: it did not come to an end")
