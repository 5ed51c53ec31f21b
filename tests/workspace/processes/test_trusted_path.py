"""Programs found by name when PATH contains the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.root import Workspace


def program(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def system(isolated: Path) -> Path:
    return program(isolated / "system")


def found(monkeypatch: pytest.MonkeyPatch, *path: str | Path, extra: tuple[Path, ...] = ()) -> str | None:
    monkeypatch.setenv("PATH", ":".join(map(str, path)))
    return find_program("tool", Workspace(Path.cwd(), extra))


def test_the_first_on_the_path_is_taken(monkeypatch: pytest.MonkeyPatch, system: Path, isolated: Path) -> None:
    other = program(isolated / "other")
    assert found(monkeypatch, system.parent, other.parent) == str(system)
    assert found(monkeypatch, isolated / "nowhere", other.parent, system.parent) == str(other)
    assert found(monkeypatch, isolated / "nowhere") is None


def test_program_in_the_workspace_is_passed_over(monkeypatch: pytest.MonkeyPatch, system: Path, isolated: Path) -> None:
    for folder in (".", "bin"):
        program(Path(folder))
    (isolated / "alias").symlink_to(Path("bin").absolute())
    for evil in (".", "", "bin", "./bin", Path.cwd(), Path("bin").absolute(), isolated / "alias"):
        assert found(monkeypatch, evil, system.parent) == str(system)
        assert found(monkeypatch, evil) is None


def test_link_is_judged_by_place_and_target(monkeypatch: pytest.MonkeyPatch, system: Path, isolated: Path) -> None:
    inside = program(Path("bin").absolute())
    (isolated / "links").mkdir()
    (isolated / "links" / "tool").symlink_to(inside)
    Path("lent").mkdir()
    Path("lent/tool").symlink_to("/bin/sh")
    for evil in (isolated / "links", Path("lent").absolute()):
        assert found(monkeypatch, evil, system.parent) == str(system)


def test_more_directories_of_the_workspace_count_too(monkeypatch: pytest.MonkeyPatch, system: Path, isolated: Path) -> None:
    added = program(isolated / "added")
    assert found(monkeypatch, added.parent, system.parent, extra=(added.parent,)) == str(system)


def test_unexecutable_file_is_no_program(monkeypatch: pytest.MonkeyPatch, system: Path, isolated: Path) -> None:
    (isolated / "folder" / "tool").mkdir(parents=True)
    program(isolated / "text").chmod(0o644)
    assert found(monkeypatch, isolated / "folder", isolated / "text", system.parent) == str(system)


def test_home_programs_are_trusted_when_working_there(monkeypatch: pytest.MonkeyPatch, isolated: Path) -> None:
    own = program(isolated / "home" / "bin")
    monkeypatch.setenv("PATH", str(own.parent))
    assert find_program("tool", Workspace(isolated / "home")) == str(own)
    assert find_program("tool", Workspace(Path("/"))) == str(own)
    assert find_program("tool", Workspace(isolated / "home" / "bin")) is None
