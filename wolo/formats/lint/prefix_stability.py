"""Whether a request begins as the one before it did: providers cache by prefix, and newer thinking lives on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def complaints(
    body: Mapping[str, Any],
    previous: Mapping[str, Any] | None,
    *,
    head: tuple[str, ...],
    turns: str,
    plain: Callable[[Any], Any] = lambda value: value,
) -> Iterator[str]:
    """`head` names the fields in front of the conversation, `turns` the list of what was said; both must come again, unchanged.

    Behind the tools of before there may be more: servers of tools start beside the conversation. `plain` takes away what may
    move, such as cache marks. Of the turns only the first that differs is named.
    """
    if previous is None:
        return

    def differs(old: Any, new: Any) -> bool:
        return json.dumps(plain(old)) != json.dumps(plain(new))

    for name in head:
        old, new = previous.get(name), body.get(name)
        if differs(*((_one_by_one(old), _one_by_one(new)[: len(_one_by_one(old))]) if name == "tools" and old else (old, new))):
            yield f"{name} differs from the request before"
    before, now = previous.get(turns) or [], body[turns]
    if len(now) < len(before):
        yield f"{turns}: {len(before)} before, only {len(now)} now"
    at = next((at for at, (old, new) in enumerate(zip(before, now, strict=False)) if differs(old, new)), None)
    if at is not None:
        yield f"{turns}[{at}] differs from the request before"


def _one_by_one(tools: Any) -> list[Any]:
    """Also where a format has them in a list within the list."""
    groups = ((each.get("functionDeclarations") if isinstance(each, Mapping) else None, each) for each in tools or ())
    return [tool for within, each in groups for tool in (within if isinstance(within, list) else [each])]
