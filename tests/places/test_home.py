"""Directories of wolo when the home directory is odd, missing or unknown."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from tests import unprivileged
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import calls, text
from tests.fakes.screen import pty_wolo
from wolo.places import Places, find_home, find_places, make_private

NAMELESS = 4_000_000_000
"""A user that no list of users has."""


@pytest.fixture(autouse=True)
def own_roof_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WOLO_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)


@pytest.mark.parametrize("named", [None, "", "relative", "~"])
def test_user_list_names_the_home_without_variable(monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    if named is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", named)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert find_home() == home
    assert all(place.is_relative_to(home) for place in (find_places().config, find_places().data, find_places().state))


@pytest.mark.parametrize("home", [None, "", "relative", "/home/someone", "/home/someone/"])
@pytest.mark.parametrize("named", [None, "", "relative", "~/here", "/else/where", "/else/where/"])
def test_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, home: str | None, named: str | None) -> None:
    variables = {"HOME": home, "XDG_CONFIG_HOME": named, "XDG_DATA_HOME": None, "XDG_CACHE_HOME": named, "XDG_STATE_HOME": named}
    for variable, value in variables.items():
        monkeypatch.delenv(variable, raising=False) if value is None else monkeypatch.setenv(variable, value)
    for platform, library in (("linux", Unix), ("darwin", MacOS)):
        monkeypatch.setattr("sys.platform", platform)
        dirs = library("wolo", appauthor=False)
        usual = (dirs.user_config_dir, dirs.user_data_dir, dirs.user_cache_dir, dirs.user_state_dir)
        assert find_places() == Places(*map(Path, usual))


def test_nameless_user_has_the_root_like_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: nobody else can become a user without a name")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(unprivileged, "NOBODY", NAMELESS)
    assert unprivileged.call(find_home) == Path("/")
    assert unprivileged.call(data_folder) == Path("/.local/share/wolo")


def data_folder() -> Path:
    return find_places().data


@pytest.mark.parametrize("kind", ["a file", "a device", "read-only"])
def test_unusable_home_is_reported_without_writing_elsewhere(provider: ProviderServer, isolated: Path, kind: str) -> None:
    home = {"a file": isolated / "file", "a device": Path("/dev/null"), "read-only": Path("/proc")}[kind]
    (isolated / "file").write_text("x")
    before = sorted(isolated.rglob("*"))
    done = run_wolo("-p", *provider.flags, "hi", env={"HOME": str(home)})
    assert (done.exit_code, provider.requests) == (3, [])
    assert "WOLO_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(isolated.rglob("*")) == before
    provider.script(text("Hello."))
    done = run_wolo("-p", "--no-session", *provider.flags, "hi", env={"HOME": str(home)})
    assert (done.exit_code, done.stdout) == (0, "Hello.\n")


def test_a_home_that_is_missing_is_made(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("Hello."))
    assert run_wolo("-p", *provider.flags, "hi", env={"HOME": str(isolated / "new" / "home")}).exit_code == 0
    assert (isolated / "new" / "home" / ".local" / "share" / "wolo" / "wolo.db").exists()


def test_data_directory_of_another_user_is_refused(provider: ProviderServer, isolated: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: a directory of another user cannot be made without it")
    theirs = isolated / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    share = isolated / "home" / ".local" / "share"
    share.mkdir(parents=True)
    (share / "wolo").symlink_to(theirs)
    done = run_wolo("-p", *provider.flags, "hi")
    assert (done.exit_code, provider.requests, list(theirs.iterdir())) == (3, [], [])
    assert "another user" in done.stderr


def test_own_files_are_private_under_any_umask(provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions, blobs, jobs, undo, sandbox, secrets, trust, locks, wire and cache; the user's own files obey the umask."""
    home = tmp_path / "above" / "wolo"
    monkeypatch.setenv("WOLO_HOME", str(home))
    wire = tmp_path / "kept" / "wire"
    Path(".env").write_text("DB_PASSWORD=kD9.vvQz81xw\n")
    Path("a.txt").write_text("one\n")
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text('[permissions]\nask = ["shell:git push *"]\n')
    before = os.umask(0)
    try:
        provider.script(
            calls(
                ("shell", {"command": "seq 60000; echo x > made"}),
                ("edit", {"path": "a.txt", "old": "one", "new": "two"}),
                ("shell", {"command": "sleep 30", "background": True}),
            ),
            text("ok"),
        )
        flags = (*provider.flags, "--debug-wire", str(wire))
        assert run_wolo("-p", "--mode", "auto", "-s", "mine", *flags, "go").exit_code == 0
        provider.script(text("hello"))
        with pty_wolo(*provider.flags, "say") as terminal:
            terminal.wait_for("rust it")
            terminal.enter("y")
            terminal.wait_for("hello")
            assert terminal.wait_for_exit() == 0
        for words in (["undo", "--session", "mine"], ["redo", "--session", "mine"], ["sessions", "list"]):
            assert run_wolo(*words).exit_code == 0, words
        assert run_wolo("doctor").exit_code == 1  # no model is set up
    finally:
        os.umask(before)
    own = [*home.parent.rglob("*"), home.parent, *wire.parent.rglob("*"), wire.parent]
    assert [str(path) for path in own if path.lstat().st_mode & 0o077 and not path.is_symlink()] == []
    assert {each.name for each in own} >= {"checkpoints", "blobs", "jobs", "trust.json", "file-locks", "sandbox-probes"}
    assert Path("made").stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_private_folder_and_parents_belong_to_owner(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        make_private(tmp_path / "outer" / "inner")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "outer", tmp_path / "outer" / "inner")] == [0o700, 0o700]


def test_the_mode_of_a_folder_that_exists_stays(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(0o755)
    (tmp_path / "open").chmod(0o755)
    make_private(tmp_path / "open")
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("place", ["file", "file/inner"])
def test_file_replacing_a_private_folder_is_an_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_private(tmp_path / place)
    assert (tmp_path / "file").is_file()
