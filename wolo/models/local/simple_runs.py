"""Commands of simple mode: how to run a program, which command a request is about, and which file a failure is in."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import clauses_of
from wolo.models.local.checks.code_check import does_nothing
from wolo.models.local.checks.requested_work import wants_answer
from wolo.models.local.checks.run_check import RUNNERS, output_lines
from wolo.models.local.checks.senses import means
from wolo.models.local.simple_context import ProjectNames, named_files
from wolo.models.local.simple_texts import Action

RUN_S: Final = 20
"""Time limit of a trial run."""
COMMAND_TOKENS: Final = 80
TAIL_LINES: Final = 12
_ARGUMENTS: Final = re.compile(r"sys\.argv|argparse|\bclick\b|process\.argv|\$[1-9@*#]|\bARGV\b")
_INPUT: Final = re.compile(r"\binput\(|sys\.stdin|fileinput|process\.stdin|\breadline\b|\bread\b -|\bgets\b")
"""Programs that need arguments or input; without them a failure proves nothing."""
_WORD: Final = r"""(?:[\w.,:@/+-]+|"[^"$`\\]*"|'[^']*')"""
_PLAIN: Final = rf"{_WORD}(?:\s+{_WORD})*"
_NO_FAULT: Final = re.compile(
    r"EOFError|timed out after|[Uu]sage:|FileNotFoundError|No such file or directory|No module named '?(?:_?tkinter|pytest)"
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


def takes_arguments(text: str) -> bool:
    return bool(_ARGUMENTS.search(text)) and not _INPUT.search(text) and not _ENDLESS.search(text)


def example_command(path: str, runner: str, answer: str, text: str) -> str:
    """The arguments a model proposes, if they are plain words; numbers for those that the program reads otherwise."""
    line = answer.strip().removeprefix(f"{runner} {path}").partition("\n")[0].strip().strip("`")
    if not re.fullmatch(_PLAIN, line):
        last = max(map(int, re.findall(r"(?:argv\[|\$)(\d)", text)), default=1)
        line = " ".join(("10", "3", "7")[: max(last, 1)])
    return f"{runner} {path} {line}"


def printed_nothing(call: ToolPart) -> bool:
    return call.output.startswith(NO_OUTPUT)


def find_command(request: str) -> str:
    """Command that a request names, in backticks or by a well-known program."""
    quoted = next((each.strip() for each in _QUOTED.findall(request) if " " in each.strip() or each in ("pytest", "make")), "")
    found = _COMMAND.search(request)
    return quoted or (found[0].rstrip(".,:;") if found else "")


def about_named_file(request: str, actions: Sequence[Action], *, is_there: bool) -> tuple[Action, ...]:
    """Actions for a named file: a question is about its content, a statement that names it asks for work, in any language."""
    unused = {"answer", "list"}
    if wants_answer(request) and not is_there:
        unused = set()
    elif wants_answer(request) and not find_command(request):
        unused |= {"create", "change", "shell"}
    return tuple(action for action in actions if action not in unused)


def error_of(call: ToolPart) -> str:
    """End of a failed command's output, where the reason is."""
    if printed_nothing(call):
        return "It ended without an error, but printed nothing. The result must be printed."
    return "\n".join(output_lines(call)[-TAIL_LINES:])


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
    """Programs and lists of ignored files that the request names and that are not there."""
    lists = re.findall(r"(?<![\w/])\.\w+ignore\b", request)
    programs = [name for name in named_files(request, names) if PurePath(name).suffix.lower() in RUNNERS]
    return [name for name in dict.fromkeys((*programs, *lists)) if not names.exists(name)]


def unchanged_files(request: str, names: ProjectNames, written: Sequence[str]) -> list[str]:
    """Existing files in which the request wants a change, `in index.html set …`, and that the turn did not write."""
    places = re.findall(
        r"(?:^|[.!?,;:]\s+)(?:in|im|dans|en|em|nel|в)\s+(?:(?:the file|der Datei|le fichier)\s+)?[`'\"]?([\w./-]+\.\w+)",
        request,
        re.I,
    )
    return [name for name in dict.fromkeys(places) if names.exists(name) and name not in written]


def next_change(request: str, names: ProjectNames, written: Sequence[str]) -> str:
    """Further existing file that the request changes: "add area to shapes.py, and use it in main.py"."""
    clauses = clauses_of(request)
    for name in named_files(request, names):
        own = [each for each in clauses if name in each and means(each, "add", "remove")] if len(clauses) > 1 else []
        is_further = own and not any(other in own[0] for other in written)
        if (
            written
            and name not in written
            and names.exists(name)
            and (is_further or _ADAPTING.search(request[: request.find(name)]))
        ):
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
