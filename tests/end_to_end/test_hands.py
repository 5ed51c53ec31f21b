"""What the model's hands may and may not do, seen from outside: the program, the disk and what the provider was sent."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.workspace.living import alive, gone

LONG = "seq 1 50000"


def read_what_was_kept(asked: Asked) -> Reply:
    kept = re.search(r"lines: (\S+) — page it", asked.results[-1])
    assert kept, asked.results[-1][-300:]
    return call("read", {"path": kept[1], "offset": 25_000, "limit": 1})


@pytest.mark.parametrize("flags", [(), ("--no-session",)], ids=["kept", "unkept"])
def test_the_model_can_page_a_long_output(provider: ProviderServer, isolated: Path, flags: tuple[str, ...]) -> None:
    provider.script(call("shell", {"command": LONG}), read_what_was_kept, text("ok"))
    done = run_wolo("-p", *flags, "--allow", f"shell:{LONG}", *provider.flags, "go")
    assert done.exit_code == 0, done.stderr
    assert "25000→25000" in provider.requests[-1].results[-1]
    if flags:
        assert list((isolated / "wolo" / "state").glob("unkept-*")) == []


@pytest.mark.parametrize("flags", [(), ("--no-session",)], ids=["kept", "unkept"])
def test_only_the_owner_can_read_what_wolo_keeps(provider: ProviderServer, isolated: Path, flags: tuple[str, ...]) -> None:
    provider.script(
        call("shell", {"command": f"{LONG}; touch made"}), call("write", {"path": "new/x", "content": "y"}), text("ok")
    )
    before = os.umask(0)
    try:
        assert run_wolo("-p", "--yolo", *flags, *provider.flags, "go").exit_code == 0
    finally:
        os.umask(before)
    wolo = isolated / "wolo"
    assert [str(path) for path in wolo.rglob("*") if path.stat().st_mode & 0o077] == []
    assert Path("made").stat().st_mode & 0o777 == Path("new/x").stat().st_mode & 0o777 == 0o666


def test_the_next_start_ends_what_a_killed_run_left_running(provider: ProviderServer, isolated: Path) -> None:
    """Also when it runs no command of its own."""
    left, kept = (f"{digit}{time.monotonic_ns() % 10**9}" for digit in (7, 8))
    for number in (left, kept):
        provider.script(call("shell", {"command": f"setsid sleep {number} & touch {number}; sleep 60"}))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as living, start_wolo("-p", "--yolo", *provider.flags, "go") as killed:
        wait_for(lambda: Path(left).exists() and Path(kept).exists())
        traces = list((isolated / "wolo" / "state" / "commands").iterdir())
        own = next(path for path in traces if f".{killed.pid}." in path.name)
        killed.kill()
        killed.wait()
        provider.script(text("hello"))
        assert run_wolo("-p", *provider.flags, "go").exit_code == 0
        assert not own.exists()
        assert sorted(map(bool, (alive(left), alive(kept)))) == [False, True]
        living.terminate()
        living.wait()
    assert gone(left)
    assert gone(kept)
    assert list((isolated / "wolo" / "state" / "commands").iterdir()) == []
