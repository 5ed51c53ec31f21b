"""Tool names and call ids in the forms that servers accept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Literal

IdPolicy = Literal["opaque", "openai", "responses", "anthropic", "mistral"]
"""Accepted call ids: up to 40 printable or safe characters, 64 safe ones, or exactly 9 alphanumerics."""

LEGAL_IDS: dict[IdPolicy, str] = {
    "opaque": r"[!-~]{1,40}",
    "openai": r"[A-Za-z0-9_-]{1,40}",
    "responses": r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]",
    "anthropic": r"[A-Za-z0-9_-]{1,64}",
    "mistral": r"[A-Za-z0-9]{9}",
}


def wire_id(own: str, policy: IdPolicy, taken: Collection[str]) -> str:
    """The id itself if legal and unused, else one derived from its hash. `taken` holds all earlier ids.

    Hashing keeps ids with a common prefix different, unlike truncation.
    """
    if re.fullmatch(LEGAL_IDS[policy], own) and own not in taken:
        return own
    attempt = 1
    while (derived := _derive_id(own, policy, attempt)) in taken:
        attempt += 1
    return derived


def _derive_id(own: str, policy: IdPolicy, attempt: int) -> str:
    digest = hashlib.sha256(f"{attempt}\0{own}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:9] if policy == "mistral" else f"call_{digest[:24]}"


LEGAL_NAME = r"[A-Za-z0-9_-]{1,64}"
_ILLEGAL_CHARACTERS = r"[^A-Za-z0-9_-]+"


def wire_name(name: str, reserved: Collection[str] = ()) -> str:
    """Depends only on the name, so that history keeps its bytes when the tools change."""
    if re.fullmatch(LEGAL_NAME, name) and name not in reserved:
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(_ILLEGAL_CHARACTERS, '_', name)[:55] or 'tool'}_{mark}"


def names_by_wire(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Map wire names back to tool names, where they differ."""
    return {wire: name for name in names if (wire := wire_name(name, reserved)) != name}
