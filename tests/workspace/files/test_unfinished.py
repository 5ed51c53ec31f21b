"""Files that are whole or not there, and what killed processes left of them."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from wolo.workspace.files.unfinished import exchange, remove_leftovers, replacing, unfinished_folder, write_whole


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def in_a_killed_process(work: Callable[[], object]) -> None:
    """Runs `work`, which must not return, in a process that is killed as soon as it says so."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writes, 1)
        work()
        os._exit(1)
    os.close(writes)
    assert os.read(reads, 1) == b"x"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reads)


def write_half(path: Path) -> None:
    with replacing(path) as file:
        file.write(b"half")
        file.flush()
        stall()


def fill_half(parent: Path) -> None:
    with unfinished_folder(parent) as folder:
        (folder / "half").write_text("x")
        stall()


def stall() -> None:
    os.write(1, b"x")
    signal.pause()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_next_writer_removes_what_a_killed_one_left(folder: Path) -> None:
    path = folder / "keys.toml"
    write_whole(path, b"old")
    in_a_killed_process(lambda: write_half(path))
    in_a_killed_process(lambda: fill_half(folder))
    assert path.read_bytes() == b"old"
    assert len(names(folder)) == 2
    write_whole(folder / "other", b"new")
    assert names(folder) == ["keys.toml", "other"]


def test_leftover_with_an_owner_stays(folder: Path) -> None:
    with replacing(folder / "a") as file, unfinished_folder(folder) as made:
        file.write(b"a")
        remove_leftovers(folder)
        assert len(names(folder)) == 2
        (made / "b").write_text("b")
        (made / "b").rename(folder / "b")
    assert names(folder) == ["a", "b"]


def test_exception_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    path = folder / "a"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(path) as file:
        file.write("\udc80".encode())
    assert (path.read_text(), names(folder)) == ("old", ["a"])


def test_link_stays_and_its_target_is_replaced(folder: Path) -> None:
    (folder / "link").symlink_to("target")
    write_whole(folder / "link", b"new")
    assert (folder / "link").is_symlink()
    assert (folder / "target").read_bytes() == b"new"
    assert stat.S_IMODE((folder / "target").stat().st_mode) == 0o600


def test_existing_file_stays_when_told(folder: Path) -> None:
    (folder / "a").write_text("old")
    with pytest.raises(FileExistsError), replacing(folder / "a", over=False) as file:
        file.write(b"new")
    with replacing(folder / "b", over=False) as file:
        file.write(b"new")
    assert (names(folder), (folder / "a").read_text(), (folder / "b").read_text()) == (["a", "b"], "old", "new")


def test_device_is_written_directly(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(folder / "pipe", b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert names(folder) == ["pipe"]


def test_exchange_swaps_folders(folder: Path) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
        (folder / name / "file").write_text(name)
    if not exchange(folder / "one", folder / "other"):
        pytest.skip("this file system cannot exchange names")
    assert (folder / "one" / "file").read_text() == "other"
