from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import unprivileged
from wolo.errors import ToolError
from wolo.workspace.files.atomic_write import (
    ChangeListener,
    FileChanged,
    PendingChange,
    content_hash,
    ignore_change,
    remove_locked,
)
from wolo.workspace.files.file_locks import lock_file

OLD = b"old content\n"


def remove_file(path: Path, *, locks: Path, expected: str, note: ChangeListener = ignore_change) -> None:
    with lock_file(path, locks):
        os.close(remove_locked(path, expected=expected, note=note))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "work/file"
    path.write_bytes(OLD)
    path.chmod(0o640)
    return path


def test_file_is_removed_after_its_announcement(target: Path, tmp_path: Path) -> None:
    told: list[tuple[PendingChange, bool]] = []
    remove_file(
        target, locks=tmp_path / "locks", expected=content_hash(OLD), note=lambda each: told.append((each, target.exists()))
    )
    assert not target.exists()
    assert told == [(PendingChange(target, OLD, 0o640, None), True)]
    assert list((tmp_path / "locks").iterdir()) == []


def test_failing_listener_stops_the_removal(target: Path, tmp_path: Path) -> None:
    def refuse(change: PendingChange) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        remove_file(target, locks=tmp_path / "locks", expected=content_hash(OLD), note=refuse)
    assert target.read_bytes() == OLD


@pytest.mark.parametrize("happens", ["changed", "gone", "a link", "a folder", "a pipe"])
def test_only_the_content_that_is_meant_is_removed(target: Path, tmp_path: Path, happens: str) -> None:
    other = target.with_name("other")
    other.write_bytes(OLD)
    target.unlink()
    if happens == "changed":
        target.write_bytes(OLD + b"more")
    elif happens == "a link":
        target.symlink_to(other)
    elif happens == "a folder":
        target.mkdir()
    elif happens == "a pipe":
        os.mkfifo(target)
    with pytest.raises((FileChanged, ToolError, IsADirectoryError)):
        remove_file(target, locks=tmp_path / "locks", expected=content_hash(OLD))
    assert os.path.lexists(target) is (happens != "gone")
    assert other.read_bytes() == OLD


def test_deliberately_closed_file_is_not_removed(target: Path, tmp_path: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        remove_file(target, locks=tmp_path / "locks", expected=content_hash(OLD))
    assert target.exists()


def remove_in_closed_folder(folder: Path) -> bool:
    target = folder / "closed/file"
    target.parent.mkdir()
    target.write_bytes(OLD)
    target.parent.chmod(0o555)
    with pytest.raises(PermissionError):
        remove_file(target, locks=folder / "locks", expected=content_hash(OLD))
    return target.exists()


def test_a_file_in_a_closed_folder_stays() -> None:
    with unprivileged.folder() as folder:
        assert unprivileged.call(remove_in_closed_folder, folder)
