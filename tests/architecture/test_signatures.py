"""Values that travel together travel as one: `Site`, and `Notices` in place of a bare list."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "wolo"
CARRIED = {"places", "root", "cwd", "environ"}
"""Fields of `Site`. Two of them side by side are enough for a function that needs no more."""


def signatures() -> Iterator[tuple[str, list[ast.arg]]]:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{path.relative_to(PACKAGE)}: {node.name}"
                yield name, [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def test_no_signature_repeats_what_a_site_carries() -> None:
    assert [name for name, params in signatures() if len(CARRIED & {each.arg for each in params}) > 2] == []


def test_notices_are_never_a_bare_list() -> None:
    notices = ((name, each) for name, params in signatures() for each in params if each.arg == "notices")
    assert [name for name, each in notices if each.annotation and ast.unparse(each.annotation).startswith("list")] == []
