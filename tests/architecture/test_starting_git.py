"""One module starts git: whatever starts it elsewhere runs what a stranger's repository configures."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
THE_MODULE = "wolo/workspace/git.py"
NO_START = {
    "wolo/guard/loss_detection.py": "names of commands that are judged",
    "wolo/diagnostics/installation.py": "a line for the user to type",
}
"""Files in which git is the first of some words that nothing starts."""


def starts(source: str) -> Iterator[int]:
    """Lines with a list, tuple or call that begins with git, and with texts that a shell would start it from."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
                found = _is_git(first)
            case ast.Call(args=[first, *_], func=function):
                found = (_is_git(first) and not _is_harmless(function)) or _is_shell(first, function)
            case _:
                found = False
        if found:
            yield node.lineno


def _is_git(node: ast.expr) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and text.rpartition("/")[2] == "git"


def _is_shell(first: ast.expr, function: ast.expr) -> bool:
    name = ast.unparse(function)
    text = first.value if isinstance(first, ast.Constant) else None
    return isinstance(text, str) and text.split()[:1] == ["git"] and name.startswith(("os.", "subprocess.", "asyncio."))


def _is_harmless(function: ast.expr) -> bool:
    """The constructor of a value: `Source("git", …)`."""
    return isinstance(function, ast.Name) and function.id in ("Source",)


def test_git_is_started_in_one_module_only() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{line}"
        for path in (ROOT / "wolo").rglob("*.py")
        if (name := path.relative_to(ROOT).as_posix()) != THE_MODULE and name not in NO_START
        for line in starts(path.read_text(encoding="utf-8"))
    }
    assert not found
    assert list(starts((ROOT / THE_MODULE).read_text(encoding="utf-8"))), "the module itself is seen"
    assert all(list(starts((ROOT / name).read_text(encoding="utf-8"))) for name in NO_START), "an exception is out of date"


@pytest.mark.parametrize(
    "source",
    [
        'subprocess.run(["git", *words])',
        'words = ("/usr/bin/git", "status")',
        'program = shutil.which("git")',
        'os.system("git status")',
        'asyncio.create_subprocess_exec("git", "status")',
        'subprocess.run("git status", shell=True)',
    ],
)
def test_every_way_to_start_git_is_seen(source: str) -> None:
    assert list(starts(source))
