from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from wolo.errors import ToolError
from wolo.workspace.opening import explain, open_folder, open_regular, read_all


def test_a_plain_file_is_opened_and_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello")
    handle = open_regular(tmp_path / "a")
    try:
        assert read_all(handle, 100) == b"hello"
        assert read_all(handle, 2) == b"he"
    finally:
        os.close(handle)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
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


def test_a_link_put_in_the_way_after_the_path_was_judged_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key").write_text("k")
    (tmp_path / "folder").symlink_to("secret")
    (tmp_path / "file").symlink_to("secret/key")
    with pytest.raises(NotADirectoryError):
        open_regular(tmp_path / "folder/key")
    with pytest.raises(ToolError, match="a link"):
        open_regular(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        open_folder(tmp_path / "folder/new", created=[])
    assert not (tmp_path / "secret/new").exists()


def test_missing_folders_are_made_only_on_request(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_folder(tmp_path / "a/b")
    created: list[Path] = []
    os.close(open_folder(tmp_path / "a/b", created=created))
    assert created == [tmp_path / "a", tmp_path / "a/b"]
    os.close(open_folder(tmp_path / "a/b", created=created))
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
