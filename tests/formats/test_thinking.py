"""The thinking level in the request of each family of servers."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.encoding.thinking_levels import nearest_level
from wolo.formats.format import ThinkingLevel
from wolo.formats.openai_chat import thinking_fields

LEVELS = get_args(ThinkingLevel)
KEPT = {"type": "enabled", "clear_thinking": False}
OFF = {"type": "disabled", "clear_thinking": False}


def fields(style: Any, model: str, level: ThinkingLevel | None, **flags: Any) -> dict[str, Any]:
    return thinking_fields(ChatDialect(thinking_param_style=style, **flags), model, level)


@pytest.mark.parametrize("model", ["glm-5.3", "GLM-5.3", "glm-5.3-flash", "GLM-5.3-FlashX", "zai-org/GLM-5.3", "glm-6"])
@pytest.mark.parametrize("level", [None, *LEVELS])
def test_always_thinking_glm_is_never_told_otherwise(model: str, level: ThinkingLevel | None) -> None:
    sent = fields("glm", model, level)
    assert sent["thinking"]["clear_thinking"] is False
    assert sent["thinking"].get("type") != "disabled"
    assert sent.get("reasoning_effort") in ({None} if level is None else {"low", "high", "max"})


@pytest.mark.parametrize(
    ("level", "effort"),
    [("off", "low"), ("minimal", "low"), ("low", "low"), ("medium", "high"), ("high", "high"), ("xhigh", "max"), ("max", "max")],
)
def test_glm_5_3_knows_three_efforts(level: ThinkingLevel, effort: str) -> None:
    assert fields("glm", "glm-5.3", level)["reasoning_effort"] == effort


def test_glm_5_2_takes_every_effort_or_off() -> None:
    assert fields("glm", "GLM-5.2", "minimal") == {"thinking": KEPT, "reasoning_effort": "minimal"}
    assert fields("glm", "glm-5.2", "off") == {"thinking": OFF}


@pytest.mark.parametrize("model", ["glm-5.1", "glm-5", "glm-5-turbo", "GLM-4.7", "glm-4.6", "glm-4.6v", "glm-4.5-air", "GLM-4.5"])
def test_older_glm_switches_without_effort(model: str) -> None:
    assert fields("glm", model, "high") == {"thinking": KEPT}
    assert fields("glm", model, None) == {"thinking": KEPT}
    assert fields("glm", model, "off") == {"thinking": OFF}


@pytest.mark.parametrize("model", ["glm-4-plus", "glm-4-flash", "GLM-3-turbo"])
def test_unthinking_glm_is_not_asked_to_think(model: str) -> None:
    assert fields("glm", model, "high") == {}


@pytest.mark.parametrize("style", ["none", "deepseek", "kimi", "qwen", "template_kwargs", "openrouter", "effort"])
def test_others_hear_nothing_while_the_user_says_nothing(style: str) -> None:
    assert fields(style, "m", None) == {}


@pytest.mark.parametrize(
    ("style", "model", "level", "sent"),
    [
        ("none", "m", "high", {}),
        ("deepseek", "m", "off", {"thinking": {"type": "disabled"}}),
        ("deepseek", "m", "low", {"thinking": {"type": "enabled"}}),
        ("kimi", "kimi-k2", "off", {"thinking": {"type": "disabled"}}),
        ("kimi", "kimi-k3.1-pro", "off", {}),
        ("qwen", "m", "off", {"enable_thinking": False}),
        ("qwen", "m", "low", {"enable_thinking": True, "thinking_budget": 4096}),
        ("qwen", "m", "max", {"enable_thinking": True}),
        ("template_kwargs", "m", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("openrouter", "m", "off", {"reasoning": {"enabled": False}}),
        ("openrouter", "m", "max", {"reasoning": {"effort": "xhigh"}}),
        ("effort", "m", "off", {"reasoning_effort": "none"}),
        ("effort", "m", "xhigh", {"reasoning_effort": "xhigh"}),
    ],
)
def test_each_family_in_its_own_words(style: str, model: str, level: ThinkingLevel, sent: dict[str, Any]) -> None:
    assert fields(style, model, level) == sent


def test_unknown_level_becomes_the_nearest() -> None:
    assert nearest_level("medium", ("low", "high")) == "high"
    assert nearest_level("max", ("low", "high")) == "high"
    assert nearest_level("off", ("low", "high")) == "low"
    assert fields("effort", "m", "minimal", thinking_levels=("low", "medium")) == {"reasoning_effort": "low"}
