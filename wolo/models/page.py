"""A page that came where an answer should: its words, for an error message."""

from __future__ import annotations

import re

SHOWN_LETTERS = 200

_unseen = re.compile(rb"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
_title = re.compile(rb"<title[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)


def summarise(body: bytes) -> str:
    """The beginning of what a person would read, without tags and control characters."""
    title = _title.search(body)
    words = (title[1] if title else b"") + b" " + _unseen.sub(b" ", body)
    text = " ".join(words.decode("utf-8", "replace").split())
    shown = "".join(letter for letter in text if letter.isprintable())[:SHOWN_LETTERS]
    return f"“{shown}”" if shown else "nothing readable"


def is_page(body: bytes) -> bool:
    return body.lstrip()[:1] == b"<"
