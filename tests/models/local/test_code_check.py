"""Looking at what a tiny model wrote: it parses, it is whole, and nothing that was there is lost."""

from __future__ import annotations

import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.models.local.checks.code_check import (
    apply_asked_name,
    import_own,
    print_dropped,
    syntax_problem,
)
from wolo.models.local.checks.kept_content import restore_definitions
from wolo.models.local.file_request import whole_paragraphs

OLD = '''#!/usr/bin/env python3
"""Sums."""

import sys

LIMIT = 3


def add(a, b):
    return a - b


@staticmethod
def subtract(a, b):
    return a - b


class Memory:
    pass


if __name__ == "__main__":
    print(add(1, 2), file=sys.stdout)
'''


def names(text: str) -> list[str]:
    return [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "def f(:\n"),
        ("a.py", "return 3\n"),
        ("a.py", "\0"),
        ("a.py", "(" * 5000),
        ("a.PY", "def"),
        ("a.json", "{'a': 1}"),
        ("a.toml", "a = "),
        ("a.txt", " \n"),
        ("a.py", ""),
    ],
)
def test_unusable_code_has_a_reason(path: str, text: str) -> None:
    assert syntax_problem(path, text)


@pytest.mark.parametrize(
    ("path", "text"), [("a.py", "x = '\\d'\n"), ("a.json", "[1]"), ("a.toml", "a = 1"), ("a.html", "<p>"), ("Makefile", "all:")]
)
def test_usable_code_has_none_and_prints_nothing(path: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert syntax_problem(path, text) == ""


def test_new_lone_function_joins_the_rest() -> None:
    joined = restore_definitions(OLD, "import math\n\n\ndef power(a, b):\n    return math.pow(a, b)\n", "add a power function")
    assert names(joined) == ["add", "subtract", "Memory", "power"]
    assert joined.startswith('#!/usr/bin/env python3\n"""Sums."""\n\nimport sys\nimport math\n')
    assert joined.endswith(OLD[OLD.index("if __name__") :])
    assert "@staticmethod\ndef subtract" in joined


def test_changed_function_replaces_the_old_one() -> None:
    joined = restore_definitions(OLD, "def add(a, b):\n    return a + b\n", "fix the bug")
    assert joined == OLD.replace("return a - b", "return a + b", 1)


def test_a_whole_answer_is_taken_as_it_is() -> None:
    new = OLD.replace("Sums", "Numbers")
    assert restore_definitions(OLD, new, "rename it") == new


def test_name_disappears_only_on_request() -> None:
    rest = "def subtract(a, b):\n    return a - b\n"
    assert "add" in names(restore_definitions(OLD, rest, "add a docstring to subtract"))
    assert "add" not in names(restore_definitions(OLD, rest, "remove the add function"))
    assert names(restore_definitions(OLD, "def plus(a, b):\n    return a + b\n", "Rename add to plus")) == [
        "subtract",
        "Memory",
        "plus",
    ]


@pytest.mark.parametrize("new", ["def f(:", "", "\0"])
def test_incomparable_code_is_left_to_the_check(new: str) -> None:
    assert restore_definitions(OLD, new, "x") in (new, OLD)


NAMES = st.lists(st.sampled_from(["add", "mul", "div", "sub", "Point"]), unique=True, max_size=5)


def program(functions: list[str], value: int) -> str:
    bodies = (f"@print\ndef {name}():\n    return {value}\n" for name in functions)
    return "import os\n\nX = 1\n\n\n" + "\n\n".join(bodies) + "\n\nprint(X)\n"


@given(old=NAMES, new=NAMES)
def test_omitted_parts_survive_and_new_text_counts(old: list[str], new: list[str]) -> None:
    joined = restore_definitions(program(old, 1), program(new, 2), "make it better")
    assert syntax_problem("a.py", joined) == ""
    assert set(names(joined)) == {*old, *new}
    assert len(names(joined)) == len(set(names(joined)))
    for node in ast.parse(joined).body:
        if isinstance(node, ast.FunctionDef):
            returned = node.body[0]
            assert isinstance(returned, ast.Return)
            assert isinstance(returned.value, ast.Constant)
            assert returned.value.value == (2 if node.name in new else 1)


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("One. Two. Thr", "One. Two."),
        ("- a\n- b\n- c\n- d and mo", "- a\n- b\n- c"),
        ("no end in sight", "no end in sight"),
        ("A long first sentence that ends. B", "A long first sentence that ends."),
    ],
)
def test_prose_ends_with_something_whole(cut: str, whole: str) -> None:
    assert whole_paragraphs(cut) == whole


def test_only_function_gets_the_requested_name() -> None:
    text = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n\n\ndef main():\n    print(fib(9))\n"
    assert apply_asked_name(text, "a function fibonacci(n)") == text.replace("fib(", "fibonacci(")
    assert apply_asked_name(text, "eine Funktion `fibonacci(n)`") == text.replace("fib(", "fibonacci(")
    for request in ("a function fib(n)", "rename foo() to bar()", "print(len(items)) with json.dumps(items)"):
        assert apply_asked_name(text, request) == text
    assert apply_asked_name(text, "functions fibonacci(n) and lucas(n)") == text, "which of them it is, is not known"


def test_dropped_result_of_a_silent_program_is_printed() -> None:
    text = "def twice(n):\n    return n * 2\n\n\ndef main():\n    twice(int('3'))\n\n\nmain()\n"
    assert print_dropped(text) == text.replace("    twice(int('3'))", "    print(twice(int('3')))")
    for other in (text.replace("twice(int", "print(twice(int"), text.replace("return", "n ="), "def ("):
        assert print_dropped(other) == other


def test_lines_dropped_by_syntax_repair_return() -> None:
    broken = "import sys\n\n\ndef minutes(hours)\n    return hours * 60\n\n\nprint(minutes(2))\n"
    fixed = "def minutes(hours):\n    return hours * 60\n"
    assert restore_definitions(broken, fixed, "it fails, fix it") == broken.replace("(hours)\n", "(hours):\n")
    assert restore_definitions(broken, fixed, "remove the print") == fixed
    assert restore_definitions(broken, broken, "fix it") == broken


def test_own_module_is_imported_where_it_is_missing() -> None:
    others = {"a.py": "def add(a, b):\n    return a + b\n", "lib/b.py": "def sub(a, b): ...\n"}
    assert import_own("assert add(1, 2) == 3\n", "test_a.py", others) == "from a import add\nassert add(1, 2) == 3\n"
    assert import_own("sub(1, 2)\n", "test_a.py", others) == "sub(1, 2)\n"
    assert import_own("def (", "test_a.py", others) == "def ("
