"""`wolo "create a calculator"` with no key and no network: the embedded model does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.components import miss, require_weights
from tests.end_to_end.try_calculator import NEEDED, find_calculator, load, try_functions
from tests.fakes.command import run_wolo
from wolo.models.local.embedded import has_engine

MODEL = "qwen2.5-coder-0.5b"


@pytest.mark.real_model
@pytest.mark.timeout(240)
def test_it_creates_a_working_calculator_with_nothing_configured() -> None:
    if not has_engine():
        miss("the embedded engine (pip install 'wolo-cli[local]')")
    pulled = run_wolo("models", "pull", f"local/{MODEL}", "--from", str(require_weights()), timeout=60)
    assert pulled.exit_code == 0, pulled.stderr
    done = run_wolo("--json", "create a calculator", timeout=200)
    assert done.exit_code == 0, done.stderr
    result = done.json
    assert (result["model"], result["total_cost_usd"]) == (f"local/{MODEL}", 0.0)
    path = find_calculator(Path.cwd())
    assert path is not None
    assert result["files_changed"] == [path.name]
    assert {call.partition("(")[0] for call, _, right in try_functions(load(path)) if right} >= NEEDED
    session = run_wolo("sessions", "show", result["session_id"], "--json").json
    (call,) = (part for message in session["messages"] for part in message["parts"] if part["type"] == "tool")
    assert (call["tool"], call["status"], call["input"]["path"]) == ("write", "completed", path.name)
