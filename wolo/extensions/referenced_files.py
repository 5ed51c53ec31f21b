"""Finds files that a command line names, so that what the user approved can be protected.

It is undecidable what a command line runs, so this errs on the side of too many files: quoting, variables, wildcards and `cd`
hide no file that is named.
"""

# ruff: noqa: PTH207

from __future__ import annotations

import hashlib
import re
import shlex
import stat
from collections.abc import Iterable, Iterator, Sequence
from glob import glob, has_magic
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from wolo.guard.shell.words import RUNNERS, SHELLS, WRAPPERS, name_of, runs_anything
from wolo.operating_system import os

MOST_WORDS = 200
LONGEST_WORD_BYTES = 1024
MOST_FOLDERS = 12
MOST_OF_A_PATTERN = 100
_MOST_LINKS = 40
MOST_BYTES = 4 << 20
"""Per file whose content counts; larger files count by size and time."""
_EXPANSION = re.compile(r"\$\{[^{}]*\}|\$\([^()]*\)|`[^`]*`|\$\w+|~[+-](?=/)")
"""An expansion in a name stands for some directory, usually the project's."""
_SIGNS = re.compile(r"[\s\"'`;|&()<>={},#]+")
_OF_FOLDERS = ("__main__.py", "index.js")
"""Files that an interpreter runs when given a folder."""
_ELSEWHERE = re.compile(r"@|[\w+.-]+:")
"""A package or URL, unless such a file exists."""
_OF_PROJECTS = frozenset(("CLAUDE_PROJECT_DIR", "WOLO_PROJECT_DIR", "GEMINI_PROJECT_DIR"))
_BEFORE_COMMANDS = frozenset(("", "if", "then", "else", "elif", "do", "while", "until", "!", "{"))
_MODULE = re.compile(r"(?:^|\s)-m\s*([\w.]+)")
_OF_SCRIPTS = frozenset((".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".lua", ".ps1"))


class NamedFile(NamedTuple):
    path: Path
    """Absolute and as written: links are not followed."""
    is_run: bool
    """Named where a command may be, or after something that runs its argument."""
    is_path: bool
    """Certainly a path; other words may match a file name by chance."""


def files_named(command: str, folder: Path) -> list[NamedFile]:
    """All possible files, existing or not, if the command runs in this folder."""
    # Words that may be names, and whether they may be run
    unique: dict[str, bool] = {}
    for text in (command, _EXPANSION.sub(".", command)):
        for word, before_word in _pairs(text):
            if "\0" not in word and len(os.fsencode(word)) <= LONGEST_WORD_BYTES:
                unique[word] = unique.get(word, False) or _begins_command(before_word) or runs_anything((before_word,))
    words = dict(islice(unique.items(), MOST_WORDS))
    folders = [folder]
    for word in words:
        if len(folders) < MOST_FOLDERS and (below := _join(folder, word)) not in folders and os.path.isdir(below):
            folders.append(below)
    named_files: dict[Path, NamedFile] = {}
    for word, is_run in words.items():
        is_path = Path(word).suffix in _OF_SCRIPTS or (is_run and "/" in word and not _ELSEWHERE.match(word))
        for each in folders:
            if each == folder or is_path or os.path.isfile(_join(each, word)):
                for path in _expand(_join(each, word)):
                    before = named_files.get(path, NamedFile(path, False, False))
                    named_files[path] = NamedFile(path, before.is_run or is_run, before.is_path or is_path)
    modules = [_join(each, name) for each in folders for name in (*_OF_FOLDERS, *_modules(command))]
    return [*named_files.values(), *(NamedFile(path, True, True) for path in modules if os.path.isfile(path))]


def runs_relative_program(command: str, cwd: Path, named_in: Path) -> bool:
    """Tells whether a command line may run a program or script by a relative name.

    `cwd` is where it would run, `named_in` the folder of the file that contains it. Errs towards True for files that only look
    like scripts.
    """
    pairs = [pair for pair in _pairs(command) if len(os.fsencode(pair[0])) <= LONGEST_WORD_BYTES and "\0" not in pair[0]]
    starts = [each / word for word, _ in (("", ""), *pairs) if _is_relative(word) for each in (named_in, cwd)]
    folders = [each for each in dict.fromkeys(starts) if os.path.isdir(each)][: 2 * MOST_FOLDERS]
    words = [(word, before) for word, before in pairs if _is_relative(word)]
    interprets = any(_is_interpreter(word) for word, _ in pairs)
    if any(_runs(word, before, folders) or _could_run(word, cwd, named_in, any_name=interprets) for word, before in words):
        return True
    return any(os.path.isfile(each / module) for each in folders for module in _modules(command))


def _runs(word: str, before: str, folders: Sequence[Path]) -> bool:
    """Tells whether a word is in the position of a program, a script, or a folder of one."""
    if _ELSEWHERE.match(word):
        return False
    is_interpreted = _is_interpreter(before) and name_of(before) not in SHELLS
    if is_interpreted and any(os.path.isfile(each / word / name) for each in folders for name in _OF_FOLDERS):
        return True
    if "/" in word and (_begins_command(before) or runs_anything((before,))):
        return is_interpreted or not any(os.path.isdir(each / word) for each in folders)
    if _begins_command(before) or not runs_anything((before,)):
        return False
    return Path(word).suffix in _OF_SCRIPTS or any(os.path.isfile(each / word) for each in folders)


def _is_interpreter(word: str) -> bool:
    name = name_of(word)
    return name in SHELLS or (name not in WRAPPERS | RUNNERS and runs_anything((word,)))


def _could_run(word: str, cwd: Path, named_in: Path, *, any_name: bool) -> bool:
    """Tells whether a word anywhere in the line names a file that could be run."""
    if not any_name and "/" not in word and Path(word).suffix not in _OF_SCRIPTS:
        return False
    there = (path for path in _expand(cwd / word) if os.path.isfile(path))
    return os.path.isfile(named_in / word) or any(_may_run(NamedFile(path, False, False), path) for path in there)


def _is_relative(word: str) -> bool:
    """An unknown variable counts as relative."""
    if word.startswith("$"):
        name = re.match(r"\$\{?(\w+)", word)
        return "/" in word and not (name and (name[1] in _OF_PROJECTS or os.environ.get(name[1], "").startswith("/")))
    return not word.startswith(("/", "~", "`"))


def find_programs(commands: Iterable[str], folder: Path, roots: Sequence[Path]) -> list[Path]:
    """Programs, or files that could become programs, below `roots`, with the links to them."""
    programs: dict[Path, None] = {}
    for command in commands:
        for named in files_named(command, folder):
            *links, real = resolve_links(named.path)
            if _may_run(named, real):
                programs |= dict.fromkeys(each for each in (*links, real) if any(each.is_relative_to(root) for root in roots))
    return list(programs)


def add_contents(seen: hashlib._Hash, paths: Iterable[Path]) -> None:
    """Adds names and contents of files to a hash, which changes as soon as one of them does."""
    for path in sorted(paths):
        seen.update(f"\0{path}\0".encode("utf-8", "surrogateescape"))
        seen.update(_content(path))


def _content(path: Path) -> bytes:
    """Also describes a missing or special file, because a file may take its name later."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"none"
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return b"no file"
    with os.fdopen(handle, "rb") as file:
        if status.st_size > MOST_BYTES:
            return f"{status.st_size} {status.st_mtime_ns}".encode()
        return hashlib.file_digest(file, "sha256").digest()


def resolve_links(path: Path) -> list[Path]:
    """The links on the way to `path`, each by its real location, then the target."""
    links: list[Path] = []
    parts, here = list(reversed(path.parts)), Path("/")
    while parts:
        part = parts.pop()
        here = here.parent if part == ".." else here / part
        if len(links) < _MOST_LINKS and os.path.islink(here):
            links.append(here)
            parts += reversed(Path(os.readlink(here)).parts)
            here = here.parent
    return [*links, here]


def _begins_command(before: str) -> bool:
    return before in _BEFORE_COMMANDS or set(before) <= set(";|&()") or re.match(r"\w+=", before) is not None


def _modules(command: str) -> list[str]:
    files = [module.replace(".", "/") for module in _MODULE.findall(command)]
    return [name for file in files for name in (f"{file}.py", f"{file}/__main__.py")]


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Pairs each word with the previous one, ignoring options: split like a shell, and at every punctuation."""
    for words in (_as_a_shell(text), _SIGNS.split(re.sub(r"[\"'\\]", "", text)), _SIGNS.split(text)):
        plain = [word for word in words if word and not word.startswith("-")]
        yield from zip(plain, ["", *plain], strict=False)


def _as_a_shell(text: str) -> list[str]:
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        return list(lexer)
    except ValueError:
        return []


def _join(folder: Path, word: str) -> Path:
    return folder / os.path.expanduser(word)


def _expand(path: Path) -> list[Path]:
    if not has_magic(str(path)):
        return [path]
    return [path, *map(Path, islice(sorted(glob(str(path))), MOST_OF_A_PATTERN))]


def _may_run(named: NamedFile, real: Path) -> bool:
    try:
        if not os.path.lexists(real):
            return named.is_path
        if not os.path.isfile(real):
            return False
        if named.is_run or real.suffix in _OF_SCRIPTS or os.access(real, os.X_OK):
            return True
        with real.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
