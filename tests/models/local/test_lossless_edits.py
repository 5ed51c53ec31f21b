"""Changes without a model lose nothing beside their place, and are left to the model where they are not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.models.local.checks.edited_place import edit_place
from wolo.models.local.checks.edited_python import keep_bodies, with_docstrings, without_demo
from wolo.models.local.checks.kept_content import lost_content
from wolo.models.local.checks.requested_work import is_harmless
from wolo.models.local.checks.versions import compared_functions
from wolo.models.local.moves import next_moved
from wolo.models.local.simple_context import list_names

LOAD = "import os\n\n\ndef load(path, mode=1):\n    return path\n\n\ndef run():\n    return load(2)\n"
ROWS = "name,status\nAnn,active\nBo,inactive\nCy,active\n"
PORT = "[dev]\nport = 1\n\n[prod]\nhost = 1\n"


@pytest.mark.parametrize(
    ("path", "old", "request_"),
    [
        ("a.ini", PORT, "do not change port to 60"),
        ("a.ini", PORT, "port should not be 60"),
        ("a.ini", PORT, "No cambies port a 60"),
        ("m.py", LOAD, "don't remove run"),
        ("m.py", LOAD, "In load the variable mode is unused. Remove it."),
        ("m.py", LOAD, "load is fine but os is unused. Remove it."),
        ("m.py", LOAD, "Nobody calls load, delete it."),
        ("m.py", LOAD, "Function run has an unused parameter. Remove it."),
        ("m.py", LOAD, "Remove load from run"),
        ("m.py", "def scale(x, /):\n    return x * 2\n", "Add a parameter factor with default 2 to scale."),
        ("m.py", "factor = 9\n\n\ndef scale(x):\n    return x * 2 + factor\n", "Add a parameter factor with default 2 to scale."),
        ("m.py", "def scale(x):\n    return x[2]\n", "Add a parameter factor with default 2 to scale."),
        ("m.py", "@twice(2)\ndef scale(x):\n    return x\n", "Add a parameter factor with default 2 to scale."),
        ("m.py", "\x0cLIMIT = 5\n", "Set LIMIT to 7."),
        ("m.py", "'''\nLIMIT = 5\n'''\n", "Set LIMIT to 7."),
        ("a.toml", PORT, "Set port in prod to 9."),
        ("a.ini", PORT, "Set the port of prod to 9."),
        ("a.cfg", PORT, "Add the key `timeout` with 30 to dev."),
        ("a.yaml", "text: |\n  abc\nb: 1\n", 'Set text to "x".'),
        ("a.yaml", "- a\n", "Add the key `timeout` with 30."),
        ("a.md", "Port 80 and port 80.\n", "Use 81 instead of 80."),
        ("a.csv", "name,price\npear,1\n", "Delete the row pear, its price 5 was wrong."),
        ("a.csv", ROWS, "delete all rows except status active"),
        ("a.csv", ROWS, "lösche alle Zeilen mit status nicht active"),
        ("a.csv", ROWS, "keep only the rows with status active, remove the rest"),
        ("a.csv", ROWS, "remove Ann because her status is active"),
        ("a.csv", ROWS, "remove the spaces in the column name"),
        ("a.json", '{\n  "a": 1, "b": 2,\n  "c": 3\n}\n', "remove a"),
        ("a.json", '{\n  "c": ["one", "two"],\n  "d": 3\n}\n', "remove one from c"),
        ("a.json", '{\n  "name": "x",\n  "d": 3\n}\n', "remove the quotes around name"),
        ("a.toml", 'text = """\nabc\n"""\n', "remove text"),
        ("a.yaml", "services:\n  web:\n    port: 1\n", "remove the web service"),
        ("a.yaml", "text: |\n  abc\nb: 1\n", "remove text"),
        ("a.yaml", "on: push\nname: a\n", "remove the step on line 7"),
        ("a.yaml", "timeout: 30\n", "increase timeout by 10"),
        ("a.yaml", "timeout: 30\n", "erhöhe timeout um 10"),
        ("m.py", LOAD, "rename load to class"),
        ("m.py", LOAD, "rename load to fetch-all"),
        ("m.py", LOAD, "rename path in load to place"),
    ],
)
def test_uncertain_change_is_left_to_the_model(path: str, old: str, request_: str) -> None:
    assert edit_place(path, old, request_) in (None, old)


@pytest.mark.parametrize(
    ("path", "old", "request_", "new"),
    [
        ("m.py", "LIMIT = 5 # most\n", "Set LIMIT to 7.", "LIMIT = 7 # most\n"),
        ("a.toml", 'url = "http://x#top"\n', 'Set url to "http://y".', 'url = "http://y"\n'),
        ("a.yaml", "url: http://x#top\n", 'Set url to "http://y".', "url: http://y\n"),
        ("a.yaml", "mode: x\n", 'Set mode to "on: no # a".', 'mode: "on: no # a"\n'),
        (".env", "export NAME='x' # c\n", 'Set NAME to "it\'s".', 'export NAME="it\'s" # c\n'),
        ("a.csv", "name,price\npear,1\n", "Set the price of pear to 5.", "name,price\npear,5\n"),
        ("a.csv", "name,note\nlarge pear,x\n", 'Set the note of large pear to "a, b".', 'name,note\nlarge pear,"a, b"\n'),
        ("m.py", "def a_b(x):\n\treturn x\n", "Give a_b the docstring 'C:\\x'.", 'def a_b(x):\n\t"""C:\\\\x"""\n\treturn x\n'),
        (
            "m.py",
            "class K:\n    def scale(x):\n        return 1\n\n\ndef scale(\n    x,  # first\n    y=int()  # second\n):\n"
            "    return x * 2\n",
            "Add a parameter factor with default 2 to scale.",
            "class K:\n    def scale(x):\n        return 1\n\n\ndef scale(\n    x,  # first\n"
            "    y=int(), factor=2  # second\n):\n"
            "    return x * factor\n",
        ),
    ],
)
def test_certain_change_keeps_what_is_beside_it(path: str, old: str, request_: str, new: str) -> None:
    assert edit_place(path, old, request_) == new
    assert not lost_content(path, old, new, request_)


def test_type_hints_keep_defaults_and_comments() -> None:
    old = "from __future__ import annotations\n\n\ndef get(x, y=2):\n    # why\n    return x\n"
    typed = "from typing import Any\nfrom __future__ import annotations\n\n\ndef get(x: Any, y: int = {}) -> Any:\n    return x\n"
    typed = typed.replace(
        "from typing import Any\nfrom __future__ import annotations", "from __future__ import annotations\nfrom typing import Any"
    )
    assert keep_bodies(old, typed.format(2), "Add type hints.") == typed.format(2).replace("    return", "    # why\n    return")
    assert "get(x, y=2):" in keep_bodies(old, typed.format(3), "Add type hints.")
    one_line = "def get(x): return x\n"
    assert keep_bodies(one_line, "def get(x: int) -> int:\n    return x\n", "Add type hints.") == one_line


def test_docstring_is_above_decorators_and_ends() -> None:
    old = "async def get(x):\n    @made\n    def inner(): pass\n    return inner\n"
    assert with_docstrings(old, {"get": 'Say """a"'}) == old.replace("(x):\n", '(x):\n    """Say \'a\'"""\n')


def test_constants_that_a_library_uses_are_no_demo() -> None:
    assert without_demo(text := "def get():\n    return LIMIT\n\n\nLIMIT = max(1, 2)\n") == text
    assert without_demo("def get():\n    return 1\n\n\nprint(get())\n") == "def get():\n    return 1\n"


@pytest.mark.parametrize(
    "command",
    [
        "cat <(rm -rf x)",
        "find . '-delete'",
        "find . -de''lete",
        "find . -{delete,print}",
        "sort -uofile x",
        "sort --compress-program=./x y",
        "uniq a b",
        "rg --pre ./x y",
        "git remote -v remove origin",
        "git diff --ext-diff",
        "git diff --outp=x",
        "tree -ox",
        "tail -f x",
        "file -C -m x",
        "cat /dev/zero",
    ],
)
def test_hidden_effect_is_not_harmless(command: str) -> None:
    assert not is_harmless(command)


def test_plain_look_is_harmless() -> None:
    for command in (
        "find . -name '*.py' | wc -l",
        "sort -n a.txt | uniq -c",
        "git log --oneline -5 | head -3",
        'grep -rn "def " .',
    ):
        assert is_harmless(command)


@pytest.mark.parametrize(
    "body", ["typing.sys.exit()", "__builtins__", "operator.attrgetter('x')", "getattr(a, 'x')", "vars(a)", "json.codecs"]
)
def test_code_reaching_the_system_is_not_compared(body: str) -> None:
    assert not compared_functions(f"import json, operator, typing\n\n\ndef get(a):\n    return {body}\n", "")


AREA = "def area(r):\n    return 1\n"


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": f"LIMIT = 2\n\n\n{AREA.replace('1', 'LIMIT')}", "b.py": "X = 1\n"},
        {"a.py": f"{AREA}\n\n{AREA}", "b.py": "X = 1\n"},
        {"a.py": AREA, "b.py": "def (:\n"},
        {"a.py": f"{AREA}\n\nprint(area(1))\n", "b.py": "from a import other\n"},
        {"a.py": AREA, "b.py": "X = 1\n", "c.py": "import a\n\nprint(a.area(1))\n"},
        {"a.py": AREA, "b.py": "X = 1\n", "c.py": "from a import *\n\nprint(area(1))\n"},
        {"a.py": AREA, "b.py": "X = 1\n", "c.py": "from a import (\n    area,\n)\n"},
        {"a.py": AREA, "b.py": "X = 1\n", "c.py": "from a import area as surface\n"},
        {"a.py": AREA, "b.py": "X = 1\n", "c.py": "from .a import area\n"},
        {"a.py": f"import os\n\x0c\n{AREA}", "b.py": "X = 1\n"},
    ],
)
def test_move_nobody_can_follow_is_left(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert next_moved("Move area from a.py to b.py.", list_names(tmp_path), ()) == ""


def test_methods_of_the_same_name_stay() -> None:
    old = "def add(a):\n    seen = set()\n    seen.add(a)\n\n\nadd(1)\n"
    assert edit_place("m.py", old, "rename add to plus") == "def plus(a):\n    seen = set()\n    seen.add(a)\n\n\nplus(1)\n"
