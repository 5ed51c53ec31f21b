"""Call ids as a server takes them: legal, different from each other in the whole conversation, and always the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from typing import Literal

IdPolicy = Literal["opaque", "openai", "responses", "anthropic", "mistral"]
"""What a call id may look like: up to 40 printable or safe characters, 64 safe ones, or exactly 9 letters and digits."""

LEGAL: dict[IdPolicy, re.Pattern[str]] = {
    "opaque": re.compile(r"[!-~]{1,40}"),
    "openai": re.compile(r"[A-Za-z0-9_-]{1,40}"),
    "responses": re.compile(r"[A-Za-z0-9_-]{0,63}[A-Za-z0-9-]"),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,64}"),
    "mistral": re.compile(r"[A-Za-z0-9]{9}"),
}


def wire_id(own: str, policy: IdPolicy, taken: Collection[str]) -> str:
    """The id itself where it may stay, else one derived from it. `taken` are the ids of all calls before this one.

    Cutting ids short would make equal ones of those that share a beginning; a hash does not, and what still collides is
    derived again.
    """
    if LEGAL[policy].fullmatch(own) and own not in taken:
        return own
    attempt = 1
    while (derived := _derive(own, policy, attempt)) in taken:
        attempt += 1
    return derived


def _derive(own: str, policy: IdPolicy, attempt: int) -> str:
    digest = hashlib.sha256(f"{attempt}\0{own}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:9] if policy == "mistral" else f"call_{digest[:24]}"
