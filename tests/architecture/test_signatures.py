"""Calls and constructors that a reader can take in: parts by name, and not too many at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "wolo"
MOST_PARAMETERS = 10
PUBLIC = {"api/agent.py": "the options of a run, by name, for programs"}
"""Constructors with more parameters, and why."""


def test_no_call_unpacks_a_tuple_of_its_own() -> None:
    unpacked = [
        f"{path}:{argument.lineno}"
        for path, node in nodes()
        if isinstance(node, ast.Call)
        for argument in node.args
        if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Tuple | ast.List)
    ]
    assert unpacked == []


def test_constructors_take_at_most_ten_parameters() -> None:
    """More are the fields of a frozen struct, made by name."""
    long = {
        path
        for path, node in nodes()
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and num_parameters(node) > MOST_PARAMETERS
    }
    assert long == set(PUBLIC)


def num_parameters(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs) + len(arguments.args) - 1 + len(arguments.kwonlyargs)


@cache
def nodes() -> tuple[tuple[str, ast.Call | ast.FunctionDef], ...]:
    """Calls and functions of the package; signatures for type checkers only are left out."""
    return tuple(
        (str(path.relative_to(PACKAGE)), node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in running(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call | ast.FunctionDef)
    )


def running(tree: ast.AST) -> Iterator[ast.AST]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            yield node
            stack.extend(ast.iter_child_nodes(node))
