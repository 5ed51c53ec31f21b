"""Prompts of simple mode. Their examples are in `simple_examples.toml`."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from wolo.formats.tolerant_json import read_as
from wolo.models.local.checks.requested_work import Work, asks_for
from wolo.models.local.local_chat import Turn

Action = Literal["create", "change", "read", "list", "shell", "answer"]

MAX_QUESTION_CHARS: Final = 400
"""Length of a request when only its purpose matters."""
MAX_REQUEST_CHARS: Final = 4_000
"""Length of a request when all of it matters."""
EXCERPT_LINES: Final = 6
MAX_EXCERPT_CHARS: Final = 3_000
"""Length of a file or listing that a question is about."""

_PYTHON_HINTS: Final = (
    (r"\bargument|command.?line|\bargv\b", "Take the arguments from sys.argv and do not ask for input."),
    (r"\bstandard input\b|\bstdin\b", "Read sys.stdin without prompting."),
)
PATH_PATTERN: Final = (
    r"^(README\.md|Makefile|Dockerfile"
    r"|[a-z][a-z0-9_]{1,24}\.(py|js|ts|html|css|sh|c|cpp|java|go|rs|rb|sql|json|md|txt|yaml|toml|csv))$"
)

LANGUAGES: Final = {
    **{
        f".{name}": name for name in ("html", "css", "c", "cpp", "java", "go", "sql", "json", "yaml", "toml", "csv", "xml", "ini")
    },
    **{".py": "python", ".js": "javascript", ".ts": "typescript", ".sh": "bash", ".h": "c", ".rs": "rust", ".rb": "ruby"},
    **{".md": "markdown", ".txt": "text", ".yml": "yaml", ".cfg": "ini"},
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


@functools.cache
def _examples() -> dict[str, Any]:
    """Read the examples of all prompts."""
    return tomllib.loads(Path(__file__).with_name("simple_examples.toml").read_text("utf-8"))


def _by_example(kind: str, request: str, form: Callable[[str], str] = str) -> list[Turn]:
    """Show examples of this kind, with answers in this form, before the request."""
    turns: list[Turn] = [("system", _examples()[kind]["system"])]
    for asked, answer in _examples()[kind]["examples"].items():
        turns += [("user", asked), ("assistant", form(answer))]
    return [*turns, ("user", request)]


def action(request: str) -> list[Turn]:
    """Ask for an action."""
    return _by_example("action", request, json.dumps)


def new_path(request: str) -> list[Turn]:
    """Ask for the name of a new file."""
    return _by_example("path", request, json.dumps)


def command(request: str) -> list[Turn]:
    """Ask for a shell command."""
    return _by_example("command", request)


def new_file(request: str, path: str, language: str, fence: str, around: str = "") -> list[Turn]:
    """Ask for a new file. `around`: excerpts of files that it may read or use."""
    kind = "Python code block" if language == "python" else "code block"
    if language == "python":
        shown = next(each for each in _examples()["python"] if re.search(each["pattern"], request, re.IGNORECASE))
        asked, answer = _python_request(shown["name"], shown["purpose"]), f"{fence}python\n{shown['code']}\n{fence}"
        hints = [hint for pattern, hint in _PYTHON_HINTS if re.search(pattern, request, re.IGNORECASE)]
        task = " ".join((_python_request(path, request), *hints))
    else:
        shown = _examples()["other"].get(language) or _examples()["other"]["text"]
        asked, answer, task = shown["asked"], shown["answer"], f"Write the complete file {path}: {request}."
    return [
        ("system", f"You reply with one {kind} and nothing else."),
        ("user", asked),
        ("assistant", answer),
        ("user", f"{around}{task}"),
        ("assistant", f"{fence}{language}\n"),
    ]


def excerpt(name: str, text: str) -> str:
    """Beginning of a file, as part of a prompt."""
    lines = text.splitlines()
    return "\n".join((f"{name} begins:", "~~~", *(line[:120] for line in lines[:EXCERPT_LINES]), "~~~", ""))


def changed_file(request: str, path: str, text: str, language: str, fence: str, error: str = "") -> list[Turn]:
    """Ask for the whole of a changed file. `error`: output of a command that fails because of it."""
    shown = _examples()["repair" if error else "change"]
    name, before, asked = "greet.py", shown["before"], "Add a function that thanks, in greet.py."
    answer = before + shown.get("added", "")
    if error:
        name, answer = "total.py", before.replace("result = 1", "result = 0").rstrip()
        asked = f"Running it fails:\n~~~\n{shown['failure']}\n~~~\nFix total.py."
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
    return [*_by_example("run", f"{path}: {request}"), ("assistant", f"{runner} {path}")]


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
