"""The driving mode: what servers say about a model, what follows from it, and what is asked of whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, text, whole
from tests.models.local.test_simple_mode import Deaf
from tests.models.test_llama_server import Listening
from wolo.errors import BadAnswer, ConfigError
from wolo.formats.format import ToolSpec
from wolo.messages.message import user
from wolo.models import probe_cache
from wolo.models.catalog import Catalog
from wolo.models.client import HttpModelClient
from wolo.models.format_selection import format_of
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local.driver import LocalDriver
from wolo.models.local.driving import (
    LONGEST_ANSWER,
    DrivenModelClient,
    as_mode,
    decide,
    force_mode,
    known_facts,
    may_differ,
    parameters_in,
)
from wolo.models.local.local_chat import LocalChat, server_of
from wolo.models.probe_cache import ProbeResult, ServerFacts
from wolo.models.protocol import ModelClient, ModelQuestion
from wolo.models.provider import DriveMode, ModelChoice

LLAMA = {
    "/v1/models": whole({"data": [{"id": "some.gguf", "owned_by": "llamacpp", "meta": {"n_params": 630167424, "n_ctx": 4096}}]}),
    "/props": whole({"default_generation_settings": {"n_ctx": 2048}, "chat_template_caps": {"supports_tools": True}}),
}
OLLAMA = {
    "/v1/models": whole({"data": [{"id": "m:latest", "owned_by": "library"}]}),
    "/api/show": whole(
        {"details": {"parameter_size": "7.6B", "quantization_level": "Q4_K_M"}, "capabilities": ["completion", "thinking"]}
    ),
}
OTHERS_ON_OLLAMA = OLLAMA | {"/v1/models": whole({"data": [{"id": "someone/m:latest", "owned_by": "someone"}]})}
GATEWAY = {"/v1/models": whole({"data": [{"id": "someone/m-1.5b", "owned_by": "someone", "max_model_len": 4096}]})}
LMSTUDIO = {
    "/v1/models": whole({"data": [{"id": "m", "owned_by": "organization_owner"}]}),
    "/api/v0/models/m": whole({"id": "m", "quantization": "4bit", "max_context_length": 32768, "capabilities": ["tool_use"]}),
}
VLLM = {"/v1/models": whole({"data": [{"id": "m", "owned_by": "vllm", "root": "Org/M-1.5B", "max_model_len": 4096}]})}


def at(server: ProviderServer, model: str = "m") -> ModelChoice:
    return Catalog({}).find(f"custom/{model}", base_url=server.base_url)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("qwen2.5-coder:0.5b", 500_000_000),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", 1_500_000_000),
        ("mixtral-8x7b", 56_000_000_000),
        ("qwen3-30b-a3b", 30_000_000_000),
        ("smollm2_135m.Q4_1.gguf", 135_000_000),
        ("gemma-3n-e2b-it", 2_000_000_000),
        ("glm-5.2", None),
        ("gpt-4o-mini", None),
        ("phi-4-mini", None),
    ],
)
def test_a_name_may_state_a_size(name: str, count: int | None) -> None:
    assert parameters_in(name) == count


@pytest.mark.parametrize(
    ("facts", "mode"),
    [
        (ServerFacts(), "native"),
        (ServerFacts(tools=False), "written"),
        (ServerFacts(kind="llama.cpp", parameters=630_167_424, tools=True), "simple"),
        (ServerFacts(kind="ollama", parameters=4_000_000_000, tools=True), "constrained"),
        (ServerFacts(kind="ollama", parameters=8_000_000_000, tools=True), "native"),
        (ServerFacts(kind="ollama", parameters=8_000_000_000, tools=False), "constrained"),
        (ServerFacts(kind="other", parameters=8_000_000_000, tools=False), "written"),
        (ServerFacts(kind="vllm", parameters=70_000_000_000, tools=False), "written"),
    ],
)
def test_model_abilities_decide_the_mode(facts: ServerFacts, mode: DriveMode, provider: ProviderServer) -> None:
    assert decide(at(provider), facts).mode == mode


@pytest.mark.parametrize(
    ("pages", "facts"),
    [
        (LLAMA, ServerFacts(kind="llama.cpp", parameters=630167424, tools=True, context=2048)),
        (OLLAMA, ServerFacts(kind="ollama", parameters=7_600_000_000, tools=False, thinks=True, quantization="Q4_K_M")),
        (LMSTUDIO, ServerFacts(kind="lmstudio", tools=True, context=32768, quantization="4bit")),
        (
            OTHERS_ON_OLLAMA,
            ServerFacts(kind="ollama", parameters=7_600_000_000, tools=False, thinks=True, quantization="Q4_K_M"),
        ),
        (GATEWAY, ServerFacts(parameters=1_500_000_000, context=4096)),
        (VLLM, ServerFacts(kind="vllm", parameters=1_500_000_000, context=4096)),
        ({}, ServerFacts()),
    ],
)
async def test_servers_are_read_in_their_own_words(
    pages: dict[str, Reply], facts: ServerFacts, provider: ProviderServer, tmp_path: Path
) -> None:
    model = "m:latest" if pages is OLLAMA else "m"
    provider.pages.update(pages)
    transport = HttpTransport({})
    assert await known_facts(transport, at(provider, model), tmp_path) == facts
    provider.pages.clear()
    assert await known_facts(transport, at(provider, model), tmp_path) == facts, "recalled when the server says nothing"
    await transport.close()


async def test_other_model_behind_the_name_discards_its_probe(provider: ProviderServer, tmp_path: Path) -> None:
    transport, choice = HttpTransport({}), at(provider)
    card = ProbeResult(base_url=choice.base_url, model="m", probed="", facts=ServerFacts(kind="vllm", context=1))
    probe_cache.write(tmp_path, card)
    provider.pages.update(VLLM)
    await known_facts(transport, choice, tmp_path)
    assert probe_cache.read(tmp_path, choice) is None
    probe_cache.write(tmp_path, replace(card, facts=await known_facts(transport, choice, tmp_path)))
    await known_facts(transport, choice, tmp_path)
    assert probe_cache.read(tmp_path, choice) is not None
    await transport.close()


async def test_mode_is_settled_once_silent_server_keeps_usual(provider: ProviderServer, tmp_path: Path) -> None:
    transport = HttpTransport({})

    def open_plain(choice: ModelChoice, facts: ServerFacts) -> HttpModelClient:
        return HttpModelClient(choice, format_of(choice), transport)

    driven = DrivenModelClient(at(provider), transport, tmp_path, open_plain)
    assert driven.choice.drive is None
    provider.script(text("Hi."), text("Hi."))
    for _ in range(2):
        answer = await driven.ask(ModelQuestion(messages=(user("hello"),)), Listening())
        assert answer.text == "Hi."
    assert driven.choice.drive == "native"
    assert [asked.path for asked in provider.looked_up] == ["/v1/models"]
    assert not list(tmp_path.rglob("*.facts"))
    await driven.close()


async def test_small_model_answers_end_in_every_mode(provider: ProviderServer, tmp_path: Path) -> None:
    provider.pages.update(LLAMA)
    transport = HttpTransport({})

    def open_plain(choice: ModelChoice, facts: ServerFacts) -> HttpModelClient:
        return HttpModelClient(choice, format_of(choice), transport)

    driven = DrivenModelClient(replace(at(provider), drive="written"), transport, tmp_path, open_plain)
    provider.script(text("Hi."))
    await driven.ask(ModelQuestion(messages=(user("hello"),)), Listening())
    assert LONGEST_ANSWER in provider.requests[0].json.values()
    await driven.close()


@pytest.mark.parametrize(
    ("drive", "prompt"),
    [
        ("native", "Fix the bug in a.py."),
        ("written", "Fix the bug in a.py."),
        ("native", "Crea hola.py que salude"),
        ("written", "hello.py を作成してください"),
    ],
)
async def test_small_model_only_talking_is_asked_again_once(
    drive: DriveMode, prompt: str, provider: ProviderServer, tmp_path: Path
) -> None:
    provider.pages.update(LLAMA)
    transport = HttpTransport({})

    def open_plain(choice: ModelChoice, facts: ServerFacts) -> HttpModelClient:
        return HttpModelClient(choice, format_of(choice), transport)

    driven = DrivenModelClient(force_mode(at(provider), drive), transport, tmp_path, open_plain)
    tools = (ToolSpec(name="write", description="", parameters={"type": "object", "properties": {}}),)
    asked = ModelQuestion(messages=(user(prompt),), tools=tools)
    provider.script(text("Change line 3."), text("As I said, change line 3."))
    with pytest.raises(BadAnswer, match="did nothing"):
        await driven.ask(asked, Deaf())
    assert "Nothing was done yet" in str(provider.requests[1].json)
    await driven.close()


async def test_server_ignoring_schemas_makes_no_success(provider: ProviderServer, tmp_path: Path) -> None:
    provider.linted = False  # the questions of two modes begin differently
    transport, choice = HttpTransport({}), force_mode(at(provider), "constrained")

    def open_plain(choice: ModelChoice) -> HttpModelClient:
        return HttpModelClient(choice, format_of(choice), transport)

    def open_constrained(choice: ModelChoice, facts: ServerFacts) -> ModelClient:
        return LocalDriver(LocalChat(transport, server_of(choice, facts)), choice, tmp_path, open_plain)

    driven = DrivenModelClient(choice, transport, tmp_path, open_constrained)
    tools = (ToolSpec(name="write", description="", parameters={"type": "object", "properties": {}}),)
    provider.script(*(text("Write some code.") for _ in range(3)))
    with pytest.raises(BadAnswer, match="did nothing"):
        await driven.ask(ModelQuestion(messages=(user("Fix the bug in a.py."),), tools=tools), Deaf())
    await driven.close()


async def test_nothing_is_looked_up_at_another_machine(provider: ProviderServer, tmp_path: Path) -> None:
    """The proxy would see a look-up."""
    elsewhere = Catalog({}).find("custom/qwen-0.5b", base_url="http://model.example.com/v1")
    transport = HttpTransport({"http_proxy": provider.origin})
    assert (await known_facts(transport, elsewhere, tmp_path)).parameters == 500_000_000
    assert not provider.looked_up
    assert may_differ(elsewhere)
    assert not may_differ(Catalog({}).find("custom/some-8b", base_url="http://model.example.com/v1"))
    assert not may_differ(Catalog({"GROQ_API_KEY": "k"}).find("groq/llama-3.1-8b-instant"))
    await transport.close()


def test_forced_mode_must_be_possible_for_server(provider: ProviderServer) -> None:
    choice = Catalog({"OLLAMA_HOST": provider.origin}).find("ollama/m")
    written = force_mode(choice, "written")
    assert (written.format, written.base_url) == ("xml", f"{provider.origin}/v1")
    with pytest.raises(ConfigError, match="its API is anthropic"):
        force_mode(Catalog({"ANTHROPIC_API_KEY": "k"}).find("anthropic/claude-opus-4-5"), "simple")
    with pytest.raises(ConfigError, match="no driving mode `fast`"):
        as_mode("fast")
