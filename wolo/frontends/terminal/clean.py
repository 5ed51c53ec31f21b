"""Untrusted text on its way to the terminal: control sequences are taken out, invisible characters are made visible."""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|[\x9b][0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, SOS, PM, APC; unterminated ones too
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_JOINERS = "\u200d\ufe0f"  # part of many an emoji


def clean(text: str) -> str:
    """Safe to print whole: keeps newlines, tabs and every printable character."""
    if "\x1b" in text or not text.isprintable():
        text = _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))
        text = _INVISIBLE.sub(lambda found: found[0] if found[0] in _JOINERS else f"\\u{{{ord(found[0]):x}}}", text)
    return text.encode("utf-8", "replace").decode("utf-8")


def clean_line(text: str) -> str:
    """The same on one line, for prompts, titles and file names."""
    return clean(text).replace("\n", "⏎").replace("\t", " ")
