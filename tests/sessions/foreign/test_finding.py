"""The sessions of a directory are found where each agent keeps them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.sessions.foreign.sources import HERE, opencode_database, opencode_tree
from wolo.sessions.exchange.format_table import AGENTS, import_format

CWD = Path("/home/ada/abacus")
HOMES = {
    "claude-code": {"claude_code": ".claude"},
    "codex": {"codex": ".codex"},
    "kimi": {"kimi": ".kimi", "kimi_code": ".kimi-code"},
    "pi": {"pi": ".pi/agent"},
    "vibe": {"vibe": ".vibe"},
    "opencode": {},
}
VARIABLES = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "pi": "PI_CODING_AGENT_DIR", "vibe": "VIBE_HOME"}
agents = pytest.mark.parametrize("agent", AGENTS)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folders in HOMES.values():
        for fixture, folder in folders.items():
            shutil.copytree(HERE / fixture, tmp_path / folder)
    opencode_database(tmp_path / ".local" / "share" / "opencode" / "opencode.db")
    return tmp_path


@agents
def test_directory_sessions_are_listed_and_readable(agent: str, home: Path) -> None:
    found = AGENTS[agent](CWD, {"HOME": str(home)})
    shape = import_format(agent)
    assert shape is not None
    assert [each.title for each in found] == ["Repair the sum"] * (2 if agent == "kimi" else 1)
    for each in found:
        assert shape.read(each.source).title == each.title
        assert each.id in str(each.source)
        assert each.updated > 1e9


@agents
def test_other_directory_and_bare_home_are_not_listed(agent: str, home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert AGENTS[agent](Path("/home/ada"), {"HOME": str(home)}) == []
    assert AGENTS[agent](CWD, {"HOME": str(tmp_path_factory.mktemp("bare"))}) == []


@pytest.mark.parametrize("agent", VARIABLES)
def test_variable_names_the_data_of_an_agent(agent: str, home: Path) -> None:
    (folder,) = HOMES[agent].values()
    moved = (home / folder).rename(home / "moved")
    assert len(AGENTS[agent](CWD, {"HOME": str(home), VARIABLES[agent]: str(moved)})) == 1


def test_the_newest_comes_first(home: Path) -> None:
    (first,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    second = Path(shutil.copyfile(first, first.with_name("0a-newer.jsonl")))
    os.utime(first, (2e9, 2e9))
    os.utime(second, (2.1e9, 2.1e9))
    assert [each.source for each in AGENTS["claude-code"](CWD, {"HOME": str(home)})] == [second, first]


def test_without_a_title_the_first_prompt_is_one(home: Path) -> None:
    (path,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"summary"' not in line and '"ai-title"' not in line), encoding="utf-8")
    (found,) = AGENTS["claude-code"](CWD, {"HOME": str(home)})
    assert found.title == "The sum on this screenshot is wrong. Find out why."


def test_kimi_directory_may_stand_in_index_only(home: Path) -> None:
    kept = home / ".kimi-code"
    next(kept.glob("sessions/*/*/state.json")).unlink()
    assert len(AGENTS["kimi"](CWD, {"HOME": str(home)})) == 1
    (kept / "session_index.jsonl").write_text(f'{{"sessionId": "session_5d1c", "workDir": "{CWD}"}}\n{{torn')
    assert len(AGENTS["kimi"](CWD, {"HOME": str(home)})) == 2


def test_older_opencode_files_and_named_directory_work(tmp_path: Path) -> None:
    source = opencode_tree(tmp_path / "opencode" / "storage")
    (found,) = AGENTS["opencode"](CWD, {"HOME": "/nowhere", "XDG_DATA_HOME": str(tmp_path)})
    assert (found.source, found.title, found.id) == (source, "Repair the sum", "ses_01")


@agents
def test_folders_full_of_something_else_are_no_trouble(agent: str, home: Path) -> None:
    for path in [each for each in home.rglob("*") if each.is_file()]:
        path.write_bytes(b"\x00\xff{]" * 50)
    assert all(each.title == "" for each in AGENTS[agent](CWD, {"HOME": str(home)}))
