"""Compares the text of a file with the request: names, texts, numbers and changes that it lacks."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath
from typing import Final

from wolo.models.local.checks.asked_changes import asked_exchange, asked_values, removes
from wolo.models.local.checks.asked_parts import AskedParts, asked_parts, marked_lines
from wolo.models.local.checks.marks import CALL, num_of, words_of_examples
from wolo.models.local.checks.sections import misplacement, unchanged_sections
from wolo.models.local.checks.senses import GOES, means
from wolo.models.local.checks.stated_results import EQUATION

PLACEHOLDER: Final = re.compile(r"\b[A-Z]{3,}\b")
"""A word of a quoted text in small letters that stands for another."""
_LISTED: Final = re.compile(r"\(((?:[\w-]{1,12}, ?)(?:[\w-]{1,12}, ?)+(?:\w+ )?[\w-]{1,12})(?=[,)])")
"""Three values or more, in parentheses."""
_RAISES: Final = (
    r"(?:rais|throw|wirf|werf|auslös|lanz|lanç|lèv|lever|soulev|sollev|выбр|выда|вызы|抛|投げ|発生|送出|ارم|يرمي|أطلق)"
)
_RAISED: Final = re.compile(
    rf"{_RAISES}[^.;!?\n]{{0,40}}?\b([A-Z]\w*(?:Error|Exception))\b|\b([A-Z]\w*(?:Error|Exception))\b[^.;!?\n]{{0,20}}?{_RAISES}"
)
"""An error that code is to raise."""
_COMMAND: Final = re.compile(r"(?:python3?|node|bash|sh|make|npm|npx|pip|pytest|git|cargo|go) |\./")
"""A quoted command, which is to be run and not to be written."""
_OF_ERROR: Final = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning)\b|^Traceback")
"""A quoted message of an error, which is not to be written."""
_TARGET: Final = re.compile(
    r"(?<![\w-])(?!(?:new|the|an?|no|another|phony|make|ein|das|une?|uma?|el)[ -])[`'\"]?([a-z][\w-]*)[`'\"]?[- ][Tt]arget\b"
    r"|\b(?:[Tt]arget|objetivo|cible|alvo|цель)[ :]*[`'\"«]?(?!(?:for|to|that|which|in)\b)([a-z][\w-]*)"
)
"""A target of a Makefile."""
_EXAMPLE: Final = re.compile(
    r"(?:\bfor example|\be\.g\.|\bsuch as|\bbecomes?\b|\bz\. ?B\.|\bzum beispiel|\bwird zu"
    r"|\b(?:por|p\.) ?ej|\bpar exemple|\bpor exemplo"
    r"|например|例如|比如|例えば|مثلا|->|→|=>).*?(?:[.;。](?=\s|$)|$)",
    re.IGNORECASE,
)
"""An example in a request, whose texts and numbers need not be in the result."""
_PROGRAMS: Final = frozenset((".py", ".sh", ".bash", ".js", ".mjs", ".ts", ".rb", ".go", ".rs", ".c", ".cpp", ".java"))
NEAR_SMALL: Final = 12
"""Numbers up to this one may be written as so many lines."""


def missing_parts(request: str, path: str, text: str, old: str = "") -> list[str]:
    """List what the new text of the only file lacks of the request, as ends of "it has no …"; `old`: the text before."""
    parts, is_code = asked_parts(request), PurePath(path).suffix.lower() == ".py"
    goes = means(request, *GOES)
    missing: list[str] = []
    if is_code:
        missing += _missing_functions(parts, text, old, may_go=goes)
    for name in parts.names:
        if not _has_name(text, name) and not _has_name(old, name) and not (goes and len(parts.names) == 1):
            missing.append(name)
    texts = missing_texts(request, text, old)
    if PurePath(path).name == "Makefile":
        targets = [next(filter(None, each)) for each in _TARGET.findall(request)]
        missing += [f"target {each}" for each in targets if not re.search(rf"(?m)^{re.escape(each)}\s*:(?:.*\S|.*\n\t)", text)]
    for listed in _LISTED.findall(CALL.sub(" ", request)) if is_code else ():
        values = [each.split()[-1] for each in listed.split(",") if each.strip()]
        in_one, fresh = "".join(values), re.sub(r'"""[\s\S]*?"""|#.*', "", text.replace(old.strip(), "") if old else text)
        if in_one.lower() not in fresh.lower() and not all(num_of(each, fresh) for each in values):
            missing.append(listed)
    if PurePath(path).suffix.lower() not in _PROGRAMS:  # a folder is the place of a file
        is_list = PurePath(path).name.startswith(".")
        marked = marked_lines(request, path)
        texts += [each for each in marked if each not in text + old and (is_list or not each.endswith("/"))]
    for name, value in asked_values(request, old).items():
        if not re.search(rf"(?m)^[ \"']*(?:\w+ )?{name}\b.*{re.escape(value.strip(chr(34)))}", text):
            missing.append(f"{name} = {value}")
    if (exchange := asked_exchange(request, old)) and num_of(exchange[0], text) >= num_of(exchange[0], old):
        missing.append(f"{exchange[1]} instead of {exchange[0]}")
    missing += unchanged_sections(request, path, text, old)
    defined = r"(?m)^\s*(?:def|class|function|func) (\w+)"
    missing += [
        f"removal of {name}"
        for name in re.findall(defined, old)
        if removes(request, name, old) and name in re.findall(defined, text)
    ]
    if PurePath(path).suffix.lower() in _PROGRAMS and means(request, "output"):  # a number may be computed: its output counts
        texts = [each for each in texts if each.startswith("“") and not EQUATION.fullmatch(each[1:-1])]
    missing += texts
    if PurePath(path).suffix.lower() in _PROGRAMS:
        missing += [
            each for each in re.findall(r"(?<!\S)--[a-z][\w-]+", request) if means(request, "option") and each not in text
        ]
        raised = [each[0] or each[1] for each in _RAISED.findall(request)]
        missing += [f"raise {each}" for each in raised if num_of(each, text) <= num_of(each, old)]
    if means(request, "command_line") and is_code and not re.search(r"\bargv\b|argparse|\bclick\b|fileinput", text):
        missing.append("argument of the command line (sys.argv)")
    if parts.quoted and PurePath(path).suffix.lower() in (".md", ".txt", ".rst"):
        missing += misplacement(request, parts.quoted, text)
    return list(dict.fromkeys(missing))


def missing_texts(request: str, text: str, old: str = "") -> list[str]:
    """List quoted texts and numbers of the request that are neither in the text nor were in the old one.

    A word in capitals stands for another where the rest of a text has small letters: `Hello, NAME!`.
    """
    parts, of_examples = asked_parts(_EXAMPLE.sub(" ", request)), words_of_examples(request)
    plain, missing = _plain(f"{text}\n{old}"), []
    for each in parts.quoted:
        pieces = PLACEHOLDER.split(_plain(each)) if re.search("[a-z]", each) else [_plain(each)]
        if (
            each not in of_examples
            and not (_OF_ERROR.search(each) or _COMMAND.match(each))
            and not all(piece in plain for piece in pieces)
            and not re.search(r"[*?{}<>]|\.\w{1,4}$", each)
        ):
            missing.append(f"“{each}”")
    if parts.calls:  # the numbers are results of these calls
        return missing
    numbers = {float(each) for each in re.findall(r"\d+(?:\.\d+)?", f"{text}\n{old}".replace("_", ""))}
    near = numbers | {each + shift for each in numbers for shift in (-1, 1)}
    return missing + [each for each in parts.numbers if abs(float(each)) > NEAR_SMALL and abs(float(each)) not in near]


def _plain(text: str) -> str:
    return " ".join(text.replace("\\", "").split())


def _has_name(text: str, name: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text) is not None


def _missing_functions(parts: AskedParts, text: str, old: str, *, may_go: bool) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    defined = {
        node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    bound = {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    missing = []
    for each in parts.functions:
        node = defined.get(each.name)
        if node is None:
            was_there = re.search(rf"\b(?:def|class) {each.name}\b", old)
            if each.name not in bound and not (may_go and was_there):
                missing.append(("class " if each.is_class else "function ") + each.name)
            continue
        accepted = _parameters(node)
        if accepted is not None:
            missing += [f"argument {name} of {each.name}" for name in each.parameters if name not in accepted]
    return missing


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> set[str] | None:
    if isinstance(node, ast.ClassDef):
        inits = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not inits:
            return None if node.bases or node.decorator_list else set()
        node = inits[0]
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {each.arg for each in every if each}
