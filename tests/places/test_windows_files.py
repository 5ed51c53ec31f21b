"""The calls on files of POSIX and those for Windows, behind the same interface; links never lead out."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wolo.windows_files import WindowsFiles

LAST_MOMENT = """
import os, sys
from pathlib import Path
from wolo.windows_files import WindowsFiles

name, target, flags = sys.argv[1], sys.argv[2], int(sys.argv[3])
waiting = [name]


def swap(event, arguments):
    if event == "open" and arguments[0] == name and waiting:
        waiting.clear()
        Path(name).unlink(missing_ok=True)
        Path(name).symlink_to(target)


sys.addaudithook(swap)
files = WindowsFiles()
try:
    files.open(name, files.O_NOFOLLOW | flags)
except OSError as error:
    print(error.errno, waiting)
"""
"""Puts a link in the place of a file when Python is about to open it."""


@pytest.fixture(params=["here", "Windows"])
def files(request: pytest.FixtureRequest) -> Any:
    return os if request.param == "here" else WindowsFiles()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "name").write_bytes(b"content")
    (tmp_path / "outside").write_bytes(b"secret")
    return tmp_path / "folder"


def test_a_link_is_not_opened(files: Any, folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "outside")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT):
        with pytest.raises(OSError, match="symbolic links") as refusal:
            files.open(folder / "link", flags | files.O_NOFOLLOW | files.O_CLOEXEC)
        assert refusal.value.errno == errno.ELOOP
    assert (folder.parent / "outside").read_bytes() == b"secret"
    (folder / "dangling").symlink_to(folder.parent / "made")
    with pytest.raises(OSError, match="symbolic links"):
        files.open(folder / "dangling", os.O_RDWR | os.O_CREAT | files.O_NOFOLLOW)
    assert not (folder.parent / "made").exists()


def test_a_linked_folder_is_not_opened(files: Any, folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder, target_is_directory=True)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        files.open(folder.parent / "link", os.O_RDONLY | files.O_DIRECTORY | files.O_NOFOLLOW)
    with pytest.raises(NotADirectoryError):
        files.open(folder / "name", os.O_RDONLY | files.O_DIRECTORY)
    with pytest.raises(FileNotFoundError):
        files.open(folder / "missing", os.O_RDONLY | files.O_DIRECTORY)


def test_names_are_those_of_an_open_folder(files: Any, folder: Path) -> None:
    handle = files.open(folder, os.O_RDONLY | files.O_DIRECTORY | files.O_NOFOLLOW)
    new = files.open("new", os.O_RDWR | os.O_CREAT | os.O_EXCL | files.O_NOFOLLOW, 0o600, dir_fd=handle)
    assert files.pwrite(new, b"abcdef", 0) == 6
    os.lseek(new, 1, os.SEEK_SET)
    assert files.pread(new, 3, 2) == b"cde"
    assert os.read(new, 9) == b"bcdef"
    files.fchmod(new, 0o600)
    files.fsync(new)
    with pytest.raises(FileExistsError):
        files.open("new", os.O_RDWR | os.O_CREAT | os.O_EXCL, dir_fd=handle)
    with pytest.raises(FileExistsError):
        files.link("new", "name", src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    files.rename("new", "name", src_dir_fd=handle, dst_dir_fd=handle)
    files.link("name", "other", src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    files.symlink("name", "link", dir_fd=handle)
    files.mkdir("deeper", 0o700, dir_fd=handle)
    assert files.readlink("link", dir_fd=handle) == "name"
    assert files.stat("name", dir_fd=handle, follow_symlinks=False).st_size == 6
    assert files.access("name", os.W_OK, dir_fd=handle)
    assert {path.name for path in folder.iterdir()} == {"name", "other", "link", "deeper"}
    files.unlink("other", dir_fd=handle)
    files.rmdir("deeper", dir_fd=handle)
    os.close(files.open(folder / "name", os.O_WRONLY | os.O_TRUNC | files.O_NOFOLLOW))
    assert (folder / "name").read_bytes() == b""
    assert {path.name for path in folder.iterdir()} == {"name", "link"}
    for descriptor in (new, handle):
        os.close(descriptor)


@pytest.mark.parametrize("replacement", ["link", "folder"])
def test_nothing_is_done_in_a_replaced_folder(files: Any, folder: Path, replacement: str) -> None:
    """POSIX goes on in the old one; the other side refuses."""
    handle = files.open(folder, os.O_RDONLY | files.O_DIRECTORY | files.O_NOFOLLOW)
    folder.rename(folder.with_name("moved"))
    elsewhere = folder.with_name("elsewhere") if replacement == "link" else folder
    elsewhere.mkdir()
    (elsewhere / "name").write_bytes(b"of another")
    if replacement == "link":
        folder.symlink_to(elsewhere, target_is_directory=True)
    for call, arguments in [
        (files.unlink, ("name",)),
        (files.open, ("made", os.O_WRONLY | os.O_CREAT)),
        (files.mkdir, ("deeper",)),
        (files.symlink, ("name", "link")),
    ]:
        if files is os:
            call(*arguments, dir_fd=handle)
        else:
            with pytest.raises(OSError, match="symbolic links"):
                call(*arguments, dir_fd=handle)
    if files is not os:
        with pytest.raises(OSError, match="symbolic links"):
            files.rename("name", "other", src_dir_fd=handle, dst_dir_fd=handle)
    assert [path.name for path in elsewhere.iterdir()] == ["name"]
    assert (elsewhere / "name").read_bytes() == b"of another"
    os.close(handle)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_CREAT])
def test_a_link_of_the_last_moment_is_noticed(folder: Path, flags: int) -> None:
    """Before anything is read, written or cut off."""
    command = [sys.executable, "-c", LAST_MOMENT, str(folder / "name"), str(folder.parent / "outside"), str(flags)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == f"{errno.ELOOP} []\n", done.stderr
    assert (folder.parent / "outside").read_bytes() == b"secret"
