"""Servers whose answers are searched for tool calls written as text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.ollama import OllamaDialect
from wolo.models.catalog import Catalog
from wolo.models.catalog_files import PROVIDERS, in_format, load
from wolo.models.format_selection import FORMATS, dialect_of
from wolo.models.provider import Model, ModelChoice, ProviderSettings


def choice_of(name: str, format: str, base_url: str = "") -> ModelChoice:
    provider = in_format(load(name), format)
    return ModelChoice(provider=provider, model=Model(id="any"), base_url=base_url or provider.base_url)


def searches(choice: ModelChoice) -> bool:
    dialect = dialect_of(choice)
    assert isinstance(dialect, ChatDialect | OllamaDialect)
    return dialect.leaked_calls


@pytest.mark.parametrize("format", [each for each in FORMATS if each in ("openai-chat", "ollama")])
@pytest.mark.parametrize("name", PROVIDERS)
def test_a_hosted_provider_sends_calls_as_calls(name: str, format: str) -> None:
    provider = load(name)
    address = provider.base_url or ("https://example.openai.azure.com/openai/v1" if name.startswith("azure") else "")
    hosted = bool(address) and not provider.loopback
    choice = choice_of(name, format, address)
    choice = replace(choice, provider=replace(choice.provider, base_url=choice.base_url))
    if name == "custom":
        choice = choice_of(name, format, "https://models.example.com/v1")
    assert searches(choice) is not hosted
    assert not getattr(dialect_of(choice), "leaked_in_reasoning", False)


def test_at_another_address_it_may_be_any_server() -> None:
    assert searches(Catalog({}).find("zai/glm-5.2", base_url="http://192.168.0.7:8000/v1", api_key="k"))
    local = {"zai": ProviderSettings(base_url="http://localhost:8000/v1", api_key="k")}
    assert searches(Catalog({}, local).find("zai/glm-5.2"))
    assert not searches(Catalog({"ZAI_API_KEY": "k"}).find("zai/glm-5.2"))
    assert not searches(Catalog({}).find("zai/glm-5.2", base_url="https://api.z.ai/api/coding/paas/v4/", api_key="k"))


def test_settings_and_probe_results_decide_last() -> None:
    own = {"zai": ProviderSettings(api_key="k", dialect={"leaked_calls": True})}
    assert searches(Catalog({}, own).find("zai/glm-5.2"))
    choice = choice_of("groq", "openai-chat")
    assert searches(replace(choice, model=replace(choice.model, dialect={"leaked_calls": True})))
