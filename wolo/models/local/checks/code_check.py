"""Checks and completes what a small model wrote: syntax, missing imports, lost definitions, code that does nothing."""

from __future__ import annotations

import ast
import builtins
import itertools
import json
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from shutil import which
from typing import Final

from wolo.models.local.checks.asked_parts import asked_names

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS: Final = (ast.Import, ast.ImportFrom)
PARSE_S: Final = 10.0
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def syntax_problem(path: str, text: str) -> str:
    """Syntax error of the text for this file type; empty if none."""
    if not text.strip():
        return "it is empty"
    try:
        match PurePath(path).suffix.lower():
            case ".py":
                parse_python(text)
            case ".json":
                json.loads(text)
            case ".toml":
                tomllib.loads(text)
            case ".yaml" | ".yml":
                try:
                    import yaml  # noqa: PLC0415  # an extra
                except ImportError:
                    return ""
                try:
                    list(yaml.safe_load_all(text))
                except yaml.YAMLError as error:
                    return " ".join(str(error).split())
            case ".sh" | ".bash":
                return _parse_with(("bash", "-n"), text)
            case ".js" | ".mjs":
                return _parse_with(("node", "--check", "-"), text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it cannot be parsed"
    return ""


def _parse_with(command: Sequence[str], text: str) -> str:
    """Have a program parse the text without running it; empty where it is not installed."""
    program = which(command[0])
    if program is None:
        return ""
    argv = [program, *command[1:]]
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=PARSE_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if "rror" in line]
    return (lines[0] if lines else "it cannot be parsed") if done.returncode else ""


def complete_python(text: str) -> str:
    """Import standard modules that are used without, and call a `main` that nothing calls."""
    if (tree := tree_of(text)) is None:
        return text
    missing = [f"import {name}" for name in sorted(undefined_names(tree) & sys.stdlib_module_names) if f"{name}." in text]
    if missing:
        lines = text.splitlines()
        at = imports_end(lines, tree)
        text = "\n".join([*lines[:at], *missing, *([""] if not at else []), *lines[at:]]) + "\n"
    if "main" in definitions(tree) and not has_effect(tree):
        text = f'{text.rstrip()}\n\n\nif __name__ == "__main__":\n    main()\n'
    return text


def print_dropped(text: str) -> str:
    """Print the last result that a program without any output computes and drops."""
    if (tree := tree_of(text)) is None:
        return text
    returns = {
        name
        for name, node in definitions(tree).items()
        if any(getattr(each, "value", 0) for each in ast.walk(node) if isinstance(each, ast.Return))
    }
    calls = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    dropped = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in returns]
    if not dropped or re.search(r"\bprint\(|\bstdout\b", text):
        return text
    return replace_node(text, dropped[-1], f"print({ast.get_source_segment(text, dropped[-1])})")


def import_own(text: str, path: str, others: Mapping[str, str]) -> str:
    """Import names from other files of the project, by path, that are used without."""
    tree = tree_of(text)
    for name in sorted(undefined_names(tree)) if tree else ():
        modules = [other for other, content in others.items() if re.search(rf"(?m)^(?:def|class) {name}\b|^{name} *=", content)]
        own = [module for module in modules if module != path and PurePath(module).parent == PurePath(path).parent]
        if own:
            text = f"from {PurePath(own[0]).stem} import {name}\n{text}"
    return text


def without_copies(text: str, others: Mapping[str, str]) -> str:
    """A test without its own copies of what other files define."""
    lines = text.splitlines()
    known = {name for content in others.values() for name in definitions_in(content)}
    for name, node in reversed(definitions_in(text).items()):
        if name in known:
            first, last = span_of(node)
            del lines[first - 1 : last]
    return "\n".join(lines).strip("\n") + "\n" if known else text


def undefined_names(tree: ast.Module) -> set[str]:
    """Names that are read but bound nowhere in the file."""
    read: set[str] = set()
    bound = {*dir(builtins), "__file__", "__name__", "__doc__", "__annotations__", "__builtins__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.alias(name="*"):
                return set()
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                bound.add(name)
            case ast.MatchMapping(rest=str(name)):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                bound.update(names)
            case _:
                pass
    return read - bound


def has_effect(tree: ast.Module) -> bool:
    """Tells whether running the file does anything but define names."""
    return any(not _only_defines(node) for node in tree.body)


def _only_defines(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign() | ast.AnnAssign():
            return not any(isinstance(each, ast.Call) for each in ast.walk(node))
        case _:
            return isinstance(node, FUNCTIONS)


def does_nothing(text: str) -> bool:
    """Tells whether a Python program only defines functions, so that running it shows nothing."""
    tree = tree_of(text)
    return tree is not None and not has_effect(tree)


def name_problem(text: str) -> str:
    """Names a Python file reads that nothing defines; empty if none."""
    tree = tree_of(text)
    unknown = sorted(undefined_names(tree)) if tree else ()
    return f"{', '.join(unknown)} is not defined" if unknown else ""


def apply_asked_name(text: str, request: str) -> str:
    """Give the only function of a text the name that was asked for: tiny models shorten `fibonacci` to `fib`."""
    names = [name for name in asked_names(request) if not name[:1].isupper()]
    defined = [name for name, node in definitions_in(text).items() if not isinstance(node, ast.ClassDef) and name != "main"]
    if len(names) != 1 or len(defined) != 1 or re.search(rf"\b{names[0]}\b", text):
        return text
    return re.sub(rf"\b{defined[0]}\b", names[0], text)


def tree_of(text: str) -> ast.Module | None:
    """None: it is no valid Python."""
    try:
        return parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_python(text: str) -> ast.Module:
    if re.search("[\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]", text):
        raise ValueError("it has line breaks that Python does not count, such as a form feed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # do not show warnings about odd escapes
        tree = ast.parse(text)
        compile(text, "written", "exec", dont_inherit=True)  # finds errors the parser misses, such as a stray `return`
    return tree


def definitions(tree: ast.Module) -> dict[str, Definition]:
    """Top-level definitions in file order; of duplicates the last wins."""
    by_name = {node.name: node for node in tree.body if isinstance(node, FUNCTIONS)}
    return dict(sorted(by_name.items(), key=lambda item: item[1].lineno))


def definitions_in(text: str) -> dict[str, Definition]:
    """Collect the top-level definitions of a text; none of one that is no valid Python."""
    tree = tree_of(text)
    return definitions(tree) if tree else {}


def span_of(node: Definition) -> tuple[int, int]:
    """First and last line, from 1, including decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def lines_of(text: str, node: Definition) -> list[str]:
    """Cut the lines of a definition out of the text."""
    first, last = span_of(node)
    return text.splitlines()[first - 1 : last]


def replace_node(text: str, node: ast.expr | ast.arg, new: str) -> str:
    """The text with other words for an expression; unchanged if it takes several lines."""
    lines = text.encode().splitlines(keepends=True)
    if node.lineno == node.end_lineno:
        row = lines[node.lineno - 1]
        lines[node.lineno - 1] = row[: node.col_offset] + new.encode() + row[node.end_col_offset :]
    return b"".join(lines).decode()


def imports_end(lines: list[str], tree: ast.Module) -> int:
    """Number of lines before further imports: after imports, docstring or opening comments."""
    top = itertools.takewhile(lambda node: not isinstance(node, FUNCTIONS), tree.body)
    ends = [node.end_lineno or 0 for node in top if isinstance(node, IMPORTS)]
    if not ends and ast.get_docstring(tree) is not None:
        ends = [tree.body[0].end_lineno or 0]
    comments = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return max([comments, *ends])
