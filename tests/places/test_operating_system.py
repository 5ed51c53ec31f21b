"""File locks with the functions of Windows, and wolo without the modules that Windows lacks."""

from __future__ import annotations

import ast
import ctypes
import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, text
from tests.fakes.screen import pty_program
from wolo.operating_system import LOCK_EX, LOCK_NB, LOCK_SH, flock, flock_with

PACKAGE = Path(wolo.__file__).parent
WITHOUT = """
import asyncio, os, signal, sys

MISSING = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


for name in MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Finder())
for name in "O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH fchmod fchown pread pwrite statvfs".split():
    delattr(os, name)
os.supports_dir_fd.clear()
os.supports_follow_symlinks.clear()


def without_folders(call):
    def run(*args, **options):
        if any(options.pop(name, None) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            raise NotImplementedError("dir_fd unavailable on this platform")
        return call(*args, **options)

    return run


for name in "access chmod link mkdir open readlink rename rmdir stat symlink unlink".split():
    setattr(os, name, without_folders(getattr(os, name)))
del os.fork, os.geteuid, os.killpg, os.major, os.sysconf, os.tcgetpgrp, os.ttyname
del signal.SIGCONT, signal.SIGHUP, signal.SIGTSTP


def without_watching(loop, *args):
    raise NotImplementedError


for name in ("add_reader", "add_signal_handler", "remove_reader", "remove_signal_handler"):
    setattr(asyncio.unix_events._UnixSelectorEventLoop, name, without_watching)
from wolo.__main__ import main
main()
"""


class Kernel32:
    """The two functions for locks, made of those of Linux: a lock of another kind fails there until the first is released."""

    NOT_LOCKED, VIOLATION, INVALID = 158, 33, 6

    def __init__(self, not_locked: int = NOT_LOCKED) -> None:
        self.not_locked = not_locked
        self.held: dict[int, tuple[int, int]] = {}
        self.error = 0

    def LockFileEx(self, file: Any, flags: int, reserved: int, low: int, high: int, place: Any) -> int:
        assert (reserved, low, high) == (0, 1, 0)
        try:
            fcntl.flock(file.value, (fcntl.LOCK_EX if flags & 2 else fcntl.LOCK_SH) | (fcntl.LOCK_NB if flags & 1 else 0))
        except BlockingIOError:
            self.error = self.VIOLATION
            return 0
        except OSError:
            self.error = self.INVALID
            return 0
        self.held[file.value] = self._offset(place)
        return 1

    def UnlockFileEx(self, file: Any, reserved: int, low: int, high: int, place: Any) -> int:
        if file.value not in self.held:
            self.error = self.not_locked
            return 0
        assert self.held.pop(file.value) == self._offset(place)
        fcntl.flock(file.value, fcntl.LOCK_UN)
        return 1

    def GetLastError(self) -> int:
        return self.error

    def _offset(self, place: Any) -> tuple[int, int]:
        overlapped = place._obj
        assert ctypes.sizeof(overlapped) == 2 * ctypes.sizeof(ctypes.c_void_p) + 8 + ctypes.sizeof(ctypes.c_void_p)
        return overlapped.offset, overlapped.offset_high


@pytest.fixture(params=["here", "Windows", "Wine"])
def lock(request: pytest.FixtureRequest) -> Any:
    kernel = Kernel32(Kernel32.VIOLATION if request.param == "Wine" else Kernel32.NOT_LOCKED)
    return flock if request.param == "here" else lambda descriptor, operation: flock_with(kernel, descriptor, operation)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[int, int]]:
    (tmp_path / "lock").touch()
    both = os.open(tmp_path / "lock", os.O_RDWR), os.open(tmp_path / "lock", os.O_RDWR)
    yield both
    for descriptor in both:
        os.close(descriptor)


def test_an_exclusive_lock_keeps_others_out(lock: Any, opened: tuple[int, int]) -> None:
    first, second = opened
    lock(first, LOCK_EX)
    for kind in (LOCK_EX, LOCK_SH):
        with pytest.raises(BlockingIOError):
            lock(second, kind | LOCK_NB)


def test_shared_locks_share(lock: Any, opened: tuple[int, int]) -> None:
    first, second = opened
    lock(first, LOCK_SH)
    lock(second, LOCK_SH | LOCK_NB)
    with pytest.raises(BlockingIOError):
        lock(first, LOCK_EX | LOCK_NB)


def test_a_lock_changes_its_kind(lock: Any, opened: tuple[int, int]) -> None:
    first, second = opened
    lock(first, LOCK_EX)
    lock(first, LOCK_SH)
    lock(second, LOCK_SH | LOCK_NB)


def test_other_failures_of_a_lock_are_errors(lock: Any, opened: tuple[int, int]) -> None:
    free = os.dup(opened[0])
    os.close(free)
    with pytest.raises(OSError, match=r"descriptor|cannot be locked") as failure:
        lock(free, LOCK_EX | LOCK_NB)
    assert not isinstance(failure.value, BlockingIOError)


POSIX_ONLY = {
    "guard/sandbox/calls.py": "launchers of Linux",
    "guard/sandbox/escape_probe.py": "tries the sandboxes of Linux and macOS",
    "guard/sandbox/namespace_launcher.py": "launcher of Linux",
}
"""Modules that may import what Windows lacks, and why."""


def test_few_modules_import_what_windows_lacks() -> None:
    """At the top, where the import of the module would fail."""
    missing, importers = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}, set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if missing & {name.partition(".")[0] for name in names}:
                importers.add(path.relative_to(PACKAGE).as_posix())
    assert importers == set(POSIX_ONLY)


CALLS_OF_POSIX = {
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH"),
    *("fchmod", "fchown", "pread", "pwrite", "statvfs", "dir_fd", "src_dir_fd", "dst_dir_fd"),
}
POSIX_FILES = {
    "frontends/terminal/io/terminal_output.py": "the terminal",
    "guard/sandbox/escape_probe.py": "tries the sandboxes of Linux and macOS",
    "guard/sandbox/file_restore.py": "the sandbox of Linux",
    "guard/sandbox/watcher.py": "the sandbox of Linux",
    "workspace/landlock.py": "the sandbox of Linux",
}
"""Modules that may take these calls from Python itself, and why."""


def test_posix_calls_come_from_one_module() -> None:
    """From `operating_system`, which has them on Windows, too."""
    users = set()
    for path in PACKAGE.rglob("*.py"):
        if not re.search(r"^import os$|^import .*\bos\b", source := path.read_text(encoding="utf-8"), re.MULTILINE):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        if not any(isinstance(node, ast.Import) and "os" in {alias.name for alias in node.names} for node in nodes):
            continue
        named = {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        named |= {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
        if named & CALLS_OF_POSIX:
            users.add(path.relative_to(PACKAGE).as_posix())
    assert users - {"operating_system.py", "windows_files.py"} == set(POSIX_FILES)


def run_without(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *args], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )


@pytest.mark.parametrize(
    ("args", "line"), [(["--version"], "wolo "), (["--help"], "Usage: wolo"), (["doctor"], "Python"), (["sessions"], "")]
)
def test_wolo_starts_without_posix_modules(args: list[str], line: str) -> None:
    done = run_without(*args)
    assert "crashed" not in done.stderr
    assert line in done.stdout
    assert done.returncode in ((0, 1) if args == ["doctor"] else (0,))


def test_a_prompt_runs_without_posix_modules(provider: ProviderServer, tmp_path: Path) -> None:
    Path("there.txt").write_text("one\n")
    Path("outside.txt").symlink_to("/etc/hostname")
    edit = {"path": "there.txt", "old": "one", "new": "two"}
    provider.script(
        call("write", {"path": "deep/made.txt", "content": "made\n"}),
        call("edit", edit),
        call("glob", {"pattern": "**"}),
        call("grep", {"pattern": "tw[o]"}),
        text("Done."),
    )
    done = run_without(*provider.flags, "--no-session", "--mode", "edit", "-p", "write a file")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert Path("deep/made.txt").read_text() == "made\n"
    assert Path("there.txt").read_text() == "two\n"
    *_, files, lines = (message["content"] for message in provider.requests[-1].json["messages"] if message["role"] == "tool")
    assert "deep/made.txt" in files
    assert "there.txt" in lines
    assert "two" in lines


def test_a_command_is_refused_without_process_groups(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo hi"}), text("Done."))
    done = run_without(*provider.flags, "--no-session", "--mode", "yolo", "-p", "run it")
    assert done.stdout == "Done.\n", done.stderr
    assert "WSL" in provider.requests[-1].json["messages"][-1]["content"]


def test_an_interactive_session_reads_lines_without_terminal_modes(provider: ProviderServer) -> None:
    """As on a console of Windows: nothing is painted, and an approval is a line."""
    hold, slow = Hold(), text("Never seen.")
    provider.script(
        call("write", {"path": "made.txt", "content": "made\n"}),
        text("It is there."),
        replace(slow, pieces=(hold, *slow.pieces)),
        text("Again."),
    )
    command = [sys.executable, "-c", WITHOUT, *provider.flags, "--mode", "ask", "--no-session"]
    with pty_program(command, {**os.environ, "TERM": "xterm"}) as terminal:
        terminal.wait_for("Enter sends")
        terminal.enter("write a file")
        terminal.wait_for("[y]es")
        assert not Path("made.txt").exists()
        terminal.enter("y")
        terminal.wait_for("It is there.")
        terminal.enter("stop this")
        hold.wait_until_reached()
        terminal.press("ctrl-c")
        terminal.wait_for("Interrupted.")
        hold.release()
        terminal.enter("once more")
        terminal.wait_for("Again.")
        terminal.enter("/exit")
        assert terminal.wait_for_exit() == 0
    assert Path("made.txt").read_text() == "made\n"


def test_a_session_needs_locks(provider: ProviderServer) -> None:
    """On a system that has neither kind of lock: two wolos could damage the database."""
    done = run_without(*provider.flags, "-p", "hello")
    assert done.returncode == 3
    assert "--no-session" in done.stderr
    assert provider.requests == []
