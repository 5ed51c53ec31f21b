"""A session is open in at most one process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.sessions.samples import environment, said
from wolo.errors import SessionError
from wolo.operating_system import LOCK_EX, flock
from wolo.sessions.locks import SESSION_WAIT_S, SessionLock
from wolo.sessions.store import Store

HOLDER = """
import sys
from pathlib import Path
from wolo.sessions.store import Store
store = Store.open(Path(sys.argv[1]))
lock = store.lock(sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
"""


def holder(data: Path, session_id: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(data), session_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def test_second_process_is_refused_with_the_holder(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        store.append(session.id, [said("one")])
        process = holder(data, session.id)
        try:
            with pytest.raises(SessionError, match=rf"process {process.pid}\b") as caught:
                store.lock(session.id)
            assert "--fork" in caught.value.hint
            assert caught.value.exit_code == 3
            assert store.list()[0].live
            with pytest.raises(SessionError, match="in use"):
                store.delete(session.id)
            assert store.load(store.fork(session.id).id).entries == store.load(session.id).entries
        finally:
            process.kill()
            process.communicate()
        # The kernel freed it with the process: no stale lock to clear away.
        store.lock(session.id).release()
        assert not store.load(session.id).info.live


def test_a_released_lock_leaves_nothing_behind(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        with store.lock(session.id) as lock:
            with pytest.raises(SessionError):
                store.lock(session.id)
            lock.release()
            lock.release()
        assert list((data / "locks").iterdir()) == []
        with store.lock(session.id):
            pass


def test_killed_locks_are_cleared_and_living_ones_stay(data: Path) -> None:
    with Store.open(data) as store:
        live, dead = store.create("/", id="live"), store.create("/", id="dead")
        killed, process = holder(data, dead.id), holder(data, live.id)
        killed.kill()
        killed.communicate()
        try:
            assert len(list((data / "locks").iterdir())) == 2
            Store.open(data).close()
            assert [path.name for path in (data / "locks").iterdir()] == ["live.lock"]
            with pytest.raises(SessionError, match="in use"):
                store.lock(live.id)
        finally:
            process.kill()
            process.communicate()


def test_loser_of_a_lock_file_spares_the_next(data: Path) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        first = store.lock(session.id)
        (data / "locks" / f"{session.id}.lock").unlink()
        second = store.lock(session.id)
        first.release()
        with pytest.raises(SessionError, match="in use"):
            store.lock(session.id)
        second.release()


def test_lock_on_a_vanished_file_does_not_count(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(data) as store:
        session = store.create("/")
        path = data / "locks" / f"{session.id}.lock"
        lock_for_real = flock
        vanishing = iter([True])

        def lock_as_the_last_owner_leaves(descriptor: int, operation: int) -> None:
            lock_for_real(descriptor, operation)
            if next(vanishing, False):
                path.unlink()

        monkeypatch.setattr("wolo.sessions.locks.flock", lock_as_the_last_owner_leaves)
        with store.lock(session.id), pytest.raises(SessionError, match="in use"):
            store.lock(session.id)


def test_a_file_system_without_locks_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with Store.open(data) as store:
        session = store.create("/")
        with monkeypatch.context() as kernel:
            # No file system here lacks locks, so the kernel's answer is what has to be pretended.
            kernel.setattr("wolo.sessions.locks.flock", unsupported)
            with pytest.raises(SessionError, match="has no file locks"):
                store.lock(session.id)
            with pytest.raises(SessionError, match="has no file locks"):
                store.append(session.id, [said("one")])
        assert store.load(session.id).entries == ()


def test_clearing_of_a_new_lock_is_awaited(data: Path) -> None:
    folder = data / "locks"
    folder.mkdir(parents=True)
    path = folder / "new.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    flock(descriptor, LOCK_EX)
    clearing = threading.Timer(3 * SESSION_WAIT_S, os.close, [descriptor])
    clearing.start()
    SessionLock(path, path.stem).release()
    clearing.join()
