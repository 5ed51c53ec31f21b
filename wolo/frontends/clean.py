"""Untrusted text on its way to the terminal: control sequences are taken out, invisible characters are made visible."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, also when its end is missing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC; a line at most
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE_CLASS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_INVISIBLE_CLASS}]")
_JOINED = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d\ufe0e\ufe0f]")
"""Joiners and variation selectors after a letter or picture that they may belong to: part of many a script and emoji."""
_UNSEEN = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff{_INVISIBLE_CLASS}]")


def clean(text: str) -> str:
    """Safe to print whole: keeps newlines, tabs and every character that shows."""
    if text.isascii() and text.isprintable():
        return text
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))
    if not text.isascii():
        text = _INVISIBLE.sub(_show_unless_joined, text)
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_line(text: str) -> str:
    """The same on one line, for titles, file names and the status."""
    return clean(text).replace("\n", "⏎").replace("\t", " ")


def spelled_out(text: str) -> Iterator[tuple[str, bool]]:
    """Everything a person must see before saying yes: pieces of the text, and (True) escapes for what would not show.

    Nothing is left out; newlines stay.
    """
    position = 0
    for found in _UNSEEN.finditer(text):
        if found.start() > position:
            yield text[position : found.start()], False
        yield _escape(found[0]), True
        position = found.end()
    if position < len(text):
        yield text[position:], False


def _show_unless_joined(found: re.Match[str]) -> str:
    return found[0] if _JOINED.match(found.string, found.start()) else _escape(found[0])


def _escape(character: str) -> str:
    named = {"\t": "\\t", "\r": "\\r"}
    code = ord(character)
    return named.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}")
