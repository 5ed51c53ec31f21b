"""What a trusted project may set: it can make wolo stricter, never looser, and lead it nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wolo.config.dotted_keys import Key


def _earlier_in(*words: str) -> Callable[[Any, Any], Any]:
    """Of words in the order of strictness the stricter one."""
    return lambda held, wanted: min(held, wanted, key=words.index)


def _lower(held: float | None, wanted: float | None) -> float | None:
    return min((each for each in (held, wanted) if each is not None), default=None)


STRICTER: Mapping[Key, Callable[[Any, Any], Any]] = {
    ("mode",): _earlier_in("plan", "ask", "edit", "auto", "yolo"),
    ("sandbox", "backend"): _earlier_in("required", "auto", "off"),
    ("limits", "max_turns"): _lower,
    ("limits", "max_cost"): _lower,
    ("limits", "max_tokens"): _lower,
    ("limits", "max_seconds"): _lower,
    ("limits", "max_answer_bytes"): _lower,
    ("tasks", "timeout_s"): _lower,
    ("tasks", "max_turns"): _lower,
}
"""Of what held before and what the project wants, the stricter."""
MORE_RULES = (("permissions", "deny"), ("permissions", "ask"))
"""Each rule is one more, whoever wrote it."""
