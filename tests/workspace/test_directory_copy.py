"""A copy of a workspace: whole, of bearable size, and without a way back into the original."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests import unprivileged
from wolo.errors import SessionError
from wolo.workspace import directory_copy as copying
from wolo.workspace.directory_copy import copy_tree


def test_everything_is_there_as_it_was(isolated: Path) -> None:
    source = isolated / "source"
    (source / "deep" / "empty").mkdir(parents=True)
    (source / ".git").mkdir()
    (source / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (source / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (source / "deep" / "run.sh").chmod(0o751)
    os.utime(source / "deep" / "run.sh", (1_000, 2_000))
    copied = copy_tree(source, isolated / "copy")
    there = isolated / "copy" / "deep" / "run.sh"
    assert (stat.S_IMODE(there.stat().st_mode), there.stat().st_mtime) == (0o751, 2_000)
    assert (isolated / "copy" / "deep" / "empty").is_dir()
    assert (isolated / "copy" / ".git" / "HEAD").exists()
    assert copied.notices == ()


def test_links_stay_links_and_none_leads_back(isolated: Path) -> None:
    source = isolated / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    for name, target in (("near", "a.txt"), ("full", source / "a.txt"), ("away", "/etc/hostname"), ("broken", "nowhere")):
        (source / name).symlink_to(target)
    copy = isolated / "copy"
    copy_tree(source, copy)
    led = {name: str((copy / name).readlink()) for name in ("near", "full", "away", "broken")}
    assert led == {"near": "a.txt", "full": str(copy / "a.txt"), "away": "/etc/hostname", "broken": "nowhere"}


def test_special_file_is_passed_over(isolated: Path) -> None:
    source = isolated / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    copy_tree(source, isolated / "copy")
    assert list((isolated / "copy").iterdir()) == []


def test_overlarge_file_is_refused_before_copying(isolated: Path) -> None:
    source = isolated / "source"
    source.mkdir()
    (source / "large").write_bytes(b"x" * 2_000)
    with pytest.raises(SessionError, match="too large") as refused:
        copy_tree(source, isolated / "copy", most_bytes=1_000)
    assert "--at" in refused.value.hint
    assert not (isolated / "copy").exists()


def test_large_repository_stays_behind_with_notice(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "MAX_GIT_BYTES", 10)
    source = isolated / "source"
    (source / ".git").mkdir(parents=True)
    (source / ".git" / "pack").write_bytes(b"x" * 2_000)
    (source / "a.txt").write_text("a")
    copied = copy_tree(source, isolated / "copy", most_bytes=1_000)
    assert [path.name for path in (isolated / "copy").iterdir()] == ["a.txt"]
    assert ".git" in copied.notices[0]


def deep_folder(folder: Path) -> None:
    """Made with more levels than Python's own removal goes down."""
    folder.mkdir()
    at = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_tree_of_any_depth_is_removed(isolated: Path) -> None:
    deep_folder(isolated / "tree")
    copying.remove_tree(isolated / "tree")
    assert not (isolated / "tree").exists()


def test_closed_folder_is_removed() -> None:
    with unprivileged.folder() as place:
        unprivileged.call(close_folders, place / "tree")
        unprivileged.call(copying.remove_tree, place / "tree")
        assert not (place / "tree").exists()


def close_folders(tree: Path) -> None:
    for name in ("closed", "readable"):
        (tree / name / "below").mkdir(parents=True)
        (tree / name / "file").touch()
    (tree / "closed").chmod(0)
    (tree / "readable").chmod(0o500)


def test_tree_named_like_an_option_is_removed_alone() -> None:
    with unprivileged.folder() as place:
        unprivileged.call(remove_relative, place)
        assert [each.name for each in place.iterdir()] == ["kept"]


def remove_relative(place: Path) -> None:
    os.chdir(place)
    (place / "kept").touch()
    close_folders(place / "-delete")
    copying.remove_tree(Path("-delete"))


def test_folder_around_a_tree_keeps_its_mode() -> None:
    """Where the tree itself cannot be removed, as a mounted one."""
    with unprivileged.folder() as place:
        unprivileged.call(make_linked_tree, place)
        unprivileged.call(copying.remove_tree, place / "around/tree")
        assert [each.name for each in (place / "around").iterdir()] == ["tree"]
        assert stat.S_IMODE((place / "around").stat().st_mode) == 0o555
        assert stat.S_IMODE((place / "linked").stat().st_mode) == 0o400


def make_linked_tree(place: Path) -> None:
    (place / "around/tree/closed").mkdir(parents=True)
    (place / "linked").touch(0o400)
    (place / "around/tree/closed/name").hardlink_to(place / "linked")
    for name in ("around/tree/closed", "around"):
        (place / name).chmod(0o555)


def test_link_to_a_tree_is_not_followed(isolated: Path) -> None:
    (isolated / "tree").mkdir()
    (isolated / "link").symlink_to("tree")
    copying.remove_tree(isolated / "link")
    assert (isolated / "tree").exists()
