"""The effect that a request asks for, and the calls that bring it."""

from __future__ import annotations

import pytest

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.requested_work import Work, asks_for, asks_for_files, was_done


@pytest.mark.parametrize(
    ("request_", "work"),
    [
        ("Write area.py with a function", "change"),
        ("Could you please fix the bug in a.py?", "change"),
        ("There is a bug in a.py. Fix it.", "change"),
        ("make it faster", "change"),
        ("Create sum.py and run it", "both"),
        ("run the tests", "run"),
        ("How do I write a file in Python?", ""),
        ("What does a.py do, and why?", ""),
        ("explain utils.py", ""),
        ("sum.py crashes with an empty list. It should return 0.", "change"),
        ("What is wrong in a.py", ""),
        ("hello", ""),
        ("Write a haiku about rain", ""),
    ],
)
def test_the_words_say_what_is_wanted(request_: str, work: Work) -> None:
    assert asks_for(request_) == work


def test_answer_may_hold_unrelated_code() -> None:
    assert asks_for_files("write a function that reverses a string") == ""
    assert asks_for_files("write a function that reverses a string in text.py") == "change"
    assert asks_for_files("Fix the bug") == "change"


@pytest.mark.parametrize(
    ("work", "call", "done"),
    [
        ("change", ToolPart(tool="write", input={"path": "a"}, status="completed", outcome="ok"), True),
        ("change", ToolPart(tool="write", input={"path": "a"}, status="failed", outcome="error"), False),
        ("change", ToolPart(tool="write", input={"path": "a"}, status="failed", outcome="denied_by_rule"), True),
        ("change", ToolPart(tool="read", input={"path": "a"}, status="completed", outcome="ok"), False),
        ("change", ToolPart(tool="shell", input={"command": "python3 a.py"}, status="completed", outcome="ok"), False),
        ("change", ToolPart(tool="shell", input={"command": "echo x > a"}, status="completed", outcome="ok"), True),
        ("run", ToolPart(tool="shell", input={"command": "pytest"}, status="failed", outcome="error"), True),
        ("both", ToolPart(tool="shell", input={"command": "python3 a.py"}, status="failed", outcome="error"), False),
    ],
)
def test_looking_is_no_effect(work: Work, call: ToolPart, *, done: bool) -> None:
    assert was_done(work, [call]) is done
