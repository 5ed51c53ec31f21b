"""Moves a function or class to another Python file, with its imports, and mends the imports of other files: no model needed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct

from wolo.models.local.checks.code_check import (
    IMPORTS,
    definitions,
    definitions_in,
    imports_end,
    lines_of,
    parse_python,
    span_of,
    tree_of,
    undefined_names,
)
from wolo.models.local.checks.marks import mentioned_names
from wolo.models.local.checks.senses import means
from wolo.models.local.simple_context import ProjectNames, named_files


class MovedName(Struct, frozen=True):
    name: str
    source: str
    target: str


def asked_move(request: str, names: ProjectNames, written: Sequence[str]) -> MovedName | None:
    """The move that a request is for; `written`: files that the turn wrote, the target first."""
    named = [name for name in named_files(request, names) if name.endswith(".py")]
    if not means(request, "move") or len(named) < 2:
        return None
    meant = mentioned_names(request)
    owners = {path: meant & {*definitions_in(names.whole(path))} for path in named}
    source = next((path for path, own in owners.items() if len(own) == 1 and path not in written[:1]), "")
    moved = owners.get(source) or (owners.get(written[0]) if written else None)
    if not moved or len(moved) != 1:
        return None
    (name,) = moved
    source = source or next((path for path in named if path not in written[:1] and _imports(names.whole(path), name) is None), "")
    others = [path for path in named if path != source and not re.search(rf"\b{name}\b", names.whole(path))]
    target = written[0] if written else others[0] if len(others) == 1 else ""
    move = MovedName(name, source, target)
    return move if source and target and (written or _is_complete(move, names)) else None


def _is_complete(move: MovedName, names: ProjectNames) -> bool:
    """Tells whether the moved code finds all that it uses, and whoever uses it can follow by `from … import …` alone."""
    source, target = names.whole(move.source), names.whole(move.target)
    tree, other = tree_of(source), tree_of(target)
    if tree is None or other is None or [getattr(each, "name", "") for each in tree.body].count(move.name) != 1:
        return False
    moved = _code_of(source, move.name)
    bound = {name for node in _imports_for(source, moved) for name in _names_of(node)}
    rest, stem = _without_definition(source, move), PurePath(move.source).stem
    folder = PurePath(move.source).parent
    is_package = str(folder) == "." or names.exists(str(folder / "__init__.py"))
    still_imports = rf"(?m)^\s*(?:from\s+\S*\b{stem}\s+import\b(?:\s*[*(]|.*\b{move.name}\b)|import\b.*\b{stem}\b)"
    users = [names.whole(path) for path in names.programs if path not in (move.source, move.target)]
    users = [text for text in users if re.search(rf"\b(?:{move.name}|{stem})\b", text)]
    return (
        undefined_names(parse_python(moved)) <= bound
        and not (
            f" import {move.name}\n" in rest
            and (not is_package or re.search(rf"import\b.*\b{stem}\b|\b{stem}\s+import\b", target))
        )
        and not any(tree_of(text) is None or re.search(still_imports, _follow(text, move)) for text in users)
    )


def next_moved(request: str, names: ProjectNames, written: Sequence[str]) -> str:
    """The next file that a move changes; empty at the end. The target comes first, so that nothing is lost in between."""
    move = asked_move(request, names, written)
    if move is None:
        return ""
    importers = [
        path for path in names.programs if path.endswith(".py") and _imports(names.whole(path), move.name) == _module(move.source)
    ]
    return next((path for path in (move.target, move.source, *importers) if path not in written), "")


def moved_text(request: str, names: ProjectNames, written: Sequence[str], path: str, old: str) -> str | None:
    """The file after the move; None where the request is for none."""
    move = asked_move(request, names, written)
    if move is None or path in written:
        return None
    if path == move.target:
        return _with_definition(old, names.whole(move.source), move.name)
    if path == move.source:
        return _without_definition(old, move)
    return _follow(old, move)


def _follow(text: str, move: MovedName) -> str:
    return re.sub(
        rf"(?m)^from {re.escape(_module(move.source))} import (\w[\w, ]*)$",
        lambda each: _split_import(each[1], move) if move.name in re.split(", *", each[1]) else each[0],
        text,
    )


def _with_definition(old: str, source: str, name: str) -> str:
    moved, known = _code_of(source, name), old.splitlines()
    there = [ast.unparse(node) for node in parse_python(old).body]
    needed = [line for node in _imports_for(source, moved) if (line := ast.unparse(node)) not in there]
    at = imports_end(known, parse_python(old))
    gap = [""] * bool(needed and known[at : at + 1] != [""] and known)
    return "\n".join([*known[:at], *needed, *gap, *known[at:], *(["", ""] * bool(known or needed)), moved]) + "\n"


def _code_of(text: str, name: str) -> str:
    return "\n".join(lines_of(text, definitions_in(text)[name]))


def _imports_for(text: str, code: str) -> list[ast.Import | ast.ImportFrom]:
    """Imports of the text that the code uses."""
    used = undefined_names(parse_python(code))
    return [node for node in parse_python(text).body if isinstance(node, IMPORTS) and used & _names_of(node)]


def _names_of(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Collect the names that an import binds."""
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}


def _without_definition(old: str, move: MovedName) -> str:
    """The file without the definition and the imports that nothing else uses; it imports the name if it goes on using it."""
    tree, lines = parse_python(old), old.splitlines()
    moved, (first, last) = _code_of(old, move.name), span_of(definitions(tree)[move.name])
    rest = [*lines[: first - 1], *[""] * (last - first + 1), *lines[last:]]
    for node in _imports_for(old, moved):
        begin, end = node.lineno - 1, node.end_lineno or node.lineno
        words = {*re.findall(r"\w+", "\n".join([*rest[:begin], *rest[end:]]))}
        if not words & _names_of(node):
            rest[begin:end] = ["\0"] * (end - begin)
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(line for line in rest if line != "\0")).strip("\n") + "\n"
    kept = parse_python(text)
    if move.name not in undefined_names(kept) and not re.search(rf"[\"']{move.name}[\"']", text):
        return text
    known = text.splitlines()
    at = imports_end(known, kept)
    return "\n".join([*known[:at], f"from {_module(move.target)} import {move.name}", *known[at:]]) + "\n"


def _split_import(imported: str, move: MovedName) -> str:
    others = [each.strip() for each in imported.split(",") if each.strip() != move.name]
    lines = [f"from {_module(move.source)} import {', '.join(others)}"] * bool(others)
    return "\n".join([*lines, f"from {_module(move.target)} import {move.name}"])


def _imports(text: str, name: str) -> str | None:
    """The module that the text imports the name from."""
    match = re.search(rf"(?m)^from ([\w.]+) import (?:[^#\n]*\W)?{name}\b", text)
    return match[1] if match else None


def _module(path: str) -> str:
    return ".".join(PurePath(path).with_suffix("").parts)
