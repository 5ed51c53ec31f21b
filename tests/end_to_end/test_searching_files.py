"""Searches of very many files and of patterns that run away: bounded, and over when the run is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from tests.workspace.living import unique_seconds


@pytest.mark.parametrize("files", [3_000, pytest.param(200_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("program", ["rg", "python"])
def test_loops_and_many_files_are_searched_boundedly(provider: ProviderServer, files: int, program: str) -> None:
    for number in range(files // 500):
        folder = Path(f"d{number}")
        folder.mkdir()
        (folder / "loop").symlink_to("..")
        for each in range(500):
            (folder / f"f{each}.txt").write_text("needle\n" if each == 7 else "hay\n")
    wanted = calls(("grep", {"pattern": "needle", "output_mode": "files"}), ("glob", {"pattern": "f7.txt"}))
    provider.script(wanted, text("ok"))
    done = run_wolo("-p", *provider.flags, "go", timeout=60) if program == "rg" else run_without_ripgrep(provider)
    assert done.exit_code == 0, done.stderr
    grepped, globbed = provider.requests[-1].results
    assert "d0/f7.txt" in grepped
    assert "loop" not in grepped + globbed
    assert len(globbed.splitlines()) == min(files // 500, 500) + (files // 500 > 500)


def test_a_search_ends_with_the_run(provider: ProviderServer) -> None:
    Path("a.txt").write_text("a" * 60 + "!\n")
    mark = unique_seconds()
    provider.script(call("grep", {"pattern": f"^(a+)+$|{mark}"}))
    with start_without_ripgrep(provider) as process:
        wait_for(lambda: _searching(mark) != [])
        process.terminate()
        process.communicate(timeout=60)
    wait_for(lambda: _searching(mark) == [])


def test_early_end_of_a_search_shows_on_screen(provider: ProviderServer) -> None:
    for number in range(300):
        Path(f"f{number}.txt").write_text("needle\n")
    provider.script(call("grep", {"pattern": "needle", "head_limit": 5}), text("Some."))
    with pty_wolo(*provider.flags, "go on", columns=120) as terminal:
        terminal.wait_for("5 found · incomplete: there is more")
        assert terminal.wait_for_exit() == 0


def start_without_ripgrep(provider: ProviderServer) -> subprocess.Popen[bytes]:
    """An interpreter beside which no `rg` lies, and a PATH without one."""
    python = Path("../bin/python").absolute()
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    env = {**os.environ, "PATH": "/nowhere", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [python, "-m", "wolo", "-p", *provider.flags, "go"],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def run_without_ripgrep(provider: ProviderServer) -> Completed:
    with start_without_ripgrep(provider) as process:
        stdout, stderr = process.communicate(timeout=60)
    return Completed(stdout.decode(), stderr.decode(), process.returncode)


def _searching(mark: str) -> list[bytes]:
    found = subprocess.run(["/usr/bin/pgrep", "-f", f"plain_grep.py.*{mark}"], capture_output=True, check=False).stdout
    return found.split()
