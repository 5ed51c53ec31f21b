"""Parses a command line into plain commands joined by `&& || ; |` and line breaks.

Two parsers must agree: the grammar of tree-sitter finds where commands begin and end, `words.py` splits each into words. A line
in which either finds anything else (an expansion, a redirection, an assignment, a keyword) is not plain, and no allow rule
matches it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from wolo.guard.shell.words import BUILTINS, TAKES_LITERAL_WORDS, Word, is_reviewable, plain_words
from wolo.workspace.root import resolve_path

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMANDS = 64
MAX_TREE_DEPTH = 250
"""Levels of the syntax tree; each `$(` adds three."""
MAX_BYTES = 256 * 1024
_OPERATORS = r"[;|&\n]+"
_PART_NODES = frozenset({"command", "list", "pipeline", "program"})
_WORD_NODES = frozenset({"command_name", "word", "string", "string_content", "raw_string", "number", "concatenation", '"'})
_SINGLE = (
    r"\(program \(command name: \(command_name \(word\)\)"
    r"((?: argument: \((?:word|number|raw_string|string(?: \(string_content\))?)\))*)\)\)"
)
_CHANGES_NOTHING = TAKES_LITERAL_WORDS | {"[", "kill", "printf", "test", "type"}
"""Builtins that do not change the meaning of later commands."""
_STOPS_EARLY = r"set(?: -[eux]+| -[eux]*o pipefail)+"
"""`set` with options that only end the line sooner."""

_MOVES = frozenset({"cd", "pushd", "popd"})

Directory = str | None
"""None: unknown."""
Directories = tuple[Directory, ...]


class TooComplex(Exception):
    """The command line is too long or too deeply nested to be checked; the message is for the model."""


class PlainCommand(Struct, frozen=True):
    words: tuple[Word, ...]
    directories: Directories
    """Real paths it may run in: after `cd x; ls`, `x` or, if that is missing, the start directory."""
    moves_to: Directories = ()
    """For `cd`: where the shell may be afterwards."""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


class ParsedLine(Struct, frozen=True):
    text: str
    cwd: Path
    commands: tuple[PlainCommand, ...] | None
    """None: not plain."""
    is_reviewable: bool
    """False: too long, or with characters that even a human could not judge."""


class _Joined(Struct, frozen=True):
    """Commands as the grammar joins them."""

    operator: Literal["command", "|", "&&", "||", ";"]
    parts: tuple[_Joined, ...] = ()
    words: tuple[Word, ...] = ()


def read_line(text: str, cwd: Path, home: str = "/") -> ParsedLine:
    """`home` is the target of `cd` alone. Raises TooComplex."""
    joined, is_reviewable = _read(text)
    if joined is None:
        return ParsedLine(text, cwd, None, is_reviewable)
    walk = _Walk(home)
    walk.follow(joined, (str(cwd),))
    return ParsedLine(text, cwd, tuple(walk.commands), is_reviewable)


@cache
def parser() -> Parser:
    """Loads the grammar with the first command, which takes 20 ms."""
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(text: str) -> Node:
    """The root of the syntax tree. Raises TooComplex."""
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        raise TooComplex(f"The command has {len(source):,} bytes, too many to be checked: put it in a script file.")
    root = parser().parse(source).root_node
    if len(source) > MAX_TREE_DEPTH // 4:
        is_deep = _is_deep(root)
        depth = 0
        for bracket in re.findall(r"[()]", text) if root.has_error else ():  # the tree of a text with errors is flat
            depth = depth + 1 if bracket == "(" else max(0, depth - 1)
            is_deep = is_deep or depth > MAX_TREE_DEPTH // 3
        if is_deep:
            raise TooComplex("The command is nested too deeply to be checked: write it as several plain commands.")
    return root


def _is_deep(root: Node) -> bool:
    cursor = root.walk()
    while True:
        if cursor.depth > MAX_TREE_DEPTH:
            return True
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[_Joined | None, bool]:
    is_short = is_reviewable(text) and (len(text) <= MAX_COMMANDS or len(re.findall(_OPERATORS, text)) < MAX_COMMANDS)
    if not is_short:
        return None, False
    root = parse(text)
    single = re.fullmatch(_SINGLE, str(root))
    words = plain_words(text) if single else None
    if single and words and len(words) == single[1].count(":") + 1:
        return _Joined(";", (_Joined("command", words=words),)), True
    if (joined := _join(root, text.encode())) is None or not joined.parts:
        return None, True
    commands = list(_words_of(joined))
    if len(commands) > 1 and any(map(_changes_the_shell, commands)):
        return None, True
    return joined, True


def _join(node: Node, source: bytes) -> _Joined | None:
    """None for anything but plain commands and their operators."""
    if node.type == "command":
        if not _holds_words_only(node):
            return None
        words = plain_words(source[node.start_byte : node.end_byte].decode())
        return _Joined("command", words=words) if words and len(words) == node.child_count else None
    if node.type not in _PART_NODES or node.has_error:
        return None
    parts: list[_Joined] = []
    operators: set[str] = set()
    end = node.start_byte
    is_due = True
    for child in node.children:
        gap = source[end : child.start_byte]
        if gap.strip(b" \t\n"):
            return None
        is_due = is_due or b"\n" in gap
        end = child.end_byte
        if not child.is_named:
            operators.add(child.type)
            is_due = True
            continue
        part = _join(child, source) if is_due else None
        if part is None:
            return None
        parts.append(part)
        is_due = False
    if source[end : node.end_byte].strip(b" \t\n"):
        return None
    around = (source[: node.start_byte] + source[node.end_byte :]).strip(b" \t\n")
    match node.type, sorted(operators):
        case "program", [] | [";"] | ["\n"] | ["\n", ";"] if not around:
            return _Joined(";", tuple(parts))
        case "pipeline", ["|"]:
            return _Joined("|", tuple(parts))
        case "list", ["&&" | "||" as operator] if len(parts) == 2:
            return _Joined(operator, tuple(parts))
    return None


def _holds_words_only(node: Node) -> bool:
    return not node.is_missing and all(child.type in _WORD_NODES and _holds_words_only(child) for child in node.children)


def _words_of(joined: _Joined) -> Iterator[tuple[Word, ...]]:
    if joined.words:
        yield joined.words
    for part in joined.parts:
        yield from _words_of(part)


def _changes_the_shell(words: tuple[Word, ...]) -> bool:
    """Recognises the first command of lines such as `printf -v PATH evil; ls`."""
    if (program := words[0].text) == "set":
        return not re.fullmatch(_STOPS_EARLY, " ".join(word.text for word in words))
    if program == "printf":
        return any(word.has_glob or word.text.startswith("-") for word in words[1:2])
    return program in BUILTINS and program not in _CHANGES_NOTHING


class _Walk:
    """Follows a line as bash would, and records where each command may run."""

    def __init__(self, home: str) -> None:
        self.commands: list[PlainCommand] = []
        self._home = home
        self._real: dict[Directory, Directory] = {None: None}

    def follow(self, joined: _Joined, start: Directories) -> tuple[Directories, Directories]:
        """Returns the directories after success and after failure, under the names that bash remembers."""
        if joined.operator == "command":
            goals = start
            if joined.words[0].text in _MOVES:
                goals = tuple(dict.fromkeys(_goal(joined.words, directory, self._home) for directory in start))
            self.commands.append(PlainCommand(joined.words, self._as_real(start), self._as_real(goals) if goals != start else ()))
            return goals, start
        if joined.operator == "|":  # each part runs in a subshell
            for part in joined.parts:
                self.follow(part, start)
            return start, start
        succeeded, failed = self.follow(joined.parts[0], start)
        for part in joined.parts[1:]:
            if joined.operator == "&&":
                succeeded, failed_now = self.follow(part, succeeded)
                failed = _either(failed, failed_now)
            elif joined.operator == "||":
                succeeded_now, failed = self.follow(part, failed)
                succeeded = _either(succeeded, succeeded_now)
            else:
                succeeded, failed = self.follow(part, _either(succeeded, failed))
        return succeeded, failed

    def _as_real(self, directories: Directories) -> Directories:
        for directory in directories:
            if directory not in self._real and directory is not None:
                self._real[directory] = resolve_path(directory)
        return tuple(self._real[directory] for directory in directories)


def _either(one: Directories, other: Directories) -> Directories:
    return tuple(dict.fromkeys((*one, *other)))


def _goal(words: tuple[Word, ...], directory: Directory, home: str) -> Directory:
    if words[0].text != "cd":
        return None
    operands = [word for word in words[1:] if not re.fullmatch(r"-[LPe@]+|--", word.text)]
    if directory is None or len(operands) > 1 or any(word.has_glob or word.text.startswith("-") for word in operands):
        return None
    goal = operands[0].text if operands else home
    logical = os.path.normpath(f"{directory}/{goal}" if goal[:1] != "/" else goal)
    physical = f"{resolve_path(directory)}/{goal}" if goal[:1] != "/" else goal
    # bash removes `..` from the name; the kernel goes up from the target of a link.
    return logical if resolve_path(logical) == resolve_path(physical) else None
