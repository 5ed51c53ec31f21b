"""Finds definitions and references in source files with tree-sitter, if it is installed (`wolo-cli[repo-map]`).

Runs in a process with limited time and memory, so that hostile files cannot hang or crash wolo through C code. The grammars'
own queries (`tags.scm`) say what a symbol is.
"""

from __future__ import annotations

import json
import re
import stat
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module, resources
from importlib.util import find_spec
from typing import Any, NamedTuple

from wolo.operating_system import os, resource

MOST_CPU_S = 60
MOST_MEMORY_BYTES = 2 * 1024**3
MOST_FILE_BYTES = 512 * 1024
MOST_LINE_CHARS = 120


class Grammar(NamedTuple):
    package: str
    language: str = "language"
    """Function of the package."""
    more_tags: str = ""
    """Package whose tags hold, too."""


_TYPESCRIPT = "tree_sitter_typescript"
_JAVASCRIPT = Grammar("tree_sitter_javascript")
GRAMMARS: Mapping[str, Grammar] = {
    **dict.fromkeys((".py", ".pyi"), Grammar("tree_sitter_python")),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), Grammar(_TYPESCRIPT, "language_typescript", _JAVASCRIPT.package)),
    ".tsx": Grammar(_TYPESCRIPT, "language_tsx", _JAVASCRIPT.package),
    ".go": Grammar("tree_sitter_go"),
    ".rs": Grammar("tree_sitter_rust"),
    ".java": Grammar("tree_sitter_java"),
    **dict.fromkeys((".c", ".h"), Grammar("tree_sitter_c")),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), Grammar("tree_sitter_cpp")),
    ".rb": Grammar("tree_sitter_ruby"),
    ".php": Grammar("tree_sitter_php", "language_php"),
}
"""By the end of a file's name."""


def is_installed() -> bool:
    return find_spec("tree_sitter") is not None and any(find_spec(each.package) for each in GRAMMARS.values())


def write_symbols(paths: Sequence[str]) -> None:
    """Writes a JSON line for each file that can be read: its path, definitions (line, text, name), names that it refers to, and
    the files that it mentions by their name without its end, as imports do.

    Small files come first, because a hostile one can take all the time.
    """
    stems = {os.fsencode(os.path.splitext(os.path.basename(path))[0]) for path in paths}  # thousands of paths
    for path in sorted(paths, key=_size):
        opened = _open(GRAMMARS[os.path.splitext(path)[1]])  # thousands of paths
        if opened is not None and (source := _read(path)) is not None:
            mentions = [each.decode() for each in sorted(stems.intersection(re.findall(rb"[\w-]+", source)))]
            sys.stdout.write(json.dumps((path, *find_symbols(source, *opened), mentions)) + "\n")
            sys.stdout.flush()


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _read(path: str) -> bytes | None:
    """None for links, binaries, and what is too large or cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        source = opened.read(MOST_FILE_BYTES + 1)
    return None if len(source) > MOST_FILE_BYTES or b"\0" in source else source


def find_symbols(source: bytes, parser: Any, query: Any) -> tuple[list[tuple[int, str, str]], dict[str, int]]:
    """Broken syntax yields what its parser makes of it."""
    from tree_sitter import QueryCursor  # noqa: PLC0415  # in the child only

    lines, references = source.split(b"\n"), Counter[str]()
    definitions: dict[tuple[int, str], tuple[int, str, str]] = {}
    for _, captures in QueryCursor(query).matches(parser.parse(source).root_node):
        names = captures.get("name", ())
        kind = next((each for each in captures if each.startswith(("definition.", "reference."))), "")
        for name in names if kind else ():
            text = (name.text or b"").decode(errors="replace")
            if kind.startswith("reference."):
                references[text] += 1
                continue
            row = name.start_point[0]
            shown = lines[row].decode(errors="replace").rstrip()[:MOST_LINE_CHARS] if row < len(lines) else text
            definitions.setdefault((row, text), (row + 1, shown, text))
    return sorted(definitions.values()), dict(references)


@cache
def _open(grammar: Grammar) -> tuple[Any, Any] | None:
    """Parser and query; None where the grammar is not installed, or cannot be used with this tree-sitter."""
    from tree_sitter import Language, Parser, Query  # noqa: PLC0415  # as above

    try:
        language = Language(getattr(import_module(grammar.package), grammar.language)())
        tags = [
            resources.files(package).joinpath("queries", "tags.scm").read_text(encoding="utf-8")
            for package in (grammar.more_tags, grammar.package)
            if package
        ]
        return Parser(language), Query(language, "\n".join(tags))
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return None


if __name__ == "__main__":
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    write_symbols(json.load(sys.stdin))
