"""Finds the files that the words of a command may mean."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from glob import iglob
from pathlib import Path
from typing import NamedTuple

from wolo.guard.protected_paths import is_protected_name
from wolo.guard.shell.words import Word, unquote
from wolo.workspace.root import resolve_path

_AROUND = r"[=:@,\s;|&<>()]+"
_PIECE = r"""[^\s;|&()<>,"'`{}$\\]+"""
_HOME = r"\$(?:HOME\b|\{HOME\})|(?<![^\s=:;|&<>(){}`,])~(?=[/\s;|&<>(){}`,]|\Z)"
"""Spellings of the home directory in a shell."""
_VARIABLE_BEFORE = r"\$(?:\w+|\{[^{}]*\})/?"
MAX_DIRECTORIES = 12
_BRACKET_CLASS = r"\[[:.=]"
MAX_WILD_PARTS = 2
"""With wildcards in more path parts than this, expanding a word could search the whole disk."""


class TooManyFiles(Exception):
    """The wildcards of a command match too much to look at."""


class NamedPaths(NamedTuple):
    paths: list[str]
    """Real paths."""
    patterns: list[str]
    """Absolute patterns that could match too many files to look at."""


def named_paths(words: Iterable[Word], cwd: str, home: str) -> NamedPaths:
    """Also finds paths after `--file=`, `HEAD:` or `@`, in quoted code and under wildcards."""
    named: list[str] = []
    patterns: list[str] = []
    for word in words:
        expanded = re.sub(_HOME, lambda _: home, word.text)  # quoted, it may still reach another shell
        for piece in (*_pieces(word.text), *(_pieces(expanded) if expanded != word.text else ())):
            if not piece:
                continue
            is_path = "/" in piece or piece[0] == "."
            # A name counts if the file exists, or if programs would act on it.
            if is_path or os.path.lexists(f"{cwd}/{piece}") or is_protected_name(f"/{piece}"):
                named.append(real_path(cwd, piece))
        if word.has_glob:
            try:
                named += map(resolve_path, expand(word, cwd))
            except TooManyFiles:
                patterns.append(os.path.normpath(word.text if word.text[0] == "/" else f"{cwd}/{word.text}"))
    return NamedPaths(named, patterns)


def may_name(pattern: str, path: str) -> bool:
    """Tells whether bash could expand an absolute pattern to `path` or something below it."""
    wild_parts, parts = pattern.split("/"), path.split("/")
    if len(wild_parts) < len(parts):
        return False
    for wild, part in zip(wild_parts, parts, strict=False):
        if part[:1] == "." and wild[:1] != ".":
            return False
        # A bracket expression may match anything.
        if not fnmatchcase(part, f"{wild.partition('[')[0]}*" if "[" in wild else wild):
            return False
    return True


def real_path(cwd: str, name: str) -> str:
    """Like `resolve_path`, but much faster where there is no link; `cwd` is real."""
    path = cwd
    for part in name.split("/"):
        path = f"{path}/{part}"
        if part in ("", ".", "..") or os.path.islink(path):  # noqa: PTH114  # text all along
            return resolve_path(os.path.join(cwd, name))  # noqa: PTH118  # the same
    return path


def paths_in_text(text: str, cwd: str, home: str) -> NamedPaths:
    """Like `named_paths`, for text that is not a plain command.

    The directory of each name is unknown, so files are looked up in every directory that is named.
    """
    expanded = re.sub(_HOME, lambda _: home, unquote(text))
    pieces = dict.fromkeys((*re.findall(_PIECE, expanded), *re.findall(_PIECE, re.sub(_VARIABLE_BEFORE, " ", expanded))))
    words = [Word(piece, any(letter in piece for letter in "*?[")) for piece in pieces]
    named, patterns = named_paths(words, cwd, home)
    relative = [name for word in words if not word.has_glob for name in _pieces(word.text) if name and name[0] not in "/-"]
    folders = {path for path in named if path != cwd and os.path.isdir(path)}  # noqa: PTH112  # text all along
    waiting = sorted(folders)
    for _ in range(MAX_DIRECTORIES):
        if not waiting:
            break
        there: list[str] = []
        for name in relative:
            path = f"{waiting[0]}/{name}"
            folder, _, last = path.rpartition("/")
            may_be_created = "." in last and os.path.isdir(folder)  # noqa: PTH112  # the same
            if may_be_created or os.path.lexists(path):
                there.append(real_path(waiting[0], name))
        entered = {path for path in there if os.path.isdir(path)} - folders  # noqa: PTH112  # the same
        named += there
        folders |= entered
        waiting = [*waiting[1:], *sorted(entered)]
    return NamedPaths(named, patterns)


def spelling_pattern(places: Iterable[Path], home: str) -> str:
    """A pattern that finds these directories in any command, however it spells the home directory; empty for none."""
    texts: list[str] = []
    for place in places:
        for path in {str(place), resolve_path(place)}:
            texts.append(re.escape(path))
            if path.startswith(f"{home}/"):
                texts.append(r'(?:~|"?\$HOME"?|"?\$\{HOME\}"?)' + re.escape(path[len(home) :]))
    return rf"(?:{'|'.join(texts)})(?![\w.-])" if texts else ""


def file_pattern(places: Sequence[str], folders: Sequence[str] = ()) -> str:
    """A pattern that finds plain full paths below these places, and these folders themselves; empty for none."""
    below = rf"(?:{'|'.join(map(re.escape, places))})(?:/[\w-][\w.-]*)+" if places else ""
    itself = rf"(?:{'|'.join(map(re.escape, folders))})" if folders else ""
    return rf"(?:{'|'.join(filter(None, (below, itself)))})(?:/(?![\w.*?\[{{$-]))?(?![\w./*?\[{{$-])" if places or folders else ""


def _pieces(text: str) -> list[str]:
    """`-f.env` yields `.env`; so do `--file=.env` and `HEAD:.env`."""
    pieces = [text] if re.search(_AROUND, text) is None else [text, *re.split(_AROUND, text)]
    return [piece[2:] if piece[0] == "-" else piece for piece in pieces if piece and piece[:2] != "--"]


def expand(word: Word, cwd: str) -> list[str]:
    """Full paths of the files that a word with wildcards matches. Raises TooManyFiles."""
    wild_parts = sum(any(each in part for each in "*?[") for part in word.text.split("/"))
    if wild_parts > MAX_WILD_PARTS or re.search(_BRACKET_CLASS, word.text):
        raise TooManyFiles
    names = iglob(word.text.replace("[^", "[!"), root_dir=cwd)  # noqa: PTH207  # leaves out dot files, as bash does
    return [name if name.startswith("/") else f"{cwd}/{name}" for name in names]
