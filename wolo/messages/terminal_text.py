"""Clean untrusted text for terminals and logs: remove control sequences, show invisible characters."""

from __future__ import annotations

import re
from collections.abc import Iterator

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Zero-width, bidirectional, tag and filler characters and variation selectors, for a character class."""
CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters except line feed and tab."""
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
"""Characters that look like a space and are none."""

# Compiled at first use, since most runs do not need them.
_STRING_END = "[\x07\x1b\x9c\n]"
_SEQUENCES = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, also unterminated
    r"|(?P<string>(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*)(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)
_UNFINISHED = r"(?:\x1b(?:\[[0-?]*[ -/]*|[ -/]*)|\x9b[0-?]*[ -/]*|\r|[\ud800-\udbff])\Z"
_LONGEST_SEQUENCE = 256
"""Longer sequences are harmless text. Strings (titles, links, the clipboard) have no limit and end with the line."""
_JOINED = f"(?<=[^\x00-\x7f{INVISIBLE}])[\u200c\u200d\ufe0e\ufe0f]|(?<=\ufe0f)\u200d|(?<=[0-9#*])\ufe0f(?=\u20e3)"
"""A joiner or variation selector after a character it may belong to, as in many scripts and emoji."""


class Cleaner:
    """Cleans streamed text; sequences split across chunks are removed too."""

    def __init__(self) -> None:
        self._held = ""
        self._in_string = False
        self._last = ""
        """Last emitted character, which a joiner may follow."""

    def feed(self, piece: str) -> str:
        """Return the text that can be shown now."""
        text = self._behind_string(self._held + piece)
        if unfinished := re.search(_UNFINISHED, text[-_LONGEST_SEQUENCE:]):
            self._held = unfinished[0]
            text = text[: len(text) - len(self._held)]
        return self._settle(text)

    def close(self) -> str:
        """Return the remaining text."""
        left = self._behind_string(self._held)
        self._held = ""
        return self._settle(left)

    def _behind_string(self, text: str) -> str:
        self._held = ""
        if not self._in_string:
            return text
        if (end := re.search(_STRING_END, text)) is None:
            return ""
        if end[0] == "\x1b" and end.end() == len(text):
            self._held = "\x1b"  # may be the first half of the terminator
            return ""
        self._in_string = False
        at = end.start()
        return text[at + 2 :] if text.startswith("\x1b\\", at) else text[at:] if end[0] in "\n\x1b" else text[at + 1 :]

    def _settle(self, text: str) -> str:
        text = text.replace("\r\n", "\n")

        def drop(match: re.Match[str]) -> str:
            self._in_string = match.end() == len(text) and match["string"] == match[0]
            return ""

        bare = re.sub(_SEQUENCES, drop, text)
        shown = _visible(self._last + bare)[len(self._last) :]
        last = re.search(f"[^{CONTROLS}{INVISIBLE}]\ufe0f?\\Z", shown[-2:])
        self._last = last[0] if last else ""
        return shown


def clean(text: str) -> str:
    """Make text safe to print: keeps newlines, tabs and visible characters."""
    if text.isascii() and text.isprintable():
        return text
    return _visible(without_sequences(text.replace("\r\n", "\n")))


def without_sequences(text: str) -> str:
    """Remove escape sequences; single control characters stay."""
    return re.sub(_SEQUENCES, "", text)


def clean_line(text: str) -> str:
    return clean(text).replace("\n", "⏎").replace("\t", " ")


def escape_hidden(text: str) -> str:
    """Escape invisible characters, except those that join letters or emoji."""
    return re.sub(f"[{CONTROLS}{INVISIBLE}]", _show_unless_joined, text)


def escaped_pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield text for an approval, and (True) escapes for characters that cannot be seen or told from a space.

    Complete; newlines are kept.
    """
    position = 0
    for found in re.finditer(f"[\t{CONTROLS}\ud800-\udfff{INVISIBLE}{_BLANKS}]", text):
        if found.start() > position:
            yield text[position : found.start()], False
        yield escape(found[0]), True
        position = found.end()
    if position < len(text):
        yield text[position:], False


def escaped_line(text: str) -> str:
    """Escape text on one line without colours, with nothing left out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(piece for piece, _ in escaped_pieces(text)).replace("\n", "⏎")


def exact(text: str, *, keeps_tabs: bool = False) -> str:
    """Text in which each character can be told from every other, without colours: `⟨U+202E⟩` for one that cannot be seen.

    Complete and reversible; newlines are kept.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    tab = "" if keeps_tabs else "\t"
    return re.sub(f"[⟨{tab}{CONTROLS}{INVISIBLE}{_BLANKS}\ud800-\udfff]", lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)


def label(name: str, text: str) -> str:
    """`name: text`; each further line is marked, so that it cannot pass for another name. Neither is escaped."""
    return f"{name}: {text}".replace("\n", "\n  | ")


def escape(character: str) -> str:
    named = {"\t": "\\t", "\r": "\\r"}
    code = ord(character)
    return named.get(character) or (f"\\x{code:02x}" if code < 0xA0 else f"\\u{{{code:x}}}")


def _visible(text: str) -> str:
    text = re.sub(f"[{CONTROLS}]", "", text)
    if not text.isascii():
        text = re.sub(f"[{INVISIBLE}]", _show_unless_joined, text)
    return text.encode("utf-8", "replace").decode("utf-8")


def _show_unless_joined(match: re.Match[str]) -> str:
    return match[0] if re.compile(_JOINED).match(match.string, match.start()) else escape(match[0])


def in_short(tokens: int | None) -> str:
    """131,072 as 131k, a million as 1M."""
    if tokens is None:
        return "?"
    return f"{tokens / 1e6:.3g}M" if tokens >= 1_000_000 else f"{tokens / 1e3:.0f}k" if tokens >= 1_000 else str(tokens)


def quantity(num: int, noun: str, plural: str = "") -> str:
    """Format a count: `1 line`, `1,204 lines`; `plural` if it is not the noun with an s."""
    return f"{num:,} {noun if num == 1 else plural or f'{noun}s'}"
