"""Where things lie when the home directory is odd, missing or unknown."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from tests import unprivileged
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from wolo.places import find_home, find_places

NAMELESS = 4_000_000_000
"""A user that no list of users has."""


@pytest.fixture(autouse=True)
def own_roof_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WOLO_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)


@pytest.mark.parametrize("named", [None, "", "relative", "~"])
def test_without_a_usable_variable_the_list_of_users_names_it(monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    if named is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", named)
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert find_home() == home
    assert all(place.is_relative_to(home) for place in (find_places().config, find_places().data, find_places().state))


def test_a_user_without_a_name_has_the_root_as_in_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: nobody else can become a user without a name")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(unprivileged, "NOBODY", NAMELESS)
    assert unprivileged.call(find_home) == Path("/")
    assert unprivileged.call(data_folder) == Path("/.local/share/wolo")


def data_folder() -> Path:
    return find_places().data


@pytest.mark.parametrize("kind", ["a file", "a device", "read-only"])
def test_a_home_that_cannot_be_used_is_told_and_nothing_is_written_elsewhere(
    provider: ProviderServer, isolated: Path, kind: str
) -> None:
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


def test_a_data_directory_that_leads_to_another_users_is_refused(provider: ProviderServer, isolated: Path) -> None:
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
