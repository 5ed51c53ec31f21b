"""Changes of one place that need few or no words of a model: a value, a renaming, an exchange of texts, lines at an end."""

from __future__ import annotations

import ast
import json
import re
from pathlib import PurePath
from typing import Final

from wolo.models.local.checks import asked_parts as asked
from wolo.models.local.checks.code_check import definitions, parse_python, replace_node, span_of, syntax_problem, tree_of
from wolo.models.local.checks.kept_content import PROSE_SUFFIXES, apply_rename, asked_rename

DATA: Final = frozenset((".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".env"))
_LITERALS: Final = re.compile(r"(?<![\w.])(?:true|false|null|None|True|False)(?![\w.])")


def edit_place(path: str, old: str, request: str) -> str | None:
    """The file after a change that the request states in full; None: a model has to write it."""
    suffix, parts = PurePath(path).suffix.lower(), asked.asked_parts(request)
    suffix = ".env" if PurePath(path).name.startswith(".env") else suffix
    is_list = suffix == ".csv" or PurePath(path).name.startswith((".", "requirements"))
    if rename := asked_rename(request, old):
        return apply_rename(old, rename)
    if suffix == ".py" and (changed := _change_definition(old, request)):
        return changed
    if suffix == ".py" and parts.calls:
        return _set_result(old, request)
    if parts.functions or parts.calls or asked.means(request, "remove"):
        return None
    if (exchange := asked.asked_exchange(request, old)) and (exchange[0].isdigit() or suffix != ".py"):
        return _exchange(old, exchange, request)
    if suffix in DATA or suffix == ".py":
        return _set_value(suffix, old, request, parts)
    if is_list and not parts.quoted and parts.marked and not asked.means(request, "rewrite"):
        return "\n".join([*old.splitlines(), *(each for each in parts.marked if each not in old.splitlines())]) + "\n"
    if suffix in PROSE_SUFFIXES:
        known = [each for each in parts.quoted if each in old]
        fresh = [each for each in parts.quoted if each not in old]
        if asked.means(request, "rewrite") or asked.means(request, "rename"):
            return old.replace(known[0], fresh[0]) if len(known) == 1 and len(fresh) == 1 else None
        at_end, is_heading = asked.means(request, "at_end"), asked.means(request, "heading")
        if at_end:
            fresh = list(parts.quoted)
        if not fresh or (known and not at_end) or not (at_end or is_heading):
            return None
        lines = [line for line in re.findall(r"(?m)^(#+) ", old) if len(line) > 1]
        level = max(set(lines), key=lines.count) if lines else "##"
        added = [fresh[0] if fresh[0].startswith("#") else f"{level} {fresh[0]}", *fresh[1:]] if is_heading else fresh
        if is_heading and len(fresh) == 1:
            return None  # its text is for the model to write
        gap = "\n" if is_list or re.match("[-*+] ", added[0]) else "\n\n"
        return gap.join((old.rstrip(), *added)) + "\n"
    return None


def _change_definition(old: str, request: str) -> str | None:
    """A Python file without the definition that the request removes, or with the docstring that it states."""
    quoted, lines = asked.asked_parts(request).quoted, old.splitlines()
    for name, node in definitions(parse_python(old)).items() if not syntax_problem("a.py", old) else ():
        (first, last), body = span_of(node), node.body[0].lineno - 1
        if asked.removes(request, name):
            return re.sub(r"\n{4,}", "\n\n\n", "\n".join([*lines[: first - 1], *lines[last:]]).strip("\n") + "\n")
        if re.search("docstring", request, re.I) and asked.num_of(name, request) and len(quoted) == 1 and body >= node.lineno:
            begin = f'{" " * node.body[0].col_offset}"""'
            return None if ast.get_docstring(node) else "\n".join([*lines[:body], f'{begin}{quoted[0]}"""', *lines[body:], ""])
    return None


def _exchange(old: str, exchange: tuple[str, str], request: str) -> str | None:
    """The file with the new value in the only place of the old one, or in that whose surroundings the request names."""
    lines, words, points = old.split("\n"), re.findall(r"\w{3,}", request.lower()), dict[int, int]()
    for at in (at for at, line in enumerate(lines) if asked.num_of(exchange[0], line)):
        owners = [lines[at]]
        for line in reversed(lines[:at]):
            if line.strip() and len(line) - len(line.lstrip()) < len(owners[-1]) - len(owners[-1].lstrip()):
                owners.append(line)
        around = set(re.findall(r"\w{3,}", " ".join(owners).lower()))
        points[at] = sum(any(word.startswith(each) for word in words) for each in around)
    best = [at for at in points if points[at] == max(points.values())]
    for at in best:
        lines[at] = re.sub(rf"(?<!\w){re.escape(exchange[0])}(?!\w)", lambda _: exchange[1], lines[at], count=1)
    return "\n".join(lines) if len(best) == 1 else None


def _set_result(old: str, request: str) -> str | None:
    """A function that is one `return` gets the formula that the request states for a call of it."""
    functions, formula = asked.named_functions(request, old), asked.asked_formula(request, old)
    node = definitions(parse_python(old)).get(functions[0].name) if functions and not syntax_problem("a.py", old) else None
    if not formula or node is None:
        return None
    body = node.body[ast.get_docstring(node) is not None :]
    value = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    return replace_node(old, value, formula) if value is not None else None


def _set_value(suffix: str, old: str, request: str, parts: asked.AskedParts) -> str | None:
    """One key or constant gets the only value that the request gives."""
    names = asked.mentioned_names(request)
    pattern = (
        r"^([A-Z_][A-Z0-9_]*)( *(?::[^=\n]+)?= *)(.+)$"
        if suffix == ".py"
        else r"^( *(?:export )?[\"']?)([\w-]+)([\"']? *[:=] *)(.+)$"
    )
    lines, places = old.split("\n"), []
    for at, line in enumerate(lines):
        match = re.match(pattern, line)
        if match and match[1 if suffix == ".py" else 2] in names:
            places.append((at, match))
    keys = {match[1 if suffix == ".py" else 2] for _, match in places}
    values = [
        *parts.numbers,
        *_LITERALS.findall(request),
        *(each for each in (*parts.quoted, *parts.marked) if each not in keys and each not in parts.names),
    ]
    if len(places) != 1:
        return _add_entry(suffix, old, parts) if not places and suffix in DATA else None
    at, match = places[0]
    value = match.groups()[-1].rstrip()
    tail = re.search(r"(,?\s*(?:[#;].*)?)$", value) if suffix != ".py" else re.search(r"(\s*(?:  #.*)?)$", value)
    before = value[: len(value) - len(tail[1])] if tail else value
    values = [each for each in dict.fromkeys(values) if each != before.strip("\"'")]
    if len(values) != 1 or before[:1] in "[{" or before.startswith(('"""', "'''")):
        return None
    written = _in_style(values[0], before, suffix)
    lines[at] = "".join(match.groups()[:-1]) + written + (tail[1] if tail else "")
    return "\n".join(lines)


def _in_style(value: str, before: str, suffix: str) -> str:
    """The value, quoted where the old one was, or where the format needs it."""
    if before[:1] in ("'", '"') and before[:1] == before[-1:]:
        return before[0] + value.replace(before[0], f"\\{before[0]}") + before[0]
    is_plain = re.fullmatch(r"-?\d+(?:\.\d+)?|true|false|null|None|True|False", value)
    return json.dumps(value, ensure_ascii=False) if not is_plain and suffix in (".json", ".toml", ".py") else value


def _add_entry(suffix: str, old: str, parts: asked.AskedParts) -> str | None:
    keys = [name for name in parts.names if re.fullmatch(r"[A-Za-z_][\w-]*", name)]
    values = [*parts.numbers, *(each for each in parts.quoted if each not in keys)]
    if len(keys) != 1 or len(values) != 1:
        return None
    value = values[0] if values[0] in parts.numbers else json.dumps(values[0], ensure_ascii=False)
    if suffix == ".json":
        body = old.rstrip()
        inner = body[:-1].rstrip()
        if not body.startswith("{") or not body.endswith("}") or "\n" not in body:
            return None
        indent = re.search(r"\n(\s+)", body)
        comma = "" if inner == "{" else ","
        return f'{inner}{comma}\n{indent[1] if indent else "  "}"{keys[0]}": {value}\n}}\n'
    is_flat = suffix in (".ini", ".cfg", ".env") or not re.search(r"^\s*\[|^\s+\S", old, re.M)
    if not is_flat or (suffix == ".ini" and old.count("\n[") + old.startswith("[") > 1):
        return None
    mark = ": " if suffix in (".yaml", ".yml") else "=" if suffix == ".env" or not re.search(r"\w = ", old) else " = "
    return f"{old.rstrip()}\n{keys[0]}{mark}{values[0] if suffix in ('.ini', '.cfg', '.env') else value}\n"


def shown_part(old: str, request: str) -> str:
    """Constants, and the definitions that the request names, of a Python file; all of it if it names none."""
    if (tree := tree_of(old)) is None:
        return old
    names = asked.mentioned_names(request)
    named = [node for name, node in definitions(tree).items() if name in names]
    named += [node for node in definitions(tree).values() if node not in named and _methods(node) & names]
    if not named:
        return old
    lines = old.splitlines()
    parts = ["\n".join(lines[span_of(node)[0] - 1 : span_of(node)[1]]) for node in named]
    return "\n\n\n".join(parts) + "\n"


def _methods(node: object) -> set[str]:
    return {each.name for each in getattr(node, "body", ()) if hasattr(each, "name") and hasattr(each, "args")}


def begin_of(request: str, old: str = "") -> str:
    """First lines of new code whose function, class or method the request gives with its parameters; empty otherwise."""
    parts = asked.asked_parts(request)
    owners = [name for name in asked.mentioned_names(request) if re.search(rf"(?m)^class {name}\b", old)]
    methods = [each.name for each in parts.functions if not each.is_class] or [name for name in parts.names if name.islower()]
    if len(owners) == len(methods) == 1 and asked.means(request, "method") and not asked.num_of(methods[0], old):
        return f"class {owners[0]}:\n    def {methods[0]}(self"
    classes = [each for each in parts.functions if each.is_class]
    for each in classes[:1] or parts.functions[:1]:
        if re.search(rf"\b(?:def|class) {each.name}\b", old):
            return ""
        if each.is_class:
            return (
                f"class {each.name}:\n    def __init__(self, {each.arguments}):\n" if each.arguments else f"class {each.name}:\n"
            )
        begin = f"def {each.name}({each.arguments}):\n"
        is_method = asked.means(request, "method") or any(name[:1].isupper() and not name.isupper() for name in parts.names)
        try:
            parse_python(f"{begin}    pass\n")
        except (SyntaxError, ValueError):
            return ""
        return "" if is_method else begin
    return ""


def asked_definitions(text: str, request: str) -> str:
    """The beginning of a text that defines all asked functions and classes, once something else follows; empty before.

    Empty also where the request wants to see something, which may follow.
    """
    names = [each.name for each in asked.asked_parts(request).functions]
    lines, next_one = text.splitlines(), "[A-Za-z_]" if names else r"(?:    (?=def|@))?[A-Za-z_@]"
    for at in range(1 if names else 2, 0 if asked.means(request, "output") else len(lines)):
        head = "\n".join(lines[:at]).rstrip()
        if re.match(next_one, lines[at]) and all(re.search(rf"(?m)^\s*(?:def|class) {name}\b", head) for name in names):
            return "" if syntax_problem("a.py", head) else head
    return ""


def whole_definitions(text: str) -> str:
    """The definitions of cut-off code that came to an end; empty if none did."""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if re.match(r"(?:    )?(?:def|class|async def|if|@|\w+ *=|print)\b", line)]
    for end in reversed(starts[1:]):
        whole = "\n".join(lines[:end]).rstrip()
        if tree_of(whole):
            return whole
    return ""


def exact_texts(text: str, request: str) -> str:
    """The text with quotations of the request as they are written there: tiny models change capitals and end sentences."""
    for each in asked.asked_parts(request).quoted:
        text = re.sub(rf"({re.escape(each)})[.!](?=\\n|[\"'])", r"\1", text)
        if each not in text and len(spellings := set(re.findall(re.escape(each), text, re.IGNORECASE))) == 1:
            text = text.replace(spellings.pop(), each)
    return text
