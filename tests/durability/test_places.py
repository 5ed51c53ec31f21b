"""Data directories that cannot hold a session: a full disk, a read-only one, somebody else's, a file, one on another machine."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components import miss, require
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, text
from tests.fakes.screen import pty_wolo
from tests.frontends.server.running_server import running
from wolo.sessions.store import Store

FILE_LIMIT_BYTES = 400_000
FAR_AWAY = "from wolo.sessions import database_file\ndatabase_file.REMOTE = ('',)\n"


@contextlib.contextmanager
def small_file_system(place: Path, limits: str) -> Iterator[Path]:
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"{limits},mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here (needs root)")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 3 MB."""
    with small_file_system(tmp_path / "disk", "size=3m") as place:
        yield place


@pytest.fixture
def crowded_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 60 files and plenty of bytes."""
    with small_file_system(tmp_path / "crowded", "size=30m,nr_inodes=60") as place:
        yield place


def ask(provider: ProviderServer, home: Path, *more: str, env: dict[str, str] | None = None) -> Completed:
    return run_wolo("-p", "--yolo", *provider.flags, *more, "go on", env={"WOLO_HOME": str(home), **(env or {})})


def is_said(done: Completed, *words: str) -> bool:
    assert "Traceback" not in done.stderr
    assert "broke" not in done.stderr
    return done.exit_code == 3 and all(word in done.stderr for word in words)


def chatter(asked: Asked) -> Reply:
    """Prints a lot, again and again."""
    return call("shell", {"command": f"head -c 60000 /dev/zero | tr '\\0' 'a'; echo {len(asked.results)}"})


def test_filling_disk_ends_turn_and_keeps_the_kept(provider: ProviderServer, disk: Path) -> None:
    provider.otherwise = chatter
    done = ask(provider, disk / "wolo", "-s", "full", "--max-turns", "200")
    assert is_said(done, "disk is full", "--no-session")
    sent = len(provider.requests[-1].results)
    assert sent > 5
    subprocess.run(["mount", "-o", "remount,size=30m", str(disk)], check=True)
    provider.otherwise = lambda asked: text("Room again.")
    assert ask(provider, disk / "wolo", "-s", "full").stdout == "Room again.\n"
    assert provider.requests[-1].results[:sent] == provider.requests[-2].results[:sent]


def test_text_refused_by_full_disk_can_be_resent(provider: ProviderServer, disk: Path) -> None:
    provider.script(text("One."), text("Two."))
    with pty_wolo(*provider.flags, env={"WOLO_HOME": str(disk / "wolo")}) as terminal:
        terminal.say("first", "One.")
        fill(disk / "filler")
        terminal.enter("second")
        terminal.wait_for("disk is full")
        terminal.wait_until(lambda: terminal.lines.count("› second") == 2)  # as it was sent, and in the composer again
        (disk / "filler").unlink()
        terminal.press("enter")
        terminal.wait_for("Two.")
    assert [message["content"] for message in provider.requests[1].messages[1:]] == ["first", "One.", "second"]


def test_a_server_accepts_only_what_it_can_save(provider: ProviderServer, disk: Path) -> None:
    hold, reply = Hold(), text("One and only.")
    provider.script(text("One."), reply.__class__(pieces=(hold, *reply.pieces)), text("Three."))
    with running(provider, WOLO_HOME=str(disk / "wolo")) as server:
        id = server.new()
        server.prompt(id, "first")
        server.events(id).result()
        fill(disk / "filler")
        refused = server.prompt(id, "second", 507)["error"]
        assert "disk is full" in refused["message"]
        assert len(provider.requests) == 1
        (disk / "filler").unlink()
        server.prompt(id, "second")
        hold.wait_until_reached()
        fill(disk / "filler")
        assert "disk is full" in server.post(f"/api/sessions/{id}/steer", 507, text="be brief")["error"]["message"]
        (disk / "filler").unlink()
        server.post(f"/api/sessions/{id}/steer", 202, text="be very brief")
        server.stop(signal.SIGKILL)
    hold.release()
    with running(provider, WOLO_HOME=str(disk / "wolo")) as server:
        lines = server.events(id)
        told = lines.wait(lambda line: line.get("subtype") == "notice" and "before the model got this" in line["text"])
        assert told["text"].endswith("be very brief")
        server.prompt(id, "third")
        lines.wait(lambda line: line["type"] == "result" and line["result"] == "Three.")
    assert [message["content"] for message in provider.requests[-1].messages[1:] if message["role"] == "user"][-1] == "third"


def test_a_server_without_room_opens_no_session(provider: ProviderServer, disk: Path) -> None:
    with running(provider, WOLO_HOME=str(disk / "wolo")) as server:
        fill(disk / "filler")
        assert "disk is full" in server.post("/api/sessions", 507)["error"]["message"]


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break


def test_disk_full_at_start_sends_nothing_and_reports(provider: ProviderServer, disk: Path) -> None:
    fill(disk / "filler")
    assert is_said(ask(provider, disk / "wolo"), "disk is full")
    assert provider.requests == []
    provider.script(text("Not kept."))
    done = run_wolo("-p", "--no-session", *provider.flags, "go on", env={"WOLO_HOME": str(disk / "wolo")})
    assert done.stdout == "Not kept.\n"


def test_readonly_disk_sends_nothing_and_reports(provider: ProviderServer, disk: Path) -> None:
    provider.script(text("One."))
    assert ask(provider, disk / "wolo").exit_code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert is_said(ask(provider, disk / "wolo"), "Cannot save sessions", "WOLO_HOME")
    assert len(provider.requests) == 1
    provider.script(text("Not kept."))
    assert ask(provider, disk / "wolo", "--no-session").stdout == "Not kept.\n"


def test_file_size_limit_ends_turn_with_hint(provider: ProviderServer, isolated: Path) -> None:
    provider.otherwise = chatter
    # Ignored as under a shell that says so: else the kernel ends the process.
    line = f"trap '' XFSZ; ulimit -f {FILE_LIMIT_BYTES // 512}; exec \"$@\""
    argv = ["/bin/sh", "-c", line, "sh", sys.executable, "-m", "wolo", "-p", "--yolo", "--max-turns", "50", *provider.flags, "go"]
    ended = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert is_said(Completed(ended.stdout, ended.stderr, ended.returncode), "The disk failed", "ulimit -f")
    with Store.open(isolated / "wolo" / "data") as store:
        assert store.check() == "ok"
        assert len(store.load(store.list()[0].id).entries) > 5


def test_directory_of_somebody_else_is_refused_before_sending(provider: ProviderServer, isolated: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: a directory of another user cannot be made without it")
    (isolated / "wolo" / "data").mkdir(parents=True)
    os.chown(isolated / "wolo" / "data", 12345, 12345)
    assert is_said(ask(provider, isolated / "wolo"), "belongs to another user", "WOLO_HOME")
    assert provider.requests == []


def test_a_file_in_its_place_is_named(provider: ProviderServer, isolated: Path) -> None:
    (isolated / "wolo").write_text("a file")
    done = ask(provider, isolated / "wolo")
    assert done.exit_code in (2, 3)
    assert str(isolated / "wolo") in done.stderr
    assert "Traceback" not in done.stderr
    assert "broke" not in done.stderr


def test_directory_readable_by_others_is_closed_with_notice(provider: ProviderServer, isolated: Path) -> None:
    data = isolated / "wolo" / "data"
    provider.script(text("One."), text("Two."))
    ask(provider, isolated / "wolo")
    (data / "wolo.db").chmod(0o644)
    done = ask(provider, isolated / "wolo", "-c")
    assert (done.exit_code, done.stdout) == (0, "Two.\n")
    assert "private now" in done.stderr
    assert stat.S_IMODE((data / "wolo.db").stat().st_mode) == 0o600


def test_remote_directory_is_used_with_a_notice(provider: ProviderServer, isolated: Path) -> None:
    (isolated / "far").mkdir()
    (isolated / "far" / "sitecustomize.py").write_text(FAR_AWAY)
    path = os.pathsep.join(filter(None, (str(isolated / "far"), os.environ.get("PYTHONPATH"))))
    provider.script(text("One."))
    done = ask(provider, isolated / "wolo", env={"PYTHONPATH": path})
    assert (done.exit_code, done.stdout) == (0, "One.\n")
    assert "is not a local disk" in done.stderr
    assert not (isolated / "wolo" / "data" / "wolo.db-wal").exists()


def test_damaged_database_is_saved_and_task_continues(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("One."), text("Two."))
    ask(provider, isolated / "wolo", "-s", "mine")
    database = isolated / "wolo" / "data" / "wolo.db"
    content = bytearray(database.read_bytes())
    content[:4096] = b"\xff" * 4096
    database.write_bytes(content)
    done = ask(provider, isolated / "wolo", "-s", "mine")
    assert (done.exit_code, done.stdout) == (0, "Two.\n")
    assert "entries of 1 session could be saved; none of them is known to be missing" in done.stderr
    assert [message["content"] for message in provider.requests[-1].messages[-3:]] == ["go on", "One.", "go on"]


def fill_with_files(disk: Path, spare: int) -> None:
    with contextlib.suppress(OSError):
        for number in range(100):
            (disk / f"filler{number}").touch()
    for each in sorted(disk.glob("filler*"))[:spare]:
        each.unlink()


def test_a_disk_without_inodes_is_said(provider: ProviderServer, crowded_disk: Path) -> None:
    fill_with_files(crowded_disk, 1)
    done = ask(provider, crowded_disk / "wolo")
    assert is_said(done, "no room for another file (its inodes are used up)")
    assert provider.requests == []


def test_a_write_without_inodes_is_said(provider: ProviderServer, crowded_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_with_files(crowded_disk, 0)
    monkeypatch.chdir(crowded_disk)
    provider.script(call("write", {"path": "new.txt", "content": "x"}), text("It did not fit."))
    assert run_wolo("-p", "--yolo", *provider.flags, "go on").exit_code == 0
    assert "its inodes are used up" in provider.requests[1].results[0]


@pytest.mark.parametrize("argv", [("config", "set", "mode", "ask"), ("-p", "hello")])
def test_a_file_system_without_locks_is_said(provider: ProviderServer, tmp_path: Path, argv: tuple[str, ...]) -> None:
    program = require("strace")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        miss("the permission to trace a process")
    inject = [program, "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock", "-e", "inject=flock:error=ENOLCK"]
    flags = provider.flags if argv[0] == "-p" else ()
    done = subprocess.run(
        [*inject, sys.executable, "-m", "wolo", *flags, *argv],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert "has no file locks" in done.stderr
    assert "WOLO_HOME" in done.stderr
    assert done.returncode == (3 if flags else 2)
    assert "Traceback" not in done.stderr
    assert provider.requests == []
