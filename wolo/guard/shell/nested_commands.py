"""Finds every command in a line: in substitutions, functions, loops, after wrappers, and in text passed to a shell.

Used for warnings only. It never allows anything, and the sandbox confines what it misses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from wolo.guard.shell.parser import TooComplex, parse
from wolo.guard.shell.words import SHELLS, name_of, print_escapes, unquote, unwrap

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 4
"""Levels of shells that pass a command line to another shell."""
_TAKES_TEXT = SHELLS | {"eval", "su", "ssh", "watch", "script", "trap", "parallel", "env", "flock", "nsenter"}
_READS_LINES = SHELLS | {"su", "ssh"}
_BARE = re.compile(r"[\w./:=@%+,-]*")
"""A word that any shell reads as one word."""
_SPLIT = re.compile(r"[\n;|&(){}`]|\$\(")
_ESCAPED_IN_QUOTES = re.compile(r"\\(?:([$`\"\\])|\n)")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_WRITES_NOTHING = re.compile(r"(?:|:|true|cat /dev/null|echo -n(?: )?|printf(?: )?)")
_DOCUMENT_PARTS = frozenset({"heredoc_start", "heredoc_body", "heredoc_end", "file_redirect"})
_EMPTIES = frozenset({">", ">|", "&>"})


class NestedCommand(NamedTuple):
    words: tuple[str, ...]
    """Without quotes; `$` expansions stay as written."""
    emptied: tuple[str, ...] = ()
    """Files truncated by a redirection whose command writes nothing."""


def commands_in(text: str, depth: int = 0) -> list[NestedCommand]:
    """Raises TooComplex."""
    root = parse(text)
    values = _values(root)
    commands = [*_walk(root, values)]
    if root.has_error:
        commands += [
            NestedCommand(tuple(map(unquote, re.split(r"[\s,]+", piece.strip()))))
            for piece in _SPLIT.split(text)
            if piece.strip()
        ]
    passed_on: set[str] = set()
    for each in commands:
        if _takes_text(each):  # arguments of a shell, of `eval` or `xargs sh -c` may be read as a command line
            passed_on |= {word for word in each.words[1:] if not _BARE.fullmatch(word)}
            if each.words[0] == "eval":
                passed_on.add(" ".join(each.words[1:]))
    if _has_shell(commands):
        passed_on |= set(_shell_input(root))
    passed_on -= {"", text}
    if passed_on and depth == MAX_DEPTH:
        raise TooComplex(
            "The command passes a command line through too many shells to be checked: run the innermost one directly."
        )
    commands += [each for inner in sorted(passed_on) for each in commands_in(inner, depth + 1)]
    return commands


def reads_lines(text: str) -> bool:
    """Tells whether a command of the line may run what is typed into it. Raises TooComplex."""
    return _has_shell(commands_in(text))


@lru_cache(maxsize=64)
def all_commands(text: str) -> tuple[NestedCommand, ...] | None:
    """All commands if it is certain that the list is complete and none passes text to a shell; otherwise None."""
    root = parse(text)
    commands = tuple(_walk(root, _values(root)))
    if root.has_error or any(_takes_text(each) for each in commands):
        return None
    return commands


def without_documents(text: str) -> str:
    """Removes here-documents that `cat` and `tee` only copy: their text is neither code nor a name."""
    source = text.encode("utf-8", "replace")
    root = parse(text)
    if root.has_error:
        return text
    waiting, kept, end = [root], b"", 0
    bodies: list[tuple[int, int, bytes]] = []
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "heredoc_redirect" and _is_document(node):
            bodies += [
                (body.start_byte, body.end_byte, b" ".join(child.text or b"" for child in body.children if child.is_named))
                for body in node.children
                if body.type == "heredoc_body"
            ]
    for start, stop, expanded in sorted(bodies):
        kept, end = kept + source[end:start] + expanded, stop
    return (kept + source[end:]).decode("utf-8", "replace")


def _is_document(heredoc: Node) -> bool:
    statement = heredoc.parent
    if statement is None or (statement.parent is not None and statement.parent.type == "pipeline"):
        return False
    if any(child.is_named and child.type not in _DOCUMENT_PARTS for child in heredoc.children):
        return False
    body = statement.child_by_field_name("body")
    words = _words(body, {}) if body is not None and body.type == "command" else ()
    return words[:1] in (("cat",), ("tee",))


def _walk(node: Node, values: Mapping[str, str]) -> Iterator[NestedCommand]:
    if node.type in ("command", "redirected_statement", "declaration_command", "unset_command"):
        yield _read_command(node, values)
    for child in node.children:
        inner = child.type == "command" and node.type == "redirected_statement"
        for each in _walk(child, values):
            if not inner or each.words != _words(child, values):
                yield each


def _read_command(node: Node, values: Mapping[str, str]) -> NestedCommand:
    if node.type != "redirected_statement":
        return NestedCommand(_words(node, values))
    body = node.child_by_field_name("body")
    words = _words(body, values) if body is not None and body.type == "command" else ()
    writes_nothing = (body is None or body.type == "command") and _WRITES_NOTHING.fullmatch(" ".join(words))
    emptied: list[str] = []
    for redirection in node.children if writes_nothing else ():
        if redirection.type == "file_redirect" and _EMPTIES.intersection(child.type for child in redirection.children):
            target = redirection.child_by_field_name("destination")
            emptied.append(_plain(target, values) if target is not None else "")
    return NestedCommand(words, tuple(filter(None, emptied)))


def _words(node: Node, values: Mapping[str, str]) -> tuple[str, ...]:
    skipped = ("variable_assignment", "file_redirect", "herestring_redirect")
    named = [child for child in node.children if child.is_named and child.type not in skipped]
    words: list[str] = []
    for child in named:
        plain = _plain(child, values)
        inner = child.children[0] if child.type == "command_name" and child.children else child
        # An unquoted variable may contain several words.
        words += plain.split() if inner.type in ("simple_expansion", "expansion") else [plain]
    return tuple(words[1:] if words[:1] == ["!"] else words)


def _plain(node: Node, values: Mapping[str, str]) -> str:
    """The word without quotes, with variables replaced that the same line assigns."""
    text = (node.text or b"").decode("utf-8", "replace")
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return print_escapes(text[2:-1])
        case "concatenation" | "command_name" if node.children:
            return "".join(_plain(child, values) for child in node.children)
        case "string":
            content = _ESCAPED_IN_QUOTES.sub(r"\1", text[1:-1])
            return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), content)
        case "simple_expansion" | "expansion":
            return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)
    return unquote(text)


def _values(root: Node) -> dict[str, str]:
    values: dict[str, str] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        name, value = (node.child_by_field_name(field) for field in ("name", "value"))
        if node.type == "variable_assignment" and name is not None and value is not None:
            values[(name.text or b"").decode("utf-8", "replace")] = _plain(value, {})
    return values


def _has_shell(commands: Sequence[NestedCommand]) -> bool:
    return any(name_of(words[0]) in _READS_LINES for each in commands for words in unwrap(each.words) if words)


def _takes_text(command: NestedCommand) -> bool:
    return any(name_of(words[0]) in _TAKES_TEXT for words in unwrap(command.words) if words)


def _shell_input(root: Node) -> Iterator[str]:
    """Possible input of a shell: here-documents, here-strings, and the output of `echo` and `printf`."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "heredoc_body":
            yield (node.text or b"").decode("utf-8", "replace")
        elif node.type == "herestring_redirect":
            yield from (_plain(child, {}) for child in node.children if child.is_named)
        elif node.type == "command" and (words := _words(node, {})) and name_of(words[0]) in ("echo", "printf"):
            yield from map(print_escapes, (" ".join(words[1:]), *words[1:]))
