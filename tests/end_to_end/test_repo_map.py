"""Overviews of a tree by its symbols: what is shown first, what is left out, and that the budget holds."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_wolo
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.models.tokens import estimate_text
from wolo.tools.search import code_symbols
from wolo.tools.search.repo_map import LEAST_TOKENS, SourceFile, fit, rank

GRAMMARS = ("tree_sitter_javascript", "tree_sitter_python", "tree_sitter_typescript")
needs_grammars = pytest.mark.skipif(not all(map(find_spec, GRAMMARS)), reason=f"pip install {' '.join(GRAMMARS)}")
ON = ("--set", "tools.repo_map=true", "--mode", "auto")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    files = {
        "core/engine.py": "class Engine:\n    def start(self) -> None: ...\n\n\ndef _hidden(): ...\ndef append(): ...\n",
        "a.py": "from core.engine import Engine\n\nEngine().start()\nrows.append(Engine())\n",
        "b.py": "from core.engine import Engine\n\nEngine().start()\nothers.append(1)\n",
        "page.ts": "export interface Door { open(): void }\nexport function walk(door: Door) { door.open() }\n",
        "broken.py": "def half(:\n  class\ndef whole(a): return a\n",
        "built/generated.py": "def generated(): ...\n",
        "node.js": "export function node() {}\n\0\0\0",
        ".gitignore": "built/\n",
        ".env.py": "",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    (tmp_path / "outside.py").write_text("def outside(): ...\n")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    os.mkfifo(folder / "pipe.py")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    monkeypatch.chdir(folder)
    return folder


def ask(provider: ProviderServer, *options: str, **arguments: object) -> str:
    provider.script(call("repo_map", arguments), text("Seen."))
    done = run_wolo("-p", *ON, *options, *provider.flags, "look")
    assert done.stdout == "Seen.\n", done.stderr
    return str(provider.requests[-1].results[-1])


@needs_grammars
def test_most_used_symbols_come_first(provider: ProviderServer, project: Path) -> None:
    shown = ask(provider)
    assert shown.startswith("core/engine.py:\n1: class Engine:\n2:     def start(self) -> None: ...\n")
    assert "page.ts:\n1: export interface Door { open(): void }\n2: export function walk" in shown
    assert "3: def whole(a): return a" in shown
    assert all(name not in shown for name in ("generated", "outside", "node()", "pipe.py"))
    assert ask(provider) == shown


@needs_grammars
def test_map_of_a_folder_names_whole_paths(provider: ProviderServer, project: Path) -> None:
    assert ask(provider, path="core").startswith("core/engine.py:\n1: class Engine:")
    assert "no symbols" in ask(provider, path="built/none") or "does not exist" in provider.requests[-1].results[-1]


@needs_grammars
def test_denied_files_are_left_out(provider: ProviderServer, project: Path) -> None:
    shown = ask(provider, "--deny", "read:core/engine.py")
    assert "Engine:" not in shown
    assert "[2 protected files were left out.]" in shown


@needs_grammars
def test_oddly_named_file_hides_no_other(provider: ProviderServer, project: Path) -> None:
    Path(os.fsdecode(os.fsencode(project) + b"/\xff\xfe.py")).write_text("def named_oddly(): ...\n")
    shown = ask(provider)
    assert "1: class Engine:" in shown
    assert "def named_oddly" in shown


@needs_grammars
def test_small_files_come_before_slow_ones(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(code_symbols.GRAMMARS, ".ts", code_symbols.Grammar("tree_sitter_typescript", "gone"))  # type: ignore[arg-type]
    (project / "a_large.py").write_text("(" * 1_000)
    with redirect_stdout(StringIO()) as out:
        code_symbols.write_symbols(["gone.py", "a_large.py", "page.ts", "b.py", "core/engine.py"])
    paths = [json.loads(line)[0] for line in out.getvalue().splitlines()]
    assert paths == ["b.py", "core/engine.py", "a_large.py"], "without the file whose grammar cannot be used"


@needs_grammars
def test_secret_is_hidden_where_line_is_cut(provider: ProviderServer, project: Path) -> None:
    (project / ".env").write_text("SERVICE_TOKEN=Xk29vQmZp81LtRw47BnYc63D\n")
    line = "def connect(" + "a" * 82 + ", token='Xk29vQmZp81LtRw47BnYc63D'): ...\n"
    (project / "leak.py").write_text(line)
    assert line[:120].endswith("Xk29vQmZp81LtRw47")
    shown = ask(provider)
    assert "def connect(" in shown
    assert "Xk29vQ" not in shown


@needs_grammars
def test_command_shows_it_to_the_user(provider: ProviderServer, project: Path) -> None:
    with pty_wolo(*provider.flags) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("/map core")
        terminal.wait_for("1: class Engine:")
        terminal.enter("/map nowhere")
        terminal.wait_for("nowhere")
        terminal.wait_for_prompt()


async def test_missing_grammars_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_symbols, "is_installed", lambda: False)
    with pytest.raises(ToolError, match="wolo-cli\\[repo-map]"):
        await ToolHarness(tmp_path).call("repo_map")


def test_tool_is_offered_where_settings_say_so(provider: ProviderServer, project: Path) -> None:
    provider.script(text("Hello."))
    run_wolo("-p", *provider.flags, "hi")
    assert b"repo_map" not in provider.requests[-1].body


def test_bad_budget_is_refused(provider: ProviderServer, project: Path) -> None:
    assert "`tokens` is 200 to 6,000" in ask(provider, tokens=5)


@pytest.mark.parametrize("tokens", range(LEAST_TOKENS, 1200, 50))
def test_budget_holds_to_the_token(tokens: int) -> None:
    files = {
        f"folder/ünï{n}.py": SourceFile(
            [(m, f"def function_{n}_{m}(é: str) -> None:", f"f{m}") for m in range(9)], {}, frozenset()
        )
        for n in range(40)
    }
    symbols = rank(files)
    drawn = fit(symbols, tokens, "", ["a note"])
    assert estimate_text(drawn) <= tokens
    shown = drawn.count("def ")
    assert f"[{shown} of 360 symbols, the most used first.]" in drawn
    more = fit(symbols, tokens + 30, "", ["a note"])
    assert more.count("def ") > shown


def test_use_of_a_common_name_counts_little() -> None:
    files = {
        "store.py": SourceFile([(1, "def append():", "append"), (2, "def load():", "load")], {}, frozenset()),
        "a.py": SourceFile([], {"append": 100}, frozenset()),
        "b.py": SourceFile([], {"load": 1}, frozenset({"store"})),
    }
    assert [symbol.text for symbol in rank(files)] == ["def load():", "def append():"]
