"""Changes of Python definitions that need no model: removals, parameters, results, annotations and docstrings."""

from __future__ import annotations

import ast
import copy
import keyword
import re

from wolo.models.local.checks.asked_changes import NEW_PARAMETER, removes
from wolo.models.local.checks.asked_parts import asked_parts, named_functions
from wolo.models.local.checks.code_check import (
    FUNCTIONS,
    IMPORTS,
    definitions,
    has_effect,
    imports_end,
    parse_python,
    replace_node,
    span_of,
    syntax_problem,
    tree_of,
    undefined_names,
)
from wolo.models.local.checks.edited_data import LITERALS
from wolo.models.local.checks.marks import mentioned_names, num_of
from wolo.models.local.checks.senses import means
from wolo.models.local.checks.stated_results import asked_formula

Function = ast.FunctionDef | ast.AsyncFunctionDef


def change_definition(old: str, request: str) -> str | None:
    """Remove the definition that the request removes, or add the docstring or parameter that it states."""
    quoted, lines = asked_parts(request).quoted, old.splitlines()
    for name, node in definitions(parse_python(old)).items() if not syntax_problem("a.py", old) else ():
        first, last = span_of(node)
        if removes(request, name, old):
            return re.sub(r"\n{4,}", "\n\n\n", "\n".join([*lines[: first - 1], *lines[last:]]).strip("\n") + "\n")
        if re.search("docstring", request, re.I) and num_of(name, request) and len(quoted) == 1:
            documented = with_docstrings(old, {name: quoted[0]})
            return documented if documented.splitlines() != lines else None
        if isinstance(node, ast.FunctionDef) and num_of(name, request) and (changed := _add_parameter(old, node, request)):
            return changed
    return None


def _add_parameter(old: str, node: ast.FunctionDef, request: str) -> str | None:
    """Add the parameter that the request names, whose default is the only such value in the body."""
    match, inside = NEW_PARAMETER.search(request), [each for each in ast.walk(node) if not isinstance(each, ast.keyword)]
    known = {getattr(each, "arg", None) or getattr(each, "id", None) for each in inside}
    name = next(filter(None, match.groups()), "") if match else ""
    numbers, quoted = asked_parts(request).numbers, [each for each in asked_parts(request).quoted if each != name]
    values = [*numbers, *LITERALS.findall(request), *map(repr, quoted)]
    if not name or name in known or len(values) != 1 or node.args.vararg or node.args.kwonlyargs or node.args.kwarg:
        return None
    inner, parts = [each for line in node.body for each in ast.walk(line)], list[ast.AST]()
    for each in inner:  # texts around braces, patterns, and positions are no values
        parts += ast.walk(each) if isinstance(each, ast.JoinedStr) else [each.slice] if isinstance(each, ast.Subscript) else []
        parts += ast.walk(each.pattern) if isinstance(each, ast.match_case) else []
    parts += [node.body[0].value] if isinstance(node.body[0], ast.Expr) else []
    places = [each for each in inner if isinstance(each, ast.Constant) and repr(each.value) == values[0]]
    own = node.args.args
    if len(places) != 1 or places[0] in parts or node.args.posonlyargs or keyword.iskeyword(name):
        return None
    text = replace_node(old, places[0], name)
    if own:
        ends: list[ast.arg | ast.expr] = [*own, *node.args.defaults]
        last = max(ends, key=lambda each: (each.end_lineno or 0, each.end_col_offset or 0))
        return (
            None
            if last.lineno != last.end_lineno
            else replace_node(text, last, f"{ast.get_source_segment(old, last)}, {name}={values[0]}")
        )
    lines = text.splitlines(keepends=True)
    lines[node.lineno - 1] = re.sub(r"\(\s*\)", f"({name}={values[0]})", lines[node.lineno - 1], count=1)
    return "".join(lines)


def keep_bodies(old: str, new: str, request: str) -> str:
    """Take only annotations or docstrings from the new file, where the request is for nothing else."""
    is_typed, is_told = means(request, "type_hint"), re.search("docstring", request, re.I) is not None
    before, after = tree_of(old), tree_of(new)
    if not (is_typed or is_told) or before is None or after is None:
        return new
    known, lines, own = functions_of(after), old.splitlines(), new.splitlines()
    sentences = {name: text.splitlines()[0] for name, node in known.items() if is_told and (text := ast.get_docstring(node))}
    for name, node in sorted(functions_of(before).items(), key=lambda item: -item[1].lineno) if is_typed else ():
        other = known.get(name)
        if other is None or type(other) is not type(node) or _bare_arguments(other) != _bare_arguments(node):
            continue
        (begin, end), (first, last) = _head(lines, node), _head(own, other)
        if end > begin and last > first and "#" not in "".join(lines[begin:end]):
            lines[begin:end] = own[first:last]
    there = {ast.unparse(each) for each in before.body}
    fresh = [
        text for each in after.body if isinstance(each, IMPORTS) and (text := ast.unparse(each)) not in there and "typing" in text
    ]
    at = imports_end(lines, before)
    text = "\n".join([*lines[:at], *fresh, *([""] * bool(fresh and not at)), *lines[at:]]) + "\n"
    return with_docstrings(text, sentences) if sentences else text


def _bare_arguments(node: Function) -> str:
    """Write parameters with their defaults, without annotations."""
    arguments = copy.deepcopy(node.args)
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return ast.unparse(arguments)


def _head(lines: list[str], node: Function) -> tuple[int, int]:
    """Find lines of a function up to its colon, from 0; none where its body begins on the last of them."""
    end = min([node.body[0].lineno, *(each.lineno for each in getattr(node.body[0], "decorator_list", ()))]) - 1
    if lines[end][: len(lines[end]) - len(lines[end].lstrip())] != lines[end].encode()[: node.body[0].col_offset].decode():
        return 0, 0
    while end > node.lineno and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return node.lineno - 1, end


def annotation_problem(text: str, request: str) -> str:
    """Name what lacks an annotation, or what its f-string contradicts, where type hints are asked for; empty if nothing."""
    tree, named = tree_of(text), mentioned_names(request)
    if tree is None or not means(request, "type_hint"):
        return ""
    functions = functions_of(tree)
    for name, node in functions.items():
        if named & {*functions} and name not in named:
            continue
        bare = [each.arg for each in node.args.args if each.annotation is None and each.arg not in ("self", "cls")]
        texts = [each for each in ast.walk(node) if isinstance(each, ast.Return) and isinstance(each.value, ast.JoinedStr)]
        if bare or node.returns is None:
            return f"{', '.join(bare) or 'the result'} of {name} has no type hint"
        if texts and "str" not in ast.unparse(node.returns):
            return f"{name} returns a str"
    return ""


def functions_of(tree: ast.Module) -> dict[str, Function]:
    return {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def set_result(old: str, request: str) -> str | None:
    """Give a function that is one `return` the formula that the request states for a call of it."""
    functions, formula = named_functions(request, old), asked_formula(request, old)
    node = definitions(parse_python(old)).get(functions[0].name) if functions and not syntax_problem("a.py", old) else None
    if not formula or node is None:
        return None
    body = node.body[ast.get_docstring(node) is not None :]
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    return replace_node(old, value, formula) if value is not None else None


def functions_without_docstring(old: str, request: str) -> list[str]:
    """List functions that a request for docstrings means: those that it names, or all, if they have none."""
    tree, functions = tree_of(old), functions_of(tree_of(old) or ast.Module([], []))
    if tree is None or not re.search("docstring", request, re.I) or asked_parts(request).quoted:
        return []
    named = mentioned_names(request) & {*functions}
    return [name for name, node in functions.items() if (name in named or not named) and not ast.get_docstring(node)]


def with_docstrings(old: str, sentences: dict[str, str]) -> str:
    """Add these docstrings, by the names of the functions."""
    lines = old.splitlines()
    for name, node in sorted(functions_of(tree_of(old) or ast.Module([], [])).items(), key=lambda item: -item[1].lineno):
        _, end = _head(lines, node)
        if name in sentences and end and not ast.get_docstring(node):
            text = re.sub(r'"""|"$', "'", sentences[name].replace("\\", "\\\\"))
            body = lines[node.body[0].lineno - 1]
            lines.insert(end, f'{body[: len(body) - len(body.lstrip())]}"""{text}"""')
    return "\n".join(lines) + "\n"


def without_demo(text: str) -> str:
    """Remove the code behind the definitions of a library that tries them out."""
    tree = tree_of(text)
    defined = [node for node in tree.body if isinstance(node, FUNCTIONS)] if tree else []
    if tree is None or not defined:
        return text
    last = max(node.end_lineno or 0 for node in defined)
    behind = [node for node in tree.body if node.lineno > last]
    cut = "\n".join(text.splitlines()[:last]) + "\n"
    is_demo = has_effect(ast.Module(behind, [])) and not any(
        isinstance(node, IMPORTS) for each in behind for node in ast.walk(each)
    )
    return cut if is_demo and (library := tree_of(cut)) and undefined_names(library) <= undefined_names(tree) else text
