"""Commands that compare what was written with its request by running it, and what their output says."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks import asked_parts as parts
from wolo.models.local.checks.asked_parts import asked_formula, asked_parts, expected_values, means, repeat_count
from wolo.models.local.checks.code_check import replace_node

RUNNERS: Final = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby"}
_OWN_LINE: Final = re.compile(
    r"\b(?<!command )lines?\b|\b(?:zeile|línea(?! de (?:comandos|órdenes))|ligne(?! de commande)|linha(?! de comando))"
    r"|(?<!командной )\bстрок|سطر(?! الأوامر)|(?<!命令)行",
    re.IGNORECASE,
)
_MORE: Final = re.compile(r"\b(?:and|then|und|dann|y|luego|et|puis|e|depois|и|затем|потом)\b|ثم|然后|再|并|それから|その後", re.I)
_CONTRADICTION: Final = re.compile(
    r"^E +(?:AssertionError: )?(?:assert )?(.+?) (?:==|!=) .+\n(?:(?!>).*\n)*?(\S+\.py):(\d+): AssertionError", re.M
)
"""A failing comparison as pytest reports it: the value, the file and the line."""
PYTEST: Final = "python3 -B -m pytest -q"
_PROBE: Final = "python3 -B -c "
"""Without bytecode files: Python takes a stale one for a file of the same size, changed in the same second."""
_SHOWING: Final = "print(repr("
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
"""


def probe_command(path: str, text: str, request: str) -> str:
    """Command that shows the result of a call which the request gives, `average([])`, if the file defines it; empty if not."""
    call = next((call for call in asked_parts(request).calls if re.search(rf"(?m)^def {call.partition('(')[0]}\b", text)), "")
    if not call or PurePath(path).suffix != ".py":
        return ""
    folder, module, name = str(PurePath(path).parent), PurePath(path).stem, call.partition("(")[0]
    code = f"import sys; sys.path.insert(0, {folder!r}); from {module} import {name}; {_SHOWING}{call}))"
    return _PROBE + shlex.quote(code)


def formula_command(path: str, text: str, request: str) -> str:
    """Command that fails if the only function that a request gives or calls disagrees with the formula stated there.

    It may disagree for the lesser part of the arguments: a request may state exceptions.
    """
    functions, formula = parts.named_functions(request, text), asked_formula(request, text)
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
        count=count,
        expected=f"asked(made := {owner.name}(*args[:{split}]), *args[{split}:])" if is_class else "asked(*args)",
        result=f"made.{method.name}(*args[{split}:])" if is_class else f"{owner.name}(*args)",
    )
    return _PROBE + shlex.quote(code)


def is_probe(run: ToolPart) -> bool:
    return str(run.input.get("command", "")).startswith(_PROBE)


def run_problem(run: ToolPart, earlier: ToolPart | None, request: str) -> str:
    """Disagreement of a run's output with the request; empty if none is seen."""
    if is_probe(run):
        call = next(iter(asked_parts(request).calls), "")
        if not call or _SHOWING not in str(run.input["command"]):
            return ""
        result = _last_line(run)
        if earlier is not None and not earlier.is_error and _last_line(earlier) == result:
            return f"{call} still gives {result}"
        expected = expected_values(request)
        is_right = any(result.strip("'\"") == value or _same_number(result, value) for value in expected)
        return (
            "" if is_right or not expected else f"{call} gives {result}, which is not what was asked for ({', '.join(expected)})"
        )
    quoted, times = asked_parts(request).quoted, repeat_count(request)
    if times:
        # Difference between the output and a text that is to be printed so often
        text = quoted[0]
        lines, in_lines = output_lines(run), _OWN_LINE.search(parts.prose_of(request)) is not None
        count = lines.count(text) if in_lines else sum(line.count(text) for line in lines)
        if count != times:
            return f"it prints “{text}” {count} times{' on a line of its own' * in_lines}, not {times} times"
        others = [line for line in lines if line.replace(text, "").strip()] if _is_only_output(request) else []
        return f"it also prints “{others[0][:80]}”, which nobody asked for" if others else ""
    for equation in parts.EQUATION.findall(request) if means(request, "output") else ():
        if equation not in run.output:
            return f"it does not print “{equation}”"
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


def correct_test(run: ToolPart, path: str, text: str) -> str:
    """The test with the values that its function gave, if that agreed with the formula of the request before."""
    command = str(run.input.get("command"))
    if "asked, " not in command or PYTEST not in command:
        return text
    for value, name, line in _CONTRADICTION.findall(run.output):
        try:
            tree, _ = ast.parse(text), ast.literal_eval(value)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return text
        for node in ast.walk(tree):
            is_failing = getattr(node, "lineno", 0) == int(line) and PurePath(name).name == PurePath(path).name
            match node:
                case (
                    ast.Compare(ops=[ast.Eq()], comparators=[expected])
                    | ast.Call(func=ast.Attribute(attr="assertEqual"), args=[_, expected])
                ) if is_failing:
                    text = replace_node(text, expected, value)
                    break
    return text


def output_lines(run: ToolPart) -> list[str]:
    """Without blank lines and the exit status."""
    return [line for line in run.output.rstrip().splitlines() if line.strip() and not re.match(r"\[exit \d+", line)]


def _last_line(run: ToolPart) -> str:
    return next((line.strip() for line in reversed(output_lines(run))), "")


def _same_number(first: str, second: str) -> bool:
    try:
        return float(first) == float(second)
    except ValueError:
        return False


def _is_only_output(request: str) -> bool:
    """Tells whether no part of the request can ask for more output than its counted text."""
    prose = parts.prose_of(request)
    clauses = [each for each in re.split(r"[.,;:!，、。；：،]\s*", prose) if re.search(r"\w", each)]
    is_about = [re.search(rf"\b_\b|{parts.TIMES}", each) or _OWN_LINE.search(each) for each in clauses]
    return all(is_about) and not _MORE.search(prose)
