"""The tool `lsp`, with a real language server: what it answers, where it is offered, and what it never does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from wolo.tools.search.code_lookup import _apply, _find

SERVER = Path(sys.executable).with_name("basedpyright-langserver")
CODE = """def greet(name: str) -> str:
    return "hello " + name


class Door:
    def open(self) -> str:
        return greet("ü")
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert SERVER.exists()
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "lib.py").write_text(CODE)
    (folder / "use.py").write_text('from lib import greet\n\nprint(greet("you"))\n')
    monkeypatch.chdir(folder)
    return folder


def ask(provider: ProviderServer, *replies: Reply, on: bool = True) -> list[str]:
    """Results of the calls."""
    provider.script(*replies, text("Done."))
    settings = ("--set", f"lsp.tool={'true' if on else 'false'}")
    path = {"PATH": f"{SERVER.parent}{os.pathsep}{os.environ['PATH']}"}
    done = run_wolo("-p", "--mode", "auto", *settings, *provider.flags, "look", env=path)
    assert done.exit_code == 0, done.stderr
    return [str(each) for each in provider.requests[-1].results]


def lsp(action: str, **arguments: Any) -> Reply:
    return call("lsp", {"action": action, **arguments})


def test_server_answers_each_question(provider: ProviderServer, project: Path) -> None:
    definition, references, symbols, rename = ask(
        provider,
        lsp("definition", path="use.py", line=3, name="greet"),
        lsp("references", path="lib.py", name="greet"),
        lsp("symbols", path="lib.py"),
        lsp("rename", path="lib.py", name="greet", new_name="welcome"),
    )
    assert definition == "lib.py:1: def greet(name: str) -> str:\n"
    assert set(references.splitlines()) == {
        "lib.py:1: def greet(name: str) -> str:",
        'lib.py:7: return greet("ü")',
        "use.py:1: from lib import greet",
        'use.py:3: print(greet("you"))',
    }
    assert "1: function greet\n" in symbols
    assert "5: class Door\n  6: method open\n" in symbols
    assert '-        return greet("ü")\n+        return welcome("ü")\n' in rename
    assert "+from lib import welcome\n" in rename
    assert (project / "lib.py").read_text() == CODE


def test_wrong_question_is_answered_in_words(provider: ProviderServer, project: Path) -> None:
    (project / "notes.txt").write_text("greet\n")
    results = ask(
        provider,
        lsp("definition", path="lib.py"),
        lsp("definition", path="lib.py", line=99, name="greet"),
        lsp("definition", path="lib.py", line=3, name="greet"),
        lsp("rename", path="lib.py", name="greet"),
        lsp("definition", path="notes.txt", name="greet"),
        lsp("definition", path="missing.py", name="greet"),
    )
    expected = ("needs the `name`", "The file has 8 lines", "not in line 3", "needs a `new_name`", "no installed language server")
    assert all(part in result for part, result in zip(expected, results, strict=False)), results
    assert "no text file" in results[5]


def test_tool_is_offered_only_where_asked_for(provider: ProviderServer, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offered() -> bool:
        return any(each["function"]["name"] == "lsp" for each in provider.requests[-1].json["tools"])

    ask(provider, on=False)
    assert not offered()
    provider.forget_prefix()
    ask(provider)
    assert offered()
    provider.forget_prefix()
    git = shutil.which("git")
    assert git is not None
    provider.script(text("None."))
    (project / "bin").mkdir()
    run_wolo("-p", "--set", "lsp.tool=true", *provider.flags, "look", env={"PATH": "/nowhere"})
    assert not offered()


def test_unreadable_file_is_not_shown(provider: ProviderServer, project: Path) -> None:
    (project / "use.py").rename(project / ".env.py")
    (project / "hidden.py").write_text("from lib import greet\nSECRET_WORD = greet('x')\n")
    provider.script(lsp("references", path="lib.py", name="greet"), text("Done."))
    path = {"PATH": f"{SERVER.parent}{os.pathsep}{os.environ['PATH']}"}
    run_wolo("-p", "--set", "lsp.tool=true", "--deny", "read:hidden.py", *provider.flags, "look", env=path)
    result = provider.requests[-1].results[-1]
    assert "SECRET_WORD" not in result
    assert "lib.py:1" in result


def test_positions_count_utf16_units() -> None:
    line = 'x = "😀" + name'
    position = _find(f"first\n{line}\n", "name", None)
    assert position == {"line": 1, "character": line.index("name") + 1}
    edit = {"range": {"start": position, "end": {"line": 1, "character": position["character"] + 4}}, "newText": "title"}
    assert _apply(f"first\n{line}\n", [edit, {"range": None}, 7]) == 'first\nx = "😀" + title\n'
