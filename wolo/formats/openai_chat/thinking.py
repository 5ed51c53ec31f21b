"""How much a model shall think, said in the words of each family of servers."""

from __future__ import annotations

from typing import Any

from wolo.formats.dialect import Dialect
from wolo.formats.encoding.always_thinking import GLM_ALWAYS_THINKS, GLM_EFFORTS, always_thinks, glm_version
from wolo.formats.encoding.thinking_levels import nearest
from wolo.formats.format import ThinkingLevel

GLM_KNOWS_EFFORT = (5, 2)
GLM_THINKS = (4, 5)
QWEN_BUDGETS: dict[ThinkingLevel, int] = {"minimal": 1024, "low": 4096, "medium": 16384, "high": 32768}
_ON = {"type": "enabled", "clear_thinking": False}


def thinking_fields(dialect: Dialect, model: str, level: ThinkingLevel | None) -> dict[str, Any]:
    """The fields of the request body; none when the user said nothing and the server's own default serves."""
    if level is not None and dialect.thinking_levels:
        level = nearest(level, dialect.thinking_levels)
    if dialect.thinking_param_style == "glm":
        return _glm(model, level)
    if level is None:
        return {}
    on = level != "off"
    match dialect.thinking_param_style:
        case "deepseek":
            return {"thinking": {"type": "enabled" if on else "disabled"}}
        case "kimi":
            return {"thinking": {"type": "enabled" if on else "disabled"}} if on or not always_thinks("kimi", model) else {}
        case "qwen":
            return {"enable_thinking": on, **({"thinking_budget": QWEN_BUDGETS[level]} if level in QWEN_BUDGETS else {})}
        case "template_kwargs":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "openrouter":
            return {"reasoning": {"effort": "xhigh" if level == "max" else level} if on else {"enabled": False}}
        case "effort":
            return {"reasoning_effort": level if on else "none"}
        case _:
            return {}


def _glm(model: str, level: ThinkingLevel | None) -> dict[str, Any]:
    """`clear_thinking: false` keeps the reasoning of earlier turns: better answers, and a prefix the cache can use."""
    version = glm_version(model)
    if version is not None and version < GLM_THINKS:
        return {}
    if version is not None and version >= GLM_ALWAYS_THINKS:
        effort = {} if level is None else {"reasoning_effort": GLM_EFFORTS[level]}
        return {"thinking": {"clear_thinking": False} if level == "off" else _ON, **effort}
    if level == "off":
        return {"thinking": {"type": "disabled", "clear_thinking": False}}
    if version == GLM_KNOWS_EFFORT and level is not None:
        return {"thinking": _ON, "reasoning_effort": level}
    return {"thinking": _ON}
