"""Paths that lead through what nobody may follow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import unprivileged
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import MODES
from wolo.workspace.root import resolve_path


def where(paths: list[str]) -> list[str]:
    return [resolve_path(path) for path in paths]


@pytest.mark.skipif(sys.platform != "linux", reason="links that only their owner may follow are in /proc of Linux")
def test_owner_only_link_leads_to_itself() -> None:
    told = unprivileged.call(where, ["/proc/1/root/etc/x", "/proc/1/cwd", "/proc/1/root/../x", "/proc/self/../self/root/etc"])
    assert told == ["/proc/1/root/etc/x", "/proc/1/cwd", "/proc/1/x", "/etc"]


def verdict(root: str, command: str) -> str:
    return Judge(MODES["edit"], (), Path(root)).judge("shell", [RunIntent(command, Path(root))]).decision


@pytest.mark.skipif(sys.platform != "linux", reason="links that only their owner may follow are in /proc of Linux")
@pytest.mark.parametrize(
    "command", ["ls -l /proc/1/exe", "cat /proc/1/root/etc/passwd; :", "cd /proc/1/cwd && ls", "cat < /proc/1/cwd/x"]
)
def test_a_command_that_names_one_is_judged(command: str) -> None:
    with unprivileged.folder() as root:
        verdict(str(root), "ls; cat < x")  # loads what an ordinary user may not be able to read
        assert unprivileged.call(verdict, str(root), command) == "ask"
