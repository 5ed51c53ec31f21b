from __future__ import annotations

import errno
import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import unprivileged
from tests.components import require
from wolo.errors import ToolError
from wolo.workspace.files import file_locks
from wolo.workspace.files.atomic_write import FileChanged, WrittenFile, content_hash, write_atomic
from wolo.workspace.files.file_reading import FileLedger

OLD = b"old content\n"


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    return tmp_path / "state/locks"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "work/file"
    path.write_bytes(OLD)
    return path


def write(path: Path, data: bytes, locks: Path, expected: bytes | None = OLD) -> WrittenFile:
    return write_atomic(path, data, locks=locks, expected=None if expected is None else content_hash(expected))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_is_replaced_without_leftovers(target: Path, locks: Path) -> None:
    written = write(target, b"new\n", locks)
    assert target.read_bytes() == b"new\n"
    assert written == WrittenFile(content_hash(b"new\n"), created=False, num_links=1)
    assert names(target.parent) == ["file"]
    assert names(locks) == []
    assert locks.stat().st_mode & 0o777 == 0o700


def test_a_new_file_comes_with_its_folders(tmp_path: Path, locks: Path) -> None:
    assert write(tmp_path / "work/a/b/new", b"x", locks, None).created
    assert (tmp_path / "work/a/b/new").read_bytes() == b"x"
    assert names(tmp_path / "work/a/b") == ["new"]


@pytest.mark.parametrize(("umask", "mode"), [(0o000, 0o666), (0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_follows_the_umask(tmp_path: Path, locks: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "work/sub/new", b"x", locks, None)
    finally:
        os.umask(before)
    assert (tmp_path / "work/sub/new").stat().st_mode & 0o777 == mode
    assert (tmp_path / "work/sub").stat().st_mode & 0o777 == 0o777 & ~umask


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o664, 0o4755])
def test_the_mode_stays(target: Path, locks: Path, mode: int) -> None:
    target.chmod(mode)
    write(target, b"new", locks)
    assert target.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_the_owner_stays(target: Path, locks: Path) -> None:
    os.chown(target, 1234, 4321)
    write(target, b"new", locks)
    assert (target.stat().st_uid, target.stat().st_gid) == (1234, 4321)


@pytest.mark.skipif(sys.platform != "linux", reason="Python sees extended attributes on Linux only")
def test_extended_attributes_stay(target: Path, locks: Path) -> None:
    try:
        os.setxattr(target, "user.colour", b"blue")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    write(target, b"new", locks)
    assert os.getxattr(target, "user.colour") == b"blue"


@pytest.mark.skipif(sys.platform != "linux", reason="these programs are Linux's")
@pytest.mark.parametrize("mode", [0o640, 0o755, 0o2750, 0o4711])
def test_getfacl_and_getfattr_values_stay(target: Path, locks: Path, mode: int) -> None:
    """Owner, group, set-id bits, access lists and attributes, as other programs see them."""
    getfacl, getfattr = require("getfacl"), require("getfattr")
    target.chmod(mode)
    if subprocess.run(["setfacl", "-m", "u:1234:rw,g:4321:r", str(target)], capture_output=True, check=False).returncode:
        pytest.skip("this file system has no access lists")
    subprocess.run(["setfattr", "-n", "user.note", "-v", "theirs", str(target)], check=True)

    def told() -> tuple[bytes, bytes]:
        listed = subprocess.run([getfacl, "-pn", str(target)], capture_output=True, check=True).stdout
        return listed, subprocess.run([getfattr, "-d", "--absolute-names", str(target)], capture_output=True, check=True).stdout

    before = told()
    assert b"user:1234:rw" in before[0]
    assert b"theirs" in before[1]
    write(target, b"new", locks)
    assert told() == before
    os.unlink(target)  # noqa: PTH108  # a file without any of it: the comparison can fail
    target.write_bytes(b"new")
    assert told() != before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file immutable")
def test_immutable_file_stays_without_leftovers(target: Path, locks: Path) -> None:
    chattr = shutil.which("chattr")
    if not chattr or subprocess.run([chattr, "+i", str(target)], capture_output=True, check=False).returncode:
        pytest.skip("files cannot be made immutable here")
    try:
        with pytest.raises((OSError, ToolError)):
            write(target, b"new", locks)
        assert target.read_bytes() == OLD
        assert names(target.parent) == ["file"]
    finally:
        subprocess.run([chattr, "-i", str(target)], check=True)


def test_other_file_names_keep_the_old_content(target: Path, locks: Path) -> None:
    other = target.with_name("other")
    other.hardlink_to(target)
    assert write(target, b"new", locks).num_links == 2
    assert other.read_bytes() == OLD


def test_concurrently_changed_file_is_not_overwritten(target: Path, locks: Path) -> None:
    target.write_bytes(b"by somebody else")
    with pytest.raises(FileChanged):
        write(target, b"new", locks)
    assert target.read_bytes() == b"by somebody else"
    assert names(target.parent) == ["file"]


def test_lockless_change_is_noticed_at_last_moment(target: Path, locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change comes while the new content is being put on the disk."""
    sync = os.fsync

    def save_meanwhile(handle: int) -> None:
        target.write_bytes(b"by somebody else")
        sync(handle)

    monkeypatch.setattr(os, "fsync", save_meanwhile)
    with pytest.raises(FileChanged):
        write(target, b"new", locks)
    assert target.read_bytes() == b"by somebody else"
    assert names(target.parent) == ["file"]


def test_a_touched_file_is_not_a_changed_one(target: Path, locks: Path) -> None:
    os.utime(target, (1, 1))
    write(target, b"new", locks)
    assert target.read_bytes() == b"new"


def test_appeared_or_gone_file_counts_as_changed(target: Path, locks: Path) -> None:
    with pytest.raises(FileChanged, match="was created"):
        write(target, b"new", locks, None)
    target.unlink()
    with pytest.raises(FileChanged, match="deleted"):
        write(target, b"new", locks)
    assert names(target.parent) == []


@pytest.mark.parametrize("expected", [OLD, None])
def test_link_replacing_the_file_is_never_written_through(
    target: Path, tmp_path: Path, locks: Path, expected: bytes | None
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(OLD)
    target.unlink()
    target.symlink_to(elsewhere)
    with pytest.raises((ToolError, OSError)):
        write(target, b"new", locks, expected)
    assert elsewhere.read_bytes() == OLD
    assert target.is_symlink()


def test_file_without_write_bit_is_refused_for_root(target: Path, locks: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        write(target, b"new", locks)
    assert target.read_bytes() == OLD


def refuse_to_write(folder: Path, prepare: Callable[[Path], None]) -> tuple[str, bytes, list[str]]:
    path = folder / "sub/file"
    path.parent.mkdir()
    path.write_bytes(OLD)
    prepare(path)
    try:
        write(path, b"new", folder / "locks")
        said = ""
    except (ToolError, OSError) as error:
        said = type(error).__name__
    path.parent.chmod(0o700)
    return said, path.read_bytes(), names(path.parent)


def close_file(path: Path) -> None:
    path.chmod(0o444)


def close_both(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)


def close_folder(path: Path) -> None:
    path.parent.chmod(0o555)


def test_readonly_file_is_refused_for_ordinary_users() -> None:
    for prepare in (close_file, close_both):
        with unprivileged.folder() as folder:
            assert unprivileged.call(refuse_to_write, folder, prepare) == ("ToolError", OLD, ["file"])


def test_writable_file_in_closed_folder_is_written_inplace() -> None:
    with unprivileged.folder() as folder:
        assert unprivileged.call(refuse_to_write, folder, close_folder) == ("", b"new", ["file"])


def close_folder_of_a_file_with_two_names(path: Path) -> None:
    os.link(path, path.parent.with_name("elsewhere"))
    path.parent.chmod(0o555)


def test_file_with_other_names_is_not_written_inplace() -> None:
    """The other name may lie outside the workspace."""
    with unprivileged.folder() as folder:
        said = unprivileged.call(refuse_to_write, folder, close_folder_of_a_file_with_two_names)
        assert said == ("ToolError", OLD, ["file"])
        assert (folder / "elsewhere").read_bytes() == OLD


def create_in_closed_folder(folder: Path) -> list[str]:
    folder.chmod(0o555)
    with pytest.raises(PermissionError):
        write(folder / "a/new", b"x", folder / "locks", None)
    return names(folder)


def test_new_file_in_a_closed_folder_is_refused() -> None:
    with unprivileged.folder() as folder:
        assert unprivileged.call(create_in_closed_folder, folder) == []


def with_small_files_only(path: Path, locks: Path, data: bytes, expected: bytes | None) -> tuple[int, list[str]]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        write(path, data, locks, expected)
    except OSError as error:
        return error.errno or 0, names(path.parent) if path.parent.exists() else ["no folder"]
    return 0, []


def test_full_disk_keeps_old_content_without_leftovers() -> None:
    """A limit on file sizes stops the write half-way, as a full disk does."""
    with unprivileged.folder() as folder:
        path = folder / "sub/file"
        path.parent.mkdir()
        path.write_bytes(OLD)
        path.parent.chmod(0o777)
        path.chmod(0o666)
        assert in_child(with_small_files_only, path, folder / "locks", b"x" * 1000, OLD) == (errno.EFBIG, ["file"])
        assert path.read_bytes() == OLD
        path.parent.chmod(0o555)
        assert in_child(with_small_files_only, path, folder / "locks", b"x" * 1000, OLD)[0] == errno.EFBIG
        assert path.read_bytes() == OLD


def test_folders_of_an_unwritten_file_are_removed() -> None:
    with unprivileged.folder() as folder:
        new = folder / "a/b/new"
        assert in_child(with_small_files_only, new, folder / "locks", b"x" * 1000, None) == (errno.EFBIG, ["no folder"])
        assert names(folder) == ["locks"]


def in_child(function: Callable[..., tuple[int, list[str]]], *args: object) -> tuple[int, list[str]]:
    """Limits of the process cannot be raised again, so the work is done in a child whoever runs the tests."""
    if os.getuid() == 0:
        return unprivileged.call(function, *args)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        return function(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_reader_sees_only_whole_contents(target: Path, locks: Path) -> None:
    contents = [bytes([65 + n % 26]) * (20_000 + n) for n in range(500)]
    whole = {OLD, *contents}
    torn: list[int] = []
    reads, done = 0, threading.Event()

    def poll() -> None:
        nonlocal reads
        while not done.is_set():
            data = target.read_bytes()
            reads += 1
            if data not in whole:
                torn.append(len(data))
            time.sleep(0.001)

    reader = threading.Thread(target=poll)
    reader.start()
    before = OLD
    for number, data in enumerate(itertools.cycle(contents)):
        if number >= len(contents) and reads > 10:
            break
        write(target, data, locks, before)
        before = data
    done.set()
    reader.join()
    assert torn == []


APPEND = """
import sys
from pathlib import Path
from wolo.workspace.files.atomic_write import FileChanged, content_hash, write_atomic
path, locks, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
done = 0
while done < 30:
    before = path.read_bytes()
    try:
        write_atomic(path, before + f"{name}{done}\\n".encode(), locks=locks, expected=content_hash(before))
    except FileChanged:
        continue
    done += 1
"""


def test_concurrent_writers_lose_no_update(target: Path, locks: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPEND, str(target), str(locks), name]) for name in "ab"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    lines = target.read_bytes().decode().splitlines()[1:]
    assert sorted(lines) == sorted(f"{name}{n}" for name in "ab" for n in range(30))
    assert names(locks) == []


HOLD = """
import sys, time
from pathlib import Path
from wolo.workspace.files.file_locks import lock_file
with lock_file(Path(sys.argv[1]), Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(3600)
"""


def test_stuck_lock_is_reported_in_time(target: Path, locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_locks, "_WAIT_S", 0.5)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(target), str(locks)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(ToolError, match="lock"):
            write(target, b"new", locks)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    write(target, b"new", locks)  # the lock of a dead process is free
    assert names(locks) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from wolo.workspace.files import atomic_write as saving
step, count = sys.argv[3], int(sys.argv[4])
real = getattr(os, step)
def last(*args, **kwargs):
    global count
    count -= 1
    if count == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(os, step, last)
path = Path(sys.argv[1])
expected = saving.content_hash(path.read_bytes()) if path.exists() else None
saving.write_atomic(path, b"new" * 1000, locks=Path(sys.argv[2]), expected=expected)
"""


@pytest.mark.parametrize(("step", "count"), [("write", 1), ("fchmod", 1), ("fsync", 1), ("rename", 1), ("fsync", 2)])
def test_kill_leaves_old_or_new_and_cleanup_follows(target: Path, locks: Path, step: str, count: int) -> None:
    run = subprocess.run([sys.executable, "-c", KILLED, str(target), str(locks), step, str(count)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert target.read_bytes() in (OLD, b"new" * 1000)
    FileLedger(locks)
    assert names(target.parent) == ["file"]
    assert names(locks) == []


@pytest.mark.parametrize(("step", "count"), [("write", 1), ("link", 1), ("unlink", 1)])
def test_a_kill_while_creating_leaves_no_half_file(target: Path, locks: Path, step: str, count: int) -> None:
    target.unlink()
    run = subprocess.run([sys.executable, "-c", KILLED, str(target), str(locks), step, str(count)], check=False)
    assert run.returncode == -signal.SIGKILL
    FileLedger(locks)
    assert names(target.parent) in ([], ["file"])
    if target.exists():
        assert target.read_bytes() == b"new" * 1000
    assert names(locks) == []


def test_unusable_state_directory_does_not_stop_work(target: Path) -> None:
    write(target, b"new", target / "locks")
    assert target.read_bytes() == b"new"


def test_leftovers_name_only_temporary_files_of_wolo(tmp_path: Path, locks: Path, target: Path) -> None:
    locks.mkdir(parents=True)
    (locks / "a.lock").write_text(str(target))
    FileLedger(locks)
    assert target.exists()
    assert names(locks) == []
