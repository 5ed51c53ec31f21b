"""Keeps what a changed file held: restores what a small model left out, and names what is lost all the same."""

from __future__ import annotations

import ast
import configparser
import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final

from wolo.models.local.checks import code_check
from wolo.models.local.checks.asked_changes import asked_exchange
from wolo.models.local.checks.asked_parts import asked_parts
from wolo.models.local.checks.marks import mentioned_names
from wolo.models.local.checks.senses import GOES, means

MAX_REWORDED: Final = 3
"""Lines of code of other languages than Python that may become others at once."""
ALIKE: Final = 0.6
"""Similarity from which a line counts as a new version of another."""
MAX_NAMED: Final = 3
PROSE_SUFFIXES: Final = frozenset((".md", ".txt", ".rst", ".csv", ".env", ".cfg", ".conf", ""))
_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_DEFINED: Final = re.compile(
    r"^\s*(?:export )?(?:async )?(?:function\*? |def |class |func |fn |pub fn |interface |struct )(\w+)"
    r"|^(\w+) ?\(\) ?\{|\bid=[\"']([\w-]+)",
    re.M,
)


def lost_content(path: str, old: str, new: str, request: str) -> str:
    """Parts of the old file that are gone although nobody asked for that, as the end of "it lost …"; empty if none."""
    if means(request, "rewrite") and not asked_parts(request).quoted and PurePath(path).suffix.lower() in PROSE_SUFFIXES:
        return ""
    may_go, swap = _may_go(request), asked_exchange(request, old) or ("", "")
    suffix = PurePath(path).suffix.lower()
    try:
        if suffix == ".py":
            before, after = _python_names(code_check.parse_python(old)), _python_names(code_check.parse_python(new))
            lost = [name for name in before if name not in after and not may_go & set(name.split("."))]
        elif suffix in (".json", ".toml", ".ini"):
            lost = _lost_entries(_entries(suffix, old), _entries(suffix, new), request, swap)
        elif suffix in (".yaml", ".yml"):
            lost = _lost_entries(dict(_yaml_entries(old)), dict(_yaml_entries(new)), request, swap)
        elif suffix in PROSE_SUFFIXES:
            goes = suffix == ".csv" and means(request, "column") and means(request, "remove")
            lost = [] if goes else _lost_lines(old, new, request, is_table=suffix not in (".md", ".txt", ".rst"))
        else:
            named = [next(filter(None, each)) for each in _DEFINED.findall(old)]
            lost = [
                name for name in named if name not in may_go and not re.search(rf"\b{re.escape(name)}\b", new)
            ] or _too_few_lines(old, new)
    except (*_UNREADABLE, configparser.Error):  # the old file cannot be read either: compared by lines
        lost = _too_few_lines(old, new)
    if suffix in (".toml", ".ini", ".yaml", ".yml") and not lost:
        lost = [line for line in _comments(old) if line not in _comments(new)]
    more = f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
    return ", ".join(lost[:MAX_NAMED]) + more


def _may_go(request: str) -> set[str]:
    """Names that the request allows to be gone."""
    return mentioned_names(request) if means(request, *GOES) else set()


def _python_names(tree: ast.Module) -> list[str]:
    """Definitions with their class, and names that are assigned at the top, `None` for a guard or a call there."""
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, code_check.FUNCTIONS):
            names.append(node.name)
        if isinstance(node, ast.ClassDef):
            names += [f"{node.name}.{each}" for each in _members(node)]
        names += _targets(node)
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            names.append("the main block")
    return names


def _members(node: ast.ClassDef) -> list[str]:
    """Methods, fields, decorators and bases of a class."""
    heads = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
    return [
        *heads,
        *(name for each in node.body for name in ([each.name] if isinstance(each, code_check.FUNCTIONS) else _targets(each))),
    ]


def _targets(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


def _entries(suffix: str, text: str) -> dict[str, Any]:
    if suffix == ".ini":
        parser = configparser.ConfigParser(interpolation=None, allow_no_value=True, strict=False)
        parser.read_string(text)
        return {f"{section}.{key}": value for section in parser.sections() for key, value in parser.items(section)}
    return dict(_leaves(json.loads(text) if suffix == ".json" else tomllib.loads(text), ""))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    else:
        yield path, value


def _yaml_entries(text: str) -> Iterator[tuple[str, str]]:
    """Keys by their place, and items of lists, read from lines: a parser of YAML may not be installed."""
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        entry = re.match(r"( *(?:- +)?)([\w./'\"-]+) *:(?: +(.*))?$", line)
        item = re.match(r"( *)- +(.+)$", line)
        if entry:
            depth = len(entry[1])
            above = [each for each in above if each[0] < depth]
            above.append((depth, entry[2].strip("'\"")))
            yield ".".join(name for _, name in above), (entry[3] or "").strip()
        elif item:
            yield ".".join(name for depth, name in above if depth <= len(item[1])) + f".{item[2].strip()}", ""


def _lost_entries(before: dict[str, Any], after: dict[str, Any], request: str, swap: tuple[str, str]) -> list[str]:
    """Keys that are gone, and values of keys that the request does not name."""
    may_go, named = _may_go(request), set(re.findall(r"[\w-]+", request))
    lost = []
    for path, value in before.items():
        keys = set(path.split("."))
        is_parent = after.get(path, value) != value and any(each.startswith(f"{path}.") for each in after)
        if path not in after:
            if path.replace(*swap) not in after and not keys & may_go and not any(each.startswith(f"{path}.") for each in after):
                lost.append(path)
        elif (
            after[path] != value
            and not keys & named
            and not is_parent
            and not (isinstance(value, list) and isinstance(after[path], list) and all(each in after[path] for each in value))
            and named & {key for each in before for key in each.split(".")}
        ):
            lost.append(f"the value of {path}")
    return lost


def _lost_lines(old: str, new: str, request: str, *, is_table: bool) -> list[str]:
    """Lines of prose that are gone; one that holds a name, quote or number of the request may have been changed."""
    kept = [line.strip() for line in new.splitlines() if line.strip()]
    parts = asked_parts(request)
    meant = [part for part in (*parts.quoted, *parts.numbers, *parts.names) if part]
    words = mentioned_names(request)
    lost = []
    for line in (each.strip() for each in old.splitlines() if each.strip()):
        if line in kept:
            kept.remove(line)
        elif not (any(part in line for part in meant) or (is_table and words & {*re.findall(r"\w+", line)})) or (
            not means(request, "remove") and not difflib.get_close_matches(line, kept, 1, ALIKE)
        ):
            lost.append(f"the line “{line[:40]}”")
    return lost


def _comments(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if re.match(r"\s*[#;]", line)]


def _too_few_lines(old: str, new: str) -> list[str]:
    before = dict.fromkeys(line.strip() for line in old.splitlines() if re.search(r"\w", line))
    after = [line.strip() for line in new.splitlines()]
    lost = [line for line in before if line not in after and not difflib.get_close_matches(line, after, 1, ALIKE)]
    return [f"the line “{lost[0][:40]}”"] if len(lost) > MAX_REWORDED or len(lost) > len(before) / 2 else []


# Restoring


def restore_definitions(old: str, new: str, request: str) -> str:
    """Restore definitions of the old file that the model omitted, moved into another's body, or changed without being asked.

    Tiny models answer "add a power function" with that function alone. A name is removed only if the request says so.
    """
    try:
        old_tree = code_check.parse_python(old)
        new = _lift(old_tree, code_check.parse_python(new), new, request)
        new_tree = code_check.parse_python(new)
    except _UNREADABLE:
        return _restore_lines(old, new, request)
    may_go = _may_go(request)
    before, present = code_check.definitions(old_tree), code_check.definitions(new_tree)
    meant = set(before) & mentioned_names(request)
    names_any = meant or asked_parts(request).functions  # a request that names nothing may mean any definition
    old_lines, new_lines = old.splitlines(), new.splitlines()
    spans = {name: code_check.span_of(node) for name, node in present.items()}
    bodies = {name: new_lines[first - 1 : last] for name, (first, last) in spans.items()}
    keeps_top = code_check.has_effect(new_tree) or not code_check.has_effect(old_tree)
    imports_at = code_check.imports_end(old_lines, old_tree)
    of_imports = (new_lines[node.lineno - 1 : node.end_lineno] for node in new_tree.body if isinstance(node, code_check.IMPORTS))
    imports = [line for lines in of_imports for line in lines if line not in old_lines]
    if imports and old_lines[imports_at : imports_at + 1] not in ([], [""]):
        imports += ["", ""]
    joined = [*old_lines[:imports_at], *imports]
    at = imports_at
    kept: dict[str, list[str]] = {}
    """Each old definition as it is in the result."""
    for name, node in before.items():
        own = old_lines[code_check.span_of(node)[0] - 1 : code_check.span_of(node)[1]]
        if name not in bodies:
            kept[name] = [] if name in may_go else own
        elif isinstance(node, ast.ClassDef) and isinstance(class_ := present[name], ast.ClassDef):
            kept[name] = _merge_class(node, class_, own, bodies[name], may_go)
        else:
            kept[name] = bodies[name] if name in meant or not names_any else own
    if keeps_top and not before.keys() - present.keys() - may_go:  # a whole answer
        for name, (first, last) in sorted(spans.items(), key=lambda item: -item[1][0]):
            new_lines[first - 1 : last] = kept.get(name, bodies[name])
        return "\n".join(new_lines) + "\n"
    for name, node in before.items():
        first, last = code_check.span_of(node)
        joined += [*old_lines[at : first - 1], *kept[name]]
        at = last
    added = [line for name, body in bodies.items() if name not in before for line in ("", "", *body)]
    return "\n".join([*joined, *added, *old_lines[at:]]).strip("\n") + "\n"


def _merge_class(old: ast.ClassDef, new: ast.ClassDef, old_lines: list[str], new_lines: list[str], may_go: set[str]) -> list[str]:
    """The new class if it has all fields of the old one, otherwise the old one, each with the methods of the other."""
    is_whole = (
        not {*_members(old)} - {*_members(new)} - {each.name for each in old.body if isinstance(each, code_check.FUNCTIONS)}
    )
    base, other, lines, source = (new, old, new_lines, old_lines) if is_whole else (old, new, list(old_lines), new_lines)
    there = {each.name: each for each in base.body if isinstance(each, code_check.FUNCTIONS)}
    starts = code_check.span_of(base)[0], code_check.span_of(other)[0]
    methods = [each for each in other.body if isinstance(each, code_check.FUNCTIONS)]
    for each in sorted(methods, key=lambda each: -there[each.name].lineno if each.name in there else 0):
        first, last = code_check.span_of(each)
        body = source[first - starts[1] : last - starts[1] + 1]
        if each.name not in there and not (is_whole and each.name in may_go):
            lines += ["", *body]
        elif not is_whole:
            first, last = code_check.span_of(there[each.name])
            lines[first - starts[0] : last - starts[0] + 1] = body
    return lines


def _lift(old: ast.Module, new: ast.Module, text: str, request: str) -> str:
    """Put definitions back to the top that were indented into the body of another function."""
    before = code_check.definitions(old)
    top = set(before) | {each.name for each in asked_parts(request).functions}
    if means(request, "method"):
        top = set(before)
    lines, present = text.splitlines(), code_check.definitions(new)
    for outer in reversed([node for node in present.values() if not isinstance(node, ast.ClassDef) or node.name not in before]):
        inner = [
            each
            for each in outer.body
            if isinstance(each, code_check.FUNCTIONS)
            and each.name in top
            and each.name not in present
            and not isinstance(outer, ast.ClassDef)
        ]
        if len(inner) == len(outer.body):
            continue
        spans = [code_check.span_of(each) for each in inner]
        end = outer.end_lineno or 0
        lines[end:end] = [
            line
            for each, (first, last) in zip(inner, spans, strict=True)
            for line in ("", "", *(line[each.col_offset :] for line in lines[first - 1 : last]))
        ]
        for first, last in reversed(spans):
            del lines[first - 1 : last]
    return "\n".join(lines) + "\n"


def restore_lines(path: str, old: str, new: str, request: str) -> str:
    """Other files than Python: lines that were only left out come back, where this makes up for a loss."""
    if not lost_content(path, old, new, request) or (_may_go(request) and not means(request, "add")):
        return new
    whole = _merge_lines(old, new, keep_all=means(request, "add"))
    return new if code_check.syntax_problem(path, whole) or lost_content(path, old, whole, request) else whole


def _restore_lines(old: str, new: str, request: str) -> str:
    """What cannot be parsed is compared by lines: those that were only left out come back."""
    if _may_go(request):
        return new
    whole = _merge_lines(old, new)
    return new if code_check.syntax_problem("a.py", new) or code_check.syntax_problem("a.py", whole) else whole


def _merge_lines(old: str, new: str, *, keep_all: bool = False) -> str:
    """Both texts in order. `keep_all`: new lines like old ones are left out, instead of taking their places."""
    written, rewritten, both = old.splitlines(), new.splitlines(), list[str]()
    for tag, start, end, begin, stop in difflib.SequenceMatcher(None, written, rewritten, autojunk=False).get_opcodes():
        merged = _union if keep_all else _both
        both += rewritten[begin:stop] if tag == "equal" else merged(written[start:end], rewritten[begin:stop])
    return "\n".join(both) + "\n"


def _union(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The old lines, and of the new ones the paragraphs from the first line on that is unlike all old ones."""
    lines, is_new = list(before), False
    for line in after:
        is_new = bool(line.strip()) and (is_new or not difflib.get_close_matches(line, before, 1, ALIKE))
        lines += [line] if is_new else []
    return lines


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
