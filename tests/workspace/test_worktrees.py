"""Worktrees of sessions: made, merged, printed and removed without losing a line."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.repositories import commit, files, git, repository
from wolo.errors import UsageError, WoloError
from wolo.places import Notices
from wolo.workspace.git import GitFailed
from wolo.workspace.root import origin_of
from wolo.workspace.session_worktrees import (
    SessionWorktree,
    find_worktree_named,
    merge_work,
    open_worktree,
    patch_of,
    remove_worktree,
    save_work,
    worktree_around,
    worktrees_of,
)

TEN = "".join(f"line {number}\n" for number in range(10))


def _made(tmp_path: Path, name: str = "one", ref: str = "", *, moves_changes: bool = False) -> SessionWorktree:
    return open_worktree(tmp_path / "wolo" / "worktrees", tmp_path / "calc", name, ref, Notices(), moves_changes=moves_changes)


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return repository(tmp_path / "calc", {"a.txt": TEN, ".gitignore": "*.log\n"})


def test_worktree_has_its_own_branch(origin: Path, tmp_path: Path) -> None:
    (origin / "a.txt").write_text("not committed\n")
    each = _made(tmp_path)
    assert git(each.folder, "branch", "--show-current") == "wolo/one"
    assert each.folder.name == "calc"
    assert (each.folder / "a.txt").read_text() == TEN
    assert git(each.folder, "status", "--porcelain") == ""
    assert git(origin, "rev-parse", "wolo/one") == git(origin, "rev-parse", "HEAD") == each.base
    assert origin_of(tmp_path / "wolo" / "worktrees", each.folder) == origin
    assert worktree_around(tmp_path / "wolo" / "worktrees", each.folder) == each == _made(tmp_path)
    assert worktrees_of(tmp_path / "wolo" / "worktrees", origin) == [each]


def test_link_beside_files_forges_no_origin(origin: Path, tmp_path: Path) -> None:
    """Trust follows the origin: nothing that an agent can write decides it."""
    each, worktrees = _made(tmp_path), tmp_path / "wolo" / "worktrees"
    (each.files / "origin").symlink_to(tmp_path / "trusted")
    assert origin_of(worktrees, each.folder) == origin
    other = each.files.with_name("two") / "calc"
    other.mkdir(parents=True)
    (other.parent / "origin").symlink_to(origin)
    beside = each.files / "more"
    beside.mkdir()
    assert [origin_of(worktrees, path) for path in (other, beside)] == [other, beside]
    assert worktree_around(worktrees, beside) is None


def test_linked_data_folder_finds_its_worktrees(origin: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "wolo").symlink_to("disk")
    each, worktrees = _made(tmp_path), tmp_path / "wolo" / "worktrees"
    assert (origin_of(worktrees, each.folder), worktree_around(worktrees, each.folder)) == (origin, each)


def test_worktree_begins_at_the_named_commit(origin: Path, tmp_path: Path) -> None:
    git(origin, "branch", "old")
    commit(origin, {"b.txt": "later\n"})
    assert not (_made(tmp_path, ref="old").folder / "b.txt").exists()
    with pytest.raises(UsageError, match="no branch, tag or commit nowhere"):
        _made(tmp_path, "two", "nowhere")
    with pytest.raises(UsageError, match="already a worktree one"):
        _made(tmp_path, "one", "old")


def test_included_files_are_copied(origin: Path, tmp_path: Path) -> None:
    files(origin, {".worktreeinclude": "local/*\n", "local/settings": "1\n", "other": "2\n", "x.log": "3\n"})
    folder = _made(tmp_path).folder
    assert (folder / "local/settings").read_text() == "1\n"
    assert not (folder / "other").exists()
    assert not (folder / "x.log").exists()


@pytest.mark.parametrize("name", ["../x", "a b", "-x", "x.lock", "a..b", ".x"])
def test_bad_name_is_refused(origin: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        _made(tmp_path, name)


def test_existing_branch_is_not_taken(origin: Path, tmp_path: Path) -> None:
    git(origin, "branch", "wolo/one")
    with pytest.raises(UsageError, match="already a branch wolo/one"):
        _made(tmp_path)


def test_folder_removed_by_hand_is_made_again(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    files(each.folder, {"new.txt": "work\n"})
    save_work(each)
    shutil.rmtree(each.folder)
    assert save_work(each).num_files == 1
    assert (_made(tmp_path).folder / "new.txt").read_text() == "work\n"


def test_commits_and_files_are_merged(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    commit(each.folder, {"new.txt": "committed\n"})
    files(each.folder, {"a.txt": TEN.replace("line 0", "first"), "more.txt": "not committed\n"})
    files(origin, {"a.txt": TEN.replace("line 9", "last"), "own.txt": "of the user\n"})
    assert "Merged wolo/one into main" in merge_work(each)
    assert (origin / "a.txt").read_text() == TEN.replace("line 0", "first").replace("line 9", "last")
    assert (origin / "new.txt").exists()
    assert (origin / "more.txt").exists()
    assert git(origin, "status", "--porcelain").split("\n") == ["M a.txt", "?? own.txt"]
    files(each.folder, {"a.txt": TEN.replace("line 0", "the very first")})
    assert "Merged" in merge_work(each)
    assert "the very first" in (origin / "a.txt").read_text()
    assert "already merged" in merge_work(each)


def test_conflict_changes_nothing(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    files(each.folder, {"a.txt": TEN.replace("line 5", "theirs")})
    files(origin, {"a.txt": TEN.replace("line 5", "ours")})
    with pytest.raises(WoloError, match=r"same lines of a\.txt"):
        merge_work(each)
    assert git(origin, "log", "--format=%s") == "more"
    assert "ours" in (origin / "a.txt").read_text()
    with pytest.raises(WoloError, match="not merged"):
        remove_worktree(each, force=False)
    assert "theirs" in patch_of(each)
    assert each.folder.is_dir()
    assert "brings its work back" in remove_worktree(each, force=True)
    assert not each.place.exists()
    assert not each.files.exists()
    assert git(origin, "branch", "--list", "wolo/*") == ""


def test_change_of_same_size_counts(origin: Path, tmp_path: Path) -> None:
    time.sleep(1 - time.time() % 1)  # git compares whole seconds
    each = _made(tmp_path)
    files(each.folder, {"a.txt": TEN.replace("line 5", "theirs")})
    time.sleep(1 - time.time() % 1)
    assert "theirs" in patch_of(each)


def test_ignored_file_is_not_overwritten(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    files(origin, {"x.log": "of the user\n"})
    files(each.folder, {".gitignore": "", "x.log": "new\n"})
    with pytest.raises(WoloError, match=r"x\.log in .* would be overwritten"):
        merge_work(each)
    assert (origin / "x.log").read_text() == "of the user\n"
    assert (origin / ".gitignore").read_text() == "*.log\n"


def test_folder_that_a_link_replaces_is_named_so(origin: Path, tmp_path: Path) -> None:
    commit(origin, {"kept/b.txt": "b\n"})
    each = _made(tmp_path)
    (each.folder / "kept/b.txt").unlink()
    (each.folder / "kept").rmdir()
    (each.folder / "kept").symlink_to("a.txt")
    with pytest.raises(WoloError, match=r"kept in .* would be overwritten: it is a folder"):
        merge_work(each)
    assert (origin / "kept/b.txt").read_text() == "b\n"


def test_changes_move_and_count_once(origin: Path, tmp_path: Path) -> None:
    files(origin, {"a.txt": TEN.replace("line 3", "begun"), "new.txt": "begun\n"})
    each = _made(tmp_path, moves_changes=True)
    assert git(each.folder, "status", "--porcelain").split("\n") == ["M a.txt", "?? new.txt"]
    files(each.folder, {"a.txt": TEN.replace("line 3", "finished"), "new.txt": "finished\n"})
    merge_work(each)
    assert "finished" in (origin / "a.txt").read_text()
    assert (origin / "new.txt").read_text() == "finished\n"
    assert git(origin, "status", "--porcelain") == ""
    assert "Removed worktree one." in remove_worktree(each, force=False)


def test_patch_applies_to_the_beginning(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    (each.folder / "a.txt").unlink()
    files(each.folder, {"b.txt": "new\n"})
    (tmp_path / "p.diff").write_text(patch_of(each))
    git(origin, "apply", str(tmp_path / "p.diff"))
    assert sorted(path.name for path in origin.iterdir()) == [".git", ".gitignore", "b.txt"]


def test_settings_of_the_agent_are_not_run(origin: Path, tmp_path: Path) -> None:
    each = _made(tmp_path)
    files(each.folder, {"b.txt": "new\n", ".gitattributes": "* filter=evil\n"})
    for name in ("filter.evil.clean", "core.fsmonitor", "core.hooksPath"):
        git(each.folder, "config", name, f"touch {tmp_path}/ran; cat")
    merge_work(each)
    assert (origin / "b.txt").exists()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("step", range(4))
def test_killed_making_is_completed(origin: Path, tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from wolo.workspace import session_worktrees

    class Killed(BaseException): ...

    def kill(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(session_worktrees, ("write_whole", "_make_files", "make_git_dir", "lend_objects")[step], kill)
    with pytest.raises(Killed):
        _made(tmp_path)
    monkeypatch.undo()
    assert git(_made(tmp_path).folder, "branch", "--show-current") == "wolo/one"


def test_killed_removal_makes_no_work_of_missing_files(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wolo.workspace import session_worktrees

    class Killed(BaseException): ...

    def remove_a_part(path: Path) -> None:
        if files_left := list(path.rglob("a.txt")):
            files_left[0].unlink()
            raise Killed

    each = _made(tmp_path)
    monkeypatch.setattr(session_worktrees, "remove_tree", remove_a_part)
    with pytest.raises(Killed):
        remove_worktree(each, force=False)
    monkeypatch.undo()
    with suppress(GitFailed):
        merge_work(each)
    assert (origin / "a.txt").read_text() == TEN
    assert remove_worktree(each, force=False) == "Removed worktree one."


@given(st.data())
def test_merge_keeps_every_new_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tmp_path = tmp_path_factory.mktemp("merge")
    origin = repository(tmp_path / "calc", {f"{name}.txt": TEN for name in "ab"})
    kinds = st.sampled_from(("insert", "insert", "insert", "delete", "remove"))
    edit = st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.booleans(), kinds)

    def change(side: str, folder: Path) -> None:
        for number, (name, line, is_committed, kind) in enumerate(data.draw(st.lists(edit, max_size=5), label=side)):
            path = folder / f"{name}.txt"
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            if kind == "insert":
                path.write_text("".join([*lines[:line], f"{side} {number}\n", *lines[line:]]))
            elif kind == "delete" and lines[line : line + 1] and lines[line] in TEN:
                path.write_text("".join([*lines[:line], *lines[line + 1 :]]))
            elif kind == "remove" and "before" not in "".join(lines):  # who removes a line of both means it
                path.unlink(missing_ok=True)
            if is_committed and git(folder, "status", "--porcelain"):
                commit(folder, {})

    change("before", origin)
    each = _made(tmp_path, moves_changes=data.draw(st.booleans()))
    change("theirs", each.folder)
    change("ours", origin)
    sides = [_new_lines(folder) for folder in (each.folder, origin)]
    try:
        merge_work(each)
    except WoloError:
        assert [_new_lines(folder) for folder in (each.folder, origin)] == sides
    else:
        assert _new_lines(origin) == sorted({*sides[0], *sides[1]})  # what was moved counts once


def _new_lines(folder: Path) -> list[str]:
    lines = [line for path in folder.glob("*.txt") for line in path.read_text().splitlines()]
    return sorted(line for line in lines if line.startswith(("before", "ours", "theirs")))


def test_unknown_worktree_is_named(origin: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no worktree 'x'"):
        find_worktree_named(tmp_path / "wolo" / "worktrees", origin, "x")
    with pytest.raises(UsageError, match="no worktree of a git repository"):
        open_worktree(tmp_path / "wolo" / "worktrees", tmp_path, "x", "", Notices())
