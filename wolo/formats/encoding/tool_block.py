"""The tools that requests offer, as they stand on the wire; made once as long as they stay the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from wolo.formats.encoding.encoder import encode_json
from wolo.formats.format import ToolSpec


class OfferedTools:
    """Those of the request that was encoded last."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self.specs: tuple[ToolSpec, ...] = ()
        self.written: list[dict[str, Any]] = []
        self.encoded = b""
        """`written` as a JSON list; empty when no tool is offered."""

    def take(self, specs: tuple[ToolSpec, ...], write: Callable[[ToolSpec], dict[str, Any]], key: Hashable = None) -> bytes:
        """`write` says how one stands on the wire, `key` what else that depends on. Of two with one name the later counts."""
        if key != self._key or not _are_same(specs, self.specs):
            self.specs, self._key = specs, key
            self.written = list({tool.name: write(tool) for tool in specs}.values())
            self.encoded = encode_json(self.written) if self.written else b""
        return self.encoded


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
