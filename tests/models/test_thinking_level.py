"""The level used when a model does not support the requested one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from wolo.formats.format import ThinkingLevel
from wolo.models.capabilities import always_on_notice, effective_level
from wolo.models.catalog import Catalog
from wolo.models.provider import ModelChoice

KEYS = {"ZAI_API_KEY": "k", "MOONSHOT_API_KEY": "k", "XAI_API_KEY": "k", "OPENAI_API_KEY": "k"}


def chosen(spec: str) -> ModelChoice:
    return Catalog(KEYS).find(spec)


@pytest.mark.parametrize(
    ("model", "asked", "used"),
    [
        ("zai/glm-5.3", "off", "low"),
        ("zai/glm-5.3", "medium", "high"),
        ("zai/glm-5.3", "xhigh", "max"),
        ("zai/glm-5.2", "off", "off"),
        ("zai/glm-5.2", "xhigh", "xhigh"),
        ("zai/glm-4.7", "off", "off"),
    ],
)
def test_the_nearest_level_counts(model: str, asked: ThinkingLevel, used: ThinkingLevel) -> None:
    assert effective_level(chosen(model), asked) == used


def test_a_list_of_levels_says_which_there_are() -> None:
    choice = chosen("zai/glm-4.7")
    model = replace(choice.model, dialect={"thinking_param_style": "effort", "thinking_levels": ["low", "high"]})
    assert [effective_level(replace(choice, model=model), level) for level in ("off", "medium", "max")] == ["low", "high", "high"]


def test_only_vain_disabling_of_thinking_is_reported() -> None:
    choice = chosen("zai/glm-5.3")
    assert "always thinks" in always_on_notice(replace(choice, thinking="off"))
    assert not always_on_notice(replace(choice, thinking="medium"))
    assert not always_on_notice(choice)
    assert not always_on_notice(replace(chosen("zai/glm-5.2"), thinking="off"))
