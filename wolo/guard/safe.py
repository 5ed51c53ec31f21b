"""Commands that do no more than read what anyone may read in the workspace. They run unasked in every mode.

The list is short on purpose: no program on it can run another one, write a file or follow names that it finds in one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache

from wolo.guard import protected
from wolo.guard.boundaries import Boundaries
from wolo.guard.lines import Command
from wolo.guard.naming import real_path
from wolo.guard.shell import BUILTINS, Word

_ANY = r"--?[\w-]+"
_NUMBER = r"[+-]?\d*[bkKMGw]?"
_READ_FILES = {
    "ls": r"-[aABcCdfFghiklmnNopqQrRsStuUvxXZ1]+|--(?:all|almost-all|color|directory|human-readable|recursive|reverse|size)",
    "cat": r"-[AbeEnstTuv]+|--(?:number|number-nonblank|show-all|show-ends|show-nonprinting|show-tabs|squeeze-blank)",
    "head": rf"-\d+|-[nc]{_NUMBER}|-[qvz]+|--(?:bytes|lines|quiet|verbose)",
    "tail": rf"-\d+|-[nc]{_NUMBER}|-[qvz]+|--(?:bytes|lines|quiet|verbose)",
    "wc": r"-[clmwL]+|--(?:bytes|chars|lines|max-line-length|words)",
    "nl": r"-[bfh][atn]|-n(?:ln|rn|rz)|-[ilpsvw]\d*",
    "stat": r"-[ft]+|-c[\w%]*|--(?:format|printf|terse)",
    "cut": r"-[bcf][\d,-]*|-d.?|-[nsz]+|--(?:bytes|characters|complement|delimiter|fields|only-delimited)",
    "grep": r"-[abcEFGhHiIlLnoPqsTUvwxyzZ]*(?:[ABCm]\d*|e)?|-\d+"
    r"|--(?:after-context|before-context|color|context|count|extended-regexp|files-with-matches|files-without-match"
    r"|fixed-strings|ignore-case|invert-match|line-number|line-regexp|max-count|no-filename|no-messages|only-matching"
    r"|perl-regexp|quiet|regexp|text|with-filename|word-regexp)",
}
"""The options each may carry. What is missing reads names from a file (`wc --files0-from`) or goes through whole trees."""
_READ_NOTHING = {
    "pwd": "-[LP]+",
    "echo": _ANY,
    "true": _ANY,
    "false": _ANY,
    "whoami": _ANY,
    "uname": _ANY,
    "which": "-a",
    "basename": "-[asz]+",
    "dirname": "-z",
    "tr": "-[cCdst]+|--(?:complement|delete|squeeze-repeats)",
}
_OPTIONS: Mapping[str, str] = _READ_FILES | _READ_NOTHING
PROGRAMS = frozenset(_OPTIONS)
_COUNT = re.compile(r"[+-]?\d+")


class SafeList:
    def __init__(self, boundaries: Boundaries, search_path: str) -> None:
        """`search_path` is the PATH of commands."""
        self._boundaries = boundaries
        folders = search_path.split(os.pathsep)
        self._near = [folder for folder in folders if folder[:1] != "/" or boundaries.is_inside(os.path.realpath(folder))]

    def has(self, command: Command) -> bool:
        """Wherever the command may run."""
        program = command.words[0].text
        if program not in _OPTIONS or None in command.places:
            return False
        options = _options(program)
        return all(self._is_safe_in(place, command.words, options) for place in command.places if place is not None)

    def has_beside(self, command: Command) -> bool:
        """The same for a command of a line in which others do more: what its words name may be another file by then."""
        program = command.words[0].text
        names = [] if program in _READ_NOTHING else _file_words(command.words)
        return self.has(command) and all(_COUNT.fullmatch(name) for name in names)

    def _is_safe_in(self, place: str, words: tuple[Word, ...], options: re.Pattern[str]) -> bool:
        program = words[0].text
        if program not in BUILTINS and self._is_shadowed(program, place):
            return False
        if any(word.has_glob for word in words) or not all(map(options.fullmatch, _option_words(words))):
            return False
        if program in _READ_NOTHING:
            return True
        return self._is_open(place) and all(self._is_open(real_path(place, name)) for name in _file_words(words))

    def _is_open(self, path: str) -> bool:
        if not self._boundaries.is_inside(path) or self._boundaries.is_own(path):
            return False
        return not protected.is_secret(path) and not protected.is_obeyed_by_name(path)

    def _is_shadowed(self, program: str, place: str) -> bool:
        """A program of that name in the workspace would run instead: an active environment puts itself first."""
        return any(os.access(os.path.join(place, folder, program), os.X_OK) for folder in self._near)  # noqa: PTH118  # as above


@cache
def _options(program: str) -> re.Pattern[str]:
    return re.compile(_OPTIONS[program])


def _option_words(words: tuple[Word, ...]) -> Iterator[str]:
    for word in words[1:]:
        if word.text == "--":
            return
        if word.text[:1] == "-" and word.text != "-":
            yield word.text


def _file_words(words: tuple[Word, ...]) -> list[str]:
    """What may be opened. The first of grep is what it looks for, as no option on the list holds a pattern."""
    operands: list[str] = []
    is_over = False
    for word in words[1:]:
        if word.text == "--" and not is_over:
            is_over = True
        elif is_over or word.text[:1] != "-":
            operands.append(word.text)
    return operands[1:] if words[0].text == "grep" else operands
