"""A web page that came in place of an answer, as the few words a person can read."""

from __future__ import annotations

import re

_BEGINNING = r"\s*(?:<!--.*?-->\s*)?<(?:!doctype|html|head|body|\?xml|center|h1|title)"
_UNSEEN = r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>?"
_TITLE = r"<title\b[^>]*>(.*?)</title"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}
_READ_CHARACTERS = 200_000
_FLAGS = re.IGNORECASE | re.DOTALL


def page_text(text: str) -> str | None:
    """None when it is no page; otherwise the title and what the page says, without tags."""
    source = text[:_READ_CHARACTERS].lstrip("\ufeff")
    if not re.match(_BEGINNING, source, _FLAGS):
        return None
    title = re.search(_TITLE, source, _FLAGS)
    words = f"{title[1] if title else ''} {re.sub(_UNSEEN, ' ', source, flags=_FLAGS)}"
    for entity, char in _ENTITIES.items():
        words = words.replace(entity, char)
    return " ".join("".join(char if char.isprintable() else " " for char in words).split())
