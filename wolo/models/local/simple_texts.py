"""Prompts of simple mode, and the texts it writes about results itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, Literal

from msgspec import Struct

from wolo.formats.tolerant_json import read_as
from wolo.messages.line_numbers import remove_numbers, split_output
from wolo.messages.parts import ToolPart
from wolo.models.local.checks.asked_parts import asked_formula, asked_parts
from wolo.models.local.checks.requested_work import Work, asks_for
from wolo.models.local.checks.run_check import COMPARED
from wolo.models.local.local_chat import Turn

Action = Literal["create", "change", "read", "list", "shell", "answer"]

MAX_QUESTION_CHARS: Final = 400
"""Length of a request when only its purpose matters."""
MAX_REQUEST_CHARS: Final = 4_000
"""Length of a request when all of it matters."""
EXCERPT_LINES: Final = 6
MAX_EXCERPT_CHARS: Final = 3_000
"""Length of a file or listing that a question is about."""

_ACTIONS: Final = (
    "Choose what the user wants:\n"
    "create = write a new program or file\n"
    "change = edit a file that exists\n"
    "read = explain a file or the project\n"
    "list = list files\n"
    "shell = run a command\n"
    "answer = just talk"
)
_ACTION_EXAMPLES: Final[tuple[tuple[str, Action], ...]] = (
    ("create a number guessing game", "create"),
    ("what files are there?", "list"),
    ("add a subtract function to math.py", "change"),
    ("what does this code do?", "read"),
    ("show git status", "shell"),
    ("what is a list in Python?", "answer"),
    ("run the tests", "shell"),
    ("hello", "answer"),
    ("make a web page about dogs", "create"),
    ("fix the error in app.py", "change"),
    ("explain utils.py", "read"),
    ("write tests for shapes.py", "create"),
    ("list the files", "list"),
    ("tell me about this project", "read"),
    ("count the words in notes.txt", "shell"),
    ("can you write a script that resizes images?", "create"),
    ("what does app.py do?", "read"),
    ("who are you?", "answer"),
    ("make it faster", "change"),
)
_PATH_EXAMPLES: Final = (
    ("create a number guessing game", "guessing_game.py"),
    ("make a web page about dogs", "dogs.html"),
    ("write a shell script that counts files", "count_files.sh"),
    ("pong", "pong.py"),
    ("write the installation notes", "installation.md"),
)
_COMMAND_EXAMPLES: Final = (
    ("list the running processes", "ps aux"),
    ("run main.py", "python3 main.py"),
    ("show the git history", "git log --oneline"),
    ("count the words in notes.txt", "wc -w notes.txt"),
    ("search for the word error", "grep -rn error ."),
    ("run the tests", "python3 -m pytest"),
)
_GREETING: Final = (
    "def greet(name):\n"
    '    return f"Hello, {name}!"\n'
    "\n\n"
    "def main():\n"
    '    print(greet("World"))\n'
    "\n\n"
    'if __name__ == "__main__":\n'
    "    main()"
)
_SHOUT: Final = (
    "import sys\n\n\ndef shout(text):\n    return text.upper()\n\n\n"
    'def main():\n    print(shout(sys.argv[1]))\n\n\nif __name__ == "__main__":\n    main()'
)
_DOUBLE: Final = (
    "import sys\n\n\ndef main():\n    for line in sys.stdin:\n        print(int(line) * 2)\n\n\n"
    'if __name__ == "__main__":\n    main()'
)
_PYTHON_EXAMPLES: Final = (
    (r"\bargument|command.?line|\bargv\b|\bparameter", "shout.py", "a program that prints its argument in capitals", _SHOUT),
    (r"\bstandard input\b|\bstdin\b|\bpipe", "double.py", "a program that doubles the numbers on standard input", _DOUBLE),
    (r"", "greet.py", "a program that greets people", _GREETING),
)
"""The first whose pattern occurs in the request shows the form of the answer."""
_PYTHON_HINTS: Final = (
    (r"\bargument|command.?line|\bargv\b", "Take the arguments from sys.argv and do not ask for input."),
    (r"\bstandard input\b|\bstdin\b", "Read sys.stdin without prompting."),
)
_OTHER_EXAMPLES: Final = {
    "javascript": (
        "Write the complete file greet.js: a program that greets people.",
        "```javascript\nfunction greet(name) {\n  return `Hello, ${name}!`;\n}\n\nconsole.log(greet('World'));\n```",
    ),
    "bash": (
        "Write the complete file greet.sh: a script that greets people.",
        '```bash\n#!/bin/bash\n\nname="World"\necho "Hello, $name!"\n```',
    ),
}
_BEFORE: Final = 'def greet(name):\n    return "Hello"\n\n\ndef part(name):\n    return f"Bye, {name}!"\n'
_AFTER: Final = _BEFORE + '\n\ndef thank(name):\n    return f"Thank you, {name}!"'

_TEXT_EXAMPLE: Final = ("Write the complete file hello.txt: a greeting.", "```text\nHello, World!\n```")
_MARKDOWN_EXAMPLE: Final = (
    "Write the complete file running.md: how to run the program.",
    "~~~~markdown\n# Running\n\nStart it with:\n\n```\npython3 main.py\n```\n\nIt prints the result.\n~~~~",
)

PATH_PATTERN: Final = (
    r"^(README\.md|Makefile|Dockerfile"
    r"|[a-z][a-z0-9_]{1,24}\.(py|js|ts|html|css|sh|c|cpp|java|go|rs|rb|sql|json|md|txt|yaml|toml|csv))$"
)

LANGUAGES: Final = {
    ".py": "python",
    ".js": "javascript",
    ".ts": "typescript",
    ".html": "html",
    ".css": "css",
    ".sh": "bash",
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".rb": "ruby",
    ".sql": "sql",
    ".json": "json",
    ".md": "markdown",
    ".txt": "text",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".csv": "csv",
    ".xml": "xml",
    ".ini": "ini",
    ".cfg": "ini",
}
"""Extension → fence language; other files are `text`."""
PROSE: Final = frozenset(("markdown", "text"))


def language_of(path: str) -> str:
    return LANGUAGES.get(PurePath(path).suffix.lower(), "text")


def fence_of(language: str) -> str:
    return "~~~~" if language == "markdown" else "```"  # Markdown contains fences itself


_WORKING: Final[dict[Work, tuple[Action, ...]]] = {
    "": ("create", "change", "read", "list", "shell", "answer"),
    "change": ("create", "change"),
    "both": ("create", "change", "shell"),
    "run": ("create", "change", "shell"),
}
"""Actions that may fulfil a request, by the effect that it asks for."""
_FILE_WORK: Final = re.compile(r"\b(?:delete|remove|move|rename|copy)\b", re.IGNORECASE)


def fulfilling(request: str) -> tuple[Action, ...]:
    """Actions of simple mode that bring the effect that is asked for; an explanation is no change."""
    work = asks_for(request)
    return _WORKING["both" if work == "change" and _FILE_WORK.search(request) else work]


def one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"enum": list(values)}


def json_text(text: str) -> str:
    """The text that a schema of texts asks for; empty if it was cut off before the closing quote."""
    return read_as(text.encode("utf-8", "replace"), str) or ""


def action(request: str) -> list[Turn]:
    return _by_example(_ACTIONS, _with_json_answers(_ACTION_EXAMPLES), request)


def new_path(request: str) -> list[Turn]:
    system = "Name the file for this request. Programs are Python unless another language is named."
    return _by_example(system, _with_json_answers(_PATH_EXAMPLES), request)


def command(request: str) -> list[Turn]:
    return _by_example("Reply with one shell command and nothing else.", _COMMAND_EXAMPLES, request)


def new_file(request: str, path: str, language: str, fence: str, around: str = "") -> list[Turn]:
    """`around`: excerpts of files that the new one may read or use."""
    if language == "python":
        system = "You reply with one Python code block and nothing else."
        name, purpose, code = next(row[1:] for row in _PYTHON_EXAMPLES if re.search(row[0], request, re.IGNORECASE))
        asked, answer = _python_request(name, purpose), f"{fence}python\n{code}\n{fence}"
        hints = [hint for pattern, hint in _PYTHON_HINTS if re.search(pattern, request, re.IGNORECASE)]
        task = " ".join((_python_request(path, request), *hints))
    else:
        system = "You reply with one code block and nothing else."
        asked, answer = _OTHER_EXAMPLES.get(language, _MARKDOWN_EXAMPLE if language == "markdown" else _TEXT_EXAMPLE)
        task = f"Write the complete file {path}: {request}."
    return [
        ("system", system),
        ("user", asked),
        ("assistant", answer),
        ("user", f"{around}{task}"),
        ("assistant", f"{fence}{language}\n"),
    ]


def excerpt(name: str, text: str) -> str:
    """Beginning of a file, as part of a prompt."""
    lines = text.splitlines()
    return "\n".join((f"{name} begins:", "~~~", *(line[:120] for line in lines[:EXCERPT_LINES]), "~~~", ""))


_FAULTY: Final = "def total(numbers):\n    result = 1\n    for number in numbers:\n        result += number\n    return result\n"
_FAILURE: Final = "    assert total([1, 2]) == 3, total([1, 2])\nAssertionError: 4"


def changed_file(request: str, path: str, text: str, language: str, fence: str, error: str = "") -> list[Turn]:
    """`error`: output of a command that fails because of the file."""
    asked, answer = "Add a function that thanks, in greet.py.", _AFTER
    before, name = _BEFORE, "greet.py"
    if error:
        name, before, answer = "total.py", _FAULTY, _FAULTY.replace("result = 1", "result = 0").rstrip()
        asked = f"Running it fails:\n~~~\n{_FAILURE}\n~~~\nFix total.py."
    failure = f"Running it fails:\n~~~\n{error}\n~~~\n" if error else ""
    return [
        (
            "system",
            "You change a file as asked and reply with the complete new file, all of it, as one code block and nothing else.",
        ),
        ("user", f"{name}:\n{fence}python\n{before}{fence}\n{asked}"),
        ("assistant", f"{fence}python\n{answer}\n{fence}"),
        ("user", f"{path}:\n{fence}{language}\n{text.rstrip()}\n{fence}\n{failure}{request}"),
        ("assistant", f"{fence}{language}\n"),
    ]


def addition(request: str, path: str, around: str, begin: str) -> list[Turn]:
    """Ask for the lines to add below the last of these; `begin`: how they begin."""
    return [
        ("system", "You add to a text. Reply with the new lines and nothing else."),
        ("user", "CHANGES.md:\n~~~\n## Changed\n- Faster start\n~~~\nPlease note under Changed that we now need Python 3.11."),
        ("assistant", "- Python 3.11 is needed"),
        ("user", f"{path}:\n~~~\n{around}\n~~~\n{request}"),
        ("assistant", begin),
    ]


def docstring(request: str, name: str, code: str) -> list[Turn]:
    """Ask for one sentence about a function."""
    return [
        ("system", "Reply with the docstring of the function: one short sentence and nothing else, in the language of the code."),
        ("user", "def area(width, height):\n    return width * height\n\nDocstring of area?"),
        ("assistant", "Return the area of a rectangle."),
        ("user", f"{code.rstrip()}\n\n{request}\nDocstring of {name}?"),
    ]


def example_run(path: str, runner: str, request: str) -> list[Turn]:
    """Ask for a command that tries a program out."""
    system = "Reply with one shell command that tries the program with example arguments, and nothing else."
    examples = (
        ("shout.py: a program that prints its argument in capitals", "python3 shout.py hello"),
        ("sum.py: adds the numbers that are given", "python3 sum.py 3 4"),
    )
    return [*_by_example(system, examples, f"{path}: {request}"), ("assistant", f"{runner} {path}")]


def about(request: str, title: str, excerpt: str) -> list[Turn]:
    return [
        ("system", "You are a coding assistant. Answer the question about the text in a few short sentences."),
        ("user", f"{title}:\n~~~\n{excerpt}\n~~~\n{request}"),
    ]


def talk(request: str, earlier: Sequence[Turn]) -> list[Turn]:
    return [
        ("system", "You are Wolo, a coding assistant in a terminal. Answer in a few short sentences."),
        *earlier,
        ("user", request),
    ]


def shorten(text: str, chars: int) -> str:
    """Keep both ends, where the question may be."""
    if len(text) <= chars:
        return text
    head, tail = chars * 2 // 3, chars // 3
    return f"{text[:head]}\n…\n{text[-tail:]}"


def _python_request(path: str, request: str) -> str:
    return f"write one complete Python file named {path}: {request}. Use plain functions."


def _with_json_answers(examples: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(asked, json.dumps(answer)) for asked, answer in examples]


def _by_example(system: str, examples: Sequence[tuple[str, str]], request: str) -> list[Turn]:
    turns: list[Turn] = [("system", system)]
    for asked, answer in examples:
        turns += [("user", asked), ("assistant", answer)]
    return [*turns, ("user", request)]


MAX_LINES: Final = 30
LONG_WORD: Final = 5
SUCCEEDED: Final = "[exit 0]"
_NUMBER: Final = re.compile(r"^\d+→|^\[… .* left out .*\n|^\nmessage_id .*\n.*\Z", re.MULTILINE)
_NOTE: Final = re.compile(r"\[.*\]\Z", re.DOTALL)
_ALL_LINES: Final = re.compile(r"\[(\d+) lines?\.")


class FileText(Struct, frozen=True):
    text: str
    is_whole: bool


def file_text(output: str) -> FileText:
    """Extract a file from the output of `read`, without line numbers.

    Lines may be missing, because old results are shortened in small windows.
    """
    page, note = split_output(output)
    _, lines = remove_numbers(page) or (0, [])
    total = _ALL_LINES.match(note)
    if total is not None and int(total[1]) == len(lines) and not any(" … [cut: " in line for line in lines):
        return FileText("".join(f"{line}\n" for line in lines), is_whole=True)
    return FileText(_NUMBER.sub("", "\n".join(page)), is_whole=output == "[The file is empty.]")


def listing_of(output: str) -> list[str]:
    return [line for line in output.splitlines() if line and not _NOTE.match(line)]


def describe_output(call: ToolPart) -> str:
    """Output of a listing or command, with the middle cut if long."""
    if call.tool == "glob":
        names = listing_of(call.output)
        if not names:
            return "There are no files here."
        count = "There is 1 file" if len(names) == 1 else f"There are {len(names)} files"
        return f"{count}:\n\n{_code_fence(names)}"
    lines = [line for line in call.output.rstrip().splitlines() if line != SUCCEEDED and not line.startswith(COMPARED)]
    command = str(call.input.get("command", "The command")).rpartition("' && ")[2]  # without a comparison before it
    return f"`{command}` printed:\n\n{_code_fence(lines)}"


def describe_success(call: ToolPart, *, is_run: bool = False) -> str:
    if call.tool == "edit":
        return f"Changed {call.input.get('path')}."
    if call.tool != "write":
        return call.output.strip() or "Done."
    path, content = str(call.input.get("path", "")), str(call.input.get("content", ""))
    count = len(content.splitlines())
    run = f" Run it with `python3 {path}`." if not is_run and path.endswith(".py") and "__main__" in content else ""
    return f"Wrote {path} ({count} line{'' if count == 1 else 's'}).{run}"


def describe_failure(call: ToolPart) -> str:
    what = {
        "write": f"{call.input.get('path')} was not written",
        "edit": f"{call.input.get('path')} was not changed",
        "read": f"{call.input.get('path')} was not read",
        "shell": f"`{call.input.get('command')}` was not run",
    }.get(call.tool, f"`{call.tool}` did not work")
    if call.outcome in ("denied_by_person", "denied_by_rule"):
        return f"{what}, because it was not allowed."
    if call.tool == "shell" and call.outcome == "error":
        return f"`{call.input.get('command')}` failed:\n\n{_code_fence(call.output.rstrip().splitlines())}"
    return f"{what}: {call.output.strip() or 'no reason was given.'}"


def _code_fence(lines: list[str]) -> str:
    if len(lines) > MAX_LINES:
        left_out = len(lines) - MAX_LINES
        lines = [*lines[: MAX_LINES // 2], f"… {left_out} more lines …", *lines[-MAX_LINES // 2 :]]
    text = "\n".join(lines)
    fence = "````" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"


def quote_source(path: str, text: str, request: str, answer: str) -> str:
    """The line of a file that an answer rests on, as a quotation; empty if none shares a name or word with it."""
    asked, answered = ({word.lower() for word in re.findall(r"\w{2,}", part)} for part in (request, answer))
    best, score = 0, 0
    lines = text.splitlines()
    for at, line in enumerate(lines):
        own = {word.lower() for word in re.findall(r"\w{2,}", line)}
        names = {word for word in own & asked if "_" in word or not word.isascii() or len(word) > LONG_WORD}
        if (
            points := len(own & asked) + 3 * len(names) + len(own & answered) + line.strip().startswith(("def ", "class "))
        ) > score:
            best, score = at, points
    return f"> {lines[best].strip()}\n> ({path}, line {best + 1})" if score else ""


def describe_checks(request: str, contents: Mapping[str, str], run: ToolPart | None) -> str:
    """Last line of a report: what was compared with the request."""
    checks = ["the tests pass" if "pytest" in str(run.input.get("command")) else "runs"] if run and not run.is_error else []
    checks += ["another version has the same results"] * bool(run and f"{COMPARED}the same" in run.output)
    parts, whole = asked_parts(request), "\n".join(contents.values())
    if run and not run.is_error and (formula := asked_formula(request, whole)) and "asked, " in str(run.input.get("command")):
        checks.append(f"computes {formula}")
    defines = [each.name for each in parts.functions if re.search(rf"\b(?:def|class|function) {each.name}\b", whole)]
    has = [
        each
        for each in (*parts.names, *(f"“{text}”" for text in parts.quoted if text not in parts.names), *parts.numbers)
        if each.strip("“”") in whole
    ]
    if not checks and any(path.endswith((".py", ".json", ".toml")) for path in contents):
        checks.append("can be parsed")
    checks += [f"defines {', '.join(defines)}"] * bool(defines) + [f"has {', '.join(dict.fromkeys(has))}"] * bool(has)
    return f"Checked: {', '.join(checks)}." if checks else "Nothing of it could be checked."
