"""The linter of Ollama's own API finds what the server refuses or misreads."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from wolo.formats.lint.ollama import lint

GOOD: dict[str, Any] = {
    "model": "qwen3",
    "messages": [
        {"role": "system", "content": "You are Wolo."},
        {"role": "user", "content": "look", "images": ["iVBORw0KGgo="]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {"id": "c1", "function": {"name": "read", "arguments": {"path": "a"}}},
                {"function": {"name": "grep", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "read", "tool_call_id": "c1", "content": "text"},
        {"role": "tool", "tool_name": "grep", "content": "none"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}],
    "stream": True,
    "think": True,
    "options": {"num_ctx": 65536},
}


def test_a_good_request_passes_and_may_grow() -> None:
    grown = deepcopy(GOOD)
    grown["messages"].append({"role": "assistant", "content": "Seen."})
    grown["messages"].append({"role": "user", "content": "Thanks"})
    assert lint(GOOD, strict_template=True) == []
    assert lint(grown, GOOD) == []
    assert lint(GOOD, grown) != []


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("messages",), [], "non-empty"),
        (("messages", 1), {"role": "developer", "content": "x"}, "known role"),
        (("messages", 1, "content"), [{"type": "text", "text": "x"}], "must be text"),
        (("messages", 1, "images"), ["data:image/png;base64,iVBORw0KGgo="], "bare base64"),
        (("messages", 1, "images"), ["https://x/y.png"], "bare base64"),
        (("messages", 1, "images"), [], "non-empty"),
        (("messages", 1), {"role": "user", "content": " "}, "neither text"),
        (("messages", 2, "tool_calls", 0, "function", "arguments"), '{"path":"a"}', "no object"),
        (("messages", 2, "tool_calls", 0, "function", "name"), "", "without the name"),
        (("messages", 2, "tool_calls"), [], "empty tool_calls"),
        (("messages", 2, "thinking"), "", "thinking"),
        (("messages", 3, "tool_name"), "grep", "stands where"),
        (("messages", 3, "tool_call_id"), "c2", "tool_call_id"),
        (("messages", 4), {"role": "user", "content": "x"}, "before the results"),
        (("messages", 0), {"role": "tool", "tool_name": "read", "content": "x"}, "without its call"),
        (("messages", 1), {"role": "system", "content": "x"}, "not the first"),
        (("tools",), [], "empty tools"),
        (("tools", 0, "function", "parameters"), {}, "object schema"),
        (("tools", 0, "type"), "tool", "no function"),
        (("model",), "", "model"),
        (("think",), "xhigh", "think"),
        (("options",), {}, "num_ctx"),
        (("options", "num_ctx"), True, "num_ctx"),
        (("max_tokens",), 5, "ignores"),
    ],
)
def test_each_rule_is_kept(path: tuple[str | int, ...], value: Any, complaint: str) -> None:
    body: Any = deepcopy(GOOD)
    place = body
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert any(complaint in found for found in lint(body)), lint(body)


def test_results_after_last_call_and_last_speaker_matter() -> None:
    short = {**GOOD, "messages": GOOD["messages"][:4]}
    assert any("without a result" in found for found in lint(short))
    assert any("continued" in found for found in lint({**GOOD, "messages": GOOD["messages"][:3]}))


def test_a_changed_prefix_is_found() -> None:
    changed = deepcopy(GOOD)
    changed["messages"][1]["content"] = "look!"
    assert any("messages[1] differs" in found for found in lint(changed, GOOD))
    other = deepcopy(GOOD["tools"])
    other[0]["function"]["description"] = "look!"
    assert any("tools differ" in found for found in lint({**GOOD, "tools": other}, GOOD))


def test_two_users_in_a_row_break_strict_templates() -> None:
    body = {**GOOD, "messages": [GOOD["messages"][1], {"role": "user", "content": "x"}]}
    assert lint(body) == []
    assert any("in a row" in found for found in lint(body, strict_template=True))
