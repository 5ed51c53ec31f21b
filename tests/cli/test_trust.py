"""`wolo trust`, and what `wolo config show` says of a project's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from wolo.config import consents
from wolo.places import Notices, find_places


@pytest.fixture
def project() -> Path:
    Path(".git").mkdir()
    Path("sub/.wolo").mkdir(parents=True)
    Path(".mcp.json").touch()
    Path("sub/.wolo/config.toml").write_text('mode = "ask"\nmodel = "evil/m"\n')
    return Path.cwd()


def test_given_and_existing_answers_are_shown(project: Path) -> None:
    done = run_wolo("trust", cwd=project / "sub")
    assert done.stdout.splitlines() == [
        f"folder       {project}",
        "trusted      not asked yet",
        "MCP servers  .mcp.json",
        "settings     sub/.wolo/config.toml",
    ]
    for answer, word in (("trusted", "yes"), ("never", "never")):
        consents.save_trust(find_places(), project, "trusted" if answer == "trusted" else "never")
        assert f"trusted      {word}\n" in run_wolo("trust", "status").stdout
        told = run_wolo("trust", "--json").json
        assert (told["folder"], told["answer"], told["trusted"]) == (str(project), answer, answer == "trusted")
        assert told["brought"] == [{"kind": "MCP servers", "path": str(project / ".mcp.json")}]


def test_an_answer_can_be_taken_back(project: Path) -> None:
    consents.save_trust(find_places(), project, "trusted")
    assert "trusted      not asked yet\n" in run_wolo("trust", "forget").stdout
    assert consents.trust_in(find_places(), project, Notices()) is None


def test_no_other_word_trusts_it(project: Path) -> None:
    for word in ("yes", "me", "--yes"):
        assert run_wolo("trust", word, env={"WOLO_MODE": "no such mode"}, stdin="y\n").exit_code == 2
        assert consents.trust_in(find_places(), project, Notices()) is None


def test_trusted_project_settings_show_their_source(project: Path) -> None:
    shown = run_wolo("config", "show", "--json", cwd=project / "sub")
    assert {row["key"]: row["source"] for row in shown.json}["mode"] == "default"
    assert "is not trusted" in shown.stderr
    consents.save_trust(find_places(), project, "trusted")
    shown = run_wolo("config", "show", "--json", cwd=project / "sub")
    path = project / "sub" / ".wolo" / "config.toml"
    assert next(row for row in shown.json if row["key"] == "mode") == {"key": "mode", "value": "ask", "source": str(path)}
    assert next(row for row in shown.json if row["key"] == "model")["value"] == ""
    assert f"{path}, line 2: model is ignored: a project may only make wolo stricter." in shown.stderr


def test_unusable_file_leaves_trust_revocable(project: Path) -> None:
    Path("sub/.wolo/config.toml").write_text("nonsense")
    consents.save_trust(find_places(), project, "trusted")
    assert run_wolo("config", "show", cwd=project / "sub").exit_code == 2
    assert run_wolo("trust", "forget", cwd=project / "sub").exit_code == 0
    assert run_wolo("config", "show", cwd=project / "sub").exit_code == 0
