"""What a tiny model is told in simple mode: short instructions and worked examples, one question at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from wolo.models.local.local_chat import Turn

Action = Literal["create", "change", "read", "list", "shell", "answer"]

MAX_QUESTION_CHARS: Final = 400
"""Of a request, when only its purpose counts."""
MAX_REQUEST_CHARS: Final = 4_000
"""Of a request, when all of it counts."""
MAX_EXCERPT_CHARS: Final = 3_000
"""Of a file or listing that a question is about."""

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
"""Extension → the word after the fence. What is not here is `text`, but can be written all the same."""
PROSE: Final = frozenset(("markdown", "text"))


def one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"enum": list(values)}


def text_like(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def action(request: str) -> list[Turn]:
    return _by_example(_ACTIONS, _quoted(_ACTION_EXAMPLES), request)


def new_path(request: str) -> list[Turn]:
    system = "Name the file for this request. Programs are Python unless another language is named."
    return _by_example(system, _quoted(_PATH_EXAMPLES), request)


def command(request: str) -> list[Turn]:
    return _by_example("Reply with one shell command and nothing else.", _COMMAND_EXAMPLES, request)


def new_file(request: str, path: str, language: str, fence: str) -> list[Turn]:
    if language == "python":
        system = "You reply with one Python code block and nothing else."
        asked, answer = _python_request("greet.py", "a program that greets people"), f"{fence}python\n{_GREETING}\n{fence}"
        wanted = _python_request(path, request)
    else:
        system = "You reply with one code block and nothing else."
        asked, answer = _MARKDOWN_EXAMPLE if language == "markdown" else _TEXT_EXAMPLE
        wanted = f"Write the complete file {path}: {request}."
    return [("system", system), ("user", asked), ("assistant", answer), ("user", wanted), ("assistant", f"{fence}{language}\n")]


def changed_file(request: str, path: str, text: str, language: str, fence: str) -> list[Turn]:
    return [
        (
            "system",
            "You change a file as asked and reply with the complete new file, all of it, as one code block and nothing else.",
        ),
        ("user", f"greet.py:\n{fence}python\n{_BEFORE}{fence}\nAdd a function that thanks, in greet.py."),
        ("assistant", f"{fence}python\n{_AFTER}\n{fence}"),
        ("user", f"{path}:\n{fence}{language}\n{text.rstrip()}\n{fence}\n{request}"),
        ("assistant", f"{fence}{language}\n"),
    ]


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
    """Both ends of a long text: a question may stand before or after what it is about."""
    if len(text) <= chars:
        return text
    head, tail = chars * 2 // 3, chars // 3
    return f"{text[:head]}\n…\n{text[-tail:]}"


def _python_request(path: str, request: str) -> str:
    return f"write one complete Python file named {path}: {request}. Use plain functions."


def _quoted(examples: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(asked, json.dumps(answer)) for asked, answer in examples]


def _by_example(system: str, examples: Sequence[tuple[str, str]], request: str) -> list[Turn]:
    turns: list[Turn] = [("system", system)]
    for asked, answer in examples:
        turns += [("user", asked), ("assistant", answer)]
    return [*turns, ("user", request)]
