"""The launchers run for every command: they load little, and become the command as a shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.test_sandbox_contract import need
from wolo.guard.sandbox.bubblewrap import find_launcher
from wolo.guard.sandbox.python_launcher import bare_python, line_for, pack_programs, text_of
from wolo.operating_system import in_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the launchers are for Linux")
SLOW = {"os", "ctypes", "signal", "struct", "socket", "typing", "pathlib", "contextlib", "collections.abc", "re"}
MODULES = "import sys\nfor text in sys.argv[1:]: exec(text)\nprint(*sys.modules)"


def test_neither_launcher_loads_a_slow_module() -> None:
    texts = [text_of(name).partition("from wolo.guard")[0] for name in ("calls", "launcher", "namespace_launcher")]
    done = subprocess.run([bare_python(), "-I", "-S", "-c", MODULES, *texts], capture_output=True, text=True, check=True)
    assert SLOW.isdisjoint(done.stdout.split())


def launch(*command: str, words: bytes = b"", path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    fds = [in_memory(pack_programs("calls", "launcher")), in_memory(words)]
    line = [*line_for(fds[0]), "-1", "-1", "0", str(fds[1]), "-1", "--", *command]
    try:
        return subprocess.run(line, pass_fds=fds, capture_output=True, text=True, check=False, env={"PATH": path, "OLD": "kept"})
    finally:
        for fd in fds:
            os.close(fd)


def test_variables_and_arguments_arrive_as_they_are() -> None:
    words = os.fsencode("NEW=grün\udcff=\0") + b"OLD=new\0"
    done = launch("/bin/sh", "-c", 'printf %s "$NEW|$OLD|$1" | od -An -c | tr -d " \\n"', "sh", "ü", words=words)
    assert done.stdout.startswith(r"gr303274n377=|new|303274")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("no-such-program", "No such file"), ("/no/such/program", "No such file"), ("closed", "Permission denied")],
)
def test_unstartable_command_is_an_error(tmp_path: Path, name: str, complaint: str) -> None:
    (tmp_path / "closed").write_text("not a program")
    done = launch(name, path=f"/usr/bin:{tmp_path}:/no/such/folder")
    assert done.returncode == 127
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (b"--ro-bind\0/\0", ["-1", "-1", "-1", "0", "--", "true"]),
        (b"--unknown\0x\0", ["-1", "-1", "-1", "0", "--", "true"]),
        (b"--chdir\0/", ["-1", "-1", "-1", "0", "--", "true"]),
        (b"--ro-bind\0/no/such/place\0/\0", ["-1", "-1", "-1", "0", "--", "true"]),
        (b"--ro-bind\0/\0/\0--tmpfs\0/no/such/place\0", ["-1", "-1", "-1", "0", "--", "true"]),
        (b"", ["-1", "-1", "-1", "0", "--"]),
        (b"", ["-1", "-1", "-1", "0", "true", "x"]),
    ],
)
def test_compiled_launcher_refuses_wrong_arguments(tmp_path: Path, words: bytes, arguments: list[str]) -> None:
    need("compiled")
    fd = in_memory(words)
    try:
        line = [find_launcher([]), str(fd), *arguments]
        done = subprocess.run(line, pass_fds=[fd], capture_output=True, text=True, check=False, timeout=20)
    finally:
        os.close(fd)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Cannot set up the sandbox: ")


@pytest.mark.parametrize("launcher", ["compiled", "namespaces"])
@pytest.mark.parametrize("filter", [b"", b"\x06"])
def test_launcher_without_whole_filter_runs_nothing(launcher: str, filter: bytes) -> None:
    need(launcher)
    fds = [in_memory(each) for each in (pack_programs("calls", "namespace_launcher"), b"--ro-bind\0/\0/\0", filter)]
    line = [find_launcher([])] if launcher == "compiled" else line_for(fds[0])
    try:
        command = [*line, str(fds[1]), "-1", "-1", str(fds[2]), "0", "--", "/bin/echo", "begun"]
        done = subprocess.run(command, pass_fds=fds, capture_output=True, text=True, check=False, timeout=20)
    finally:
        for fd in fds:
            os.close(fd)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Cannot set up the sandbox: ")


def test_compiled_launcher_needs_no_library() -> None:
    need("compiled")
    assert b"/ld-linux" not in Path(find_launcher([])).read_bytes()


def test_program_is_found_in_its_first_folder(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    assert launch("mine", path=f"/no/such/folder:{tmp_path}:/usr/bin").stdout == "found\n"
