"""How much there is to read, and names that say too little. `python FILE [PATH…]` lists them; `make check` prints the figures."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "wolo"
GOALS = {
    "lines": 109_000,
    "functions per 1,000 lines of code": 80,
    "lines of a function, for nine in ten": 25,
    "functions over 60 lines": 0,
    **dict.fromkeys(("participle", "vague", "time", "count", "spoken"), 0),
}
"""The last five count names: participles as functions, vague words, times without `_at` or `_s`, counts without `num_`."""
MOST = {
    **GOALS,
    **{"lines": 138_800, "functions per 1,000 lines of code": 84},
}
"""Limits on the way to the goals: what has been reached. Only lines grow, by what a capability needs."""
VAGUE = {"found", "wanted", "given", "said", "told", "words", "standing"}
"""Locals for five lines at most. `words` may be several words, not a text."""
SPOKEN = {"hear", "hears", "heard", "tell", "tells", "told", "say", "says", "said"}
IRREGULAR = set(
    """
    begun bound brought built caught chosen done drawn found given gone held hidden kept known left lost made meant met paid seen
    sent shown sought spent taken thrown told torn written
    """.split()  # noqa: SIM905
)
VERBS = {"need", "feed", "seed", "embed", "exceed", "proceed", "succeed", "speed", "left"}
PREPOSITIONS = "as at away back by for from in into of off on out since to until up with".split()  # noqa: SIM905
"""A participle before another word is the adjective of a noun."""
TIMES = "age began created deadline delay elapsed ended expires seconds since started timeout until updated wait".split()  # noqa: SIM905
UNITS = "attributes bytes cells chars columns days fds flags ns parameters retries rights rows times tokens tries".split()  # noqa: SIM905
WRITTEN_OUTSIDE = re.compile(
    "agent/events|api/run_events|config/schema|formats/|tool_values|request_bodies|response_types|fleet/|sessions/|messages/|models/|extensions/hooks/"
    "|agent/compaction/summary_text|guard/intents|replay/cassette"
)
"""Fields of these files have the names of JSON, settings or columns."""
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def figures(files: list[Path]) -> tuple[dict[str, int], list[str]]:
    """The figures by the names of MOST, and each function or name that counts as a line `FILE:LINE: rule: name`."""
    num_lines, num_code, lengths, places = 0, 0, [], []
    for path in files:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        num_lines += text.count("\n")
        num_code += lines_of_code(text, tree)
        lengths += [(node.end_lineno or 0) - node.lineno + 1 for node in ast.walk(tree) if isinstance(node, FUNCTION)]
        is_outside = WRITTEN_OUTSIDE.search(path.as_posix())
        for line, rule, name in sorted({*bad_names(tree)}):
            if not (is_outside and rule.endswith(" field")):
                places.append(f"{path}:{line}: {rule.split()[0]}: {name}")
    lengths.sort()
    names = {rule: sum(f": {rule}: " in place for place in places) for rule in ("participle", "vague", "time", "count", "spoken")}
    sizes = (num_lines, 1000 * len(lengths) // max(num_code, 1), lengths[len(lengths) * 9 // 10], sum(n > 60 for n in lengths))
    return dict(zip(MOST, (*sizes, *names.values()), strict=True)), places


def lines_of_code(text: str, tree: ast.Module) -> int:
    """Without blank lines, comments and docstrings."""
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in silent]
    lines = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTION) and ast.get_docstring(node, clean=False) is not None:
            lines -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    return len(lines)


def bad_names(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, rule and name."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION):
            first, _, rest = node.name.strip("_").partition("_")
            is_participle = first not in VERBS and (first in IRREGULAR or re.fullmatch(r"\w{3,}ed", first))
            is_attribute = any("property" in ast.unparse(each) for each in node.decorator_list)
            if is_participle and not is_attribute and (not rest or rest.split("_")[0] in PREPOSITIONS):
                yield node.lineno, "participle", node.name
            if first in SPOKEN:
                yield node.lineno, "spoken", node.name
            for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield from bad_value(each.lineno, each.arg, each.annotation, "parameter")
            yield from vague_locals(node)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield from bad_value(field.lineno, field.target.id, field.annotation, "field")


def bad_value(line: int, name: str, annotation: ast.expr | None, kind: str) -> Iterator[tuple[int, str, str]]:
    bare, typed = name.strip("_"), ast.unparse(annotation) if annotation else ""
    last = bare.rpartition("_")[2]
    if bare in VAGUE and (bare != "words" or typed.startswith("str")):
        yield line, f"vague {kind}", name
    if typed.startswith("float") and last in TIMES and bare != "max_seconds":  # a setting, an option and a parameter of the API
        yield line, f"time {kind}", name
    is_limit = bare.startswith(("num_", "max_", "min_", "most_", "least_", "keep_"))
    if (
        typed in ("int", "int | None")
        and not is_limit
        and last not in UNITS
        and re.fullmatch(r"count|\w+_count|\w{3,}[^_su]s", bare)
    ):
        yield line, f"count {kind}", name


def vague_locals(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str, str]]:
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id.strip("_") in VAGUE - {"words"}]
    for name in {node.id for node in names if isinstance(node.ctx, ast.Store)}:
        lines = [node.lineno for node in names if node.id == name]
        if max(lines) - min(lines) >= 5:
            yield min(lines), "vague", name
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and node.value.id in VAGUE - {"words"}:
            yield node.lineno, "vague", f"return {node.value.id}"


@pytest.fixture(scope="module")
def house() -> tuple[dict[str, int], list[str]]:
    return figures(sorted(PACKAGE.rglob("*.py")))


@pytest.mark.parametrize("name", MOST)
def test_figure_stays_within_its_limit(name: str, house: tuple[dict[str, int], list[str]]) -> None:
    values, places = house
    assert values[name] <= MOST[name], "\n".join(place for place in places if f": {name}: " in place)


if __name__ == "__main__":
    paths = [Path(each) for each in sys.argv[1:]]
    values, places = figures(
        sorted(file for path in paths or [PACKAGE] for file in (path.rglob("*.py") if path.is_dir() else [path]))
    )
    print(
        *(places if paths else ()),
        *(f"{value:>8,} {name} (at most {MOST[name]:,}, goal {GOALS[name]:,})" for name, value in values.items()),
        sep="\n",
    )
