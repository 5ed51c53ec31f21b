"""Commands of simple mode: how to run a program, which command a request is about, and which file a failure is in."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_formula, asked_parts, expected_values, means, repeat_count
from wolo.models.local.checks.code_check import does_nothing
from wolo.models.local.checks.requested_work import wants_answer
from wolo.models.local.simple_context import ProjectNames, named_files
from wolo.models.local.simple_texts import Action

RUN_S: Final = 10
"""Time limit of a trial run."""
COMMAND_TOKENS: Final = 80
TAIL_LINES: Final = 12
RUNNERS: Final = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node", ".rb": "ruby"}
_ARGUMENTS: Final = re.compile(r"sys\.argv|argparse|\bclick\b|process\.argv|\$[1-9@*#]|\bARGV\b")
_INPUT: Final = re.compile(r"\binput\(|sys\.stdin|fileinput|process\.stdin|\breadline\b|\bread\b -|\bgets\b")
"""Programs that need arguments or input; without them a failure proves nothing."""
_PRINTING: Final = re.compile(r"\b(prints?|shows?|displays?|outputs?|writes? out)\b", re.I)
_WORD: Final = r"""(?:[\w.,:@/+-]+|"[^"$`\\]*"|'[^']*')"""
_PLAIN: Final = rf"{_WORD}(?:\s+{_WORD})*"
_NO_FAULT: Final = re.compile(
    r"EOFError|timed out after|[Uu]sage:|FileNotFoundError|No such file or directory|No module named '_?tkinter"
)
NO_OUTPUT: Final = "(no output)"
_ENDLESS: Final = re.compile(
    r"\b(tkinter|turtle|pygame|curses|flask|fastapi|django|socketserver|http\.server|mainloop|serve_forever|createServer|listen)\b"
)
_FIXING: Final = re.compile(r"\b(fix|fails?|failing|failed|error|errors|bug|broken|crash\w*|repair|debug|wrong|work)\b", re.I)
_RUNNING: Final = re.compile(r"\b(then|and|,)\s+(run|execute|start|test)\b|\brun it\b|\bexecute it\b", re.I)
_COMMAND: Final = re.compile(
    r"(?:python3?|node|bash|sh|ruby)\s+(?:-\S+\s+)*[\w./-]+\.\w+(?:\s+(?!and\b|so\b|to\b|is\b|does)[\w./-]*[./\d][\w./-]*)*"
    r"|(?:python3?\s+-m\s+)?(?:pytest|unittest)\b(?:\s+-\S+|\s+[\w./-]*[./_][\w./-]*)*"
    r"|make\s+(?:test|check|build|all)\b|npm\s+(?:test|run\s+\w+)|go\s+(?:test|build|run)\s+\S+|cargo\s+(?:test|build|run)"
)
_QUOTED: Final = re.compile(r"`([^`\n]+)`")
_JOINING: Final = re.compile(
    r"(?:\band\b|,|\bplus\b|\balso\b|\bthen\b)\s+(?:(?:create|write|make|add|put|a|an|the|another|second|its|it|is|in|into|for|file|files|"
    r"test|tests|program|script|page|stylesheet|style|styles|module|called|named)\s+)*$",
    re.I,
)
_ADAPTING: Final = re.compile(
    r"(?:\band\b|,|\bthen\b|\balso\b)\s+(?:(?:make|let|have|change|update|edit|adapt|modify|rewrite)"
    r"|(?:use|call|import|print|show|replace|rename|add)\b[^.;,]{0,40}\b(?:in|from|by|to))\s+(?:the\s+)?(?:file\s+)?[`'\"]?$",
    re.I,
)
_TRACED: Final = re.compile(r'File "([^"]+)", line \d+|^(?:\s+at .*?\(?)?((?:/|\./)?[\w./-]+\.\w+):(?:line )?\d+', re.M)
_LIBRARY: Final = re.compile(r"\b(functions?|class|classes|module|library)\b", re.I)
_SHOWING: Final = re.compile(r"\b(prints?|program|script|shows?|displays?|outputs?|app|game|run)\b", re.I)


def is_fix(request: str) -> bool:
    return bool(_FIXING.search(request))


def wants_run(request: str) -> bool:
    return bool(_RUNNING.search(request))


def is_library(request: str) -> bool:
    """Tells whether the request is for functions to import, which show nothing when run."""
    return bool(_LIBRARY.search(request)) and not _SHOWING.search(request)


def run_command(path: str, text: str, *, asked: bool = False) -> str:
    """Command for a trial run; empty if running the file proves nothing. `asked`: the user wants it to run."""
    runner = RUNNERS.get(PurePath(path).suffix.lower(), "")
    if not runner or not re.fullmatch(r"[\w./-]+", path):
        return ""
    needs_more = any(pattern.search(text) for pattern in (_ARGUMENTS, _INPUT, _ENDLESS))
    if not asked and (needs_more or (runner == "python3" and does_nothing(text))):
        return ""
    return f"{runner} {path}"


PYTEST: Final = "python3 -m pytest -q"
_PROBE: Final = "python3 -B -c "
"""Without bytecode files: Python takes a stale one for a file of the same size, changed in the same second."""


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
    code = f"import sys; sys.path.insert(0, {folder!r}); from {module} import {name}; print(repr({call}))"
    return _PROBE + shlex.quote(code)


def formula_command(path: str, text: str, request: str) -> str:
    """Command that fails if the only function of a request disagrees with the formula stated there.

    It may disagree for the lesser part of the arguments: a request may state exceptions.
    """
    functions, formula = asked_parts(request).functions, asked_formula(request)
    owner, method = functions[0] if functions else None, functions[-1] if functions else None
    is_class = len(functions) == 2 and functions[0].is_class
    if not owner or not method or not formula or (len(functions) > 1 and not is_class) or shows_something(request):
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
        if not asked_parts(request).calls:
            return ""
        result = _last_line(run)
        call = next(iter(asked_parts(request).calls), "the call")
        if earlier is not None and not earlier.is_error and _last_line(earlier) == result:
            return f"{call} still gives {result}"
        expected = expected_values(request)
        is_right = any(result.strip("'\"") == value or _same_number(result, value) for value in expected)
        return (
            "" if is_right or not expected else f"{call} gives {result}, which is not what was asked for ({', '.join(expected)})"
        )
    quoted, times = asked_parts(request).quoted, repeat_count(request)
    if times and (count := len(re.findall(re.escape(quoted[0]) + r"(?![.!])", run.output))) != times:
        return f"it prints “{quoted[0]}” {count} times, not {times} times"
    argument = re.search(r" (\d+)$", str(run.input.get("command", "")))
    if argument and not times and re.search(rf"(?m)^(?:{argument[1]}){{2,}}$", run.output):
        return f"it repeats its argument {argument[1]}: an argument is text until int() or float() makes it a number"
    return ""


def _last_line(run: ToolPart) -> str:
    lines = [line for line in run.output.rstrip().splitlines() if line.strip() and not re.match(r"\[exit \d+", line)]
    return lines[-1].strip() if lines else ""


def _same_number(first: str, second: str) -> bool:
    try:
        return float(first) == float(second)
    except ValueError:
        return False


def takes_arguments(text: str) -> bool:
    return bool(_ARGUMENTS.search(text)) and not _INPUT.search(text) and not _ENDLESS.search(text)


def example_command(path: str, runner: str, answer: str) -> str:
    """The arguments a model proposes, if they are plain words; empty otherwise."""
    line = answer.strip().removeprefix(f"{runner} {path}").partition("\n")[0].strip().strip("`")
    is_plain = re.fullmatch(_PLAIN, line)
    return f"{runner} {path} {line}" if is_plain else ""


def printed_nothing(call: ToolPart) -> bool:
    return call.output.startswith(NO_OUTPUT)


def shows_something(request: str) -> bool:
    return bool(_PRINTING.search(request)) or means(request, "output")


def find_command(request: str) -> str:
    """Command that a request names, in backticks or by a well-known program."""
    quoted = next((each.strip() for each in _QUOTED.findall(request) if " " in each.strip() or each in ("pytest", "make")), "")
    found = _COMMAND.search(request)
    return quoted or (found[0].rstrip(".,:;") if found else "")


def about_file(request: str, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Selects the actions that use a file that the request names; a question is about its content."""
    unused = (
        {"answer", "list"}
        if not wants_answer(request) or find_command(request)
        else {"answer", "list", "create", "change", "shell"}
    )
    return tuple(action for action in actions if action not in unused)


def about_new_file(request: str, actions: Sequence[Action]) -> tuple[Action, ...]:
    """Selects the actions for a named file that is not there: a statement that names it asks for work, in any language."""
    unused = () if wants_answer(request) else ("answer", "list")
    return tuple(action for action in actions if action not in unused)


def error_of(call: ToolPart) -> str:
    """End of a failed command's output, where the reason is."""
    if printed_nothing(call):
        return "It ended without an error, but printed nothing. The result must be printed."
    lines = [line for line in call.output.rstrip().splitlines() if line.strip() and not re.match(r"\[exit \d+", line)]
    return "\n".join(lines[-TAIL_LINES:])


def needs_input(call: ToolPart) -> bool:
    """A failure that says only that nobody typed anything, that a file is missing, or that the time ran out."""
    return bool(_NO_FAULT.search(call.output))


def file_to_fix(call: ToolPart, request: str, names: ProjectNames) -> str:
    """Project file that a failure is about, rather than the test that shows it."""
    traced: list[str] = []
    for groups in _TRACED.findall(call.output):
        name = _inside(groups[0] or groups[1], names)
        if name and name not in traced:
            traced.append(name)
    named = [name for name in named_files(request, names) if names.exists(name)]
    command = [name for name in named_files(str(call.input.get("command", "")), names) if names.exists(name)]
    tests = [name for name in dict.fromkeys((*traced, *named, *command)) if is_test(name)]
    code = [name for name in (*reversed(traced), *named, *command) if not is_test(name)]
    tested = [name for test in tests for name in _imports_of(names.folder / test, names)]
    return next(iter((*code, *tested, *names.programs[: 1 if len(names.programs) == 1 else 0], *tests)), "")


def next_file(request: str, names: ProjectNames, written: Sequence[str]) -> str:
    """Further new file that the request asks for: "create index.html and style.css"."""
    for name in named_files(request, names):
        before = request[: request.find(PurePath(name).name)]
        is_code = PurePath(name).suffix.lower() in RUNNERS and name not in find_command(request)
        if name not in written and not names.exists(name) and (is_code or _JOINING.search(before)):
            return name
    return ""


def missing_files(request: str, names: ProjectNames) -> list[str]:
    """Programs that the request names and that are not there."""
    return [name for name in named_files(request, names) if PurePath(name).suffix.lower() in RUNNERS and not names.exists(name)]


def next_change(request: str, names: ProjectNames, written: Sequence[str]) -> str:
    """Further existing file that the request changes: "add area to shapes.py, and use it in main.py"."""
    for name in named_files(request, names):
        if written and name not in written and names.exists(name) and _ADAPTING.search(request[: request.find(name)]):
            return name
    return ""


def _inside(name: str, names: ProjectNames) -> str:
    path = Path(name)
    try:
        relative = path.resolve().relative_to(names.folder.resolve()) if path.is_absolute() else path
    except ValueError:
        return ""
    hidden = any(part.startswith(".") or part in ("node_modules", "site-packages") for part in relative.parts)
    return "" if hidden or not names.exists(str(relative)) else str(relative)


def is_test(name: str) -> bool:
    stem = PurePath(name).stem.lower()
    return stem.startswith("test") or stem.endswith(("test", "tests", ".spec"))


def _imports_of(path: Path, names: ProjectNames) -> list[str]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, ValueError, SyntaxError):
        return []
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    candidates = [f"{module.replace('.', '/')}.py" for module in modules]
    return [name for name in candidates if names.exists(name)]
