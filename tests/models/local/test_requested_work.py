"""The effect that a request asks for, and the calls that bring it."""

from __future__ import annotations

import pytest

from wolo.messages.parts import ToolPart
from wolo.models.local.checks.requested_work import Work, asks_for, asks_for_files, was_done
from wolo.models.local.checks.stated_results import asked_formula, asked_sum, repeat_count


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


@pytest.mark.parametrize(
    ("request_", "formula"),
    [
        ("Write mix(a, b), which returns a * 3 + b.", "a * 3 + b"),
        ("写一个函数 tag(text)，返回 text[::-1] + '41'。", "text[::-1] + '41'"),
        ("Write `half(n)` in a.py: `n / 2`", "n / 2"),
        ("Add power(a, b) to a.py", ""),
        ("Write add(a, b) and sub(a, b), which return a + b and a - b.", ""),
        ("Write f(a) that returns open(a).read()", ""),
        ("Write f(a) that returns a when it is small", ""),
    ],
)
def test_formula_is_found_in_a_request(request_: str, formula: str) -> None:
    assert asked_formula(request_) == formula


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        ("¿Cuánto es 30 + 9?", "30 + 9 = 39"),
        ("What is 7/2 or 7 / 2?", "7 / 2 = 3.5"),
        ("What is (2 + 3) * 4 in Python?", "(2 + 3) * 4 = 20"),
        ("What happened on 2024-11-29?", ""),
        ("Is 1 / 0 allowed?", ""),
        ("Write 3 + 4 into a.txt", ""),
    ],
)
def test_sum_of_a_question_is_calculated(request_: str, value: str) -> None:
    assert asked_sum(request_) == value


@pytest.mark.parametrize(
    ("request_", "count"),
    [
        ('Print "cold water" exactly 3 times.', 3),
        ("Es gibt genau 4 Mal „all is well“ aus", 4),
        ("把“hello”打印 5 次", 5),
        ('Try it 3 times, and print "failed" in the end', 0),
        ('Print "a", then wait 5 times', 0),
        ("Run 3 times", 0),
    ],
)
def test_count_belongs_to_a_quoted_text(request_: str, count: int) -> None:
    assert repeat_count(request_) == count
