"""`wolo skills`: what a source holds is shown first, and taken on a yes."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.repositories import files, repository, skill_text
from tests.fakes.screen import pty_wolo
from wolo.places import find_places


@pytest.fixture
def source(tmp_path: Path) -> Path:
    content = {
        "skills/pdf/SKILL.md": skill_text("pdf", "Reads PDF files."),
        "skills/pdf/scripts/fill.sh": "#!/bin/sh\n",
        "skills/word/SKILL.md": skill_text("word"),
        "README.md": "Two skills.",
    }
    return repository(tmp_path / "source", content)


def names() -> list[str]:
    return [row["name"] for row in run_wolo("skills", "list", "--json").json]


def test_source_is_shown_but_not_taken_without_terminal(source: Path) -> None:
    shown = run_wolo("skills", "add", str(source))
    assert shown.exit_code == 4
    for said in ("pdf: Reads PDF files.", "scripts/fill.sh", "(script)", "2 files, 1 script", "word: Does it."):
        assert said in shown.stdout
    assert "--yes" in shown.stderr
    assert names() == []


def test_skills_are_added_shown_and_removed(source: Path) -> None:
    assert run_wolo("skills", "add", str(source), "--yes").exit_code == 0
    assert names() == ["pdf", "word"]
    assert (find_places().config / "skills/pdf/scripts/fill.sh").stat().st_mode & 0o111
    shown = run_wolo("skills", "show", "pdf")
    assert "Do it." in shown.stdout
    assert run_wolo("skills", "show", "pdf", "--json").json["files"][1]["script"] is True
    assert run_wolo("skills", "remove", "pdf").exit_code == 0
    assert names() == ["word"]
    for refused in (run_wolo("skills", "remove", "pdf"), run_wolo("skills", "show", "pdf"), run_wolo("skills", "remove", "..")):
        assert refused.exit_code == 2


def test_skills_of_an_untrusted_project_are_named(source: Path) -> None:
    assert run_wolo("skills", "add", str(source), "--project", "--yes").exit_code == 0
    listed = run_wolo("skills", "list")
    assert (listed.stdout, "Not read, because this folder is not trusted: .agents/skills." in listed.stderr) == ("", True)
    assert "pdf" in run_wolo("skills", "list", "--trust").stdout


def test_skill_without_name_is_called_like_its_source(isolated: Path) -> None:
    source = files(isolated / "my-skill", {"SKILL.md": "Do it well."})
    assert run_wolo("skills", "add", str(source), "--yes").exit_code == 0
    assert names() == ["my-skill"]


def test_sources_that_hold_nothing_say_so(isolated: Path) -> None:
    archive = isolated / "a.zip"
    archive.write_text("no archive")
    assert "is no archive (.zip, .tar, .tar.gz), or damaged." in run_wolo("skills", "add", str(archive), "--yes").stderr
    subprocess.run(["git", "init", "-q", isolated / "empty"], check=True)
    assert "has no commit yet." in run_wolo("skills", "add", str(isolated / "empty"), "--yes").stderr


def test_a_skill_is_replaced_only_on_request(source: Path) -> None:
    run_wolo("skills", "add", f"{source}#:skills/pdf", "--yes")
    own = find_places().config / "skills/pdf/own.txt"
    own.write_text("Mine.")
    again = run_wolo("skills", "add", str(source), "--yes")
    assert (again.exit_code, "--force" in again.stderr, own.exists()) == (2, True, True)
    assert names() == ["pdf"]
    assert run_wolo("skills", "add", str(source), "--skill", "pdf", "--yes", "--force").exit_code == 0
    assert not own.exists()
    assert sorted(path.name for path in own.parents[1].iterdir()) == ["pdf"]


def test_a_projects_skill_is_added_to_the_project(source: Path) -> None:
    run_wolo("skills", "add", str(source), "--skill", "word", "--project", "--yes")
    assert Path(".agents/skills/word/SKILL.md").is_file()
    assert [row["name"] for row in run_wolo("skills", "list", "--trust", "--json").json] == ["word"]
    assert run_wolo("skills", "remove", "word", "--project").exit_code == 0
    assert not Path(".agents/skills/word").exists()


def test_archives_and_single_skills_are_sources_too(tmp_path: Path) -> None:
    files(tmp_path / "My Folder", {"SKILL.md": skill_text("pdf")})
    assert run_wolo("skills", "add", str(tmp_path / "My Folder"), "--yes").exit_code == 0
    with zipfile.ZipFile("word.zip", "w") as made:
        made.writestr("word-main/SKILL.md", skill_text("word"))
    assert run_wolo("skills", "add", "word.zip", "--yes").exit_code == 0
    assert names() == ["pdf", "word"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"README.md": "x"}, "no skill in"),
        ({"SKILL.md": "---\na: b"}, "no second line"),
    ],
)
def test_source_without_usable_skill_is_an_error(content: dict[str, str], said: str, tmp_path: Path) -> None:
    refused = run_wolo("skills", "add", str(files(tmp_path / "Bad", content)), "--yes")
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_a_skill_of_another_agent_is_not_removed(isolated: Path) -> None:
    files(isolated / "home/.claude/skills/pdf", {"SKILL.md": skill_text("pdf")})
    refused = run_wolo("skills", "remove", "pdf")
    assert (refused.exit_code, "not wolo's" in refused.stderr) == (2, True)


def test_at_a_terminal_a_yes_takes_it(source: Path) -> None:
    for answer, taken in (("n", []), ("y", ["pdf", "word"])):
        with pty_wolo("skills", "add", str(source)) as terminal:
            terminal.wait_for("[y/N]")
            terminal.enter(answer)
            terminal.wait_for("Added word" if taken else "Nothing was added.")
        assert names() == taken
