"""Moves functions, classes and files as a request states it, and mends what refers to them: no model needed."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from wolo.models.local.checks.asked_parts import asked_folder, clauses_of
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
from wolo.models.local.checks.marks import FILE_NAME, mentioned_names
from wolo.models.local.checks.requested_work import FILES, is_about_files
from wolo.models.local.checks.senses import means, pattern_of
from wolo.models.local.simple_context import NOISE, ProjectNames, named_files


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


# Files

MOST_FILES: Final = 200
MOST_LINES: Final = 2_000
"""Of a text that refers to a file; `read` shows no more."""
_OUTSIDE: Final = re.compile(r"\.\./|(?<![\w./])~?/")
_EXTENSION: Final = re.compile(r"(?<![\w/.])\*?\.(\w{1,5})(?![\w/.])", re.ASCII)


class FileMoves(Struct, frozen=True, kw_only=True):
    sources: tuple[str, ...]
    target: str = ""
    """New name of the only source, or a folder; empty: the files go."""
    is_folder: bool = False

    @property
    def command(self) -> str:
        sources = shlex.join(self.sources)
        if not self.target:
            return f"rm -- {sources}"
        folder = self.target if self.is_folder else str(PurePath(self.target).parent)
        return f"mkdir -p -- {shlex.quote(folder)} && " * (folder != ".") + f"mv -n -- {sources} {shlex.quote(self.target)}"


def asked_file_moves(request: str, names: ProjectNames) -> FileMoves | None:
    """The files that the request moves, renames or deletes, by their names or by their endings; None if it does not say which."""
    if pattern_of("unless").search(request) or _OUTSIDE.search(request):
        return None
    named = [each.strip("/") for each in FILE_NAME.findall(request)]
    there = tuple(each for each in dict.fromkeys(named) if names.exists(each) and not names.is_folder(each))
    fresh = [each for each in dict.fromkeys(named) if PurePath(each).suffix and not names.exists(each)]
    alike = tuple(each for each in there if fresh and _suffix(each) == _suffix(fresh[0]))
    if means(request, "rename", "move") and len(alike) == len(fresh) == 1 and named.index(alike[0]) < named.index(fresh[0]):
        if not _is_plain(request[: request.index(fresh[0])], alike[0]):
            return None  # a part of the file may be meant
        folder = PurePath(alike[0]).parent if "/" not in fresh[0] else PurePath()
        return FileMoves(sources=alike, target=str(folder / fresh[0]))
    endings = {*_EXTENSION.findall(request)}
    if means(request, "move") and not fresh and (place := asked_folder(request) or _known_folder(request, names)):
        by_ending = tuple(each for each in _files(names, deep=False) if _suffix(each) in (endings or _words(request, names)))
        sources = tuple(each for each in there if PurePath(each).parent != PurePath(place)) if there else by_ending
        is_plain = _is_plain(request, place, *there, *(set() if there else _words(request, names)))
        return FileMoves(sources=sources, target=place, is_folder=True) if sources and is_plain else None
    if fresh or means(request, "add"):
        return None
    clause = next((each for each in clauses_of(request) if endings & {*_EXTENSION.findall(each)}), "")
    if means(clause, "remove") and is_about_files(clause) and not there and _is_plain(request):
        by_ending = tuple(each for each in _files(names, deep=means(request, "deep")) if _suffix(each) in endings)
        return FileMoves(sources=by_ending) if by_ending else None
    return None


def _is_plain(request: str, *known: str) -> bool:
    """Tells whether the text says nothing that is not understood, such as a condition or a part of the files."""
    for each in sorted(known, key=len, reverse=True):
        request = re.sub(rf"(?<!\w){re.escape(each)}/?(?!\w)", " ", request)
    request = _EXTENSION.sub(" ", request)
    senses = (pattern_of(each).pattern for each in ("polite", "rename", "move", "remove", "all", "folder", "deep"))
    for pattern in (*senses, FILES.pattern, r"(?<!\w)(?:ال|m[óo]dulo?|module)"):
        request = re.sub(rf"(?:{pattern})[^\W\u3040-\u9fff]*", " ", request, flags=re.IGNORECASE)
    return not re.search(r"\w", pattern_of("plain").sub(" ", request))


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower().lstrip(".")


def _words(request: str, names: ProjectNames) -> set[str]:
    """Endings of files that are words of the request: "all jpg and png files"."""
    return {_suffix(each) for each in names.files} & set(re.findall(r"\w{2,5}", request.lower()))


def _known_folder(request: str, names: ProjectNames) -> str:
    return next((each for each in re.findall(r"[\w-]+", request) if names.is_folder(each)), "")


def _files(names: ProjectNames, *, deep: bool) -> Iterator[str]:
    """Names of files, relative to the folder, without hidden and generated ones."""
    for folder, folders, files in os.walk(names.folder):
        folders[:] = sorted(each for each in folders if deep and not each.startswith(".") and each not in NOISE)
        at = Path(folder).relative_to(names.folder)
        yield from (str(at / each) for each in sorted(files)[:MOST_FILES] if not each.startswith("."))


def next_reference(moves: FileMoves, names: ProjectNames, written: Sequence[str]) -> str:
    """The next file that names a renamed one; empty at the end."""
    others = (each for each in names.files if each not in (*written, *moves.sources))
    texts = ((each, names.whole(each)) for each in others)
    known = ((each, text) for each, text in texts if each.endswith(".py") or text.count("\n") < MOST_LINES)
    return next((each for each, text in known if with_references(moves, each, text) != text), "")


def with_references(moves: FileMoves, path: str, text: str) -> str:
    """The text of another file with the new name of a renamed one, and of a Python module where it is imported."""
    if moves.is_folder or not moves.target:
        return text
    old, new = PurePath(moves.sources[0]), PurePath(moves.target)
    for before, after in dict.fromkeys(((str(old), str(new)), (old.name, new.name))):
        text = re.sub(rf"(?<![\w/.-]){re.escape(before)}(?![\w-]|\.\w)", lambda _, after=after: after, text)  # type: ignore[misc]
    if old.suffix == ".py" and path.endswith(".py") and old.stem != new.stem:
        folders = old.parent.parts
        places = "|".join([r"\.+", *(re.escape(".".join(folders[at:])) for at in range(len(folders)))])
        modules = rf"(?:from|import)\s+(?:\.+|(?:{places})\.)?|import\s+(?:[\w.]+,\s*)+"
        imported = rf"(?m)^(\s*(?:{modules}|from\s+(?:{places})\s+import\s+(?:.*,\s*)?)){old.stem}\b"
        if re.search(imported, text):
            text = re.sub(rf"(?<![\w.]){old.stem}(?=\.\w)", new.stem, re.sub(imported, rf"\g<1>{new.stem}", text))
    return text
