"""Splits the arguments of a slash command into words; quotes hold blanks together, as after an `@`."""

from __future__ import annotations

import re

from wolo.errors import UsageError

_WORD = re.compile(r'@?"((?:[^"\\]|\\.)*)"(?!\S)|(\S+)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_LAST = re.compile(r'(?:(?<=\s)|^)(?:@?"((?:[^"\\]|\\.)*)|(\S*))$', re.DOTALL)
_NEEDS_QUOTES = re.compile(r'[\s"]|^@')


def words(rest: str) -> list[str]:
    """`a "b c" @"d e" @f` are four. Raises UsageError for an unclosed quote."""
    values: list[str] = []
    for word in _WORD.finditer(rest):
        if (plain := word[2]) is None:
            values.append(_ESCAPED.sub(r"\1", word[1]))
        elif plain.startswith(('"', '@"')):
            raise UsageError("A quote is not closed.", hint='A name with blanks: "two words.txt"; a quote in it: \\".')
        else:
            values.append(plain.removeprefix("@") or plain)
    return values


def quote_argument(name: str) -> str:
    """Quotes a name so that `words` returns it."""
    if not _NEEDS_QUOTES.search(name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def last_word(rest: str) -> tuple[str, int]:
    """The word being typed, and its length in the line with quotes and escapes."""
    if (found := _LAST.search(rest)) is None:
        return "", 0
    typed = found[2] if found[1] is None else _ESCAPED.sub(r"\1", found[1])
    return typed.removeprefix("@"), len(found[0])
