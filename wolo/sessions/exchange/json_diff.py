"""Computes the difference of two JSON values as JSON, and applies it.

Formats of other agents cannot hold all of a message. An export adds the difference between the message and what an importer would
read, so that nothing is lost.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wolo.messages.message import MESSAGES, Message

VALUE, FIELDS, GONE, ITEMS = "=", ".", "-", "[]"


def missing_in(read: Message, message: Message) -> dict[str, Any]:
    """The difference between a message and what an importer has read."""
    return difference(_plain(read), _plain(message)) or {}


def complete(read: Message, change: Any) -> Message:
    """Applies the difference; returns `read` where the file was changed since."""
    try:
        return msgspec.convert(apply(_plain(read), change), Message)
    except (ValueError, msgspec.MsgspecError):
        return read


def difference(old: Any, new: Any) -> dict[str, Any] | None:
    """None for equal values."""
    if old == new and type(old) is type(new):
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        fields = {name: change for name in new if name in old and (change := difference(old[name], new[name]))}
        fields |= {name: {VALUE: new[name]} for name in new if name not in old}
        gone = [name for name in old if name not in new]
        return ({FIELDS: fields} if fields else {}) | ({GONE: gone} if gone else {})
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        changes = (difference(before, after) for before, after in zip(old, new, strict=True))
        return {ITEMS: {str(at): change for at, change in enumerate(changes) if change}}
    return {VALUE: new}


def apply(old: Any, change: Any) -> Any:
    """Raises ValueError when the change does not fit the value."""
    try:
        return _apply(old, change)
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("The change does not fit the value.") from error


def _plain(message: Message) -> Any:
    return msgspec.json.decode(MESSAGES.encode(message))


def _apply(old: Any, change: dict[str, Any]) -> Any:
    if VALUE in change:
        return change[VALUE]
    if ITEMS in change:
        items = list(old)
        for at, each in change[ITEMS].items():
            items[int(at)] = _apply(items[int(at)], each)
        return items
    kept = {name: value for name, value in old.items() if name not in change.get(GONE, ())}
    changed = {name: _apply(old.get(name), each) for name, each in change.get(FIELDS, {}).items()}
    return kept | changed
