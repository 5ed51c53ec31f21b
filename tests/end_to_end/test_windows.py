"""Wolo with the Python of Windows, under Wine: the calls of Windows, as far as Wine has them.

Wine shows files of Linux in place of missing ones (`/proc`), reports no device of its drive Z: and knows no links. So the project
is on C:, and links are tested in `tests/places/test_windows_files.py`.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import pty_program

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / ".ci" / "packaging"
WINE = next(filter(None, map(shutil.which, ("wine64", "/usr/lib/wine/wine64"))), None)
SLOW_S = 120.0
pytestmark = [pytest.mark.skipif(WINE is None, reason="Windows is played by Wine (package wine64)"), pytest.mark.timeout(900)]


HELD_OPEN = r"""
from pathlib import Path
from wolo.workspace.files.atomic_write import content_hash, write_atomic

path = Path("C:\\project\\held.txt")
path.write_bytes(b"old")
held = path.open("rb")
write_atomic(path, b"new", locks=Path("C:\\locks"), expected=content_hash(b"old"), note=lambda change: print(change.in_place))
"""


class Windows(Struct, frozen=True):
    python: Path
    prefix: Path

    @property
    def drive(self) -> Path:
        return self.prefix / "drive_c"

    def start(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Standard streams are pipes: Wine offers Python no others without a console."""
        return subprocess.run(
            [str(WINE), *command],
            input="",
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
            cwd=cwd,
            env=self.environ,
        )

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.prefix.parent),
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "SECRET_TOKEN": "never-shown",
            "WINEDLLOVERRIDES": "wbemprox=;mscoree=;mshtml=;winemenubuilder.exe=",  # the first lacks a function that WMI needs
        }

    def wolo(self, *args: str, program: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        command = program or (str(self.python / "python.exe"), "-B", "-m", "wolo")
        done = self.start(*command, *args, cwd=self.drive / "project")
        assert "crashed" not in done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    """Python and the wheels for Windows, as `make dist OS=windows` packs them; nothing of them is run here but by Wine."""
    place = tmp_path_factory.mktemp("windows")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PACKAGING)
        importlib.import_module("windows_folder").make_python(place / "python")
    with (place / "python" / "python313._pth").open("a", encoding="utf-8") as paths:
        paths.write(f"Z:{ROOT}\n".replace("/", "\\"))
    found = Windows(place / "python", place / "prefix")
    found.start("reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f")
    (found.drive / "project").mkdir()
    (found.drive / "windows/system32/WindowsPowerShell/v1.0/powershell.exe").unlink()  # Wine's does nothing
    yield found
    found.start("wineboot", "--kill")


def test_wolo_starts_with_the_python_of_windows(windows: Windows) -> None:
    assert windows.wolo("--version").stdout.startswith("wolo ")
    assert "Usage: wolo" in windows.wolo("--help").stdout
    doctor = windows.wolo("doctor")
    assert "on Windows 10 AMD64" in doctor.stdout
    assert [line for line in doctor.stdout.splitlines() if line.startswith("fail")] == [
        "fail  problem   No model is set up: `wolo login` saves an API key, and `wolo` in a terminal offers other ways."
    ]
    assert windows.wolo("sessions", "list").returncode == 0


def test_a_prompt_edits_files_on_windows(windows: Windows, provider: ProviderServer) -> None:
    project = windows.drive / "project"
    (project / "there.txt").write_text("one → 1\n", encoding="utf-8")
    provider.script(
        call("write", {"path": "deep/made.txt", "content": "made\n"}),
        call("edit", {"path": "there.txt", "old": "one", "new": "two"}),
        call("glob", {"pattern": "**/*.txt"}),
        call("grep", {"pattern": "tw[o]"}),
        call("grep", {"pattern": "(m+)+e$"}),
        text("Done."),
    )
    done = windows.wolo(*provider.flags, "--mode", "yolo", "-p", "write a file")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (project / "deep" / "made.txt").read_bytes() == b"made\n"
    assert (project / "there.txt").read_text(encoding="utf-8") == "two → 1\n"
    *_, files, lines, others = (
        message["content"] for message in provider.requests[-1].json["messages"] if message["role"] == "tool"
    )
    assert "there.txt" in files
    assert "two → 1" in lines
    assert "no match" in others.lower()
    assert "write a file" in windows.wolo("sessions", "list").stdout
    assert windows.wolo("sessions", "verify").returncode == 0
    assert windows.wolo("undo").returncode == 0
    assert (project / "there.txt").read_text(encoding="utf-8") == "one → 1\n"
    assert not (project / "deep" / "made.txt").exists()
    assert [path.name for path in project.rglob("*") if path.name.startswith(".wolo-")] == []


def results_of(provider: ProviderServer) -> list[str]:
    return [message["content"] for message in provider.requests[-1].json["messages"] if message["role"] == "tool"]


def test_commands_run_and_end_whole_on_windows(windows: Windows, provider: ProviderServer) -> None:
    """In cmd.exe, whose directory the next call finds again; what is left of them ends with wolo."""
    left = ["ping -n 71 127.0.0.1", "ping -n 72 127.0.0.1", "ping -n 73 127.0.0.1"]
    provider.script(
        call("shell", {"command": "echo [%SECRET_TOKEN%]& mkdir inner\ncd inner\ncmd /c exit 5"}),
        call("shell", {"command": "cd& echo made> made.txt& exit /b 3"}),
        call("shell", {"command": f"cmd /c {left[0]} >nul", "timeout_s": 1}),
        call("shell", {"command": f"start /b {left[1]}"}),
        call("shell", {"command": left[2], "background": True}),
        call("jobs", {"action": "stop", "job": 1}),
        call("shell", {"command": "for /l %%i in (1,1,20000) do @echo a line of output"}),
        text("Done."),
    )
    done = windows.wolo(*provider.flags, "--mode", "yolo", "-p", "run them")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert "Traceback" not in done.stderr
    moved, made, late, leftover, begun, stopped, flood = results_of(provider)
    assert "[%SECRET_TOKEN%]" in moved or "[]" in moved
    assert "[exit 5]" in moved
    assert made.startswith("C:\\project\\inner")
    assert "[exit 3]" in made
    assert (windows.drive / "project" / "inner" / "made.txt").exists()
    assert "timed out after 1 s" in late
    assert "still running in the background" in leftover
    assert "job 1" in begun
    assert "ended: stopped" in stopped
    assert "lines" in flood
    assert len(flood) < 60_000
    running = [path.read_bytes().replace(b"\0", b" ").decode() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert [line for line in running if any(each in line for each in left)] == []
    shell = next(tool["function"] for tool in provider.requests[-1].json["tools"] if tool["function"]["name"] == "shell")
    assert "cmd.exe" in shell["description"]
    assert windows.wolo("undo").returncode == 0
    assert not (windows.drive / "project" / "inner" / "made.txt").exists()


@pytest.mark.parametrize(("flags", "code"), [(["--sandbox", "required"], 2), (["--allow", "shell:*"], 4)])
def test_commands_need_a_person_on_windows(windows: Windows, provider: ProviderServer, flags: list[str], code: int) -> None:
    """Rules are for lines of bash, so none of them allows one of another shell."""
    provider.script(call("shell", {"command": "echo made> asked.txt"}), text("Done."))
    done = windows.wolo(*provider.flags, *flags, "-p", "run it")
    assert done.returncode == code, done.stderr
    assert not (windows.drive / "project" / "asked.txt").exists()


def test_an_interactive_session_reads_lines_on_windows(windows: Windows, provider: ProviderServer) -> None:
    """At the console of Wine, which shows what it holds in a terminal of Linux."""
    provider.script(
        call("write", {"path": "typed.txt", "content": "made\n"}), call("shell", {"command": "echo from cmd"}), text("All done.")
    )
    command = [str(WINE), str(windows.python / "python.exe"), "-B", "-m", "wolo", *provider.flags, "--mode", "ask"]
    with pty_program(command, {**windows.environ, "TERM": "xterm"}, windows.drive / "project", is_raw=True) as terminal:
        terminal.wait_for("Enter sends", SLOW_S)
        terminal.enter("write a file")
        terminal.wait_for("Write this file?", SLOW_S)
        terminal.wait_for("[y]es", SLOW_S)
        terminal.enter("y")
        terminal.wait_for("Run this command?", SLOW_S)
        terminal.wait_for("[y]es, run it", SLOW_S)
        terminal.enter("y")
        terminal.wait_for("All done.", SLOW_S)
        terminal.enter("/exit")
        assert terminal.wait_for_exit(SLOW_S) == 0
    assert (windows.drive / "project" / "typed.txt").read_text() == "made\n"
    assert "from cmd" in results_of(provider)[1]


def test_the_page_is_served_on_windows(windows: Windows, provider: ProviderServer) -> None:
    command = [str(WINE), str(windows.python / "python.exe"), "-B", "-m", "wolo", "serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=windows.environ, cwd=windows.drive
    ) as server:
        try:
            assert server.stdout is not None
            address, _, token = server.stdout.readline().decode().strip().partition("/?token=")
            request = urllib.request.Request(f"{address}/v1/sessions", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(request, timeout=SLOW_S) as answer:
                assert answer.status == 200
            with urllib.request.urlopen(f"{address}/?token={token}", timeout=SLOW_S) as answer:
                assert b"<html" in answer.read()
        finally:
            server.kill()


def test_paths_are_judged_on_windows(windows: Windows, provider: ProviderServer) -> None:
    """Mode edit writes in the workspace and nowhere else; names that programs act on are protected."""
    provider.script(
        call("write", {"path": "inside.txt", "content": "made\n"}),
        call("write", {"path": r"C:\outside.txt", "content": "made\n"}),
        call("write", {"path": r".git\hooks\pre-commit", "content": "made\n"}),
        call("write", {"path": "CLAUDE.md.", "content": "made\n"}),
        call("write", {"path": "CLAUDE.md::$DATA", "content": "made\n"}),
        call("write", {"path": r"\\?\C:\project\inside.txt", "content": "changed\n"}),
        call("write", {"path": r"deep\no.txt", "content": "made\n"}),
        call("write", {"path": "not.txt", "content": "made\n"}),
        text("Done."),
    )
    flags = ("--mode", "edit", "--deny", "write:deep/*.txt", "--deny", "write:not.txt")
    assert windows.wolo(*provider.flags, *flags, "-p", "write files").returncode == 4
    inside, outside, *hooks, stream, device, wild, plain = results_of(provider)
    assert (windows.drive / "project" / "inside.txt").exists()
    assert "Created inside.txt" in inside
    assert not (windows.drive / "outside.txt").exists()
    assert "outside the workspace" in outside
    assert not (windows.drive / "project" / ".git" / "hooks" / "pre-commit").exists()
    assert not (windows.drive / "project" / "CLAUDE.md").exists()
    assert all("protected name" in each for each in hooks), hooks
    assert "stream" in stream
    assert "stream" in device
    assert (windows.drive / "project" / "inside.txt").read_text() == "made\n"
    assert "deep/*.txt" in wild
    assert "not.txt" in plain
    assert not list((windows.drive / "project").glob("**/no*.txt"))


def test_file_open_elsewhere_is_written_in_place(windows: Windows) -> None:
    """Windows replaces no file that somebody has open without the permission to remove it."""
    done = windows.start(str(windows.python / "python.exe"), "-B", "-c", HELD_OPEN)
    assert done.stdout.split() == ["False", "True"], done.stderr
    project = windows.drive / "project"
    assert (project / "held.txt").read_bytes() == b"new"
    assert [path.name for path in project.rglob("*") if path.name.startswith(".wolo-")] == []


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="builds the commit of a checkout")
def test_zip_runs_where_it_is_unpacked(windows: Windows, provider: ProviderServer, tmp_path: Path) -> None:
    """Its program finds the Python beside it, in a folder with a space in its name."""
    command = [
        sys.executable,
        str(PACKAGING / "make_dist.py"),
        "--out",
        str(tmp_path / "dist"),
        "--only",
        "folder",
        "--os",
        "windows",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [packed] = tmp_path.glob("dist/*.zip")
    place = windows.drive / "two words"
    with zipfile.ZipFile(packed) as files:
        assert len({info.date_time for info in files.infolist()}) == 1
        files.extractall(place)
    program = (rf"C:\two words\{packed.stem}\wolo.exe",)
    assert windows.wolo("--version", program=program).stdout.startswith("wolo ")
    doctor = windows.wolo("doctor", program=program).stdout
    assert "on Windows 10 AMD64" in doctor
    assert "was changed after it was installed" not in doctor
    assert "winget" in windows.wolo("update", program=program).stderr
    provider.script(call("write", {"path": "packed.txt", "content": "made\n"}), text("Done."))
    done = windows.wolo(*provider.flags, "--mode", "edit", "-p", "write a file", program=program)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (windows.drive / "project" / "packed.txt").read_text() == "made\n"
