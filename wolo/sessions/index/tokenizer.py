"""Text as the search index takes it in: words of scripts that put no blanks between them, and the pieces of identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Patterns are compiled when they are first used: a conversation opens before that.

JOINER = "\u2060"
"""Has no width and is no part of a word, so it parts words without being seen."""

_UNSPACED = (
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff])"
)
"""Thai, Chinese, Japanese, Korean and their kin: any run of characters may be what somebody looks for."""
_HUMP = "[a-z0-9][A-Z]"
_IDENTIFIER_CHARS = 100
"""Longer runs of letters and digits are data."""
_PIECE = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+"
_CONTROLS = "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b\n]*|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2060-\u206f\ud800-\udfff]+"


def clean(text: str) -> str:
    """Without controls and marks that steer a terminal or the order of its text."""
    return text if text.replace("\n", "").isprintable() else re.sub(_CONTROLS, " ", text)


def spaced(text: str) -> str:
    """Each character of a script without blanks becomes a word of its own; a search for several is one for a phrase."""
    return text if text.isascii() else re.sub(_UNSPACED, f"{JOINER}\\1{JOINER}", text)


def pieces(text: str) -> str:
    """`parse Http Request` for each `parseHttpRequest` in the text, once; `_`, `.` and `/` part words anyway."""
    return "\n".join(" ".join(re.findall(_PIECE, word)) for word in dict.fromkeys(_with_humps(text)))


def _with_humps(text: str) -> Iterator[str]:
    # From hump to hump: looking at every word takes three times as long.
    word = re.compile(r"\w+")
    end = 0
    for hump in re.finditer(_HUMP, text):
        begin = hump.start()
        if begin < end:
            continue
        while begin > end and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            begin -= 1
        found = word.match(text, begin)
        assert found is not None
        end = found.end()
        if end - begin <= _IDENTIFIER_CHARS:
            yield found[0]


def one_line(text: str) -> str:
    """For people again."""
    return " ".join(text.replace(JOINER, "").split())
