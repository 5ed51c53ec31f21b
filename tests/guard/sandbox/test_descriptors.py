"""Descriptors of a sandbox that cannot be set up."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import both, need
from wolo.errors import ToolError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
LIMIT = 64


def open_now() -> set[int]:
    """Needs no descriptor."""
    return {fd for fd in range(LIMIT) if is_open(fd)}


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def try_with_few(folder: Path, backend: str) -> tuple[int, dict[int, set[int]]]:
    """How many descriptors a command takes, and those that are still open after a `wrap` with fewer, by their number."""
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        walls.wrap(["true"], ground.work).cleanup()  # some last as long as the sandbox
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        left: dict[int, set[int]] = {}
        for num_free in range(LIMIT):
            free = sorted({*range(LIMIT)} - open_now())
            taken = [os.open(os.devnull, os.O_RDONLY) for _ in free[num_free:]]
            before = open_now()
            try:
                command = walls.wrap(["true"], ground.work)
            except ToolError:
                left[num_free] = open_now() - before
            else:
                command.cleanup()
                return num_free, left
            finally:
                for fd in taken:
                    os.close(fd)
        raise AssertionError("no number of descriptors was enough")


@both
def test_failed_wrap_leaves_nothing_open(backend: str) -> None:
    need(backend)
    with land() as folder:
        num_needed, left = unprivileged.call(try_with_few, folder, backend)
    assert num_needed > 3
    assert not any(left.values()), left
