"""Long pastes: in what is written each is one character, shown as `[Pasted #1: 5,000 lines]`, and sent whole.

One character moves, is deleted and comes back as one thing, whatever key does it. The characters are private ones of Unicode
that no keyboard has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypedDict

MOST_CHARS = 1_000
MOST_LINES = 15
"""A longer paste is folded."""
MOST_KEPT_CHARS = 1_000_000
"""A text with more in it is not written down for later."""
_FIRST, _LAST = 0xF0000, 0xFFFFD
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Z]")
_HALVES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Written(TypedDict, total=False):
    """A text as it is kept for later."""

    text: str
    pastes: dict[str, str]


class Pastes:
    def __init__(self) -> None:
        self._whole: dict[str, str] = {}
        """What each character stands for."""
        self._numbers: dict[str, int] = {}
        """In the order in which a person has seen them."""

    def fold(self, text: str) -> str:
        """As it goes into what is written: as it is, or as one character."""
        lines = text.count("\n") + 1
        if len(text) <= MOST_CHARS and lines <= MOST_LINES and not _PRIVATE.search(text):
            return text
        return self._character(text)

    def unfold(self, text: str) -> str:
        """As it is sent."""
        return _PRIVATE.sub(lambda found: self._whole.get(found[0], found[0]), text)

    def shown(self, text: str) -> str:
        """As a person reads it."""
        return _PRIVATE.sub(lambda found: self.label(found[0]) or found[0], text)

    def typed(self, text: str) -> str:
        """Only what was typed, without what was pasted as a whole."""
        return _PRIVATE.sub(lambda found: " " if found[0] in self._whole else found[0], text)

    def fold_again(self, text: str) -> str:
        """A whole text that comes back, from an editor: known pastes are folded, and so is the rest if it is long.

        Private characters in it stand for themselves.
        """
        if _PRIVATE.search(text):
            return self._character(text)
        for character, whole in self._whole.items():
            text = text.replace(whole, character, 1)
        return text if _PRIVATE.search(text) and len(text) <= MOST_CHARS else self.fold(self.unfold(text))

    def label(self, character: str) -> str:
        """Empty for a character that stands for itself."""
        whole = self._whole.get(character)
        if whole is None:
            return ""
        lines = whole.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(whole):,} characters"
        number = self._numbers.setdefault(character, len(self._numbers) + 1)
        return f"[Pasted #{number}: {size}]"

    def pack(self, text: str) -> Written:
        """For later, and for another process."""
        folded = {character: self._whole[character] for character in _PRIVATE.findall(text) if character in self._whole}
        return {"text": text, "pastes": folded} if folded else {"text": text}

    def unpack(self, written: Written) -> str:
        """The same text, whatever other pastes there are by now."""
        renamed = {old: self._character(whole) for old, whole in written.get("pastes", {}).items()}
        return _PRIVATE.sub(lambda found: renamed.get(found[0], found[0]), written.get("text", ""))

    def _character(self, whole: str) -> str:
        known = next((character for character, text in self._whole.items() if text == whole), "")
        if known:
            return known
        character = next(self._free(whole))
        self._whole[character] = whole
        return character

    def _free(self, whole: str) -> Iterator[str]:
        return (chr(number) for number in range(_FIRST, _LAST) if chr(number) not in self._whole and chr(number) not in whole)


def cleaned(pasted: str) -> str:
    """What was pasted as text: lines end in line feeds, tabs stay, control characters and sequences go."""
    text = pasted.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    return readable(_CONTROLS.sub("", text))


def readable(typed: str) -> str:
    """Bytes that are no UTF-8 come as halves of characters, which nothing could be sent or kept with."""
    return _HALVES.sub("\ufffd", typed)
