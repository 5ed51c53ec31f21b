"""Sessions are for their owner's eyes: modes, owners, links, read-only places."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import unprivileged
from tests.sessions.samples import as_nobody, said
from wolo.errors import SessionError
from wolo.sessions.store import Store

FILL = """
import os, sys
from pathlib import Path
from wolo.messages.message import user
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store
data = Path(sys.argv[1])
with Store.open(data) as store:
    session = store.create("/")
    lock = store.lock(session.id)
    store.append(session.id, [MessageEntry(message=user("x" * 100_000))])
    store.store_blob(session.id, "out.txt", b"1")
    for place in sorted([data, *data.rglob("*")]):
        print(oct(place.stat().st_mode & 0o7777), place.relative_to(data.parent))
(data.parent / "users-own").touch()
print(oct((data.parent / "users-own").stat().st_mode & 0o7777), "users-own")
"""

OPEN = """
import sys
from pathlib import Path
from wolo.errors import SessionError
from wolo.sessions.store import Store
try:
    Store.open(Path(sys.argv[1])).close()
except SessionError as error:
    print(error.message)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the ordinary user may write and reach."""
    with unprivileged.folder() as folder:
        yield folder


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_everything_is_private_whatever_the_umask(place: Path, umask: int) -> None:
    ended = as_nobody(FILL, place / "deep" / "data", umask=umask)
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines.pop() == f"{oct(0o666 & ~umask)} users-own"
    assert len(lines) == 11
    for line in lines:
        mode, name = line.split(" ", 1)
        assert mode == ("0o700" if name.endswith(("data", "blobs", "locks")) else "0o600"), line
    assert stat.S_IMODE((place / "deep").stat().st_mode) == 0o700


def test_files_readable_by_others_are_repaired_with_notice(tmp_path: Path) -> None:
    data = tmp_path / "data"
    Store.open(data).close()
    for path, mode in ((data, 0o755), (data / "wolo.db", 0o644), (data / "blobs", 0o705)):
        path.chmod(mode)
    with Store.open(data) as store:
        assert len(store.warnings) == 3
        assert all("private now" in warning for warning in store.warnings)
    assert stat.S_IMODE((data / "wolo.db").stat().st_mode) == 0o600
    with Store.open(data) as store:
        assert store.warnings == ()


@pytest.mark.parametrize("name", [".", "wolo.db", "wolo.lock", "blobs"])
def test_file_writable_by_others_is_refused(tmp_path: Path, name: str) -> None:
    data = tmp_path / "data"
    Store.open(data).close()
    (data / name).chmod(0o777)
    with pytest.raises(SessionError, match="writable by other users") as caught:
        Store.open(data)
    assert "chmod" in caught.value.hint
    (data / name).chmod(0o770)
    with pytest.raises(SessionError, match="writable by other users"):
        Store.open(data)


def test_foreign_user_directory_is_refused_behind_links_too(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: a directory of another user cannot be made without it")
    theirs = place / "theirs"
    Store.open(theirs).close()
    theirs.chmod(0o755)
    (place / "data").symlink_to(theirs)
    for data in (theirs, place / "data"):
        assert "belongs to another user" in as_nobody(OPEN, data).stdout
    assert sorted(path.name for path in theirs.iterdir()) == ["blobs", "locks", "wolo.db", "wolo.lock", "wolo.use"]


def test_link_replacing_the_database_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "data"
    Store.open(data).close()
    elsewhere = (data / "wolo.db").rename(tmp_path / "elsewhere.db")
    (data / "wolo.db").symlink_to(elsewhere)
    with pytest.raises(SessionError, match="not a regular file"):
        Store.open(data)


def test_own_directory_may_be_reached_by_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    with Store.open(real) as store:
        session = store.create("/")
        store.append(session.id, [said("one")])
    link.symlink_to(real)
    with Store.open(link) as store:
        assert len(store.load(session.id).entries) == 1


def test_a_place_that_cannot_be_written_is_named(place: Path) -> None:
    ended = as_nobody(FILL, place / "data")
    assert ended.stderr == ""
    (place / "data").chmod(0o500)
    (place / "data" / "wolo.db").chmod(0o400)
    assert str(place / "data") in as_nobody(OPEN, place / "data").stdout
    assert "no permission" in as_nobody(OPEN, "/proc/wolo" if os.geteuid() else "/etc/wolo").stdout
    (place / "file").write_text("not a directory")
    assert "not a directory" in as_nobody(OPEN, place / "file" / "data").stdout


def test_database_turned_readonly_says_so_and_keeps_content(place: Path) -> None:
    code = FILL.partition("with Store")[0] + (
        "with Store.open(data) as store:\n"
        "    session = store.create('/')\n"
        "    store.append(session.id, [MessageEntry(message=user('one'))])\n"
        "for path in (data / 'wolo.db', data / 'wolo.lock'):\n"
        "    path.chmod(0o400)\n"
        "from wolo.errors import SessionError\n"
        "try:\n"
        "    Store.open(data)\n"
        "except SessionError as error:\n"
        "    print(error.message, error.hint)\n"
        "for path in (data / 'wolo.db', data / 'wolo.lock'):\n"
        "    path.chmod(0o600)\n"
        "print(len(Store.open(data).load(session.id).entries))\n"
    )
    ended = as_nobody(code, place / "data")
    assert ended.stderr == ""
    assert "no permission" in ended.stdout
    assert ended.stdout.endswith("\n1\n")
