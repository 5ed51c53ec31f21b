"""What a tiny model wrote, looked at before it is used: does it parse, is it whole, and what did it leave out?"""

from __future__ import annotations

import ast
import itertools
import json
import re
import tomllib
import warnings
from pathlib import PurePath
from typing import Final

KEPT_SHARE: Final = 0.5
"""A changed file that keeps fewer of the old lines than this has lost some; Python is looked at name by name instead."""
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_REMOVING: Final = frozenset(("remove", "delete", "drop", "rename", "replace", "without"))
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def complain(path: str, text: str) -> str:
    """What is wrong with the text as a file of that name; empty when nothing is."""
    if not text.strip():
        return "it is empty"
    try:
        match PurePath(path).suffix.lower():
            case ".py":
                _parse(text)
            case ".json":
                json.loads(text)
            case ".toml":
                tomllib.loads(text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it cannot be parsed"
    return ""


def keep_the_rest(old: str, new: str, request: str) -> str:
    """The new Python file with the functions and classes of the old one that the model left out.

    Tiny models answer "add a power function" with that function alone. A name may go only if the request says so.
    """
    try:
        old_tree, new_tree = _parse(old), _parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return new  # what cannot be compared is taken as it is
    words = set(re.findall(r"\w+", request))
    may_go = words if _REMOVING & {word.lower() for word in words} else set()
    before, present = _definitions(old_tree), _definitions(new_tree)
    if not before.keys() - present.keys() - may_go:
        return new
    bodies = {name: _lines_of(new, node) for name, node in present.items()}
    old_lines = old.splitlines()
    imports_at = _imports_end(old_lines, old_tree)
    imports = [line for line in _imports(new, new_tree) if line not in old_lines]
    if imports and old_lines[imports_at : imports_at + 1] not in ([], [""]):
        imports += ["", ""]
    joined = [*old_lines[:imports_at], *imports]
    at = imports_at
    for name, node in before.items():
        first, last = _span(node)
        joined += old_lines[at : first - 1]
        joined += bodies.get(name, [] if name in may_go else old_lines[first - 1 : last])
        at = last
    added = (line for name, body in bodies.items() if name not in before for line in ("", "", *body))
    return "\n".join([*joined, *added, *old_lines[at:]]).strip("\n") + "\n"


def lost_lines(old: str, new: str) -> bool:
    """Whether a changed file lacks too much of what it held to have been meant."""
    before = {line.strip() for line in old.splitlines() if line.strip()}
    after = {line.strip() for line in new.splitlines()}
    return len(before & after) < len(before) * KEPT_SHARE


def whole_paragraphs(text: str) -> str:
    """Prose that was cut off, up to the last sentence or line that is complete."""
    end = max(text.rfind(mark) + len(mark.rstrip()) for mark in (".\n", ". ", "!\n", "?\n", "\n\n"))
    return text[:end].rstrip() if end > len(text) // 2 else text.rpartition("\n")[0].rstrip() or text


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape is not worth a word on the user's screen
        tree = ast.parse(text)
        compile(text, "written", "exec", dont_inherit=True)  # finds what a tree alone does not, such as a stray `return`
    return tree


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    """By name, in the order of the file; of two of one name the later counts."""
    by_name = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    return dict(sorted(by_name.items(), key=lambda item: item[1].lineno))


def _span(node: _Definition) -> tuple[int, int]:
    """First and last line, from 1, decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _lines_of(text: str, node: _Definition) -> list[str]:
    first, last = _span(node)
    return text.splitlines()[first - 1 : last]


def _imports(text: str, tree: ast.Module) -> list[str]:
    lines = text.splitlines()
    return [line for node in tree.body if isinstance(node, _IMPORTS) for line in lines[node.lineno - 1 : node.end_lineno]]


def _imports_end(lines: list[str], tree: ast.Module) -> int:
    """How many lines come before the place of one more import: the imports on top, else the docstring, else opening comments."""
    top = itertools.takewhile(lambda node: not isinstance(node, _FUNCTIONS), tree.body)
    ends = [node.end_lineno or 0 for node in top if isinstance(node, _IMPORTS)]
    if not ends and ast.get_docstring(tree) is not None:
        ends = [tree.body[0].end_lineno or 0]
    comments = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return max([comments, *ends])
