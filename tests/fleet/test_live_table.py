"""The live table of a run, on a terminal of its own."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, delta, sse, text
from tests.fakes.screen import pty_wolo
from tests.fleet.batches import serve, write_tasks
from wolo.cli.fleet.run_progress import LiveTable, cost_so_far

HOSTILE = "so \x1b[31m\x1b]0;owned\x07 long a line that it fits into no window of sixty columns"


def test_table_repaints_in_place_with_readable_interrupts(
    tmp_path: Path, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in serve(provider).items():
        monkeypatch.setenv(name, value)

    def answer(asked: Asked) -> Reply:
        return sse(delta(HOSTILE), Hold()) if "HOLD" in str(asked.messages) else text("Done.")

    provider.otherwise = answer
    tasks = write_tasks(tmp_path / "t.jsonl", 2)
    with tasks.open("a") as file:
        file.write('{"id": "slow", "prompt": "HOLD"}\n')
    with pty_wolo(
        "batch", "run", "--mode", "yolo", str(tasks), "--out", "x", "-j", "3", "--max-tokens", "1000000", cwd=tmp_path
    ) as screen:
        screen.wait_for("1 running · 2 done")
        screen.wait_for("of 1.0M tokens")
        screen.resize(24, 50)
        screen.wait_for("slow  agent")
        screen.wait_until(lambda: screen.times("1 running") == 1, complaint="it was not repainted")
        screen.press("ctrl-c")
        screen.wait_for("Finishing 1 running task;")
        screen.press("ctrl-c")
        assert screen.wait_for_exit() == 1
        assert screen.times("running ·") == 0, "the table is gone at the end"
        screen.wait_for("2 done, 1 cancelled")


def test_surplus_rows_are_counted() -> None:
    for count, last in ((23, "22"), (24, "  … 2 more"), (90, "  … 68 more")):
        screen = io.StringIO()  # taken for 24 lines
        LiveTable(screen).draw([str(number) for number in range(count)])
        shown = screen.getvalue().removesuffix("\x1b[?2026l").splitlines()
        assert (len(shown), shown[-1]) == (23, last)


@pytest.mark.parametrize(
    ("cost", "known", "shown"), [(1.5, 1.5, "$1.5000"), (None, 1.5, "at least $1.5000"), (None, 0.0, "?"), (0.0, 0.0, "$0")]
)
def test_partly_unknown_cost_shows_the_known_part(cost: float | None, known: float, shown: str) -> None:
    assert cost_so_far({"cost_usd": cost, "known_cost_usd": known}) == shown
