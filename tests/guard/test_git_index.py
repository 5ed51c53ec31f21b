"""Reads git's index without git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wolo.guard.affected_files import read_index


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


@pytest.fixture
def root() -> Path:
    """Names of every length, since entries are padded."""
    for number in range(1, 20):
        Path("x" * number).write_text("content\n")
    Path("größe").mkdir()
    Path("größe/a b").write_text("content\n")
    git("init", "-q")
    git("add", ".")
    return Path.cwd()


def test_the_index_is_read_as_git_lists_it(root: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout.decode().split("\0")[:-1]
    assert list(read_index(str(root / "größe")).files) == listed
    assert read_index(str(root)).root == str(root)


def test_later_change_is_not_kept(root: Path) -> None:
    index = read_index(str(root))
    assert index.list_changes() == []
    assert index.has_unchanged(str(root / "x"))
    (root / "x").write_text("content, changed\n")
    (root / "xx").unlink()
    (root / "new").touch()
    assert sorted(index.list_changes()) == ["x", "xx"]
    assert not index.has_unchanged(str(root / "x"))
    assert not index.has(str(root / "new"))


def test_missing_git_keeps_nothing(tmp_path: Path) -> None:
    assert read_index(str(tmp_path)) == ("", {})


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"DIRC\0\0\0\x02\0\0\xff\xff", b"\0" * 500, b"DIRC\0\0\0\x04\0\0\0\x01"])
def test_an_index_that_cannot_be_read_keeps_nothing(root: Path, damage: bytes) -> None:
    (root / ".git" / "index").write_bytes(damage)
    assert read_index(str(root)).files == {}


def test_newer_index_form_counts_as_unreadable(root: Path) -> None:
    git("update-index", "--index-version", "4")
    assert read_index(str(root)).files == {}
