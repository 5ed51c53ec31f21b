"""`wolo update`: asks first, and replaces a self-contained folder only by what the checksums name."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.components import require
from tests.fakes.command import run_wolo
from wolo.cli.subcommands import run_subcommand
from wolo.diagnostics.folder_update import MARK
from wolo.errors import ConfigError, SessionError, Unavailable, WoloError
from wolo.places import find_places

MACHINE = platform.machine()
NEW = f"wolo-9.9.9-linux-{MACHINE}"


def make_folder(folder: Path, name: str, address: str, program: str = "echo wolo 9.9.9") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / MARK).write_text(f"{name}\n{address}\n")
    start = folder / "bin" / "wolo"
    start.write_text(f"#!/bin/sh\n{program}\n")
    start.chmod(0o755)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def releases(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address that serves it."""
    folder = tmp_path / "releases"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def publish(folder: Path, address: str, tmp_path: Path, program: str = "echo wolo 9.9.9") -> Path:
    archive = folder / f"{NEW}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(make_folder(tmp_path / "built" / NEW, NEW, address, program), NEW)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    return archive


@pytest.fixture
def installed(tmp_path: Path, releases: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where wolo believes to be installed."""
    folder = make_folder(tmp_path / "opt" / "wolo", f"wolo-0.0.1-linux-{MACHINE}", releases[1], "echo wolo 0.0.1")
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


def version_of(folder: Path) -> str:
    return subprocess.run([folder / "bin" / "wolo"], capture_output=True, text=True, check=True).stdout.strip()


def test_a_folder_is_replaced_by_the_newest_release(installed: Path, releases: tuple[Path, str], tmp_path: Path) -> None:
    publish(*releases, tmp_path)
    assert run_subcommand(["update", "--yes"]) == 0
    assert version_of(installed) == "wolo 9.9.9"
    assert [path.name for path in installed.parent.iterdir()] == ["wolo"]


def test_the_newest_release_is_not_loaded_again(
    installed: Path, releases: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(*releases, tmp_path).unlink()
    (installed / MARK).write_text(f"{NEW}\n{releases[1]}\n")
    assert run_subcommand(["update", "--yes"]) == 0
    assert "newest" in capsys.readouterr().out


def test_another_hash_changes_nothing(installed: Path, releases: tuple[Path, str], tmp_path: Path) -> None:
    with publish(*releases, tmp_path).open("ab") as archive:
        archive.write(b"\0")
    with pytest.raises(Unavailable, match="another hash"):
        run_subcommand(["update", "--yes"])
    assert version_of(installed) == "wolo 0.0.1"


def make_key(path: Path) -> str:
    subprocess.run([require("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path.with_name(f"{path.name}.pub").read_text().strip()


def sign(folder: Path, key: Path, namespace: str = "wolo") -> None:
    (folder / "SHA256SUMS.sig").unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace, folder / "SHA256SUMS"], check=True)


@pytest.mark.parametrize("place", ["folder", "settings"])
def test_release_is_signed_where_a_key_is_known(
    installed: Path, releases: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    published, address = releases
    publish(*releases, tmp_path)
    public, other = make_key(tmp_path / "key"), make_key(tmp_path / "other")
    if place == "folder":
        (installed / MARK).write_text(f"wolo-0.0.1-linux-{MACHINE}\n{address}\n{public}\n")
    else:
        (installed / MARK).write_text(f"wolo-0.0.1-linux-{MACHINE}\n{address}\n{other}\n")
        write_settings(f'update.signers = ["{public}"]\n')
    with pytest.raises(Unavailable, match="Only a signed release"):
        run_subcommand(["update", "--yes"])
    sign(published, tmp_path / "other")
    with pytest.raises(Unavailable, match="not signed by a key"):
        run_subcommand(["update", "--yes"])
    sign(published, tmp_path / "key", "file")
    with pytest.raises(Unavailable, match="not signed by a key"):
        run_subcommand(["update", "--yes"])
    sign(published, tmp_path / "key")
    sums = (published / "SHA256SUMS").read_bytes()
    (published / "SHA256SUMS").write_bytes(sums + b"\n")
    with pytest.raises(Unavailable, match="not signed by a key"):
        run_subcommand(["update", "--yes"])
    (published / "SHA256SUMS").write_bytes(sums)
    with monkeypatch.context() as context:
        context.setenv("PATH", str(tmp_path))
        with pytest.raises(Unavailable, match="cannot be checked"):
            run_subcommand(["update", "--yes"])
    assert version_of(installed) == "wolo 0.0.1"
    assert run_subcommand(["update", "--yes"]) == 0
    assert version_of(installed) == "wolo 9.9.9"


def write_settings(content: str) -> None:
    folder = find_places().config
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(content)


def test_signer_that_is_no_key_is_a_sentence(installed: Path) -> None:
    write_settings('update.signers = ["someone"]\n')
    with pytest.raises(ConfigError, match=r"update\.signers"):
        run_subcommand(["update", "--yes"])


def test_a_release_that_does_not_start_changes_nothing(installed: Path, releases: tuple[Path, str], tmp_path: Path) -> None:
    publish(*releases, tmp_path, program="exit 1")
    with pytest.raises(Unavailable, match="does not start"):
        run_subcommand(["update", "--yes"])
    assert version_of(installed) == "wolo 0.0.1"


def test_an_archive_that_leaves_its_folder_changes_nothing(installed: Path, releases: tuple[Path, str], tmp_path: Path) -> None:
    archive = publish(*releases, tmp_path)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(installed / MARK, "../../escaped")
    sums = archive.with_name("SHA256SUMS")
    sums.write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    with pytest.raises(SessionError):
        run_subcommand(["update", "--yes"])
    assert version_of(installed) == "wolo 0.0.1"
    assert not list(tmp_path.rglob("escaped"))


def test_update_offline_is_a_sentence(installed: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    (installed / MARK).write_text(f"old\n{address}\n")
    with pytest.raises(Unavailable, match="Nothing was changed") as failure:
        run_subcommand(["update", "--yes"])
    assert failure.value.exit_code == 75


def test_a_folder_without_releases_says_so(installed: Path) -> None:
    (installed / MARK).write_text("old\n")
    with pytest.raises(ConfigError, match="place of its releases"):
        run_subcommand(["update", "--yes"])


def test_a_command_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv-receipt.toml").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr("wolo.diagnostics.installation.metadata.distribution", _from_an_index)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WoloError, match="uv cannot be started"):
        run_subcommand(["update", "--yes"])


def _from_an_index(name: str) -> object:
    from importlib.metadata import PackageNotFoundError

    raise PackageNotFoundError(name)


def test_update_without_a_terminal_only_prints() -> None:
    done = run_wolo("update")
    assert done.exit_code == 0
    assert done.stdout.startswith("git -C ")


def test_update_asks_before_it_runs() -> None:
    ours, theirs = os.openpty()
    os.write(ours, b"n\n")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "wolo", "update"], stdin=theirs, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Update now? [y/N]" in done.stdout
    assert (done.returncode, "Nothing was changed." in done.stderr) == (0, True)
