"""Which files the words of a command may mean, as far as words can tell."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from glob import iglob
from pathlib import Path
from typing import NamedTuple

from wolo.guard.protected_paths import is_protected_name
from wolo.guard.shell.words import Word, unquoted
from wolo.workspace.root import led_to

_AROUND = re.compile(r"[=:@,\s;|&<>()]+")
_PIECE = re.compile(r"""[^\s;|&()<>,"'`{}$\\]+""")
_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})|(?<![^\s=:;|&<>(){}`,])~(?=[/\s;|&<>(){}`,]|\Z)")
"""The home directory as a shell reads it."""
_VARIABLE_BEFORE = re.compile(r"\$(?:\w+|\{[^{}]*\})/?")
MAX_FOLDERS = 12
_BRACKET_CLASS = re.compile(r"\[[:.=]")
MAX_WILD_PARTS = 2
"""A word with wildcards in more directories than this could make the guard itself search the disk."""


class TooManyFiles(Exception):
    """What the wildcards of a command stand for cannot be looked at."""


class NamedPaths(NamedTuple):
    """What words name."""

    paths: list[str]
    """Real."""
    patterns: list[str]
    """With wildcards that could name too many files to look at; absolute."""


def named_paths(words: Iterable[Word], cwd: str, home: str) -> NamedPaths:
    """Also those behind `--file=`, `HEAD:` or `@`, in quoted code and under wildcards."""
    named: list[str] = []
    patterns: list[str] = []
    for word in words:
        spelt_out = _HOME.sub(lambda _: home, word.text)  # in quotes it may be meant for another shell
        for piece in (*_pieces(word.text), *(_pieces(spelt_out) if spelt_out != word.text else ())):
            if piece and ("/" in piece or piece[0] == "." or _is_name(piece, cwd)):
                named.append(real_path(cwd, piece))
        if word.has_glob:
            try:
                named += map(led_to, expand(word, cwd))
            except TooManyFiles:
                patterns.append(os.path.normpath(word.text if word.text[0] == "/" else f"{cwd}/{word.text}"))
    return NamedPaths(named, patterns)


def _is_name(piece: str, cwd: str) -> bool:
    """Of a file that is there, or of one that programs would obey if it were."""
    return os.path.lexists(f"{cwd}/{piece}") or is_protected_name(f"/{piece}")


def may_name(pattern: str, path: str) -> bool:
    """Whether bash could put `path`, or something in it, in the place of an absolute pattern."""
    wild, parts = pattern.split("/"), path.split("/")
    return len(wild) >= len(parts) and all(map(_may_be_part, wild, parts))


def _may_be_part(wild: str, part: str) -> bool:
    if part[:1] == "." and wild[:1] != ".":
        return False
    return fnmatchcase(part, f"{wild.partition('[')[0]}*" if "[" in wild else wild)  # what bash makes of brackets is left open


def real_path(cwd: str, given: str) -> str:
    """What `os.path.realpath` says, in a fraction of the time where there is no link; `cwd` is real."""
    path = cwd
    for part in given.split("/"):
        path = f"{path}/{part}"
        if part in ("", ".", "..") or os.path.islink(path):  # noqa: PTH114  # text all along
            return led_to(os.path.join(cwd, given))  # noqa: PTH118  # the same
    return path


def named_in_text(text: str, cwd: str, home: str) -> NamedPaths:
    """The same of a text that is no plain command.

    Nobody can tell in which directory each name is looked up, so files are found in every directory that is named.
    """
    spelt_out = _HOME.sub(lambda _: home, unquoted(text))
    pieces = dict.fromkeys((*_PIECE.findall(spelt_out), *_PIECE.findall(_VARIABLE_BEFORE.sub(" ", spelt_out))))
    words = [Word(piece, any(letter in piece for letter in "*?[")) for piece in pieces]
    named, patterns = named_paths(words, cwd, home)
    relative = [name for word in words if not word.has_glob for name in _pieces(word.text) if name and name[0] not in "/-"]
    folders = {path for path in named if path != cwd and os.path.isdir(path)}  # noqa: PTH112  # text all along
    waiting = sorted(folders)
    for _ in range(MAX_FOLDERS):
        if not waiting:
            break
        there = [real_path(waiting[0], name) for name in relative if _may_be(f"{waiting[0]}/{name}")]
        entered = {path for path in there if os.path.isdir(path)} - folders  # noqa: PTH112  # the same
        named += there
        folders |= entered
        waiting = [*waiting[1:], *sorted(entered)]
    return NamedPaths(named, patterns)


def _may_be(path: str) -> bool:
    """A file that is there, or one that could be made there."""
    folder, _, name = path.rpartition("/")
    return os.path.lexists(path) or ("." in name and os.path.isdir(folder))  # noqa: PTH112  # text all along


def spelled(places: Iterable[Path], home: str) -> re.Pattern[str] | None:
    """Finds these directories in the text of any command, however it spells the home directory."""
    texts: list[str] = []
    for place in places:
        for path in {str(place), os.path.realpath(place)}:
            texts.append(re.escape(path))
            if path.startswith(f"{home}/"):
                texts.append(r'(?:~|"?\$HOME"?|"?\$\{HOME\}"?)' + re.escape(path[len(home) :]))
    return re.compile(rf"(?:{'|'.join(texts)})(?![\w.-])") if texts else None


def files_of(folders: Sequence[str]) -> re.Pattern[str] | None:
    """Finds files right inside these folders, each named in full."""
    return re.compile(rf"(?:{'|'.join(map(re.escape, folders))})/[\w-][\w.-]*(?![\w./*?\[{{$-])") if folders else None


def _pieces(text: str) -> list[str]:
    """`-f.env` names `.env`, `--file=.env` and `HEAD:.env` too."""
    pieces = [text] if _AROUND.search(text) is None else [text, *_AROUND.split(text)]
    return [piece[2:] if piece[0] == "-" else piece for piece in pieces if piece and piece[:2] != "--"]


def expand(word: Word, cwd: str) -> list[str]:
    """The files a word with wildcards stands for, in full. Raises TooManyFiles."""
    wild_parts = sum(any(each in part for each in "*?[") for part in word.text.split("/"))
    if wild_parts > MAX_WILD_PARTS or _BRACKET_CLASS.search(word.text):
        raise TooManyFiles
    names = iglob(word.text.replace("[^", "[!"), root_dir=cwd)  # noqa: PTH207  # leaves out dot files, as bash does
    return [name if name.startswith("/") else f"{cwd}/{name}" for name in names]
