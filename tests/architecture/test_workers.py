"""How the tests are run: in workers, and with fewer cases of a sweep."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
HOOKS = ("pytest_addoption", "pytest_configure", "pytest_collection_modifyitems", "pytest_runtestloop")


def run(folder: Path, tests: str, *options: str) -> str:
    """What pytest prints about the tests with the project's conftest."""
    return run_again(folder, tests, "-p", "no:cacheprovider", *options)


def run_again(folder: Path, tests: str, *options: str) -> str:
    """The same, with a record of the tests that failed."""
    (folder / "conftest.py").write_text(f"from tests.conftest import {', '.join(HOOKS)}\n")
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    sweep(every): \n    soak: \n")
    argv = [sys.executable, "-m", "pytest", "-q", *options, "test_it.py"]
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TOP), "HOME": str(folder)}
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True).stdout


def test_dead_worker_fails_its_test_alone(tmp_path: Path) -> None:
    tests = "import os\n" + "".join(f"def test_{number}(): {number} == 3 and os._exit(7)\n" for number in range(8))
    printed = run(tmp_path, tests, "--workers", "2")
    assert "1 failed, 7 passed" in printed
    assert "test_it.py::test_3 - the worker that ran it ended with 7" in printed


@pytest.mark.parametrize("ends", ["os._exit(7)", "time.sleep(60)", "1 / 0"], ids=["dead worker", "timeout", "failure"])
def test_failed_test_stays_recorded_after_others_pass(tmp_path: Path, ends: str) -> None:
    tests = f"import os, time\ndef test_it(): {ends}\ndef test_heavy(): pass\ndef test_other(): pass\n"
    timeout = ("--timeout=1",) if "sleep" in ends else ()
    assert "1 failed, 1 passed" in run_again(tmp_path, tests, "--workers", "2", *timeout, "-k", "not heavy")
    assert "1 passed, 2 deselected" in run_again(tmp_path, tests, "--workers", "2", "-k", "heavy")
    assert json.loads((tmp_path / ".pytest_cache/v/cache/lastfailed").read_text()) == {"test_it.py::test_it": True}
    passing = "def test_it(): pass\ndef test_heavy(): 1 / 0\ndef test_other(): 1 / 0\n"
    assert "1 passed, 2 deselected" in run_again(tmp_path, passing, "--last-failed", "--last-failed-no-failures", "none")


def test_without_recorded_failure_nothing_runs_again(tmp_path: Path) -> None:
    again = next(line for line in (TOP / "Makefile").read_text().splitlines() if "--last-failed" in line)
    options = again.partition("pytest -q ")[2].partition(" -m ")[0].split()
    assert "2 deselected" in run_again(tmp_path, "def test_it(): 1 / 0\ndef test_other(): pass\n", *options)


def test_sweep_runs_evenly_fewer_cases(tmp_path: Path) -> None:
    marks = "@pytest.mark.sweep(every=3)\n@pytest.mark.parametrize('case', range(10))\n"
    tests = f"import pytest\n{marks}def test_it(case): print(case)\n"
    assert "10 passed" in run(tmp_path, tests, "--workers", "2")
    printed = run(tmp_path, tests, "--workers", "2", "-m", "not soak", "-rP")
    assert "4 passed, 6 deselected" in printed
    assert sorted(line for line in printed.splitlines() if line.isdigit()) == ["0", "3", "6", "9"]
