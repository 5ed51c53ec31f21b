"""What a person has said in this session: yes to a call or to a rule, no to a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from wolo.guard.intents import Intent
from wolo.guard.rules import Rule


class Grants:
    """An answer holds for the exact call: other arguments, or the same ones leading elsewhere, are another call."""

    def __init__(self) -> None:
        self.rules: tuple[Rule, ...] = ()
        self._allowed: set[str] = set()
        self._refused: dict[str, str] = {}

    def remember(self, call: str, *, allowed: bool, rule: Rule | None = None, reason: str = "") -> None:
        """`call` is a `fingerprint`. With a rule the yes is the rule's: other calls it matches are allowed too."""
        if not allowed:
            self._refused[call] = reason
            return
        self._refused.pop(call, None)
        if rule is None:
            self._allowed.add(call)
        elif rule not in self.rules:
            self.rules = (*self.rules, rule)

    def allows(self, call: str) -> bool:
        return call in self._allowed

    def refusal(self, call: str) -> str | None:
        """The reason given with a no (may be empty); None when nobody said no."""
        return self._refused.get(call)

    def __bool__(self) -> bool:
        return bool(self._allowed or self._refused)


def fingerprint(tool_name: str, intents: Sequence[Intent], arguments: Mapping[str, Any]) -> str:
    text = msgspec.json.encode([tool_name, arguments, list(intents)], enc_hook=str, order="deterministic")
    return blake2b(text, digest_size=16).hexdigest()
