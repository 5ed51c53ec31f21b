"""Changes of values in JSON, TOML, YAML, INI and CSV, and of constants in Python, that need no model."""

from __future__ import annotations

import ast
import json
import re
from typing import Final

from wolo.models.local.checks.asked_parts import AskedParts
from wolo.models.local.checks.code_check import syntax_problem, tree_of
from wolo.models.local.checks.marks import mentioned_names, num_of
from wolo.models.local.checks.senses import means, pattern_of

DATA: Final = frozenset((".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".env"))
_INSIDE: Final = re.compile(
    r"comment|kommentar|comentari|коммент|注释|コメント|تعليق|quot|anführung|comilla|guillemet|aspas|virgolett|кавыч|引号|引用符"
    r"|spaces?\b|leerzeichen|espac|espaço|spazi|пробел|空格|空白|duplicat|doppelt|duplicad|doublon|дублик|重复|重複"
    r"|\b(?:after|before|nach|vor|después|antes|après|avant|dopo|prima|после|перед)\b",
    re.IGNORECASE,
)
"""Parts of an entry, or a place beside it."""
_RELATIVE: Final = re.compile(
    r"(?:increas|rais|decreas|reduc|lower|erhöh|verring|senk|aument|augment|dismin|dimin|увелич|уменьш)[^.\n]*"
    r"\b(?:by|um|de|en|di|на) \d"
    r"|\bum \d+ (?:\w+ )?(?:erhöh|verring|höher|niedriger)|(?:增加|减少|提高|减小)了? ?\d|\d\w* ?(?:増や|減ら)",
    re.IGNORECASE,
)
LITERALS: Final = re.compile(r"(?<![\w.])(?:true|false|null|None|True|False)(?![\w.])")


def set_value(suffix: str, old: str, request: str, parts: AskedParts) -> str | None:
    """Give one key or constant the only value of the request."""
    if _RELATIVE.search(request):
        return None
    lines, names, places = old.split("\n"), mentioned_names(request), list[tuple[int, str, str]]()
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
        *LITERALS.findall(request),
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


def set_cell(old: str, request: str, parts: AskedParts) -> str | None:
    """Change a value of CSV in the column and the row that the request names."""
    lines = old.split("\n")
    mark = ";" if lines[0].count(";") > lines[0].count(",") else ","
    header = [each.strip().strip('"').lower() for each in lines[0].split(mark)]
    columns = [at for at, name in enumerate(header) if name and num_of(name, request.lower())]
    cells = {at: [each.strip().strip('"') for each in line.split(mark)] for at, line in enumerate(lines) if at and line.strip()}
    matched = {
        at: max((len(each) for each in own if len(each) > 1 and num_of(each, request) and each not in parts.numbers), default=0)
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


def remove_entries(suffix: str, old: str, request: str) -> str | None:
    """CSV without the rows, or the column, that the request means by their names, other data without the only entry it names."""
    request = ", ".join(each for each in re.split(r"[,;，、]", request) if means(each, "remove"))
    if pattern_of("unless").search(request) or _INSIDE.search(request):
        return None
    if suffix == ".csv":
        return _remove_cells(old, request)
    words = {each.lower() for each in re.findall(r"[\w.-]*\w", request)} - {"json", "toml", "yaml", "ini", "on"}
    lines, places = old.split("\n"), list[int]()
    for at, line in enumerate(lines):
        match = re.match(r"\s*(?:- *)?[\"']?(@?[\w/-]++(?:\.[\w/-]+)*+)[\"']?+(?! *[:=] *(?:[\[{]|$))", line)
        if match and match[1].lower() in words and not re.search(r"[\[{(]\s*$", line):
            places.append(at)
    if len(places) != 1:
        return None
    gone, rest = lines[places[0]], lines[: places[0]] + lines[places[0] + 1 :]
    if suffix in (".json", ".toml") and re.search(r",\s*[^\s#]", re.sub(r"\"[^\"]*\"|'[^']*'", "_", gone)):
        return None  # more than the entry
    below = "".join(rest[places[0] : places[0] + 1])
    if below.strip() and len(below) - len(below.lstrip()) > len(gone) - len(gone.lstrip()):
        return None
    if suffix == ".json" and places[0] < len(rest) and re.match(r"\s*[}\]]", rest[places[0]]):
        rest[places[0] - 1] = rest[places[0] - 1].rstrip().removesuffix(",")
    return None if syntax_problem(f"a{suffix}", "\n".join(rest)) else "\n".join(rest)


def _remove_cells(old: str, request: str) -> str | None:
    lines = old.split("\n")
    mark = ";" if lines[0].count(";") > lines[0].count(",") else ","
    words = {each.lower() for each in re.findall(r"[\w.@+-]*\w", request)}
    rows = [[cell.strip().lower() for cell in line.split(mark)] for line in lines]
    columns = [at for at, name in enumerate(rows[0]) if name in words]
    if '"' in old or len(columns) != 1 or any(len(row) != len(rows[0]) for row in rows if row != [""]):
        return None
    column = columns[0]
    if means(request, "column"):
        return "\n".join(
            mark.join(cell for at, cell in enumerate(line.split(mark)) if at != column or not line) for line in lines
        )
    if any(cell in words for row in rows[1:] for at, cell in enumerate(row) if at != column):
        return None  # not all rows with the value
    values = {row[column] for row in rows[1:] if row != [""] and row[column] in words}
    rest = [line for line, row in zip(lines, rows, strict=True) if row == [""] or row == rows[0] or row[column] not in values]
    return "\n".join(rest) if len(values) == 1 and len(rest) > 1 else None


def _owners(lines: list[str], at: int) -> list[str]:
    """Collect names of the section, or of the keys, that a line is below."""
    names, depth = list[str](), len(lines[at]) - len(lines[at].lstrip())
    for line in reversed(lines[:at]):
        indent = len(line) - len(line.lstrip())
        if head := re.match(r"\[+([^\]]+)\]", line):
            return [*names, *re.findall(r"[\w-]+", head[1].lower())]
        if line.strip() and indent < depth and (key := re.match(r"[ \"']*([\w-]+)[\"']? *:", line)):
            names, depth = [*names, key[1].lower()], indent
    return names


def _in_style(value: str, before: str, suffix: str) -> str:
    """Quote the value where the old one was quoted, or where the format needs it."""
    if before[:1] in ("'", '"') and before[:1] == before[-1:]:
        if "\\" not in value and before[0] not in value:
            return before[0] + value + before[0]
        return json.dumps(value, ensure_ascii=False)
    is_plain = re.fullmatch(r"-?\d+(?:\.\d+)?|true|false|null|None|True|False", value)
    needs_quotes = suffix in (".json", ".toml", ".py") or re.search(r": |:$| #|^\W", value if suffix in (".yaml", ".yml") else "")
    return json.dumps(value, ensure_ascii=False) if not is_plain and needs_quotes else value


def _add_entry(suffix: str, old: str, parts: AskedParts, request: str) -> str | None:
    keys = [name for name in parts.names if re.fullmatch(r"[A-Za-z_][\w-]*", name)]
    keys = keys or [name for name in parts.quoted[:1] if re.fullmatch(r"[A-Za-z_][\w.-]*", name)]
    values = [*parts.numbers, *LITERALS.findall(request), *(each for each in parts.quoted if each not in keys)]
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
    """Add an entry to JSON, at the end of the object that the request names, or of the whole one if it names none."""
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
