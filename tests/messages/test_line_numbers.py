from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wolo.messages.line_numbers import add_numbers, number_every_line, remove_numbers, split_output
from wolo.tools.editing.matching import find


def test_first_line_and_every_tenth_are_numbered() -> None:
    page = add_numbers(8, ["a", "  b", "", "d"])
    assert page == ["8→a", "  b", "10→", "d"]
    assert remove_numbers(page) == (8, ["a", "  b", "", "d"])


def test_file_of_numbered_lines_is_numbered_throughout() -> None:
    copied = ["1→a", "2→b", "3→c"]
    assert add_numbers(1, copied) == ["1→1→a", "2→2→b", "3→3→c"]
    assert add_numbers(1, [*copied, "d"]) == ["1→1→a", "2→b", "3→c", "d"]


LINES = st.lists(st.sampled_from(["", "x", "[3 lines.]", "→", "10→", "11→y", "12→", "-2→", "-1→z"]), min_size=1, max_size=25)
NUMBERED = st.integers(1, 25).map(lambda count: [f"{number}→x" for number in range(1, count + 1)])


@given(first=st.integers(-12, 30), lines=LINES | NUMBERED)
def test_any_page_is_read_as_it_was(first: int, lines: list[str]) -> None:
    assert remove_numbers(add_numbers(first, lines)) == (first, lines)
    old_page = [f"{number}→{line}" for number, line in enumerate(lines, first)]
    assert remove_numbers(old_page) == (first, lines)
    new, old = ("\n".join([*page, "[Lines.]"]) for page in (add_numbers(first, lines), old_page))
    assert number_every_line(new) == number_every_line(old) == old


def test_other_outputs_are_no_pages() -> None:
    for output in ("[The file is empty.]", "[cell 1, code]\nx\n[1 cell.]", "a→b\n[1 line.]", ""):
        assert remove_numbers(output.split("\n")) is None
        assert number_every_line(output) == output


ADDED = "\n\nInstructions of this folder:\n<file>\nUse tabs.\n</file>"


@given(first=st.integers(1, 30), lines=LINES | NUMBERED, whole=st.booleans())
def test_text_behind_a_page_is_separate(first: int, lines: list[str], whole: bool) -> None:
    first = 1 if whole else first
    note = f"[{len(lines)} lines.]" if whole else f"[Lines {first} to {first + len(lines) - 1} of 99. Continue with offset=9.]"
    old_page = [f"{number}→{line}" for number, line in enumerate(lines, first)]
    for page in (add_numbers(first, lines), old_page):
        assert split_output("\n".join((*page, note)) + ADDED) == (page, note + ADDED)
        assert number_every_line("\n".join((*page, note)) + ADDED) == "\n".join((*old_page, note)) + ADDED


def test_line_like_a_note_ends_no_page() -> None:
    lines = ["x", "[2 lines.]", "", "Instructions of this folder:"]
    assert add_numbers(1, lines) == ["1→x", "2→[2 lines.]", "3→", "4→Instructions of this folder:"]
    page, rest = split_output("\n".join((*add_numbers(1, lines), "[4 lines.]")))
    assert (remove_numbers(page), rest) == ((1, lines), "[4 lines.]")


def test_number_of_5000_digits_is_text() -> None:
    assert remove_numbers([f"{'1' * 5000}→x"]) is None
    assert find("a\n", f"{'1' * 5000}→x", "y").passages == find("a\n", f"{'1' * 5000}: x", "y").passages == []
