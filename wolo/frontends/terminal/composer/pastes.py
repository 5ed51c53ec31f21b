"""Pasted text: folds long pastes into one character, shows them by a label, and turns dropped images into mentions.

A folded paste moves, is deleted and comes back as one character, whatever key does it. The characters are private ones of
Unicode that no keyboard has. It is shown as `[Pasted #1: 5,000 lines]` and sent whole.
"""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from pathlib import Path
from typing import TypedDict
from urllib.parse import unquote

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from wcwidth import iter_graphemes

from wolo.frontends.terminal.composer.completion import mention
from wolo.frontends.terminal.io.graphemes import stand_in
from wolo.messages.media import image_type
from wolo.messages.terminal_text import escape_hidden

MOST_CHARS = 1_000
MOST_LINES = 15
"""Longer pastes are folded."""
MOST_KEPT_CHARS = 1_000_000
"""Longer texts are not saved."""
_FIRST, _LAST = 0xF0000, 0xFFFFD
_PRIVATE = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Z]")
_HALVES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class SavedText(TypedDict, total=False):
    """A text as it is saved."""

    text: str
    pastes: dict[str, str]


class Pastes:
    def __init__(self) -> None:
        self._whole: dict[str, str] = {}
        """The pasted text by its character."""
        self._numbers: dict[str, int] = {}
        """Number by character, in the order in which labels were shown."""

    def fold(self, text: str) -> str:
        """Returns a short text as it is, a long one as one character."""
        lines = text.count("\n") + 1
        if len(text) <= MOST_CHARS and lines <= MOST_LINES and not _PRIVATE.search(text):
            return text
        return self._character(text)

    def unfold(self, text: str) -> str:
        return _PRIVATE.sub(lambda found: self._whole.get(found[0], found[0]), text)

    def with_labels(self, text: str) -> str:
        """The text with labels for folded pastes."""
        return _PRIVATE.sub(lambda found: self.label(found[0]) or found[0], text)

    def without_pastes(self, text: str) -> str:
        return _PRIVATE.sub(lambda found: " " if found[0] in self._whole else found[0], text)

    def fold_again(self, text: str) -> str:
        """Folds an edited text: known pastes again, and the rest if it is long."""
        if _PRIVATE.search(text):
            return self._character(text)
        for character, whole in self._whole.items():
            text = text.replace(whole, character, 1)
        return text if _PRIVATE.search(text) and len(text) <= MOST_CHARS else self.fold(self.unfold(text))

    def label(self, character: str) -> str:
        """Empty for an ordinary character."""
        if (whole := self._whole.get(character)) is None:
            return ""
        lines = whole.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(whole):,} characters"
        number = self._numbers.setdefault(character, len(self._numbers) + 1)
        return f"[Pasted #{number}: {size}]"

    def pack(self, text: str) -> SavedText:
        """The text and its pastes, for another process."""
        folded = {character: self._whole[character] for character in _PRIVATE.findall(text) if character in self._whole}
        return {"text": text, "pastes": folded} if folded else {"text": text}

    def unpack(self, written: SavedText) -> str:
        """Adds the pastes of a saved text to those of this process."""
        renamed = {old: self._character(whole) for old, whole in written.get("pastes", {}).items()}
        return _PRIVATE.sub(lambda found: renamed.get(found[0], found[0]), written.get("text", ""))

    def _character(self, whole: str) -> str:
        known = next((character for character, text in self._whole.items() if text == whole), "")
        if known:
            return known
        character = next(
            chr(number) for number in range(_FIRST, _LAST) if chr(number) not in self._whole and chr(number) not in whole
        )
        self._whole[character] = whole
        return character


def clean_paste(pasted: str) -> str:
    """Pasted text with line feeds as line ends, without control characters and sequences; tabs stay."""
    text = pasted.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    return readable(_CONTROLS.sub("", text))


def readable(typed: str) -> str:
    """Replaces lone surrogates, which come from bytes that are no UTF-8 and cannot be sent or saved."""
    return _HALVES.sub("\ufffd", typed)


TAB_STOP = 4


class Chips(Processor):
    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if all(fragment[1].isascii() and "\t" not in fragment[1] for fragment in fragments):
            return Transformation(fragments)
        shown: StyleAndTextTuples = []
        begins = [0]
        """Column of each character; within a grapheme, the column of its first one."""
        for style, text, *_ in fragments:
            for grapheme in iter_graphemes(text):
                label = self._pastes.label(grapheme)
                piece = (
                    label or stand_in(escape_hidden(grapheme)) if grapheme != "\t" else " " * (TAB_STOP - begins[-1] % TAB_STOP)
                )
                shown.append((f"{style} class:chip" if label else style, piece))
                begin, length = begins[-1], len(grapheme)
                if piece == grapheme:
                    begins += range(begin + 1, begin + length + 1)
                else:
                    begins += [*([begin] * (length - 1)), begin + len(piece)]
        return Transformation(
            shown,
            source_to_display=lambda at: begins[min(at, len(begins) - 1)] + max(0, at - len(begins) + 1),
            display_to_source=lambda at: min(max(bisect_right(begins, at) - 1, 0), len(begins) - 1),
        )


LONGEST_CHARS = 8_000
HEAD_BYTES = 16
URL = "file://"


def as_mentions(pasted: str, cwd: Path) -> str:
    """`@path` for each image, if the paste consists of image paths; else empty."""
    if not (text := pasted.strip()) or len(text) > LONGEST_CHARS:
        return ""
    readings = [[text], text.split("\n")]  # one path with spaces, a path per line, or shell words
    try:
        readings.append(shlex.split(text))
    except ValueError:
        readings.append([])
    for words in readings:
        paths = [_path(word, cwd) for word in words]
        if paths and all(map(_is_image, paths)):
            names = (path.relative_to(cwd) if path.is_relative_to(cwd) else path for path in paths)
            return " ".join(mention(str(name)) for name in names) + " "
    return ""


def _path(word: str, cwd: Path) -> Path:
    word = word.strip()
    if word.lower().startswith(URL):
        _host, slash, path_in_url = word[len(URL) :].partition("/")
        return Path(slash + unquote(path_in_url))
    path = Path(word)
    try:
        return cwd / path.expanduser()
    except RuntimeError:
        return cwd / path


def _is_image(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return bool(image_type(file.read(HEAD_BYTES)))
    except (OSError, ValueError):
        return False
