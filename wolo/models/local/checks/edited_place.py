"""Changes of one place that need few or no words of a model: a value, a renaming, an exchange of texts, lines at an end."""

from __future__ import annotations

import ast
import copy
import json
import keyword
import re
from pathlib import PurePath
from typing import Final

from wolo.models.local.checks import asked_parts as asked
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
from wolo.models.local.checks.kept_content import PROSE_SUFFIXES, apply_rename, asked_rename

DATA: Final = frozenset((".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".env"))
RELATED_LINES: Final = 60
MOST_CLAUSES: Final = 12
"""Of a request that is done clause by clause."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_LITERALS: Final = re.compile(r"(?<![\w.])(?:true|false|null|None|True|False)(?![\w.])")


def edit_places(path: str, old: str, request: str) -> tuple[str, str]:
    """The file after the changes that the request states in full, and the sentences that a model has to do."""
    edited = edit_place(path, old, request)
    if edited is not None:
        return edited, ""
    clauses = asked.clauses_of(request)
    text, rest = old, []
    for each in clauses if 1 < len(clauses) <= MOST_CLAUSES else ():
        edited = edit_place(path, text, each)
        text = edited or text
        rest += [] if edited not in (None, old) else [each]
    return (text, "\n".join(rest)) if text != old else (old, request)


def edit_place(path: str, old: str, request: str) -> str | None:
    """The file after a change that the request states in full; None: a model has to write it."""
    suffix, parts = PurePath(path).suffix.lower(), asked.asked_parts(request)
    suffix = ".env" if PurePath(path).name.startswith(".env") else suffix
    if suffix == ".csv" and not asked.means(request, "remove") and (changed := _set_cell(old, request, parts)):
        return changed
    is_list = suffix == ".csv" or PurePath(path).name.startswith((".", "requirements"))
    if rename := asked_rename(request, old):
        return apply_rename(old, rename)
    if suffix == ".py" and (changed := _change_definition(old, request)):
        return changed
    if suffix == ".py" and parts.calls:
        return _set_result(old, request)
    if parts.functions or parts.calls or asked.means(request, "remove"):
        return None
    if (exchange := asked.asked_exchange(request, old)) and (
        exchange[0].isdigit() or suffix != ".py" or re.search(rf"[\"']{re.escape(exchange[0])}[\"']", old)
    ):
        return _exchange(old, exchange, request)
    if suffix in DATA or suffix == ".py":
        return _set_value(suffix, old, request, parts)
    if is_list and not parts.quoted and (marked := asked.marked_lines(request, path)) and not asked.means(request, "rewrite"):
        return "\n".join([*old.splitlines(), *(each for each in marked if each not in old.splitlines())]) + "\n"
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
    """A Python file without the definition that the request removes, or with the docstring or parameter that it states."""
    quoted, lines = asked.asked_parts(request).quoted, old.splitlines()
    for name, node in definitions(parse_python(old)).items() if not syntax_problem("a.py", old) else ():
        first, last = span_of(node)
        if asked.removes(request, name, old):
            return re.sub(r"\n{4,}", "\n\n\n", "\n".join([*lines[: first - 1], *lines[last:]]).strip("\n") + "\n")
        if re.search("docstring", request, re.I) and asked.num_of(name, request) and len(quoted) == 1:
            documented = with_docstrings(old, {name: quoted[0]})
            return documented if documented.splitlines() != lines else None
        if isinstance(node, ast.FunctionDef) and asked.num_of(name, request) and (changed := _add_parameter(old, node, request)):
            return changed
    return None


def _add_parameter(old: str, node: ast.FunctionDef, request: str) -> str | None:
    """The function with the parameter that the request names, whose default is the only such value in the body."""
    match, inside = asked.NEW_PARAMETER.search(request), [each for each in ast.walk(node) if not isinstance(each, ast.keyword)]
    known = {getattr(each, "arg", None) or getattr(each, "id", None) for each in inside}
    name = next(filter(None, match.groups()), "") if match else ""
    numbers, quoted = asked.asked_parts(request).numbers, [each for each in asked.asked_parts(request).quoted if each != name]
    values = [*numbers, *_LITERALS.findall(request), *map(repr, quoted)]
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
    """The old file with the annotations or the docstrings of the new one, where the request is for nothing else."""
    is_typed, is_told = asked.means(request, "type_hint"), re.search("docstring", request, re.I) is not None
    before, after = tree_of(old), tree_of(new)
    if not (is_typed or is_told) or before is None or after is None:
        return new
    known, lines, own = _functions(after), old.splitlines(), new.splitlines()
    sentences = {name: text.splitlines()[0] for name, node in known.items() if is_told and (text := ast.get_docstring(node))}
    for name, node in sorted(_functions(before).items(), key=lambda item: -item[1].lineno) if is_typed else ():
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
    """Parameters with their defaults, without annotations."""
    arguments = copy.deepcopy(node.args)
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return ast.unparse(arguments)


def _head(lines: list[str], node: Function) -> tuple[int, int]:
    """Lines of a function up to its colon, from 0; none where its body begins on the last of them."""
    end = min([node.body[0].lineno, *(each.lineno for each in getattr(node.body[0], "decorator_list", ()))]) - 1
    if lines[end][: len(lines[end]) - len(lines[end].lstrip())] != lines[end].encode()[: node.body[0].col_offset].decode():
        return 0, 0
    while end > node.lineno and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return node.lineno - 1, end


def annotation_problem(text: str, request: str) -> str:
    """What lacks an annotation, or has one that its f-string contradicts, where type hints are asked for; empty if nothing."""
    tree, named = tree_of(text), asked.mentioned_names(request)
    if tree is None or not asked.means(request, "type_hint"):
        return ""
    functions = _functions(tree)
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


def _functions(tree: ast.Module) -> dict[str, Function]:
    return {each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def related_classes(old: str, request: str) -> list[str]:
    """Classes of a Python file that words of the request are about, as lines."""
    words = {word.lower().replace("_", "") for word in re.findall(r"[A-Za-z_]+", request)}
    tree, lines = tree_of(old), old.splitlines()
    about = [
        node
        for name, node in (definitions(tree) if tree else {}).items()
        if isinstance(node, ast.ClassDef) and name.lower() in words
    ]
    return [line for node in about for line in ("", *lines[span_of(node)[0] - 1 : span_of(node)[1]])][:RELATED_LINES]


def place_of_addition(old: str, request: str) -> tuple[int, str]:
    """Number of lines before an addition to prose, and how a new item of the list there begins; empty if there is no list."""
    words = {word.lower() for word in re.findall(r"\w[\w.]+\w", request)}
    lines, above, best = old.splitlines(), list[tuple[int, bool]](), (0, 0, len(old.splitlines()))
    heads = [(at, match) for at, line in enumerate(lines) if (match := re.match(r"(#+) +(.*)", line))]
    for place, (at, match) in enumerate(heads):
        level, named = len(match[1]), bool(words & {word.lower() for word in re.findall(r"\w[\w.]+\w", match[2])})
        above = [each for each in above if each[0] < level]
        above.append((level, named))
        end = next(
            (other for other, head in heads[place + 1 :] if len(head[1]) <= level or not asked.means(request, "heading")),
            len(lines),
        )
        best = max(best, (sum(is_named for _, is_named in above) if named else 0, -at, end))
    begin, end = (-best[1], best[2]) if best[0] and not _starts_section(request) else (0, len(lines))
    while end > begin and not lines[end - 1].strip():
        end -= 1
    item = re.match(r"(\s*)([-*+]|\d+\.)( +)", lines[end - 1]) if end and not _starts_section(request) else None
    if not item:
        return end, ""
    number = f"{int(item[2][:-1]) + 1}." if item[2][:-1].isdigit() else item[2]
    return end, f"{item[1]}{number}{item[3]}"


def is_about(added: str, request: str, old: str) -> bool:
    """Tells whether an addition speaks of what the request does, in its words but not as an order."""
    words, asked_for = _content_words(added), _content_words(request) - _content_words(old)
    known = len(words & _content_words(request))
    repeats = re.sub(r"\W+", " ", added).strip() in re.sub(r"\W+", " ", request) and (
        asked.means(added, "work") or asked.means(added, "add")
    )
    return bool(words) and not repeats and bool(words & asked_for) and known >= min(2, len(words)) and known * 3 >= len(words)


def _content_words(text: str) -> set[str]:
    """Beginnings of longer words, and pairs of characters where words are not separated."""
    latin = {word.lower()[:5] for word in re.findall(r"[^\W\d_\u0e00-\uffff]{4,}", text)}
    return latin | {
        text[at : at + 2] for at in range(len(text) - 1) if re.fullmatch(r"[\u3040-\u9fff\uac00-\ud7af]{2}", text[at : at + 2])
    }


def stated_sentence(request: str, path: str) -> str:
    """The only sentence of a request that states something, beside the one that names the file; empty if there is none."""
    sentences = [each.strip() for each in re.split(r"(?<=[.!])\s+|(?<=[。！])|\n+", request) if re.search(r"\w", each)]
    stated = [each for each in sentences if PurePath(path).name not in each and not asked.means(each, "add") and "?" not in each]
    return stated[0] if len(stated) == 1 and (len(stated[0].split()) > 2 or not stated[0].isascii()) else ""


def asked_heading(old: str, request: str) -> str:
    """The heading of a new section whose title the request quotes, with the line below; empty if there is none."""
    quoted = asked.asked_parts(request).quoted
    levels = re.findall(r"(?m)^(##+) ", old)
    level = max(set(levels), key=levels.count) if levels else "##"
    return f"{level} {quoted[0].lstrip('# ')}\n\n" if quoted and asked.means(request, "heading") else ""


def _starts_section(request: str) -> bool:
    return bool(
        re.search(
            r"\b(?:an?|new|another|eine[nm]?|neue[nrs]?|una?|nuev[ao]|une?|nouvelle|uma|nova|nuova)\s+(?:\w+\s+)?(?:section|sezion|heading|chapter|abschnitt|kapitel|secci|apartado|seç)",
            request,
            re.I,
        )
    )


def whole_lines(text: str) -> str:
    """The lines of a cut-off test up to the last one with which it can be parsed, each assertion once; empty if there is none."""
    lines = list[str]()
    for line in text.splitlines():
        lines += [] if line.lstrip().startswith("assert ") and line in lines else [line]
    heads = ("\n".join(lines[:end]) for end in range(len(lines) - 1, 0, -1))
    return next((head for head in heads if tree_of(head) and "assert" in head), "")


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
    return "\n".join(lines) if len(best) == 1 and asked.num_of(exchange[0], old.split("\n")[best[0]]) == 1 else None


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
    lines, names, places = old.split("\n"), asked.mentioned_names(request), list[tuple[int, str, str]]()
    if suffix == ".py":
        for node in (tree_of(old) or ast.Module([], [])).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and target.id.isupper() and target.id in names and isinstance(value, ast.expr):
                if value.lineno != value.end_lineno or isinstance(node, ast.AugAssign):
                    return None
                row = lines[value.lineno - 1].encode()
                places.append((value.lineno - 1, target.id, row[: value.col_offset].decode()))
    else:
        for at, line in enumerate(lines):
            match = re.match(r"^( *(?:export )?[\"']?)([\w-]+)([\"']? *[:=] *)(?=\S)", line)
            if match and match[2] in names:
                places.append((at, match[2], match[0]))
    keys = {key for _, key, _ in places}
    if suffix != ".py" and len(keys) == 1:
        words = {*re.findall(r"[\w-]+", request.lower())} - {key.lower() for key in keys}
        heads = re.findall(r"(?m)^ *(?:\[+([^\]\n]+)\]|[\"']?([\w-]+)[\"']? *: *\{?$)", old.lower())
        if len(places) > 1 or words & {word for head in heads for each in head for word in re.findall(r"[\w-]+", each)}:
            owned = [place for place in places if words & {*_owners(lines, place[0])}]
            if not owned:
                return None  # it is in another section
            places = owned
    values = [
        *parts.numbers,
        *_LITERALS.findall(request),
        *(each for each in (*parts.quoted, *parts.marked) if each not in keys and each not in parts.names),
    ]
    if len(places) != 1:
        return _add_entry(suffix, old, parts, request) if not places and suffix in DATA else None
    at, _, begin = places[0]
    is_strict = suffix in (".json", ".toml")
    plain = r"[-+\w.:]+" if is_strict else r"[^\s\"'\[{|>&*!#;][^\n]*?" if suffix != ".py" else r"[^\n]+?"
    value = re.fullmatch(
        rf"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|{plain})(\s*{',?' * is_strict}\s*(?:(?<=\s)[#;].*)?)",
        lines[at][len(begin) :],
    )
    values = [each for each in dict.fromkeys(values) if value and each != value[1].strip("\"'")]
    if not value or len(values) != 1:
        return None
    written = _in_style(values[0], value[1], suffix)
    lines[at] = begin + written + value[2]
    return "\n".join(lines)


def _set_cell(old: str, request: str, parts: asked.AskedParts) -> str | None:
    """CSV with another value in the column and the row that the request names."""
    lines = old.split("\n")
    mark = ";" if lines[0].count(";") > lines[0].count(",") else ","
    header = [each.strip().strip('"').lower() for each in lines[0].split(mark)]
    columns = [at for at, name in enumerate(header) if name and asked.num_of(name, request.lower())]
    cells = {at: [each.strip().strip('"') for each in line.split(mark)] for at, line in enumerate(lines) if at and line.strip()}
    matched = {
        at: max(
            (len(each) for each in own if len(each) > 1 and asked.num_of(each, request) and each not in parts.numbers), default=0
        )
        for at, own in cells.items()
    }
    rows = [at for at, length in matched.items() if length and length == max(matched.values())]
    if len(columns) != 1 or len(rows) != 1 or '"' in lines[rows[0]] or len(cells[rows[0]]) != len(header):
        return None
    own = cells[rows[0]]
    values = [each for each in (*parts.numbers, *parts.quoted, *parts.marked) if each not in own]
    if len(set(values)) != 1:
        return None
    value = '"' + values[0].replace('"', '""') + '"' if re.search(rf'["{mark}]', values[0]) else values[0]
    before = lines[rows[0]].split(mark)
    before[columns[0]] = before[columns[0]].replace(own[columns[0]], value) if own[columns[0]] else value
    lines[rows[0]] = mark.join(before)
    return "\n".join(lines)


def functions_without_docstring(old: str, request: str) -> list[str]:
    """Functions that a request for docstrings means: those that it names, or all, if they have none."""
    tree, functions = tree_of(old), _functions(tree_of(old) or ast.Module([], []))
    if tree is None or not re.search("docstring", request, re.I) or asked.asked_parts(request).quoted:
        return []
    named = asked.mentioned_names(request) & {*functions}
    return [name for name, node in functions.items() if (name in named or not named) and not ast.get_docstring(node)]


def with_docstrings(old: str, sentences: dict[str, str]) -> str:
    """The file with these docstrings, by the names of the functions."""
    lines = old.splitlines()
    for name, node in sorted(_functions(tree_of(old) or ast.Module([], [])).items(), key=lambda item: -item[1].lineno):
        _, end = _head(lines, node)
        if name in sentences and end and not ast.get_docstring(node):
            text = re.sub(r'"""|"$', "'", sentences[name].replace("\\", "\\\\"))
            body = lines[node.body[0].lineno - 1]
            lines.insert(end, f'{body[: len(body) - len(body.lstrip())]}"""{text}"""')
    return "\n".join(lines) + "\n"


def without_demo(text: str) -> str:
    """A library without the code behind its definitions that tries them out."""
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


def _owners(lines: list[str], at: int) -> list[str]:
    """Names of the section, or of the keys, that a line is below."""
    names, depth = list[str](), len(lines[at]) - len(lines[at].lstrip())
    for line in reversed(lines[:at]):
        indent = len(line) - len(line.lstrip())
        if head := re.match(r"\[+([^\]]+)\]", line):
            return [*names, *re.findall(r"[\w-]+", head[1].lower())]
        if line.strip() and indent < depth and (key := re.match(r"[ \"']*([\w-]+)[\"']? *:", line)):
            names, depth = [*names, key[1].lower()], indent
    return names


def _in_style(value: str, before: str, suffix: str) -> str:
    """The value, quoted where the old one was, or where the format needs it."""
    if before[:1] in ("'", '"') and before[:1] == before[-1:]:
        if "\\" not in value and before[0] not in value:
            return before[0] + value + before[0]
        return json.dumps(value, ensure_ascii=False)
    is_plain = re.fullmatch(r"-?\d+(?:\.\d+)?|true|false|null|None|True|False", value)
    needs_quotes = suffix in (".json", ".toml", ".py") or re.search(r": |:$| #|^\W", value if suffix in (".yaml", ".yml") else "")
    return json.dumps(value, ensure_ascii=False) if not is_plain and needs_quotes else value


def _add_entry(suffix: str, old: str, parts: asked.AskedParts, request: str) -> str | None:
    keys = [name for name in parts.names if re.fullmatch(r"[A-Za-z_][\w-]*", name)]
    keys = keys or [name for name in parts.quoted[:1] if re.fullmatch(r"[A-Za-z_][\w.-]*", name)]
    values = [*parts.numbers, *_LITERALS.findall(request), *(each for each in parts.quoted if each not in keys)]
    if len(keys) != 1 or len(values) != 1:
        return None
    value = json.dumps(values[0], ensure_ascii=False) if values[0] in parts.quoted else values[0]
    if suffix == ".json":
        return _add_to_object(old, f'"{keys[0]}": {value}', request)
    is_flat = suffix in (".ini", ".cfg", ".env") or not re.search(r"^\s*\[|^\s+\S|^- ", old, re.M)
    if not is_flat or (suffix in (".ini", ".cfg") and old.count("\n[") + old.startswith("[") > 1):
        return None
    mark = ": " if suffix in (".yaml", ".yml") else "=" if suffix == ".env" or not re.search(r"\w = ", old) else " = "
    return f"{old.rstrip()}\n{keys[0]}{mark}{values[0] if suffix in ('.ini', '.cfg', '.env') else value}\n"


def _add_to_object(old: str, entry: str, request: str) -> str | None:
    """JSON with one more entry, at the end of the object that the request names, or of the whole one if it names none."""
    words, lines = {word.lower().rstrip("s") for word in re.findall(r"\w{3,}", request)}, old.rstrip().splitlines()
    starts = [
        at
        for at, line in enumerate(lines)
        if (key := re.match(r'\s*"([\w-]+)": \{$', line)) and key[1].lower().rstrip("s") in words
    ]
    if len(starts) > 1 or len(lines) < 2 or lines[0] != "{":
        return None
    at = starts[0] if starts else 0
    depth = re.match(r"\s*", lines[at])[0]  # type: ignore[index]  # matches any line
    end = next((end for end in range(at + 1, len(lines)) if re.match(rf"{depth}\}}", lines[end])), at)
    inner = re.match(r"\s*", lines[at + 1])[0] if end > at + 1 else f"{depth}  "  # type: ignore[index]
    if end == at:
        return None
    if end > at + 1:
        lines[end - 1] = f"{lines[end - 1].rstrip()},"
    return "\n".join([*lines[:end], f"{inner}{entry}", *lines[end:]]) + "\n"


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
