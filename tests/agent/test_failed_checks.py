"""Names of failures: the same in the next run, whatever the times, addresses and line numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.agent.cancellation import Cancellation
from wolo.agent.events import Check, Event
from wolo.agent.tool_calls import PlannedCall
from wolo.agent.verification import MAX_LISTED, Verifier, Verify, failures
from wolo.messages.parts import ToolPart
from wolo.tools.editing.write import Write

SPOKEN = (
    ("FAILED tests/test_a.py::test_one - assert 1 == 2", "tests/test_a.py::test_one"),
    ("FAILED tests/test_a.py::test_one[a - b] - assert 1 == 2", "tests/test_a.py::test_one[a"),
    ("ERROR tests/test_b.py", "tests/test_b.py"),
    ("FAIL: test_add (test_calc.TestAdd.test_add)", "test_add (test_calc.TestAdd.test_add)"),
    ("    --- FAIL: TestSum/negative (0.00s)", "TestSum/negative"),
    ("FAIL\texample.org/calc\t0.004s", "example.org/calc"),
    ("test arithmetic::adds ... FAILED", "arithmetic::adds"),
    ("not ok 3 - it adds # time=4ms", "it adds"),
    ("  ✕ adds two numbers (5 ms)", "adds two numbers"),
    ("rspec ./spec/calc_spec.rb:12 # Calc adds", "./spec/calc_spec.rb:12"),
    ("src/calc.py:10: error: Incompatible types  [assignment]", "src/calc.py: error: Incompatible types  [assignment]"),
    ("src/calc.ts(12,3): error TS2322: Type 'a' is not 'b'.", "src/calc.ts: error TS…: Type 'a' is not 'b'."),
    ("calc.py:1:8: F401 `os` imported but unused", "calc.py: F… `os` imported but unused"),
    ("calc.c:4:12: error: expected ';' before '}' token", "calc.c: error: expected ';' before '}' token"),
)


@pytest.mark.parametrize(("line", "name"), SPOKEN)
def test_each_runner_is_understood(line: str, name: str) -> None:
    assert failures(f"collecting\n{line}\n1 failed in 0.3s\n") == (name,)


def test_moved_failure_is_the_same_failure() -> None:
    one = "src/calc.py:10:4: error: bad\nFAIL\tcalc\t0.1s\n"
    other = "src/calc.py:12:4: error: bad\nFAIL\tcalc\t9.3s\n"
    assert failures(one) == failures(other)


def test_the_same_complaint_twice_is_two_failures() -> None:
    assert failures("a.py:1: error: bad\na.py:9: error: bad\n") == ("a.py: error: bad", "a.py: error: bad (2)")


def test_colours_do_not_hide_a_failure() -> None:
    assert failures("\x1b[31mFAILED\x1b[0m tests/test_a.py::\x1b[1mtest_one\x1b[0m - no\n") == ("tests/test_a.py::test_one",)


def test_an_unknown_runner_is_known_by_its_words() -> None:
    assert failures("running 4 checks\ncheck 3 failed after 12 ms\n0 errors\n") == ("check … failed after … ms",)


def test_passing_output_has_no_failures() -> None:
    assert failures("....\n4 passed in 0.02s\n0 failed, 0 errors\n") == ()


def test_a_real_run_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_sum.py").write_text("def test_good():\n    pass\n\ndef test_bad():\n    assert 1 == 2\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failures(ran.stdout) == ("test_sum.py::test_bad",)


@given(st.text(max_size=400))
def test_any_output_is_read(output: str) -> None:
    assert all(isinstance(name, str) and name for name in failures(output))


def test_a_long_line_is_read_in_no_time() -> None:
    assert failures("a:" * 200_000 + "\n" + "FAIL " * 50_000) is not None


@pytest.mark.parametrize(("count", "more"), [(MAX_LISTED, ""), (MAX_LISTED + 2, "… and 2 more")])
async def test_model_reads_first_failures_and_the_remaining_count(count: int, more: str) -> None:
    checks = iter([Check(exit_code=0), Check(exit_code=1, failures=tuple(f"test_{number}" for number in range(count)))])

    async def check() -> Check:
        return next(checks)

    async def emit(event: Event) -> None:
        pass

    verifier = Verifier(Verify(command="make test", run=check), emit, Cancellation())
    await verifier.before([PlannedCall(part=ToolPart(tool="write"), tool=Write())])
    message = await verifier.after()
    assert message is not None
    listed = message.text.partition("before:\n")[2].partition("\n\n")[0].splitlines()
    assert listed == [*(f"- test_{number}" for number in range(MAX_LISTED)), *filter(None, [more])]
