"""A real model server through Chat Completions: llama.cpp as wolo embeds it, asked like any server of other people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec.structs import replace

from wolo.errors import ProviderError
from wolo.formats.format import ToolSpec
from wolo.messages.deltas import Delta, TextDelta
from wolo.messages.message import Message, user
from wolo.messages.parts import ToolPart
from wolo.models.catalog import Catalog
from wolo.models.client import HttpModelClient
from wolo.models.format_selection import format_of
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.server_lookup import ask_window, served_models
from wolo.models.local.embedded import ServerAddress
from wolo.models.probe import Probe
from wolo.models.probe_cache import ProbeFinding
from wolo.models.protocol import ModelQuestion
from wolo.models.provider import ModelChoice

pytestmark = [pytest.mark.real_model, pytest.mark.soak]

READ = ToolSpec(
    name="read",
    description="Reads a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
RULES = "You are a coding agent. " + "Be careful with files, and say what you do. " * 40
"""Long enough that the server keeps it."""


class Listening:
    """Counts what streams in."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.notices: list[str] = []
        self.begun = asyncio.Event()

    async def on_request(self, attempt: int, context_tokens: int) -> None:
        assert attempt == 1

    async def on_deltas(self, deltas: Sequence[Delta]) -> None:
        self.pieces += [each.text for each in deltas if isinstance(each, TextDelta)]
        self.begun.set()

    async def on_attempt_failed(self, error: ProviderError, attempt: int, tries: int, delay_s: float) -> None:
        raise AssertionError(error)

    async def on_replaced(self, error: ProviderError, model: str) -> None:
        raise AssertionError(error)

    async def on_notice(self, text: str) -> None:
        self.notices.append(text)


@pytest.fixture
def choice(serving: ServerAddress) -> ModelChoice:
    served = served_models(Catalog({}).find("custom/any", base_url=f"{serving.url}/v1", api_key=serving.key))
    return Catalog({}).find(f"custom/{served[0]}", base_url=f"{serving.url}/v1", api_key=serving.key)


@pytest.fixture
async def model(choice: ModelChoice) -> AsyncIterator[HttpModelClient]:
    stream = HttpModelClient(choice, format_of(choice), HttpTransport({}))
    yield stream
    await stream.close()


def question(*said: Message, tools: tuple[ToolSpec, ...] = (), max_tokens: int = 40) -> ModelQuestion:
    return ModelQuestion(messages=said, system=RULES, tools=tools, max_tokens=max_tokens)


async def test_answer_streams_and_tokens_are_counted(model: HttpModelClient) -> None:
    heard = Listening()
    answer = await model.ask(question(user("Count from one to five.")), heard)
    assert len(heard.pieces) > 2
    assert "".join(heard.pieces) == answer.text
    assert answer.finished
    assert answer.usage is not None
    assert not answer.usage.estimated
    assert answer.usage.output_tokens >= len(heard.pieces) // 2


async def test_text_read_before_comes_from_server_cache(model: HttpModelClient) -> None:
    first = await model.ask(question(user("Say yes.")), Listening())
    again = await model.ask(question(user("Say yes."), first, user("Say no.")), Listening())
    assert again.usage is not None
    assert again.usage.cache_read_tokens > again.usage.input_tokens


async def test_a_history_with_calls_and_results_is_taken(model: HttpModelClient) -> None:
    call = ToolPart(tool="read", input={"path": "a.txt"}, call_id="c1", status="completed", outcome="ok", output="apples")
    calling = Message(role="assistant", parts=(call,), producer=None, finished=True)
    answer = await model.ask(question(user("Read a.txt."), calling, user("What is in it?"), tools=(READ,)), Listening())
    assert answer.parts


async def test_small_model_call_arrives_in_any_notation(model: HttpModelClient) -> None:
    asked = 'Call the tool read with {"path": "a.txt"}. Answer with the call and nothing else.'
    answer = await model.ask(question(user(asked), tools=(READ,), max_tokens=80), Listening())
    assert [(call.tool, call.input) for call in answer.calls] == [("read", {"path": "a.txt"})]


async def test_leaving_an_answer_frees_the_only_slot(model: HttpModelClient) -> None:
    heard = Listening()
    long = asyncio.create_task(model.ask(question(user("Count from one to a thousand, in words."), max_tokens=4000), heard))
    await heard.begun.wait()
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    async with asyncio.timeout(30):
        answer = await model.ask(question(user("Say yes."), max_tokens=5), Listening())
    assert answer.parts


async def test_a_probe_finds_out_what_it_can_do(choice: ModelChoice) -> None:
    told: list[ProbeFinding] = []
    transport = HttpTransport({})
    try:
        window = await asyncio.to_thread(ask_window, choice)
        found = await Probe(choice, transport, told.append).run(window)
    finally:
        await transport.close()
    assert found.context == 8192
    by_name = {each.what: each.works for each in told}
    assert by_name["answers"] is True
    assert by_name["token counts"] is True
    assert by_name["JSON schema"] is True
    assert by_name["images"] is False
    assert found.format in ("", "xml")
    again = replace(choice, model=replace(choice.model, dialect=dict(found.dialect)))
    assert format_of(again).name == "openai-chat"
