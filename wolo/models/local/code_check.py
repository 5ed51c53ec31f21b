"""Checks and completes what a small model wrote: syntax, missing imports, lost definitions, code that does nothing."""

from __future__ import annotations

import ast
import builtins
import difflib
import itertools
import json
import keyword
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Sequence
from pathlib import PurePath
from shutil import which
from typing import Final

KEPT_SHARE: Final = 0.5
"""Minimum share of lines a changed file must keep; Python is compared by definitions instead."""
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS: Final = (ast.Import, ast.ImportFrom)
_REMOVING: Final = frozenset(("remove", "delete", "drop", "rename", "replace", "without"))
PARSE_S: Final = 10.0
ALIKE: Final = 0.6
"""Similarity from which a line counts as a new version of another."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def syntax_problem(path: str, text: str) -> str:
    """Syntax error of the text for this file type; empty if none."""
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
            case ".yaml" | ".yml":
                try:
                    import yaml  # noqa: PLC0415  # an extra
                except ImportError:
                    return ""
                try:
                    list(yaml.safe_load_all(text))
                except yaml.YAMLError as error:
                    return " ".join(str(error).split())
                return ""
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
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    missing = [f"import {name}" for name in sorted(undefined_names(tree) & sys.stdlib_module_names) if f"{name}." in text]
    if missing:
        lines = text.splitlines()
        at = _imports_end(lines, tree)
        text = "\n".join([*lines[:at], *missing, *([""] if not at else []), *lines[at:]]) + "\n"
    if "main" in _definitions(tree) and not has_effect(tree):
        text = f'{text.rstrip()}\n\n\nif __name__ == "__main__":\n    main()\n'
    return text


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
            return isinstance(node, _FUNCTIONS)


def does_nothing(text: str) -> bool:
    """Tells whether a Python program only defines functions, so that running it shows nothing."""
    try:
        return not has_effect(_parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def name_problem(text: str) -> str:
    """Names a Python file reads that nothing defines; empty if none."""
    try:
        unknown = sorted(undefined_names(_parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return f"{', '.join(unknown)} is not defined" if unknown else ""


_ASKED_NAME: Final = re.compile(
    r"(?<![\w.])`?([A-Za-z_]\w{2,})\((?=[\w\s,:*=`'\"\[\].]*\))|\bfunction (?:called |named )?`([A-Za-z_]\w+)`"
    r"|\bfunction (?:called|named) ([A-Za-z_]\w+)|\bfunction (\w+_\w+)"
)
_FILE_NAME: Final = re.compile(r"\b[\w-]+\.[A-Za-z]{1,5}\b")


def asked_functions(request: str) -> list[str]:
    """Names of functions that the request gives: `add(a, b)`, "a function called add". Empty if it is about several files."""
    words = {word.lower() for word in re.findall(r"\w+", request)}
    if words & _REMOVING or len(set(_FILE_NAME.findall(request))) > 1:
        return []
    names = [next(filter(None, found)) for found in _ASKED_NAME.findall(request)]
    return [name for name in dict.fromkeys(names) if name not in dir(builtins) and not keyword.iskeyword(name)]


def _missing(text: str, request: str) -> list[str]:
    return [name for name in asked_functions(request) if not re.search(rf"\b{name}\b", text)]


def missing_functions(text: str, request: str) -> str:
    """Problem of a text without the functions that were asked for by name; empty if none."""
    missing = _missing(text, request)
    return f"it has no {', '.join(missing)}" if missing else ""


def apply_asked_name(text: str, request: str) -> str:
    """Give the only function of a text the name that was asked for: tiny models shorten `fibonacci` to `fib`."""
    missing = _missing(text, request)
    try:
        defined = [
            name for name, node in _definitions(_parse(text)).items() if not isinstance(node, ast.ClassDef) and name != "main"
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    if len(missing) != 1 or len(defined) != 1 or len(asked_functions(request)) != 1:
        return text
    return re.sub(rf"\b{defined[0]}\b", missing[0], text)


def _both(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """All new lines in order, and between them the old ones that none of them resembles."""
    lines, rest = [], list(after)
    for line in before:
        at = next((at for at, new in enumerate(rest) if difflib.SequenceMatcher(None, line, new).ratio() > ALIKE), None)
        if at is None:
            lines.append(line)
        else:
            lines += rest[: at + 1]
            rest = rest[at + 1 :]
    return lines + rest


def apply_rename(text: str, request: str) -> str:
    """Finish a renaming: "rename a to b" also changes the places that still use the old name."""
    names = re.search(r"\brename\b.*?\b(\w+)`?(?:\(\))? (?:to|into|as) `?(\w+)", request, re.IGNORECASE)
    if names is None or (f"def {names[2]}" not in text and f"class {names[2]}" not in text):
        return text
    try:
        unknown = undefined_names(_parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return re.sub(rf"\b{names[1]}\b", names[2], text) if names[1] in unknown else text


def restore_definitions(old: str, new: str, request: str) -> str:
    """Restore definitions of the old file that the model omitted.

    Tiny models answer "add a power function" with that function alone. A name is removed only if the request says so.
    """
    try:
        new_tree = _parse(new)
        old_tree = _parse(old)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # What cannot be parsed is compared by lines: those that were only left out come back.
        if _REMOVING & {word.lower() for word in re.findall(r"\w+", request)}:
            return new
        written, rewritten, both = old.splitlines(), new.splitlines(), list[str]()
        for tag, start, end, begin, stop in difflib.SequenceMatcher(None, written, rewritten, autojunk=False).get_opcodes():
            both += rewritten[begin:stop] if tag == "equal" else _both(written[start:end], rewritten[begin:stop])
        whole = "\n".join(both) + "\n"
        return new if syntax_problem("a.py", new) or syntax_problem("a.py", whole) else whole
    words = set(re.findall(r"\w+", request))
    may_go = words if _REMOVING & {word.lower() for word in words} else set()
    before, present = _definitions(old_tree), _definitions(new_tree)
    keeps_top = has_effect(new_tree) or not has_effect(old_tree)
    if keeps_top and not before.keys() - present.keys() - may_go:
        return new
    old_lines, new_lines = old.splitlines(), new.splitlines()
    spans = {name: _span(node) for name, node in present.items()}
    bodies = {name: new_lines[first - 1 : last] for name, (first, last) in spans.items()}
    imports_at = _imports_end(old_lines, old_tree)
    of_imports = (new_lines[node.lineno - 1 : node.end_lineno] for node in new_tree.body if isinstance(node, _IMPORTS))
    imports = [line for lines in of_imports for line in lines if line not in old_lines]
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


def loses_content(old: str, new: str) -> bool:
    """Check whether a changed file lost too many lines."""
    before = {line.strip() for line in old.splitlines() if line.strip()}
    after = {line.strip() for line in new.splitlines()}
    return len(before & after) < len(before) * KEPT_SHARE


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # do not show warnings about odd escapes
        tree = ast.parse(text)
        compile(text, "written", "exec", dont_inherit=True)  # finds errors the parser misses, such as a stray `return`
    return tree


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    """Top-level definitions in file order; of duplicates the last wins."""
    by_name = {node.name: node for node in tree.body if isinstance(node, _FUNCTIONS)}
    return dict(sorted(by_name.items(), key=lambda item: item[1].lineno))


def _span(node: _Definition) -> tuple[int, int]:
    """First and last line, from 1, including decorators."""
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first, node.end_lineno or node.lineno


def _imports_end(lines: list[str], tree: ast.Module) -> int:
    """Number of lines before further imports: after imports, docstring or opening comments."""
    top = itertools.takewhile(lambda node: not isinstance(node, _FUNCTIONS), tree.body)
    ends = [node.end_lineno or 0 for node in top if isinstance(node, _IMPORTS)]
    if not ends and ast.get_docstring(tree) is not None:
        ends = [tree.body[0].end_lineno or 0]
    comments = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return max([comments, *ends])
