"""Recognises commands that only read what anyone may read in the workspace. They run in every mode.

The list is short on purpose: no program on it can run another one, write a file, or follow names that it finds in a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import takewhile

from msgspec import Struct

from wolo.guard import protected_paths
from wolo.guard.boundaries import Boundaries
from wolo.guard.shell.named_paths import real_path
from wolo.guard.shell.parser import PlainCommand
from wolo.guard.shell.words import BUILTINS, Word
from wolo.workspace.root import resolve_path


class _Options(Struct, frozen=True):
    """Known options of one program, each with its arity; any other word starting with `-` makes the command unsafe."""

    flags: str = ""
    valued: str = ""
    """Letters whose value is the rest of the word or, if that is empty, the next word."""
    long_flags: str = ""
    long_valued: str = ""
    """The next word is always the value, even `--`."""
    takes_count: bool = False
    """`-5` is a number of lines."""


class _Option(Struct, frozen=True):
    """A parsed option word."""

    valued: str = ""
    """The option that takes a value; empty if none does."""
    takes_next: bool = False
    """The value is the next word."""


class _ReadOperands(Struct, frozen=True):
    """A command's words as its program reads them."""

    operands: tuple[str, ...]
    """Files, in order; for `grep` without `-e` the first is the pattern."""
    has_pattern: bool
    """`grep` got its pattern from an option."""


_READ_FILES: Mapping[str, _Options] = {
    "ls": _Options("aABcCdfFghiklmnNopqQrsStuUvxXZ1", "", "all almost-all color directory human-readable reverse size"),
    "cat": _Options("AbeEnstTuv", "", "number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank"),
    "head": _Options("qvz", "nc", "quiet verbose", "bytes lines", takes_count=True),
    "tail": _Options("qvz", "nc", "quiet verbose", "bytes lines", takes_count=True),
    "wc": _Options("clmwL", "", "bytes chars lines max-line-length words"),
    "nl": _Options("p", "bfhilnsvw"),
    "stat": _Options("ft", "c", "terse", "format printf"),
    "cut": _Options("nsz", "bcfd", "complement only-delimited", "bytes characters delimiter fields"),
    "grep": _Options(
        "abcEFGHhiIlLnoPqsTUvwxyzZ",
        "ABCme",
        "color count extended-regexp files-with-matches files-without-match fixed-strings ignore-case invert-match line-number"
        " line-regexp no-filename no-messages only-matching perl-regexp quiet text with-filename word-regexp",
        "after-context before-context context max-count regexp",
        takes_count=True,
    ),
}
"""Accepted options. Missing are those that read names from a file (`wc --files0-from`) or walk whole trees."""
_ANY = r"--?[\w-]+"
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
PROGRAMS = frozenset({*_READ_FILES, *_READ_NOTHING})


class SafeList:
    def __init__(self, boundaries: Boundaries, search_path: str) -> None:
        """`search_path` is the PATH of commands."""
        self._boundaries = boundaries
        folders = search_path.split(os.pathsep)
        self._workspace_folders = [
            folder for folder in folders if folder[:1] != "/" or boundaries.is_inside(resolve_path(folder))
        ]

    def has(self, command: PlainCommand) -> bool:
        """Tells whether the command is safe in every directory it may run in."""
        if command.words[0].text not in PROGRAMS:
            return False
        words, program = command.words, command.words[0].text
        for directory in command.directories:
            if directory is None:
                return False
            if program not in BUILTINS:
                # A program of that name in the workspace would run instead, as in an active virtual environment.
                paths = (os.path.join(directory, folder, program) for folder in self._workspace_folders)  # noqa: PTH118  # text all along
                if any(os.access(path, os.X_OK) for path in paths):
                    return False
            if any(word.has_glob for word in words):
                return False
            if program in _READ_NOTHING:
                texts = takewhile(lambda text: text != "--", (word.text for word in words[1:]))
                options = [text for text in texts if text[:1] == "-" and text != "-"]
                if not all(re.fullmatch(_READ_NOTHING[program], option) for option in options):
                    return False
                continue
            if _read(words) is None or not self._is_open(directory):
                return False
            if not all(self._is_open(real_path(directory, name)) for name in _files_named(words)):
                return False
            # Programs differ in where options end: some take every word after the first operand as a file. So it must not matter
            # if any other word is read as a file.
            paths = (real_path(directory, word.text) for word in words[1:])
            if not all(self._is_open(path) or os.path.isdir(path) or not os.path.exists(path) for path in paths):  # noqa: PTH110, PTH112  # as above
                return False
        return True

    def has_with_others(self, command: PlainCommand) -> bool:
        """Like `has`, for a line whose other commands may change which file a name means."""
        return self.has(command) and not _files_named(command.words)

    def _is_open(self, path: str) -> bool:
        if not self._boundaries.is_inside(path) or self._boundaries.is_own(path):
            return False
        return not protected_paths.is_secret(path) and (
            protected_paths.is_readable(path) or not protected_paths.is_protected_name(path)
        )


def _files_named(words: tuple[Word, ...]) -> tuple[str, ...]:
    reading = _read(words) if words[0].text in _READ_FILES else None
    if reading is None:
        return ()
    return reading.operands[1:] if words[0].text == "grep" and not reading.has_pattern else reading.operands


def _read(words: tuple[Word, ...]) -> _ReadOperands | None:
    """Reads words like getopt, with options after operands; None for an unknown option."""
    options = _READ_FILES[words[0].text]
    waiting = [word.text for word in reversed(words[1:])]
    operands: list[str] = []
    has_pattern = False
    while waiting:
        if (word := waiting.pop()) == "--":
            operands += reversed(waiting)
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
            continue
        option = _read_option(word, options)
        if option is None or (option.takes_next and not waiting):
            return None
        has_pattern = has_pattern or option.valued in ("e", "regexp")
        if option.takes_next:
            waiting.pop()
    return _ReadOperands(tuple(operands), has_pattern)


def _read_option(word: str, options: _Options) -> _Option | None:
    """None for an unknown option. A long option must be written in full and without `=`."""
    if word[:2] == "--":
        if (name := word[2:]) in options.long_flags.split():
            return _Option()
        return _Option(name, takes_next=True) if name in options.long_valued.split() else None
    if options.takes_count and word[1:].isdecimal() and word.isascii():
        return _Option()
    for at, letter in enumerate(word[1:], start=2):
        if letter in options.valued:
            return _Option(letter, takes_next=at == len(word))
        if letter not in options.flags:
            return None
    return _Option()
