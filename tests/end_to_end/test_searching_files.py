"""Searches of very many files and of patterns that run away: bounded, and over when the run is."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.pace import allowed_s
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text


@pytest.mark.parametrize("files", [3_000, pytest.param(200_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])])
@pytest.mark.parametrize("program", ["rg", "python"])
def test_loops_and_very_many_files_are_searched_in_bounded_time(provider: ProviderServer, files: int, program: str) -> None:
    for number in range(files // 500):
        folder = Path(f"d{number}")
        folder.mkdir()
        (folder / "loop").symlink_to("..")
        for each in range(500):
            (folder / f"f{each}.txt").write_text("needle\n" if each == 7 else "hay\n")
    env = {"PATH": "/nowhere"} if program == "python" else {}
    wanted = calls(("grep", {"pattern": "needle", "output_mode": "files"}), ("glob", {"pattern": "f7.txt"}))
    provider.script(wanted, text("ok"))
    began = time.monotonic()
    done = run_wolo("-p", *provider.flags, "go", env=env, timeout=60)
    assert done.exit_code == 0, done.stderr
    assert time.monotonic() - began < allowed_s(22)
    grepped, globbed = provider.requests[-1].results
    assert "d0/f7.txt" in grepped
    assert "loop" not in grepped + globbed
    assert len(globbed.splitlines()) == min(files // 500, 500) + (files // 500 > 500)


def test_a_search_ends_with_the_run(provider: ProviderServer) -> None:
    Path("a.txt").write_text("a" * 60 + "!\n")
    provider.script(call("grep", {"pattern": r"^(a+)+$"}))
    with start_wolo("-p", *provider.flags, "go", env={"PATH": "/nowhere"}) as process:
        wait_for(lambda: _searching() != [])
        process.terminate()
        process.communicate(timeout=5)
    wait_for(lambda: _searching() == [])


def _searching() -> list[bytes]:
    found = subprocess.run(["/usr/bin/pgrep", "-f", r"plain_grep.py.*\(a\+\)\+"], capture_output=True, check=False).stdout
    return found.split()
