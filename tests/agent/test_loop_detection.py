"""The guard against circles: what counts as the same, and what does not."""

from __future__ import annotations

import random

import pytest

from wolo.agent.turn_policy import SHORT_CHARS, WARN_AT, LoopDetector, RepetitionDetector, RepetitionGuard
from wolo.errors import BadAnswer
from wolo.messages.deltas import CallDelta
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ToolPart

PARAGRAPH = " ".join(f"word{number}" for number in range(45))


def answer(*calls: tuple[str, dict[str, object]], text: str = "") -> Message:
    return Message(role="assistant", parts=(TextPart(text=text), *(ToolPart(tool=tool, input=given) for tool, given in calls)))


def counts(*answers: Message) -> list[int]:
    circles = LoopDetector()
    return [circles.count_calls(each) for each in answers]


def read(path: str) -> tuple[str, dict[str, object]]:
    return ("read", {"path": path, "limit": 5})


def test_the_same_call_again_and_again_is_counted() -> None:
    assert counts(*[answer(read("a"))] * 5) == [1, 2, 3, 4, 5]


def test_key_order_makes_no_new_call() -> None:
    shuffled = answer(("read", {"limit": 5, "path": "a"}))
    assert counts(answer(read("a")), shuffled, answer(read("a"))) == [1, 2, 3]


@pytest.mark.parametrize("length", [2, 3])
def test_a_short_cycle_is_counted_by_its_rounds(length: int) -> None:
    cycle = [answer(read(str(number))) for number in range(length)]
    assert counts(*cycle * 5)[-1] == 5


def test_different_calls_never_add_up() -> None:
    assert max(counts(*[answer(read(str(number))) for number in range(30)])) == 1


def test_tests_after_each_edit_are_no_loop() -> None:
    pytest_run = answer(("shell", {"command": "pytest"}))
    work = [each for number in range(10) for each in (answer(("edit", {"new": number})), pytest_run)]
    assert max(counts(*work)) < WARN_AT


def test_job_queries_neither_form_nor_hide_a_loop() -> None:
    poll = ("jobs", {"action": "output", "id": 1})
    assert counts(*[answer(poll)] * 9, answer((" Jobs", {}))) == [0] * 10
    assert counts(*[answer(poll, read("a"))] * 5)[-1] == 5


def test_many_equal_calls_in_one_answer_count_once() -> None:
    assert counts(answer(*[read("a")] * 500)) == [1]


def test_unreadable_calls_are_compared_by_their_text() -> None:
    broken = [Message(role="assistant", parts=[ToolPart(tool="read", raw_input=f"{{{number}")]) for number in range(4)]
    assert max(counts(*broken)) == 1


def test_long_paragraph_repeated_across_answers_is_counted() -> None:
    circles = LoopDetector()
    said = [answer(read(str(number)), text=f"Step {number}.\n\n{PARAGRAPH}") for number in range(5)]
    assert [circles.count_text(each) for each in said] == [1, 2, 3, 4, 5]
    assert circles.count_text(answer(text="Something else.")) == 0


def test_a_short_phrase_may_repeat() -> None:
    circles = LoopDetector()
    assert [circles.count_text(answer(text="Now the next file.")) for _ in range(6)] == [0] * 6


def feed(text: str, size: int) -> bool:
    watch = RepetitionDetector()
    return any(watch.is_stuck(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize("size", [1, 7, 900, 100_000])
def test_repeated_long_block_is_stuck_despite_cuts(size: int) -> None:
    assert feed("An introduction. " * 3 + f"{PARAGRAPH}\n\n" * 12, size)


def test_loop_is_found_before_much_trailing_text() -> None:
    assert feed(f"{PARAGRAPH}\n\n" * 12 + " ".join(map(str, range(20_000))), 1_000_000)


@pytest.mark.parametrize(
    "harmless",
    [
        "0, " * 4000,
        "| --- | --- |\n" * 500,
        "I will not talk in class.\n" * 100,
        f"{PARAGRAPH}\n\n" * 3,
        " ".join(str(each) for each in random.Random(1).choices(range(10), k=40_000)),
        ("0 " * 64 + "\n") * 64,
        ("| " + " | ".join(["no"] * 60) + " |\n") * 40,
    ],
    ids=["zeros", "table", "lines", "three times", "numbers", "matrix", "wide table"],
)
def test_tables_lines_and_ordinary_prose_are_left_alone(harmless: str) -> None:
    assert not feed(harmless, 50)


@pytest.mark.parametrize("size", [1, 13, 5_000])
@pytest.mark.parametrize(
    "loop",
    [
        "and on ",
        "\n",
        " ",
        "字",
        "-",
        "A sentence of fewer than forty words comes again.\n",
        f"{' '.join(map(str, range(39)))}\n",
        "0 " * 64 + "\n",
    ],
)
def test_shorter_loop_is_stuck_once_long(loop: str, size: int) -> None:
    introduction = "It was a dark night, and the rain fell in torrents. "
    assert feed(introduction + loop * (2 * SHORT_CHARS // len(loop)), size)
    assert not feed(introduction + loop * (SHORT_CHARS // 2 // len(loop)), size)


@pytest.mark.parametrize("size", [40, 5_000, 1_000_000])
def test_call_writing_equal_rows_is_no_loop(size: int) -> None:
    arguments = '{"path": "rows.csv", "content": "' + "2026-01-01,open,0.00,0.00,0.00,none,no remark,,,\\n" * 2_000 + '"}'
    guard = RepetitionGuard()
    for at in range(0, len(arguments), size):
        guard.take([CallDelta(0, "", "write", arguments[at : at + size])])


def test_arguments_that_repeat_without_end_are_a_loop() -> None:
    row = CallDelta(0, "", "write", "the same row again, " * 2_000)
    with pytest.raises(BadAnswer, match="repeats the same passage"):
        RepetitionGuard().take([row] * 20)
