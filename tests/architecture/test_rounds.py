"""A turn of a headless run wakes the event loop seldom, and hands nothing to a thread: each costs more than what it waits for.

As a program it runs wolo: `python -m tests.architecture.test_rounds ARGUMENT…` ends stderr with the rounds of the loop.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from asyncio import BaseEventLoop
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

TURNS = 10
MOST_ROUNDS = {"shell": 16, "read": 12}
"""A response that comes in pieces takes more; with a thread for each commit it was 24 and 15."""


@pytest.mark.parametrize("tool", MOST_ROUNDS)
def test_headless_turn_takes_few_rounds_and_no_thread(provider: ProviderServer, tool: str) -> None:
    Path("notes").write_text("".join(f"line {number}\n" for number in range(TURNS + 2)))
    few, many = (_count(provider, tool, turns) for turns in (2, 2 + TURNS))
    assert (many[0] - few[0]) / TURNS <= MOST_ROUNDS[tool]
    assert many[1] == few[1]


def _count(provider: ProviderServer, tool: str, turns: int) -> list[int]:
    arguments = {
        "shell": lambda number: {"command": f"true {number}"},
        "read": lambda number: {"path": "notes", "offset": number},
    }
    provider.script(*(call(tool, arguments[tool](number + 1)).split(100_000) for number in range(turns)), text("Done."))
    flags = ["--base-url", provider.base_url, "--api-key", "k", "-m", "test-model"]
    command = [sys.executable, "-m", "tests.architecture.test_rounds", "-p", "--yolo", *flags, "go"]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stderr.splitlines()[-1].split()]


def count_rounds(*argv: str) -> None:
    counts = [0, 0]

    def counting(at: int, inner: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            counts[at] += 1
            return inner(*args, **kwargs)

        return run

    def end(code: int) -> None:
        print(*counts, file=sys.stderr, flush=True)
        leave(code)

    leave, os._exit = os._exit, end  # type: ignore[assignment]  # it returns to nobody
    atexit.register(lambda: print(*counts, file=sys.stderr, flush=True))
    BaseEventLoop._run_once = counting(0, BaseEventLoop._run_once)  # type: ignore[attr-defined]
    ThreadPoolExecutor.submit = counting(1, ThreadPoolExecutor.submit)  # type: ignore[method-assign]
    from wolo.__main__ import main

    sys.argv = ["wolo", *argv]
    main()


if __name__ == "__main__":
    count_rounds(*sys.argv[1:])
