"""Shell commands as the guard reads them: a plain command is a list of words, anything else is text that no allow rule matches.

Plain means that bash would run exactly these words: no operator, expansion, redirection, assignment or keyword. What is not
provably plain is not plain; reading shell text is a comfort, never a wall.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 16 * 1024
MAX_COMMANDS = 64

_PIECE = re.compile(
    r"""'(?P<single>[^'$`]*)'"""  # `test -v 'a[$(cmd)]'` runs cmd: code in single quotes is not always inert
    r"""|"(?P<double>[^"$`\\]*)\""""
    r"""|(?P<bare>[^\s'"$`\\{}~!<>&;|()]+)"""
)
_BLANKS = re.compile(r"[ \t]+")
_GLOB = re.compile(r"[*?\[]")
_OPERATORS = re.compile(r"[;|&\n]+")
_BLANK_LOOKING = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Invisible, yet `str.isprintable` lets them pass."""

_KEYWORDS = "if then elif else fi for in while until do done case esac select function time coproc [[ ]] { } !"
KEYWORDS = frozenset(_KEYWORDS.split())


class Word(NamedTuple):
    text: str
    """Quotes removed."""
    has_glob: bool = False
    """Holds an unquoted `*`, `?` or `[`: bash may put file names in its place."""


class Command(NamedTuple):
    text: str
    cwd: Path
    words: tuple[Word, ...] | None
    """None: not plain."""
    is_readable: bool
    """False: so long, or with such characters, that not even a person could judge it."""


def read_command(text: str, cwd: Path) -> Command:
    is_readable = _is_readable(text)
    return Command(text, cwd, plain_words(text) if is_readable else None, is_readable)


def plain_words(text: str) -> tuple[Word, ...] | None:
    """The words of a plain command; None when `text` is anything else."""
    words = split_words(text)
    return words if words and _is_program(words[0]) else None


def split_words(text: str) -> tuple[Word, ...] | None:
    """The same for words of which the first need not be a program."""
    words: list[Word] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        end, word = _word(text, position)
        if word is None:
            return None
        words.append(word)
        position = _skip_blanks(text, end)
    return tuple(words)


def name_of(word: str) -> str:
    """The program a word would run: the last part of a path. Case does not count: some volumes ignore it."""
    return word.rpartition("/")[2].casefold()


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position


def _word(text: str, start: int) -> tuple[int, Word | None]:
    if text[start] == "#":
        return start, None
    position = start
    letters: list[str] = []
    has_glob = False
    while position < len(text) and text[position] not in " \t":
        piece = _PIECE.match(text, position)
        if piece is None:
            return position, None
        letters.append(piece[piece.lastgroup or 0])
        has_glob = has_glob or (piece.lastgroup == "bare" and _GLOB.search(piece[0]) is not None)
        position = piece.end()
    return position, Word("".join(letters), has_glob)


def _is_program(word: Word) -> bool:
    return bool(word.text) and not word.has_glob and "=" not in word.text and word.text not in KEYWORDS


def _is_readable(text: str) -> bool:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES or "\\\n" in text:
        return False
    if not text.replace("\n", "").replace("\t", "").isprintable() or _BLANK_LOOKING.search(text):
        return False
    return len(text) <= MAX_COMMANDS or len(_OPERATORS.findall(text)) < MAX_COMMANDS
