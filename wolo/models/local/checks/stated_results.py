"""Results that a request states: of calls, formulas and sums, and how often a text is wanted."""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Final

from wolo.models.local.checks.asked_parts import asked_parts, asks_to_know, named_functions
from wolo.models.local.checks.marks import CALL, QUOTES, is_literal

_STATED: Final = re.compile(
    r"\)[`'\"]? ?(?:->|→|=>|==|should (?:be|return|give)|muss|soll|debe|deve|doit|должн\w+)[ :`]*"
    r"(\[[^\n]*?\](?!\])|\{[^\n}]*\}|\([^\n)]*\)|\"[^\"\n]*\"|'[^'\n]*'|-?\d+(?:\.\d+)?|True|False|None)"
)
"""The result of a call: `add(1, 2) -> 3`."""
EQUATION: Final = re.compile(r"(?<![\w.])\d+ [-+x×*/] \d+ = \d+(?![\w.]\d)")
_OF_FORMULAS: Final = (
    "len sum min max abs round sorted reversed int float str bool list tuple set dict range enumerate zip any all divmod ord chr"
    " map filter True False None self if else for in not"
)
"""Names of a formula beside parameters; none that does more than calculate."""
_SUM: Final = (ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod)
TIMES: Final = r"(?<![\w.])(\d{1,3}) ?(?:times|mal|veces|fois|vezes|раза?|مرات|مرة)\b|(?<![\w.])(\d{1,3}) ?(?:次|遍|回)"
MOST_BETWEEN: Final = 30
"""Characters between a text and how often it is wanted."""
MOST_WORDS: Final = 400
"""Words of a request among which a formula is looked for."""
LONGEST_FORMULA: Final = 16
"""Words."""


def asked_formula(request: str, text: str = "") -> str:
    """Find the expression over the parameters of `named_functions` that is stated: `a * 3 + b`; empty if none or several."""
    names = {name for each in named_functions(request, text) for name in each.parameters}
    formulas = set(_expressions(request, names)) if names else set()
    return formulas.pop() if len(formulas) == 1 else ""


def asked_sum(request: str) -> str:
    """Calculate the sum of numbers that a question states: `30 + 9 = 39`; empty if none."""
    for text in _expressions(request, set()) if asks_to_know(request) else ():
        if re.search(r"\d[-/%]\d", text):  # a date, a range
            continue
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
        if all(isinstance(node, _SUM) or type(getattr(node, "value", None)) in (int, float) for node in nodes):
            with contextlib.suppress(ArithmeticError, ValueError):
                value = eval(text, {})  # numbers and five operators
                return f"{text} = {value if isinstance(value, int) else format(value, '.12g')}"
    return ""


def repeat_count(request: str) -> int:
    """How often the request wants its only quoted text: `"a" exactly 3 times`, `3 times "a"`; 0 if it does not say so."""
    quotes = list(QUOTES.finditer(request))
    if len(quotes) != 1:
        return 0
    begin, end = quotes[0].span()
    before, after = re.search(rf"(?:{TIMES})\W{{0,3}}$", request[:begin], re.I), re.search(TIMES, request[end:], re.I)
    is_near = after and after.start() <= MOST_BETWEEN and not re.search(r"[,.;:，。；：]", request[end : end + after.start()])
    match = before or (after if is_near else None)
    return int(match[1] or match[2]) if match else 0


def _expressions(request: str, names: set[str]) -> Iterator[str]:
    """Find calculations in the prose of a request that use these names and all of them are known, the longest first."""
    known = names | set(_OF_FORMULAS.split())
    words = re.sub(r"[^\x00-\x7f]+", " \0 ", request).split()
    stretch: list[str] = []
    for word in (*words[:MOST_WORDS], "\0"):
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"|\.[A-Za-z_]\w*|\d[\w.]*", "", word)
        if "\0" not in word and known.issuperset(re.findall(r"[A-Za-z_]\w*", unquoted)):
            stretch.append(word)
            continue
        yield from _calculation(stretch, names)
        stretch = []


def _calculation(words: list[str], names: set[str]) -> Iterator[str]:
    spans = sorted(itertools.combinations(range(min(len(words), LONGEST_FORMULA) + 1), 2), key=lambda span: span[0] - span[1])
    for first, last in spans:
        text = " ".join(words[first:last]).strip("`").rstrip(".,;:!?").strip("`")
        if text[:1] in ("", "+", "-"):  # the rest of a calculation with unknown names
            continue
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.parse(text, mode="eval")
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            if isinstance(tree.body, ast.BinOp | ast.Call | ast.Subscript | ast.IfExp) and (used & names or not names):
                yield text
                return


def stated_results(request: str) -> dict[str, str]:
    """Find literals that the request gives as results of calls, by the call as in `asked_parts`."""
    results = {}
    for match in CALL.finditer(request):
        stated = _STATED.match(request, match.end() - 1)
        if stated and match[2].strip() and is_literal(match[2]) and is_literal(stated[1]):
            results[f"{match[1]}({match[2]})"] = stated[1]
    return results


def expected_values(request: str) -> tuple[str, ...]:
    """Find literals that the request gives outside of calls: results of these."""
    quoted = [next(filter(None, each)).strip() for each in QUOTES.findall(CALL.sub(" ", request))]
    return (*asked_parts(request).numbers, *quoted, *re.findall(r"(?<![\w.])(?:True|False|None)(?!\w)", request))
