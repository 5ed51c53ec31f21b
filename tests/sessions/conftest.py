"""Fixtures of the session tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components import miss, require
from wolo.sessions.store import Store


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def strace() -> list[str]:
    program = require("strace")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        miss("the permission to trace a process: kills at single system calls are not tested")
    return [program, "-f", "-qq"]
