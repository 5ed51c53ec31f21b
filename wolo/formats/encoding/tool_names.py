"""Tool names as a server takes them, and the way back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")


def to_wire(name: str, reserved: Collection[str] = ()) -> str:
    """Depends on nothing but the name, so that history keeps its bytes when the set of tools changes."""
    if LEGAL.fullmatch(name) and name not in reserved:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_ILLEGAL_CHARACTERS.sub('_', name)[:55] or 'tool'}_{mark}"


def from_wire(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """What the server calls each of these tools → our name, where the two differ."""
    return {wire: name for name in names if (wire := to_wire(name, reserved)) != name}
