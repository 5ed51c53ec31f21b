"""Moves a function or class to another Python file, with its imports, and mends the imports of other files: no model needed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct

from wolo.models.local.checks.asked_parts import means, mentioned_names
from wolo.models.local.checks.code_check import IMPORTS, definitions, imports_end, parse_python, span_of, tree_of, undefined_names
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
    owners = {path: meant & {*definitions(tree)} for path in named if (tree := tree_of(names.whole(path)))}
    source = next((path for path, own in owners.items() if len(own) == 1 and path not in written[:1]), "")
    moved = owners.get(source) or (owners.get(written[0]) if written else None)
    if not moved or len(moved) != 1:
        return None
    (name,) = moved
    source = source or next((path for path in named if path not in written[:1] and _imports(names.whole(path), name) is None), "")
    others = [path for path in named if path != source and not re.search(rf"\b{name}\b", names.whole(path))]
    target = written[0] if written else others[0] if len(others) == 1 else ""
    return MovedName(name, source, target) if source and target else None


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
    return re.sub(
        rf"(?m)^from {re.escape(_module(move.source))} import ([^#\n]*)$", lambda each: _split_import(each[1], move), old
    )


def _with_definition(old: str, source: str, name: str) -> str:
    lines = source.splitlines()
    first, last = span_of(definitions(parse_python(source))[name])
    moved = "\n".join(lines[first - 1 : last])
    needed = [line for line in _imports_for(source, moved) if line not in old]
    known = old.splitlines()
    at = imports_end(known, tree_of(old) or ast.Module([], []))
    gap = [""] * bool(needed and known[at : at + 1] != [""] and known)
    return "\n".join([*known[:at], *needed, *gap, *known[at:], *(["", ""] * bool(known or needed)), moved]) + "\n"


def _imports_for(text: str, code: str) -> list[str]:
    """Lines of the text that import what the code uses."""
    used, lines = undefined_names(parse_python(code)), text.splitlines()
    return [
        line
        for node in parse_python(text).body
        if isinstance(node, IMPORTS) and used & {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        for line in lines[node.lineno - 1 : node.end_lineno]
    ]


def _without_definition(old: str, move: MovedName) -> str:
    lines = old.splitlines()
    first, last = span_of(definitions(parse_python(old))[move.name])
    of_moved = _imports_for(old, "\n".join(lines[first - 1 : last]))
    rest = "\n".join([*lines[: first - 1], *lines[last:]])
    still_used = _imports_for(old, "\n".join(line for line in rest.splitlines() if line not in of_moved))
    rest = "\n".join(line for line in rest.splitlines() if line not in of_moved or line in still_used)
    rest = re.sub(r"\n{4,}", "\n\n\n", rest).strip("\n") + "\n"
    tree = tree_of(rest)
    is_used = tree is not None and move.name in undefined_names(tree)
    return f"from {_module(move.target)} import {move.name}\n{rest}" if is_used else rest


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
