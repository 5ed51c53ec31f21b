"""Halves of characters: models, servers and file names produce them, and no JSON, database or terminal takes them."""

from __future__ import annotations


def whole(text: str) -> str:
    """The same text with pairs of surrogates joined, and lone ones replaced by a mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
