"""Compares several versions of a function that a small model wrote: a wrong one rarely has the results of another.

Only where nothing else says what is right: no formula, no call with its result. The versions run in a command, with
arguments made for the parameters; the one that agrees with another stands.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.code_check import definitions, definitions_in, has_effect, tree_of
from wolo.models.local.checks.marks import result_examples
from wolo.models.local.checks.run_check import COMPARED, PROBE

MOST_COMPARED: Final = 3
"""Functions of a file."""
MOST_PARAMETERS: Final = 3
_PURE: Final = re.compile(
    "math|re|string|collections|itertools|functools|statistics|json|typing|decimal|fractions|unicodedata|textwrap|operator|bisect"
    "|heapq|__future__|dataclasses|abc|enum|copy"
)
"""Modules whose functions only calculate."""
_UNSAFE: Final = re.compile(
    "open|exec|eval|input|compile|breakpoint|exit|quit|globals|locals|vars|[gs]etattr|delattr|memoryview|attrgetter|methodcaller"
    "|_?sys|_?os|io|codecs|modules|builtins|__(?!name__).*"
)
_KINDS: Final = {
    "number": r"int|float|n|num|number|count|size|width|height|length|age|year|index|limit|factor|amount|price|[abcxykm]",
    "text": r"str|s|st|string|text|word|name|line|char\w*|sentence|phrase|prefix|suffix|sep|title|message|msg|t",
    "numbers": r"list\[(?:int|float)\]|nums|numbers|values|scores|prices|arr|array|lst|xs|grades|temps?",
    "texts": r"list\[str\]|words|names|strings|texts",
    "table": r"dict\b.*|d|dic|dict\w*|mapping|table|counts",
    "nested": r"list\[list\b.*|matrix|grid|nested\w*",
    "truth": r"bool|flag|is_\w+|reverse",
}
"""Values of a parameter, by its annotation or name."""
_ANY: Final = ("number", "text", "numbers", "texts", "table", "nested")
Functions = Mapping[str, Sequence[Sequence[str]]]
"""The kinds of values that the parameters of each function may take."""


def compared_functions(text: str, old: str) -> Functions:
    """New or changed functions of a Python file; none where the file may do more than calculate."""
    tree = tree_of(text)
    if tree is None or not _only_calculates(tree):
        return {}
    known = {name: ast.dump(node) for name, node in definitions_in(old).items()}
    functions = {}
    for name, node in definitions(tree).items():
        if isinstance(node, ast.FunctionDef) and name != "main" and known.get(name) != ast.dump(node) and _is_plain(node):
            required = node.args.args[: len(node.args.args) - len(node.args.defaults)]
            if 0 < len(required) <= MOST_PARAMETERS:
                functions[name] = [_kinds_of(each) for each in required]
    return dict(list(functions.items())[:MOST_COMPARED])


def prints_results(text: str) -> bool:
    """Tells whether the file is a program that only calculates and prints, in a loop."""
    tree = tree_of(text)
    loops = (ast.For, ast.While, ast.comprehension)
    is_loop = tree is not None and has_effect(tree) and any(isinstance(node, loops) for node in ast.walk(tree))
    return tree is not None and is_loop and _only_calculates(tree) and "print(" in text


def _is_plain(node: ast.FunctionDef) -> bool:
    return not (node.decorator_list or node.args.vararg or any(each is None for each in node.args.kw_defaults))


def _kinds_of(parameter: ast.arg) -> Sequence[str]:
    annotation = ast.unparse(parameter.annotation).lower() if parameter.annotation else ""
    by_hint = (
        [kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, hint)] for hint in (annotation, parameter.arg.lower())
    )
    return next(filter(None, by_hint), _ANY)


def _only_calculates(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if not all(_PURE.fullmatch(each.name.partition(".")[0]) for each in names):
                return False
            case ast.ImportFrom(module=module) if not _PURE.fullmatch((module or "").partition(".")[0]):
                return False
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if _UNSAFE.fullmatch(name):
                return False
            case ast.While(test=ast.Constant()):
                return False
            case _:
                pass
    return True


def asked_examples(request: str, functions: Functions) -> list[tuple[str, str]]:
    """Arguments and results that the request gives for the only function, if that has one parameter."""
    if len(functions) != 1 or any(len(kinds) != 1 for kinds in functions.values()):
        return []
    return result_examples(request)


def is_same_code(one: str, other: str, names: Sequence[str]) -> bool:
    """Tells whether the functions, or without names the files, are the same apart from comments and layout."""
    if not names:
        trees = tree_of(one), tree_of(other)
        return trees[0] is not None and trees[1] is not None and ast.dump(trees[0]) == ast.dump(trees[1])
    first, second = definitions_in(one), definitions_in(other)
    return all(name in first and name in second and ast.dump(first[name]) == ast.dump(second[name]) for name in names)


def comparison_command(versions: Sequence[str], functions: Functions, examples: Sequence[tuple[str, str]], old: str = "") -> str:
    """Command that fails unless the first version has the results of another one.

    `old`: the file before a repair, which must have had other results.
    """
    script = Path(__file__).with_name("comparison_script.py").read_text("utf-8")
    order = {"versions": versions, "functions": functions, "examples": examples, "old": old, "mark": COMPARED}
    return f"{PROBE}{shlex.quote(script)} {shlex.quote(json.dumps(order))}"


def is_comparison(run: ToolPart) -> bool:
    return COMPARED in str(run.input.get("command"))


def difference(run: ToolPart) -> str:
    """Why the first version of a comparison does not stand; empty if it does."""
    said = next((line for line in run.output.splitlines() if line.startswith(COMPARED)), "") if is_comparison(run) else ""
    return said.removeprefix(COMPARED) if run.is_error else ""


def right_version(run: ToolPart) -> str:
    """The text of the version that a comparison found right instead of the first; empty if none."""
    if not (match := re.match(r"version (\d) is right", difference(run))):
        return ""
    order = next(word for word in shlex.split(str(run.input["command"])) if word.startswith('{"versions"'))
    return str(json.loads(order)["versions"][int(match[1]) - 1])
