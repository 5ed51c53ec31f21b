"""Commands that compare what was written with its request by running it, and what their output says."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_parts, named_functions
from wolo.models.local.checks.code_check import replace_node, tree_of
from wolo.models.local.checks.marks import is_literal, prose_of
from wolo.models.local.checks.missing_parts import PLACEHOLDER
from wolo.models.local.checks.senses import means
from wolo.models.local.checks.stated_results import EQUATION, TIMES, asked_formula, expected_values, repeat_count, stated_results

RUNNERS: Final = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby"}
_OWN_LINE: Final = re.compile(
    r"\b(?<!command )lines?\b|\b(?:zeile|línea(?! de (?:comandos|órdenes))|ligne(?! de commande)|linha(?! de comando))"
    r"|(?<!командной )\bстрок|سطر(?! الأوامر)|(?<!命令)行",
    re.IGNORECASE,
)
_MORE: Final = re.compile(r"\b(?:and|then|und|dann|y|luego|et|puis|e|depois|и|затем|потом)\b|ثم|然后|再|并|それから|その後", re.I)
_CALL_RESULT: Final = re.compile(r"^(\w+\(.*\)) = (.+)$", re.M)
PYTEST: Final = "python3 -B -m pytest -q"
PROBE: Final = "python3 -B -c "
"""Without bytecode files: Python takes a stale one for a file of the same size, changed in the same second."""
COMPARED: Final = "Compared with another version: "
_SHOWING: Final = "print(repr("
MOST_CALLS: Final = 5
NEARLY: Final = 1e-6
MOST_PARAMETERS: Final = 4
_COMPARISON: Final = """\
import itertools, sys; sys.path.insert(0, {folder!r})
from {module} import {owner}
asked, right, wrong = lambda {parameters}: {formula}, 0, []
for args in itertools.product((2, 7, 'ab', [3, 1]), repeat={count}):
    try:
        expected = {expected}
    except Exception:
        continue
    try:
        result = {result}
        is_same = result == expected or isinstance(expected, float) and abs(result - expected) < 1e-6
    except Exception as error:
        result, is_same = error, False
    right += is_same
    if not is_same:
        wrong.append('{name}(' + ', '.join(map(repr, args)) + f') gives {{result!r}}, not {{expected!r}}')
if len(wrong) > right:
    sys.exit(wrong[0])
for call in {calls!r}:
    print(call, '=', repr(eval(call)))
"""


def probe_command(path: str, text: str, request: str) -> str:
    """Command that shows the results of the calls which the request gives, `average([])`, if the file defines them all."""
    calls = asked_parts(request).calls[:MOST_CALLS]
    names = [call.partition("(")[0] for call in calls]
    if not calls or PurePath(path).suffix != ".py" or not all(re.search(rf"(?m)^def {name}\b", text) for name in names):
        return ""
    folder, module = str(PurePath(path).parent), PurePath(path).stem
    shown = "; ".join(f"{_SHOWING}{call}))" for call in calls)
    code = f"import sys; sys.path.insert(0, {folder!r}); from {module} import {', '.join(dict.fromkeys(names))}; {shown}"
    return PROBE + shlex.quote(code)


def call_command(test: str, names: Mapping[str, str]) -> str:
    """Command that prints the results of the calls that a test compares with a value; `names`: the module of each function."""
    calls = [(ast.unparse(call.func), ast.unparse(call)) for call, _ in _comparisons(test)]
    calls = [(name, call) for name, call in calls if name in names]
    if not calls:
        return ""
    imports = "; ".join(dict.fromkeys(f"from {names[name]} import {name}" for name, _ in calls))
    loop = f"for call in {[call for _, call in calls]!r}:\n    print(call, '=', repr(eval(call)))"
    code = f"import sys; sys.path.insert(0, '.'); {imports}\n{loop}"
    return PROBE + shlex.quote(code)


def formula_command(path: str, text: str, request: str, tests: str = "") -> str:
    """Command that fails if the only function that a request gives or calls disagrees with the formula stated there.

    It may disagree for the lesser part of the arguments: a request may state exceptions. If it agrees, the command prints the
    results of the calls that `tests` compare with a value.
    """
    functions, formula = named_functions(request, text), asked_formula(request, text)
    owner, method = functions[0] if functions else None, functions[-1] if functions else None
    is_class = len(functions) == 2 and functions[0].is_class
    if not owner or not method or not formula or (len(functions) > 1 and not is_class) or means(request, "output"):
        return ""
    count = len(owner.parameters) + (len(method.parameters) if is_class else 0)
    if PurePath(path).suffix != ".py" or not re.search(rf"(?m)^(?:def|class) {owner.name}\b", text) or count > MOST_PARAMETERS:
        return ""
    split = len(owner.parameters)
    code = _COMPARISON.format(
        folder=str(PurePath(path).parent),
        module=PurePath(path).stem,
        owner=owner.name,
        name=f"{owner.name}.{method.name}" if is_class else owner.name,
        parameters=", ".join((*(["self"] if is_class else []), *method.parameters)),
        formula=formula,
        calls=[ast.unparse(call) for call, _ in _comparisons(tests) if ast.unparse(call.func) == owner.name],
        count=count,
        expected=f"asked(made := {owner.name}(*args[:{split}]), *args[{split}:])" if is_class else "asked(*args)",
        result=f"made.{method.name}(*args[{split}:])" if is_class else f"{owner.name}(*args)",
    )
    return PROBE + shlex.quote(code)


def is_probe(run: ToolPart) -> bool:
    """Tells whether the command runs no program as the user would."""
    command = str(run.input.get("command", ""))
    return command.startswith(PROBE) and not re.search(r"' && \w+ [\w/][\w./-]*(?:$| )", command)


def run_problem(run: ToolPart, earlier: ToolPart | None, request: str) -> str:
    """Disagreement of a run's output with the request; empty if none is seen."""
    if is_probe(run):
        calls, stated = asked_parts(request).calls[:MOST_CALLS], stated_results(request)
        if not calls or _SHOWING not in str(run.input["command"]):
            return ""
        shown = _last_lines(run, len(calls))
        for call, result in zip(calls, shown, strict=False):
            if call in stated and not _is_equal(result, stated[call]):
                return f"{call} gives {result}, not {stated[call]}"
        if earlier is not None and not earlier.is_error and _last_lines(earlier, len(calls)) == shown:
            return f"{calls[0]} still gives {shown[0]}"
        expected = () if stated or len(calls) > 1 else expected_values(request)
        is_right = any(shown[0].strip("'\"") == value or _is_equal(shown[0], value) for value in expected)
        return (
            f"{calls[0]} gives {shown[0]}, which is not what was asked for ({', '.join(expected)})"
            if expected and not is_right
            else ""
        )
    quoted, times = asked_parts(request).quoted, repeat_count(request)
    if times:
        # Difference between the output and a text that is to be printed so often
        text = quoted[0]
        lines, in_lines = output_lines(run), _OWN_LINE.search(prose_of(request)) is not None
        count = lines.count(text) if in_lines else sum(line.count(text) for line in lines)
        if count != times:
            return f"it prints “{text}” {count} times{' on a line of its own' * in_lines}, not {times} times"
        others = [line for line in lines if line.replace(text, "").strip()] if _is_only_output(request) else []
        return f"it also prints “{others[0][:80]}”, which nobody asked for" if others else ""
    for equation in EQUATION.findall(request) if means(request, "output") else ():
        if equation not in run.output:
            return f"it does not print “{equation}”"
    arguments = str(run.input.get("command", "")).rpartition("&& ")[2].split()[2:]
    for text in (each for each in quoted if re.search("[a-z]", each) and PLACEHOLDER.search(each) and arguments):
        wanted = [each.join(PLACEHOLDER.split(text)) for each in arguments]
        if not any(each in run.output for each in wanted):
            return f"it does not print “{wanted[0]}” for the argument {arguments[0]}"
    if "." in (text := run.output.partition("[exit")[0].strip()) and text in arguments:
        return f"it prints only its argument {text}: open(sys.argv[1]) reads the file of that name"
    argument = re.search(r" (\d+)$", str(run.input.get("command", "")))
    if argument and re.search(rf"(?m)^(?:{argument[1]}){{2,}}$", run.output):
        return f"it repeats its argument {argument[1]}: an argument is text until int() or float() makes it a number"
    return ""


def missing_runs(request: str, runs: Sequence[ToolPart], contents: Mapping[str, str]) -> list[str]:
    """Parts of the request that only running the files can show, and none of the runs did."""
    commands = "\n".join(str(run.input.get("command")) for run in runs if not run.is_error)
    asked, programs = asked_parts(request), [path for path in contents if PurePath(path).suffix.lower() in RUNNERS]
    formula = next((asked_formula(request, text) for path, text in contents.items() if formula_command(path, text, request)), "")
    demands = {
        f"“{''.join(asked.quoted[:1])}” {repeat_count(request)} times": bool(repeat_count(request) and programs and not commands),
        "pytest": re.search(r"\bpytest\b", request) is not None and "pytest" not in commands,
        f"the result of {''.join(asked.calls[:1])}": bool(asked.calls and programs and expected_values(request))
        and _SHOWING not in commands,
        formula: bool(formula) and "asked, " not in commands,
        "a run with an argument": bool(means(request, "command_line") and programs)
        and not any(re.search(rf"{re.escape(path)} \S", commands) for path in programs),
    }
    return [name for name, is_open in demands.items() if is_open]


def correct_test(run: ToolPart, text: str) -> str:
    """The test with the values that its function gave, if that is known to be right."""
    command, results = str(run.input.get("command")), dict(_CALL_RESULT.findall(run.output))
    for call, expected in reversed(_comparisons(text) if PYTEST in command else []):
        value = results.get(ast.unparse(call), "")
        if value and value != ast.unparse(expected) and is_literal(value):
            text = replace_node(text, expected, value)
    return text


def _comparisons(tests: str) -> list[tuple[ast.Call, ast.expr]]:
    """Calls with literal arguments that a test compares with a value, and the value."""
    pairs = []
    for node in ast.walk(tree_of(tests) or ast.Module([], [])):
        match node:
            case (
                ast.Compare(left=ast.Call() as call, ops=[ast.Eq()], comparators=[expected])
                | ast.Call(func=ast.Attribute(attr="assertEqual"), args=[ast.Call() as call, expected])
            ) if all(is_literal(ast.unparse(each)) for each in call.args) and not call.keywords:
                pairs.append((call, expected))
            case _:
                pass
    return pairs


def output_lines(run: ToolPart) -> list[str]:
    """Without blank lines, the exit status, and what a comparison of versions says."""
    return [line for line in run.output.rstrip().splitlines() if line.strip() and not re.match(rf"\[exit \d+|{COMPARED}", line)]


def _last_lines(run: ToolPart, number: int) -> list[str]:
    return [line.strip() for line in output_lines(run)[-number:]] or [""]


def _is_equal(one: str, other: str) -> bool:
    """Tells whether two literals have the same value."""
    try:
        first, second = ast.literal_eval(one), ast.literal_eval(other)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) < NEARLY
    return bool(first == second)


def _is_only_output(request: str) -> bool:
    """Tells whether no part of the request can ask for more output than its counted text."""
    prose = prose_of(request)
    clauses = [each for each in re.split(r"[.,;:!，、。；：،]\s*", prose) if re.search(r"\w", each)]
    is_about = [re.search(rf"\b_\b|{TIMES}", each) or _OWN_LINE.search(each) for each in clauses]
    return all(is_about) and not _MORE.search(prose)
