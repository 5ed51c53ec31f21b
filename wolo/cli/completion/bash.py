"""A command line as bash has it at a Tab: cut into words, and a word written so that bash takes it for nothing else."""

from __future__ import annotations

from typing import NamedTuple

QUOTES = "'\""
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%")
"""What needs no backslash in front."""


class Typed(NamedTuple):
    words: tuple[str, ...]
    """Between the command's name and the word at the cursor, without their quotes."""
    current: str
    """What is written of the word at the cursor; the same."""
    quote: str = ""
    """The quote that is open there."""
    kept: int = 0
    """So much of `current` stays in the line: bash takes the rest out and puts in what it is offered."""


def read_line(line: str, breaks: str) -> Typed:
    """`breaks` are the characters at which bash cuts words anew for itself."""
    words: list[str] = []
    text, quote, kept, is_word = "", "", 0, False
    letters = iter(line)
    for letter in letters:
        if quote:
            if letter == quote:
                quote = ""
            elif letter == "\\" and quote == '"':
                text += _escaped_within(next(letters, ""))
            else:
                text += letter
            continue
        if letter.isspace():
            if is_word:
                words.append(text)
            text, kept, is_word = "", 0, False
            continue
        is_word = True
        if letter in QUOTES:
            quote, kept = letter, len(text)
        elif letter == "\\":
            text += next(letters, "")
        else:
            text += letter
            kept = len(text) if letter in breaks else kept
    while words and words[0].partition("=")[0].isidentifier() and "=" in words[0]:
        del words[0]  # `NAME=value wolo …`
    return Typed(tuple(words[1:]), text, quote, kept)


def written(word: str, typed: Typed) -> str | None:
    """What bash puts in for what it takes out; None where the word cannot be written there."""
    rest = word[typed.kept :]
    if not rest.isprintable():
        return None
    match typed.quote:
        case "'":
            return rest.replace("'", "'\\''")
        case '"':
            if "!" in rest:
                return None  # bash would look for it in the history
            return "".join(f"\\{letter}" if letter in '"$`\\' else letter for letter in rest)
        case _:
            return "".join(letter if letter in PLAIN or not letter.isascii() else f"\\{letter}" for letter in rest)


def _escaped_within(letter: str) -> str:
    """In double quotes a backslash stands for itself unless one of these follows."""
    return letter if letter in '"$`\\' else f"\\{letter}"
