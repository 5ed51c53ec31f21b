"""Resolves references such as `zai/glm-5.2:high`, and the servers that a key may be sent to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

from wolo.errors import ConfigError
from wolo.models import address
from wolo.models.catalog import ALIASES, Catalog
from wolo.models.catalog_files import PROVIDERS, load, ollama_address
from wolo.models.format_selection import FORMATS, dialect_of, format_of
from wolo.models.headers import key_headers
from wolo.models.provider import Model, ModelChoice, ModelSettings, Price, ProviderSettings

KEYS = {"ZAI_API_KEY": "key-of-zai", "OPENAI_API_KEY": "key-of-openai", "OPENROUTER_API_KEY": "key-of-openrouter"}
ELSEWHERE = "http://127.0.0.1:9999/v1"


def found(spec: str, **more: str) -> ModelChoice:
    return Catalog(KEYS).find(spec, **more)  # type: ignore[arg-type]  # only text is passed


# Names


def test_provider_and_model() -> None:
    choice = found("zai/glm-5.2")
    assert (choice.label, choice.base_url, choice.api_key) == ("zai/glm-5.2", "https://api.z.ai/api/paas/v4", "key-of-zai")
    assert choice.thinking is None
    assert choice.model.context == 1_000_000


@pytest.mark.parametrize(
    ("spec", "label", "level"),
    [
        ("zai/glm-5.2:high", "zai/glm-5.2", "high"),
        ("ZAI/GLM-5.2:MAX", "zai/glm-5.2", "max"),
        ("zai", "zai/glm-5.2", None),
        ("zai/", "zai/glm-5.2", None),
        ("zai:off", "zai/glm-5.2", "off"),
        ("z.ai/glm-5.1", "zai/glm-5.1", None),
        ("glm-5.2", "zai/glm-5.2", None),
        ("gpt-5.4-mini:low", "openai/gpt-5.4-mini", "low"),
        ("zai/glm-4.6v-", "zai/glm-4.6v-flashx", None),
        ("openr/z-ai/glm-5.3", "openrouter/z-ai/glm-5.3", None),
        ("openrouter/some-one/brand-new:free", "openrouter/some-one/brand-new:free", None),
        ("ollama/qwen3:8b", "ollama/qwen3:8b", None),
        ("ollama/qwen3:8b:low", "ollama/qwen3:8b", "low"),
        ("llama.cpp/My-Model.gguf", "llama-cpp/My-Model.gguf", None),
        ("  zai/glm-5.2  ", "zai/glm-5.2", None),
        ("zai:glm-5.2", "zai/glm-5.2", None),
        ("ZAI:GLM-5.2:high", "zai/glm-5.2", "high"),
        ("ollama:qwen3:8b", "ollama/qwen3:8b", None),
        ("openrouter:z-ai/glm-5.3", "openrouter/z-ai/glm-5.3", None),
        ("zai / glm-5.2", "zai/glm-5.2", None),
        ("gpt-5.4-min", "openai/gpt-5.4-mini", None),
    ],
)
def test_a_name_may_be_written_in_many_ways(spec: str, label: str, level: str | None) -> None:
    choice = found(spec)
    assert (choice.label, choice.thinking) == (label, level)


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        ("zia/glm-5.2", "zai"),
        ("zai/glm-52", "glm-5.2"),
        ("glm5.2", "zai/glm-5.2"),
        ("opnai/gpt-5.4", "openai"),
        ("openai/gpt-5.4-mni", "gpt-5.4-mini"),
        ("sonnet", "anthropic/claude-sonnet"),
        ("anthropic/opus", "claude-opus"),
    ],
)
def test_typing_mistake_is_answered_with_nearest_names(spec: str, near: str) -> None:
    with pytest.raises(ConfigError) as refused:
        found(spec)
    assert near in refused.value.hint
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("spec", ["", "   ", "/", "/glm-5.2", ":high", "custom/x", "xyzzy", "z", "anth"])
def test_a_name_that_leads_nowhere_is_an_error(spec: str) -> None:
    with pytest.raises(ConfigError):
        found(spec)


def test_a_beginning_that_fits_several_models_names_them() -> None:
    with pytest.raises(ConfigError, match=r"glm-4\.5-air or glm-4\.5-airx"):
        found("zai/glm-4.5-ai")


def test_many_possible_models_are_named_in_part() -> None:
    with pytest.raises(ConfigError, match=r"or \d+ others\.$") as refused:
        found("openai/gpt")
    assert refused.value.message.count(" or ") == 5


def test_beginning_is_completed_where_any_name_fits() -> None:
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, models=(ModelSettings(id="xyzzy-large"),))}
    assert Catalog({}, own).find("xyzzy").label == "mine/xyzzy-large"
    assert Catalog({}, own).find("mine/xyzzy").label == "mine/xyzzy", "said outright, it goes as it is"


def test_own_provider_name_ignores_case() -> None:
    own = {"Mine": ProviderSettings(base_url=ELSEWHERE), "kimi": ProviderSettings(base_url=ELSEWHERE)}
    assert Catalog({}, own).find("mine/big").label == "Mine/big"
    assert Catalog({}, own).find("MINE:big").label == "Mine/big"
    assert Catalog({}, own).find("kimi/big").label == "kimi/big", "it comes before the other name of moonshot"


def test_a_provider_that_could_be_several_names_them() -> None:
    with pytest.raises(ConfigError, match="mistral or minimax"):
        found("mi/large")


def test_invalid_level_is_answered_with_the_levels() -> None:
    with pytest.raises(ConfigError, match="`hihg` is no thinking level") as refused:
        found("zai/glm-5.2:hihg")
    assert "high" in refused.value.hint


def test_of_two_levels_neither_counts() -> None:
    with pytest.raises(ConfigError, match="second thinking level"):
        found("zai/glm-5.2:max:high")


def test_model_named_like_a_level_is_found() -> None:
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, models=(ModelSettings(id="qwen:max"), ModelSettings(id="qwen")))}
    for spec, model, level in (
        ("mine/qwen:max", "qwen:max", None),
        ("mine/qwen:max:low", "qwen:max", "low"),
        ("mine/qwen:low", "qwen", "low"),
    ):
        choice = Catalog({}, own).find(spec)
        assert (choice.model.id, choice.thinking) == (model, level)


def test_without_a_key_the_variables_are_named() -> None:
    with pytest.raises(ConfigError, match="DEEPSEEK_API_KEY"):
        found("deepseek/deepseek-v4-pro")


def test_model_servers_on_this_machine_need_no_key() -> None:
    assert Catalog({}).find("vllm/any").api_key == ""


# Addresses and keys


@pytest.mark.parametrize(
    ("spec", "provider", "wire"),
    [
        ("zai/glm-5.2", "zai", "glm-5.2"),
        ("ZAI/GLM-5.2", "zai", "glm-5.2"),
        ("zai/not-listed-yet", "zai", "not-listed-yet"),
        ("custom/foo", "custom", "foo"),
        ("custom/openai/foo", "custom", "openai/foo"),
        ("foo", "custom", "foo"),
        ("foo/bar", "custom", "foo/bar"),
        ("Qwen/Qwen3-8B", "custom", "Qwen/Qwen3-8B"),
        ("zai-org/GLM-5.2", "custom", "zai-org/GLM-5.2"),
        ("llama.cpp/m.gguf", "llama-cpp", "m.gguf"),
        ("qwen3:8b", "custom", "qwen3:8b"),
    ],
)
def test_only_own_provider_name_counts_beside_base_url(spec: str, provider: str, wire: str) -> None:
    choice = found(spec, base_url=ELSEWHERE + "/")
    assert (choice.provider.name, choice.model.id, choice.base_url) == (provider, wire, ELSEWHERE)


def test_known_provider_elsewhere_keeps_dialect_but_not_key() -> None:
    choice = found("zai/glm-5.2:low", base_url=ELSEWHERE)
    assert choice.provider.dialect["tool_stream"] is True
    assert choice.model.price is not None
    assert choice.thinking == "low"
    assert choice.api_key == ""
    assert found("zai/glm-5.2", base_url=ELSEWHERE, api_key="given").api_key == "given"


@pytest.mark.parametrize(
    "address", ["https://api.z.ai.example.com/v4", "http://api.z.ai/api/paas/v4", "https://api.z.ai:8443/v4"]
)
def test_a_lookalike_address_gets_no_key(address: str) -> None:
    assert found("zai/glm-5.2", base_url=address).api_key == ""


def test_own_provider_address_spelled_out_gets_its_key() -> None:
    assert found("zai/glm-5.2", base_url="https://API.z.ai/api/paas/v4/").api_key == "key-of-zai"


def test_a_given_key_wins() -> None:
    assert found("zai/glm-5.2", api_key="given").api_key == "given"


def test_an_address_without_a_model_says_so() -> None:
    for spec in ("", "custom", "custom/"):
        with pytest.raises(ConfigError, match="model name"):
            found(spec, base_url=ELSEWHERE)


@pytest.mark.parametrize("key", ["with space", "zeilen\numbruch", "schlüssel"])
def test_impossible_key_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        found("x", base_url=ELSEWHERE, api_key=key)
    assert key not in refused.value.message + refused.value.hint


def test_key_from_a_file_loses_its_line_end() -> None:
    assert found("x", base_url=ELSEWHERE, api_key=" key\n").api_key == "key"


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":1234", "http://127.0.0.1:1234"),
        ("box.local:1", "http://box.local:1"),
        ("http://box.local", "http://box.local:80"),
        ("https://box.local/ollama/", "https://box.local:443/ollama"),
        ("[::1]:9", "http://[::1]:9"),
        ("[::1]", "http://[::1]:11434"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(host: str, address: str) -> None:
    assert ollama_address(host) == address
    assert Catalog({"OLLAMA_HOST": host}).find("ollama/qwen3").base_url == address


@pytest.mark.parametrize(
    ("base_url", "api", "format", "flags"),
    [
        ("http://box:1", None, "ollama", {}),
        ("http://box:1/v1", None, "openai-chat", {"reasoning_field": "reasoning"}),
        ("http://box:1/v1", "openai-chat", "openai-chat", {"reasoning_field": "reasoning"}),
        ("http://box:1/proxied", "ollama", "ollama", {}),
    ],
)
def test_address_decides_among_the_server_formats(base_url: str, api: str | None, format: str, flags: dict[str, str]) -> None:
    named = Catalog({}).find("ollama/qwen3", base_url=base_url, api=api)
    settings = {"ollama": ProviderSettings(base_url=base_url, api=api)}
    for choice in (named, Catalog({}, settings).find("ollama/qwen3")):
        assert (choice.base_url, choice.format) == (base_url, format)
        assert flags.items() <= choice.provider.dialect.items()
    assert Catalog({}).find("ollama/qwen3", api="openai-chat").base_url == "http://127.0.0.1:11434/v1"
    assert Catalog({"OLLAMA_HOST": "box:1/v1"}).find("ollama/qwen3").format == "openai-chat"


# The default, and what the settings change


def test_the_first_key_in_the_environment_decides() -> None:
    choice = Catalog({"MISTRAL_API_KEY": "m", "OPENAI_API_KEY": "o"}).default_choice()
    assert choice is not None
    assert choice.provider.name == "openai"
    assert Catalog({}).default_choice() is None
    assert Catalog({"ZAI_API_KEY": "  "}).default_choice() is None
    assert Catalog({"GITHUB_KEY": "x"}).default_choice() is None


def test_settings_add_a_provider_of_ones_own() -> None:
    mine = {
        "mine": ProviderSettings(
            base_url="https://llm.example.com/v1", key_env=("MINE_KEY",), models=(ModelSettings(id="big", context=9),)
        )
    }
    choice = Catalog({"MINE_KEY": "k"}, mine).find("mine/big:low")
    assert (choice.label, choice.base_url, choice.api_key, choice.model.context) == (
        "mine/big",
        "https://llm.example.com/v1",
        "k",
        9,
    )
    assert Catalog({"MINE_KEY": "k"}, mine).find("mine/other").model.id == "other"
    with pytest.raises(ConfigError, match="MINE_KEY"):
        Catalog({}, mine).find("mine/big")


def test_settings_change_a_known_provider() -> None:
    priced = ModelSettings(id="glm-5.2", price=Price(input=1.0, output=1.0))
    changed = {"zai": ProviderSettings(models=(priced,), dialect={"tool_stream": False}, headers={"X-Team": "blue"})}
    choice = Catalog(KEYS, changed).find("zai/glm-5.2")
    assert choice.model is not load("zai").models[3]
    assert choice.model.price == Price(input=1.0, output=1.0, source="the settings")
    assert choice.provider.dialect["tool_stream"] is False
    assert choice.provider.dialect["thinking_param_style"] == "glm"
    assert choice.provider.headers == {"X-Team": "blue"}
    assert choice.api_key == "key-of-zai"


def test_provider_moved_by_settings_gets_named_key_only() -> None:
    moved = {"zai": ProviderSettings(base_url="https://gateway.example.com/v1")}
    with pytest.raises(ConfigError, match=r"at gateway\.example\.com needs an API key of its own: \$ZAI_API_KEY"):
        Catalog(KEYS, moved).find("zai/glm-5.2")
    named = {"zai": ProviderSettings(base_url="https://gateway.example.com/v1", key_env=("ZAI_API_KEY",))}
    assert Catalog(KEYS, named).find("zai/glm-5.2").api_key == "key-of-zai"
    written = {"zai": ProviderSettings(base_url="https://gateway.example.com/v1", api_key="written")}
    assert Catalog(KEYS, written).find("zai/glm-5.2").api_key == "written"


def test_settings_change_one_fact_of_a_known_model() -> None:
    changed = {"zai": ProviderSettings(models=(ModelSettings(id="GLM-5.2", context=128_000),))}
    model = Catalog(KEYS, changed).find("zai/glm-5.2").model
    known = Catalog(KEYS).find("zai/glm-5.2").model
    assert (model.id, model.context) == ("glm-5.2", 128_000)
    assert (model.price, model.max_output, model.abilities) == (known.price, known.max_output, known.abilities)
    assert len(load("zai", changed).models) == len(load("zai").models)
    bare = {"zai": ProviderSettings(models=(ModelSettings(id="glm-4.6v", abilities=("tools",)),))}
    assert Catalog(KEYS, bare).find("zai/glm-4.6v").model.abilities == ("tools",)


def test_unrelated_token_needs_its_provider_named() -> None:
    environ = {"GITHUB_TOKEN": "token-of-github"}
    assert Catalog(environ).default_choice() is None
    assert Catalog(environ).find("github-models/openai/gpt-4.1").api_key == "token-of-github"
    both = Catalog({**environ, "GROQ_API_KEY": "g"}).default_choice()
    assert both is not None
    assert both.provider.name == "groq"


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("https://acme.openai.azure.com/", "https://acme.openai.azure.com/openai/v1"),
        ("https://acme.openai.azure.com/openai/v1/", "https://acme.openai.azure.com/openai/v1"),
        ("https://gateway.example.com/team", "https://gateway.example.com/team"),
    ],
)
def test_address_comes_from_environment_or_settings(endpoint: str, address: str) -> None:
    key = {"AZURE_OPENAI_API_KEY": "key-of-azure"}
    by_variable = Catalog({**key, "AZURE_OPENAI_ENDPOINT": endpoint}).find("azure-openai/my-gpt")
    own = {"azure-openai": ProviderSettings(base_url=endpoint, query={"api-version": "1"})}
    by_setting = Catalog(key, own).find("azure-openai/my-gpt")
    assert by_variable.base_url == by_setting.base_url == address
    assert by_variable.api_key == by_setting.api_key == "key-of-azure"
    assert by_setting.provider.query == {"api-version": "1"}
    assert key_headers(by_setting, by_setting.format) == {"api-key": "key-of-azure"}


def test_missing_address_names_every_way_to_give_one() -> None:
    with pytest.raises(ConfigError) as refused:
        Catalog({"AZURE_OPENAI_API_KEY": "k"}).find("azure-openai/my-gpt")
    assert "AZURE_OPENAI_ENDPOINT" in refused.value.hint
    assert "providers.azure-openai.base_url" in refused.value.hint


def test_settings_headers_and_queries_stay_with_their_address() -> None:
    own = {"mine": ProviderSettings(base_url="https://llm.example.com/v1", headers={"X-Key": "${MINE}"}, query={"key": "q"})}
    here = Catalog({"MINE": "secret"}, own).find("mine/big")
    assert (here.provider.headers, here.provider.query) == ({"X-Key": "secret"}, {"key": "q"})
    there = Catalog({"MINE": "secret"}, own).find("mine/big", base_url=ELSEWHERE)
    assert (there.provider.headers, there.provider.query) == ({}, {})


def test_a_variable_may_stand_in_a_query_too() -> None:
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, query={"key": "${MINE}", "version": "7"})}
    assert Catalog({"MINE": "k"}, own).find("mine/x").provider.query == {"key": "k", "version": "7"}
    with pytest.raises(ConfigError, match=r"providers\.mine\.query\.key refers to \$MINE"):
        Catalog({}, own).find("mine/x")


def test_model_without_tools_uses_the_text_protocol() -> None:
    rows = (ModelSettings(id="plain", abilities=("images",)), ModelSettings(id="chat", abilities=(), format="openai-chat"))
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, dialect={"usage_option": False}, models=rows)}
    choice = Catalog({}, own).find("mine/plain")
    assert choice.format == "xml"
    assert msgspec.to_builtins(dialect_of(choice))["usage_option"] is False
    assert Catalog({}, own).find("mine/plain", api="openai-chat").format == "openai-chat"
    assert Catalog({}, own).find("mine/chat").format == "openai-chat"
    assert Catalog({}, own).find("mine/other").format == "openai-chat"
    elsewhere = Catalog({}, own).find("mine/plain", base_url="http://127.0.0.1:7/v1")
    assert msgspec.to_builtins(dialect_of(elsewhere))["usage_option"] is False


def test_missing_key_variable_fails_only_on_use() -> None:
    own = {"mine": ProviderSettings(base_url="https://llm.example.com/v1", api_key="$MINE_KEY", default_model="big")}
    assert Catalog({}, own).default_choice() is None
    assert not next(row for row in Catalog({}, own).list_models() if row.provider.name == "mine").has_key
    with pytest.raises(ConfigError, match=r"providers\.mine\.api_key refers to \$MINE_KEY"):
        Catalog({}, own).find("mine/big")
    assert Catalog({"MINE_KEY": "k"}, own).find("mine/big").api_key == "k"
    assert Catalog(KEYS, own).find("zai").api_key == "key-of-zai"


def test_model_may_differ_from_its_provider_format() -> None:
    rows = (ModelSettings(id="claude", format="anthropic", dialect={"cache_marks": False}), ModelSettings(id="glm"))
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, dialect={"tool_stream": True}, models=rows)}
    claude, glm = (Catalog({}, own).find(f"mine/{name}") for name in ("claude", "glm"))
    assert (claude.format, format_of(claude).name, dialect_of(claude).cache_marks) == ("anthropic", "anthropic", False)  # type: ignore[attr-defined]  # only this format has it
    assert (glm.format, dialect_of(glm).tool_stream) == ("openai-chat", True)  # type: ignore[attr-defined]  # likewise


@pytest.mark.parametrize("format", FORMATS)
def test_stated_model_ability_decides_what_is_sent(format: str) -> None:
    rows = (
        ModelSettings(id="blind", abilities=("tools",)),
        ModelSettings(id="all", abilities=("tools", "images", "audio", "files")),
    )
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, api=format, models=rows)}
    for name, takes in (("blind", False), ("all", True)):
        sent = dialect_of(Catalog({}, own).find(f"mine/{name}"))
        assert {getattr(sent, each, takes) for each in ("images", "audio", "files")} == {takes}
    seeing = {"zai": ProviderSettings(models=(ModelSettings(id="glm-4.6v", context=1000),))}
    assert dialect_of(Catalog(KEYS, seeing).find("zai/glm-4.6v")).images is True  # type: ignore[attr-defined]  # chat has it


def test_unknown_format_flag_is_answered_with_the_nearest() -> None:
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, dialect={"thinking_stile": "glm"})}
    with pytest.raises(ConfigError, match="has no flag `thinking_stile`") as refused:
        format_of(Catalog({}, own).find("mine/big"))
    assert "Did you mean thinking_" in refused.value.hint
    assert "providers.mine.dialect" in refused.value.hint
    own = {"mine": ProviderSettings(base_url=ELSEWHERE, dialect={"images": "perhaps"})}
    with pytest.raises(ConfigError, match="images"):
        format_of(Catalog({}, own).find("mine/big"))


# The files


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_provider_file_is_whole(name: str) -> None:
    provider = load(name)
    assert provider.name == name
    ids = [model.id for model in provider.models]
    assert len(ids) == len(set(ids))
    assert not provider.default_model or provider.default_model in ids
    assert all(re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*_(KEY|TOKEN|TOKEN_BEDROCK)", variable) for variable in provider.key_env)
    assert not provider.base_url or address.check_url(provider.base_url) == provider.base_url
    assert provider.base_url.startswith("https://") or provider.loopback or not provider.base_url
    assert not provider.loopback or address.is_loopback(urlsplit(provider.base_url).hostname or "")
    for model in provider.models or (Model(id="any"),):
        choice = ModelChoice(provider=provider, model=model, base_url=provider.base_url)
        assert format_of(choice).path(model.id).startswith("/")  # raises when it does not know a flag
        sent = dialect_of(choice)
        for ability in ("images", "audio") if provider.models else ():
            assert getattr(sent, ability, ability in model.abilities) == (ability in model.abilities), f"{model.id}: {ability}"
        assert model.context is None or model.max_output is None or model.max_output <= model.context
        price = model.price
        if price is not None:
            assert price.source
            assert price.date
            assert price.input is not None
            assert price.output is not None
            assert price.input > 0 or name == "local" or model.id.endswith("-flash"), "a price of zero is a claim that it is free"


def test_every_file_is_listed_and_aliases_resolve() -> None:
    files = Path(str(sys.modules["wolo.models.catalog_files"].__file__)).with_name("providers").glob("*.toml")
    assert {file.stem for file in files} == set(PROVIDERS) - {"custom"}
    assert set(ALIASES.values()) <= set(PROVIDERS)
    assert not set(ALIASES) & set(PROVIDERS)


def test_flat_fee_plan_has_no_prices() -> None:
    assert all(model.price is None for model in load("zai-coding").models)


def test_listing_shows_all_with_key_locations() -> None:
    rows = Catalog(KEYS).list_models()
    by_label = {row.label: row for row in rows}
    assert by_label["zai/glm-5.2"].has_key
    assert not by_label["deepseek/deepseek-v4-pro"].has_key
    assert by_label["ollama/…"].model is None
    assert "custom/…" not in by_label


def test_single_model_lookup_reads_no_other_files() -> None:
    code = (
        "import sys, tomllib\n"
        "read, loads = [], tomllib.loads\n"
        "tomllib.loads = lambda text: read.append(text) or loads(text)\n"
        "from wolo.models.catalog import Catalog\n"
        "Catalog({'ZAI_API_KEY': 'k'}).find('zai/glm-5.2')\n"
        "print(len(read), 'difflib' in sys.modules, 'httpx2' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False", "False"]
