"""Selects the wire format of a model."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace

from wolo.errors import ConfigError
from wolo.formats.format import Request, ThinkingLevel
from wolo.formats.lint.anthropic import lint
from wolo.messages.message import Producer, user
from wolo.models.catalog import Catalog
from wolo.models.catalog_files import load
from wolo.models.format_selection import FORMATS, format_of
from wolo.models.headers import request_headers
from wolo.models.provider import Model, ProviderSettings


def test_format_is_picked_by_name_with_its_dialect() -> None:
    choice = Catalog({"ZAI_API_KEY": "k"}).find("zai/glm-5.3-flash")
    assert format_of(choice).name == "openai-chat"
    assert {**choice.provider.dialect, **choice.model.dialect}["images"] is True
    for wrong in ({"format": "no-such-format"}, {"dialect": {"no_such_flag": 1}}, {"dialect": {"tool_stream": "maybe"}}):
        with pytest.raises(ConfigError):
            format_of(
                replace(
                    choice, provider=msgspec.convert({"name": "x", "label": "x", "base_url": "x", **wrong}, type(choice.provider))
                )
            )


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("thinking_param_style", "glmm", 'cannot be "glmm": it takes one of none, '),
        ("images", "yes", 'cannot be "yes": it takes true or false.'),
        ("thinking_levels", ["lots"], 'cannot be ["lots"]: it takes a list, each one of off, minimal'),
        ("thinking_levels", "low", 'cannot be "low": it takes a list, each one of off, minimal'),
    ],
)
def test_wrong_flag_value_is_answered_with_valid_ones(flag: str, value: object, said: str) -> None:
    own = {"mine": ProviderSettings(base_url="http://127.0.0.1:9/v1", dialect={flag: value})}
    with pytest.raises(ConfigError, match=f"^The flag `{flag}` of mine/m ") as wrong:
        format_of(Catalog({}, own).find("mine/m"))
    assert said in wrong.value.message
    assert "providers.mine.dialect" in wrong.value.hint


def test_text_protocol_keeps_facts_of_its_carrier() -> None:
    environ = {"ZAI_API_KEY": "k", "OPENAI_API_KEY": "k"}
    as_text = Catalog(environ).find("zai/glm-5.2", api="xml")
    as_chat = Catalog(environ).find("zai/glm-5.2")
    assert as_text.format == "xml"
    assert {**as_text.provider.dialect, **as_text.model.dialect} == {**as_chat.provider.dialect, **as_chat.model.dialect}
    assert format_of(as_text).name == "xml"
    other = Catalog(environ).find("zai/glm-5.2", api="anthropic")
    assert (other.format, other.provider.dialect, other.model.dialect) == ("anthropic", {}, {})
    elsewhere = Catalog(environ).find("openai/gpt-5", api="openai-chat")
    levels = dict(Catalog(environ).find("openai/gpt-5").model.dialect)["thinking_levels"]
    assert (elsewhere.format, elsewhere.model.dialect) == ("openai-chat", {"thinking_levels": levels}), "a fact of the model"
    for api in FORMATS:
        format_of(Catalog(environ).find("openai/gpt-5", api=api))


def test_provider_overrides_the_request_parts_of_its_format() -> None:
    asked: dict[str, Any] = {"base_url": "http://127.0.0.1:9/x", "api_key": "k-1"}
    assert request_headers(Catalog({}).find("custom/x", api="anthropic", **asked)) == {
        "anthropic-version": "2023-06-01",
        "x-api-key": "k-1",
    }
    assert request_headers(Catalog({}).find("custom/x", **asked)) == {"authorization": "Bearer k-1"}
    own = {"custom": ProviderSettings(headers={"Anthropic-Version": "2026-10-21"}, auth="bearer")}
    assert request_headers(Catalog({}, own).find("custom/x", api="anthropic", **asked)) == {
        "anthropic-version": "2026-10-21",
        "authorization": "Bearer k-1",
    }


def test_address_credentials_are_sent_without_a_key() -> None:
    asked: dict[str, Any] = {"base_url": "https://me:p%40ss@h.example/v1"}
    assert request_headers(Catalog({}).find("custom/x", **asked)) == {"authorization": "Basic bWU6cEBzcw=="}
    assert request_headers(Catalog({}).find("custom/x", api_key="k-1", **asked)) == {"authorization": "Bearer k-1"}


@pytest.mark.parametrize("model", load("anthropic").models, ids=lambda model: model.id)
def test_every_claude_model_can_be_asked(model: Model) -> None:
    """With and without thinking, and with the headers of its provider."""
    choice = Catalog({"ANTHROPIC_API_KEY": "k"}).find(f"anthropic/{model.id}")
    assert "anthropic-beta" in request_headers(choice)
    for level in (None, *get_args(ThinkingLevel)):
        asked = Request(
            model=model.id,
            producer=Producer(),
            messages=(user("hi"),),
            thinking=level,
            max_output=model.max_output,
            temperature=0.5,
        )
        assert lint(msgspec.json.decode(format_of(choice).encode(asked))) == []


@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-6-sol", "gpt-4.1", "o3"])
def test_openai_models_use_responses_api_by_default(model: str) -> None:
    asked = Catalog({"OPENAI_API_KEY": "k"}).find(f"openai/{model}")
    assert format_of(asked).name == "openai-responses"
    otherwise = Catalog({"OPENAI_API_KEY": "k"}).find(f"openai/{model}", api="openai-chat")
    assert format_of(otherwise).name == "openai-chat"
    assert otherwise.provider.dialect["system_role"] == "developer"
