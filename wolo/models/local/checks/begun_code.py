"""Code that a request begins and a model goes on with: what it is shown, and what is whole of an answer that was cut off."""

from __future__ import annotations

import ast
import re
from typing import Final

from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.code_check import definitions_in, lines_of, syntax_problem, tree_of
from wolo.models.local.checks.marks import is_class_name, mentioned_names, num_of
from wolo.models.local.checks.senses import means

RELATED_LINES: Final = 60


def related_classes(old: str, request: str) -> list[str]:
    """Cut out classes of a Python file that words of the request are about, as lines."""
    words = {word.lower().replace("_", "") for word in re.findall(r"[A-Za-z_]+", request)}
    known = definitions_in(old).items()
    about = [node for name, node in known if isinstance(node, ast.ClassDef) and name.lower() in words]
    return [line for node in about for line in ("", *lines_of(old, node))][:RELATED_LINES]


def whole_lines(text: str) -> str:
    """Cut a test after the last line with which it can be parsed, each assertion once; empty if there is none."""
    lines = list[str]()
    for line in text.splitlines():
        lines += [] if line.lstrip().startswith("assert ") and line in lines else [line]
    heads = ("\n".join(lines[:end]) for end in range(len(lines) - 1, 0, -1))
    return next((head for head in heads if tree_of(head) and "assert" in head), "")


def shown_part(old: str, request: str) -> str:
    """Cut out the definitions of a Python file that the request names; all of it if it names none."""
    names, known = mentioned_names(request), definitions_in(old)
    named = [node for name, node in known.items() if name in names]
    named += [node for name, node in known.items() if name not in names and _methods(node) & names]
    return "\n\n\n".join("\n".join(lines_of(old, node)) for node in named) + "\n" if named else old


def _methods(node: object) -> set[str]:
    return {each.name for each in getattr(node, "body", ()) if hasattr(each, "name") and hasattr(each, "args")}


def begin_of(request: str, old: str = "") -> str:
    """Begin new code whose function, class or method the request gives with its parameters; empty otherwise."""
    parts = asked_parts(request)
    owners = [name for name in mentioned_names(request) if re.search(rf"(?m)^class {name}\b", old)]
    methods = [each.name for each in parts.functions if not each.is_class] or [name for name in parts.names if name.islower()]
    if len(owners) == len(methods) == 1 and means(request, "method") and not num_of(methods[0], old):
        return f"class {owners[0]}:\n    def {methods[0]}(self"
    classes = [each for each in parts.functions if each.is_class]
    for each in classes[:1] or parts.functions[:1]:
        if re.search(rf"\b(?:def|class) {each.name}\b", old):
            return ""
        if each.is_class:
            return f"class {each.name}:\n" + f"    def __init__(self, {each.arguments}):\n" * bool(each.arguments)
        begin = f"def {each.name}({each.arguments}):\n"
        is_method = means(request, "method") or any(map(is_class_name, parts.names))
        return begin if not is_method and tree_of(f"{begin}    pass\n") else ""
    return ""


def asked_definitions(text: str, request: str) -> str:
    """Cut a text where it defines all asked functions and classes and something else follows; empty before.

    Empty also where the request wants to see something, which may follow.
    """
    names = [each.name for each in asked_parts(request).functions]
    lines, next_one = text.splitlines(), "[A-Za-z_]" if names else r"(?:    (?=def|@))?[A-Za-z_@]"
    for at in range(1 if names else 2, 0 if means(request, "output") else len(lines)):
        head = "\n".join(lines[:at]).rstrip()
        if re.match(next_one, lines[at]) and all(re.search(rf"(?m)^\s*(?:def|class) {name}\b", head) for name in names):
            return "" if syntax_problem("a.py", head) else head
    return ""


def whole_definitions(text: str) -> str:
    """Keep the definitions of cut-off code that came to an end; empty if none did."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if re.match(r"(?:    )?(?:def|class|async def|if|@|\w+ *=|print)\b", line)]
    heads = ("\n".join(lines[:end]).rstrip() for end in reversed(starts[1:]))
    return next(filter(tree_of, heads), "")
