from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import unprivileged
from tests.components import miss
from wolo.errors import ToolError
from wolo.workspace.files.safe_open import explain, open_at_once, open_folder, open_regular, read_all, walk_down


def test_a_plain_file_is_opened_and_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello")
    handle = open_regular(tmp_path / "a")
    try:
        assert read_all(handle, 100) == b"hello"
        assert read_all(handle, 2) == b"he"
    finally:
        os.close(handle)


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match="a pipe"):
        open_regular(tmp_path / "pipe")


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(ToolError, match="a socket"):
            open_regular(tmp_path / "s")


def test_a_device_is_refused() -> None:
    with pytest.raises(ToolError, match="a device"):
        open_regular(Path("/dev/zero"))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc (Linux)")
@pytest.mark.parametrize("name", ["environ", "mem", "cmdline"])
def test_files_of_the_kernel_are_refused(name: str) -> None:
    with pytest.raises(ToolError, match="kernel"):
        open_regular(Path(f"/proc/{os.getpid()}/{name}"))


@pytest.mark.parametrize("path", ["/", "."])
def test_a_folder_is_told_apart(path: str) -> None:
    with pytest.raises(IsADirectoryError):
        open_regular(Path(path).absolute())


def at_once(path: Path) -> int:
    handle = open_at_once(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return handle if handle is not None else miss("openat2 (Linux 5.6)")


WAYS = [pytest.param(at_once, id="at once"), pytest.param(walk_down, id="step by step"), pytest.param(open_folder, id="either")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("there", 0),
        (".", 0),
        ("missing", errno.ENOENT),
        ("missing/deeper", errno.ENOENT),
        ("file", errno.ENOTDIR),
        ("file/deeper", errno.ENOTDIR),
        ("link", errno.ELOOP),
        ("link/inner", errno.ELOOP),
        ("there/up", errno.ELOOP),
        ("dangling", errno.ELOOP),
        ("n" * 300, errno.ENAMETOOLONG),
    ],
)
def test_folder_is_reached_linkless_or_never(tmp_path: Path, way: Callable[[Path], int], place: str, number: int) -> None:
    (tmp_path / "there/inner").mkdir(parents=True)
    (tmp_path / "there/up").symlink_to("..")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "dangling").symlink_to("nowhere")
    if number:
        with pytest.raises(OSError) as error:  # noqa: PT011  # the number says which
            way(tmp_path / place)
        assert error.value.errno == number
        return
    handle = way(tmp_path / place)
    assert os.path.samestat(os.fstat(handle), (tmp_path / place).stat())
    os.close(handle)


@pytest.mark.parametrize("way", WAYS)
def test_the_root_is_a_folder_too(way: Callable[[Path], int]) -> None:
    handle = way(Path("/"))
    assert os.path.samestat(os.fstat(handle), Path("/").stat())
    os.close(handle)


@pytest.mark.parametrize("way", WAYS)
def test_a_closed_folder_stops_both_ways(way: Callable[[Path], int]) -> None:
    def reach(path: Path) -> int:
        try:
            os.close(way(path))
        except OSError as error:
            return error.errno or 0
        return 0

    with unprivileged.folder() as folder:
        (folder / "closed/inner").mkdir(parents=True)
        (folder / "closed").chmod(0)
        assert unprivileged.call(reach, folder / "closed/inner") == errno.EACCES


def test_link_placed_after_judging_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("k")
    (tmp_path / "folder").symlink_to("secret")
    (tmp_path / "file").symlink_to("secret/key")
    with pytest.raises(OSError, match="symbolic links"):
        open_regular(tmp_path / "folder/key")
    with pytest.raises(ToolError, match="a link"):
        open_regular(tmp_path / "file")
    for make in (open_folder, walk_down):
        with pytest.raises(OSError, match="symbolic links"):
            make(tmp_path / "folder/new", created=[])
    assert not (tmp_path / "secret/new").exists()


def test_same_attack_succeeds_with_links_followed(tmp_path: Path) -> None:
    """So the tests above can fail: the wall is what stops it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("k")
    (tmp_path / "folder").symlink_to("secret")
    assert (tmp_path / "folder/key").read_text() == "k"


@pytest.mark.parametrize("make", [open_folder, walk_down])
def test_missing_folders_are_made_only_on_request(tmp_path: Path, make: Callable[..., int]) -> None:
    with pytest.raises(FileNotFoundError):
        make(tmp_path / "a/b")
    created: list[Path] = []
    os.close(make(tmp_path / "a/b", created=created))
    assert created == [tmp_path / "a", tmp_path / "a/b"]
    os.close(make(tmp_path / "a/b", created=created))
    assert len(created) == 2


def test_handles_are_not_leaked(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    for name in ("missing", "a/b/c"):
        with pytest.raises(OSError, match="No such file"):
            open_regular(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError):
        open_regular(tmp_path / "pipe")
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_failed_operation_becomes_a_sentence() -> None:
    assert explain(FileNotFoundError(2, "x"), "a.py").message == "`a.py` does not exist."
    assert "disk is full" in explain(OSError(28, "x"), "a.py").message
    assert explain(OSError(5, "Input/output error"), "a.py").message == "`a.py` cannot be used: Input/output error."
