from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import unprivileged
from wolo.errors import ToolError, UsageError
from wolo.workspace.root import Workspace, find_root, may_be_project


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("s")
    return folder


@pytest.fixture
def workspace(tmp_path: Path, outside: Path) -> Workspace:
    return Workspace(tmp_path / "work")


def test_a_relative_path_starts_at_the_root(workspace: Workspace) -> None:
    resolved = workspace.resolve("src/new.py")
    assert resolved.path == workspace.root / "src/new.py"
    assert resolved.inside
    assert workspace.relative(resolved.path) == "src/new.py"


def test_relative_path_below_root_comes_back(tmp_path: Path) -> None:
    (tmp_path / "work/sub").mkdir()
    workspace = Workspace(tmp_path / "work", base=tmp_path / "work/sub")
    above = workspace.resolve("../top.py")
    assert above.inside
    assert workspace.relative(above.path) == "../top.py"
    assert workspace.relative(workspace.resolve("a.py").path) == "a.py"


@pytest.mark.parametrize("given", ["../outside/x", "sub/../../outside/x", "/etc/passwd", "..", "/", "../work-evil/x"])
def test_outside_path_is_outside(workspace: Workspace, given: str) -> None:
    assert not workspace.resolve(given).inside


def test_sibling_sharing_the_name_beginning_is_outside(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "work-evil").mkdir()
    assert not workspace.resolve(f"{tmp_path}/work-evil/x").inside
    assert workspace.resolve(f"{tmp_path / 'work'}/x").inside
    assert workspace.resolve(f"/{tmp_path / 'work'}//./x").inside


def test_links_are_followed_before_judging(workspace: Workspace, outside: Path) -> None:
    root = workspace.root
    (root / "folder-out").symlink_to(outside)
    (root / "file-out").symlink_to(outside / "secret")
    (root / "dangling-out").symlink_to(outside / "not-yet")
    (root / "chain").symlink_to("folder-out")
    (root / "real").mkdir()
    (root / "link-in").symlink_to("real")
    assert not workspace.resolve("folder-out/x").inside
    assert not workspace.resolve("folder-out/new/deep.txt").inside
    assert not workspace.resolve("file-out").inside
    assert not workspace.resolve("dangling-out").inside
    assert not workspace.resolve("chain/x").inside
    assert not workspace.resolve("link-in/../folder-out/secret").inside
    assert workspace.resolve("link-in/new.txt").path == root / "real/new.txt"
    assert workspace.resolve("link-in/new.txt").inside


def test_dots_go_up_from_where_a_link_leads(workspace: Workspace, outside: Path) -> None:
    (workspace.root / "out").symlink_to(outside)
    assert workspace.resolve("out/../x").path == outside.parent / "x"


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / "work")
    workspace = Workspace(tmp_path / "alias")
    assert workspace.resolve("x").inside
    assert workspace.resolve(f"{tmp_path / 'work'}/x").inside
    assert workspace.resolve(f"{tmp_path}/alias/x").inside


def test_more_directories_can_count_as_inside(tmp_path: Path, outside: Path) -> None:
    workspace = Workspace(tmp_path / "work", (outside,))
    assert workspace.resolve(f"{outside}/secret").inside
    assert workspace.relative(outside / "secret") == str(outside / "secret")


@pytest.mark.parametrize("given", ["", " ", "\t\n", "a\0b", "x\ud800y", "d" * 5000, "d/" * 2500])
def test_impossible_path_is_refused(workspace: Workspace, given: str) -> None:
    with pytest.raises(ToolError):
        workspace.resolve(given)


@pytest.mark.parametrize("given", ["~/x", "~root/x", "~"])
def test_home_is_not_expanded(workspace: Workspace, given: str) -> None:
    with pytest.raises(ToolError, match="not expanded"):
        workspace.resolve(given)


@pytest.mark.parametrize("given", ["$HOME/x", "%2e%2e/x", "..\\x", "~lock.docx", "`id`", "a\nb", "-rf"])
def test_other_odd_names_are_just_names(workspace: Workspace, given: str) -> None:
    resolved = workspace.resolve(given)
    assert resolved.inside
    assert resolved.path == workspace.root / given


def test_folder_really_called_tilde_is_usable(workspace: Workspace) -> None:
    (workspace.root / "~").mkdir()
    assert workspace.resolve("~/x").path == workspace.root / "~/x"


def test_a_link_to_itself_is_refused(workspace: Workspace) -> None:
    (workspace.root / "a").symlink_to("b")
    (workspace.root / "b").symlink_to("a")
    with pytest.raises(ToolError, match="leads back to itself"):
        workspace.resolve("a")


@pytest.mark.parametrize("given", ["n" * 300, "a/" * 200 + "x"])
def test_long_paths_get_a_verdict(workspace: Workspace, given: str) -> None:
    assert workspace.resolve(given).inside
    assert not workspace.resolve(f"../{given}").inside


@given(parts=st.lists(st.sampled_from(["..", ".", "a", "in", "out", "", "é"]), min_size=1, max_size=8))
def test_the_verdict_is_about_the_real_path(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    base = tmp_path_factory.mktemp("verdict")
    (base / "w/a/in").mkdir(parents=True)
    (base / "elsewhere").mkdir()
    (base / "w/out").symlink_to(base / "elsewhere")
    (base / "w/in").symlink_to("a/in")
    given = "/".join(parts) or "."
    if not given.strip():
        return
    resolved = Workspace(base / "w").resolve(given)
    real = Path(os.path.realpath(base / "w" / given))
    assert resolved.path == real
    assert resolved.inside == (os.path.commonpath([real, base / "w"]) == str(base / "w"))


def test_nearest_folder_with_real_git_directory_is_root(tmp_path: Path) -> None:
    (tmp_path / "work/.git").mkdir()
    (tmp_path / "work/sub/deep").mkdir(parents=True)
    assert find_root(tmp_path / "work/sub/deep") == tmp_path / "work"


def test_git_file_or_link_makes_no_root(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "work/.git").write_text("gitdir: ../.git")
    sub = tmp_path / "work/sub"
    sub.mkdir()
    (sub / ".git").symlink_to(tmp_path / ".git")
    assert find_root(sub) == tmp_path


def test_surrounding_foreign_repository_is_not_the_root() -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    with unprivileged.folder() as shared:
        (shared / ".git").mkdir()
        own = shared / "a" / "own"
        own.mkdir(parents=True)
        os.chown(own, unprivileged.NOBODY, unprivileged.NOBODY)
        for owner, root in ((12345, own), (0, shared), (unprivileged.NOBODY, shared)):
            os.chown(shared / ".git", owner, owner)
            assert unprivileged.call(find_root, own) == root
        for each in (shared / ".git", own):
            os.chown(each, 12345, 12345)
        assert unprivileged.call(find_root, own) == shared, "whose directory it is, theirs is the repository"


def test_home_is_known_without_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert not may_be_project(Path.home().resolve())
    assert may_be_project(tmp_path)


def test_home_is_never_the_root_by_its_git(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".git").mkdir()
    (home / "project").mkdir()
    assert find_root(home / "project") == home / "project"
    assert find_root(home) == home


def test_start_folder_is_root_without_git(tmp_path: Path) -> None:
    assert find_root() == tmp_path / "work"


def test_a_deleted_directory_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="no longer exists"):
        find_root()
