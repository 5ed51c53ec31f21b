"""Output to a terminal goes through `streams.print_line` and `print_message`, or through the screen."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "wolo"
DRAWS = {"lookup.py"}
"""Redraws a line of constant words and numbers."""
FILES = [path for room in ("cli", "commands", "frontends/headless") for path in sorted((ROOT / room).rglob("*.py"))]


def bare_prints(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_print = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if is_print and not all(map(is_harmless, node.args)):
            yield f"{path.name}:{node.lineno}"


def is_harmless(value: ast.expr) -> bool:
    """Cleaned in the call, or a literal."""
    if isinstance(value, ast.JoinedStr):
        return all(is_harmless(each) for each in value.values)
    if isinstance(value, ast.FormattedValue):
        return is_harmless(value.value) or (isinstance(value.value, ast.Attribute) and value.value.attr == "seq")
    if isinstance(value, ast.BoolOp):
        return all(is_harmless(each) or (isinstance(each, ast.Attribute) and each.attr == "role") for each in value.values)
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("visible", "_paint")
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id == "__version__")


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in DRAWS], ids=lambda path: path.name)
def test_subcommands_print_through_streams(path: Path) -> None:
    assert list(bare_prints(path)) == []
