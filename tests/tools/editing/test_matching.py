from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from wolo.tools.editing.matching import find, line_number, nearest_lines, with_line_endings_of


def replaced(text: str, old: str, new: str) -> tuple[str, str]:
    """The text after the only match, and the rule; fails when there is none or more than one."""
    found = find(text, old, new)
    assert len(found.passages) == 1, found
    start, end, piece = found.passages[0]
    return text[:start] + piece + text[end:], found.rule


def test_an_exact_match_needs_no_rule() -> None:
    assert replaced("a = 1\nb = 2\n", "b = 2", "b = 3") == ("a = 1\nb = 3\n", "")


def test_overlapping_occurrences_are_all_found() -> None:
    assert [passage.start for passage in find("aaa", "aa", "b").passages] == [0, 1]


def test_lf_request_matches_crlf_file_and_keeps_it() -> None:
    assert replaced("a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb") == ("a\r\nX\r\nb\r\nc\r\n", "line endings")


def test_crlf_request_matches_lf_file_and_keeps_it() -> None:
    assert replaced("a\nb\n", "a\r\nb", "x\r\ny") == ("x\ny\n", "line endings")


def test_one_line_replacement_uses_the_local_line_end() -> None:
    assert replaced("a\nb\r\nc\n", "b", "b1\nb2")[0] == "a\nb1\r\nb2\r\nc\n"
    assert replaced("a\r\nlast", "last", "x\ny")[0] == "a\r\nx\r\ny"
    assert replaced("a\rb\r", "b", "x\ny")[0] == "a\rx\ry\r"


def test_untouched_lines_of_mixed_files_keep_endings() -> None:
    assert replaced("a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nNEW\nb\nc\n")[0] == "a\r\nNEW\r\nb\nc\r\nd\n"


def test_pure_ending_change_is_made() -> None:
    assert replaced("a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n")[0] == "a\nb\n"


def test_half_a_crlf_is_no_line_ending() -> None:
    assert replaced("a\r\nb\r\n", "\nb", "\nX\nb") == ("a\r\nX\r\nb\r\n", "line endings")
    assert replaced("a\r\nb", "a\r", "x\n") == ("x\r\nb", "line endings")


def test_trailing_spaces_are_forgiven_on_either_side() -> None:
    assert replaced("a  \nb\t\nc\n", "a\nb\n", "x\ny\n") == ("x\ny\nc\n", "trailing spaces")
    assert replaced("a\nb\nc\n", "a \nb  ", "x\ny") == ("x\ny\nc\n", "trailing spaces")


def test_trailing_space_makes_no_prefix() -> None:
    assert find("foobar\n", "foo ", "x").passages == []


def test_uniform_indent_is_forgiven_and_applied() -> None:
    file = "class A:\n    def f(self):\n        return 1\n\n    x = 2\n"
    changed, rule = replaced(file, "def f(self):\n    return 1\n\nx = 2\n", "def f(self):\n    return 3\n\nx = 4\n")
    assert changed == "class A:\n    def f(self):\n        return 3\n\n    x = 4\n"
    assert rule == "indentation"


def test_too_much_indent_is_taken_away() -> None:
    assert replaced("if a:\n\tb\n", "\t\tif a:\n\t\t\tb", "\t\tif z:\n\t\t\tb") == ("if z:\n\tb\n", "indentation")


def test_varying_indents_are_not_forgiven() -> None:
    assert find("if a:\n    b\n    c\n", "if a:\n  b\n   c", "x").passages == []


def test_unshiftable_replacement_is_not_guessed() -> None:
    assert find("a\nb\n", "    a\n    b", "  a\n    b").passages == []


@pytest.mark.parametrize("mark", ["→", "\t", ": ", ":", "| "])
def test_copied_line_numbers_are_left_out(mark: str) -> None:
    file = "def f():\n    return 1\n"
    old = f"  1{mark}def f():\n  2{mark}    return 1"
    assert replaced(file, old, "def f():\n    return 2") == ("def f():\n    return 2\n", "copied line numbers")
    assert replaced(file, old, old.replace("return 1", "return 2"))[0] == "def f():\n    return 2\n"


@pytest.mark.parametrize("new", ["19→  c\n20→  d\n  e", "  c\n  d\n  e", "  c\n20→  d\n  e"])
def test_numbers_of_a_copied_page_are_left_out(new: str) -> None:
    file = "a\n" * 18 + "  x\n  y\n  z\n"
    changed, rule = replaced(file, "19→  x\n20→  y\n  z", new)
    assert (changed, rule) == (file.replace("x", "c").replace("y", "d").replace("z", "e"), "copied line numbers")
    assert find(file, "19→  x\n20→  y\n  z", "30→  c").passages == []  # a number from elsewhere
    assert find(file, "19→  x\n30→  y\n  z", "x").passages == []  # not one page


def test_lines_of_two_pages_are_one_passage() -> None:
    file = "".join(f"line {number}\n" for number in range(1, 31))
    old = "line 13\nline 14\n15→line 15\nline 16"  # the second page begins at 15
    changed, rule = replaced(file, old, "line 13\n15→here")
    assert (changed, rule) == (file.replace("line 14\nline 15\nline 16", "here"), "copied line numbers")


def test_numbers_that_belong_to_the_file_are_kept() -> None:
    assert replaced("1: one\n2: two\n", "1: one", "1: uno") == ("1: uno\n2: two\n", "")
    assert find("a\nb\n", "1→a\n7→b", "x").passages == []  # not consecutive: no page of ours
    assert find("a\nb\n", "1→a\n2→b", "1→x\ny").passages == []  # half numbered: which half is meant?


@pytest.mark.parametrize(
    ("text", "old"),
    [("x\r\ny\r\nx\r\ny\r\n", "x\ny"), ("x \ny\nx \ny\n", "x\ny"), ("    x\n    y\n    x\n    y\n", "  x\n  y")],
)
def test_two_matches_under_a_rule_are_both_reported(text: str, old: str) -> None:
    assert len(find(text, old, "z").passages) == 2


def test_matches_that_share_a_line_are_two() -> None:
    assert len(find("a\r\na\r\na\r\n", "a\na", "z").passages) == 2


LINES = st.lists(st.sampled_from(["a", "  a", "b ", "", "if x:", "\tb", "a = 1", "é"]), min_size=1, max_size=12)
ENDINGS = st.lists(st.sampled_from(["\n", "\r\n"]), min_size=12, max_size=12) | st.just(["\r"] * 12)


@given(lines=LINES, endings=ENDINGS, data=st.data())
def test_whatever_matches_the_rest_of_the_text_stays(lines: list[str], endings: list[str], data: st.DataObject) -> None:
    text = "".join(line + ending for line, ending in zip(lines, endings, strict=False))
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    old = "\n".join(lines[first : last + 1])
    if not old.strip():
        return
    found = find(text, old, "NEW\nTEXT")
    # The very lines are in the text, so some rule finds them, at their place among others.
    assert found.passages
    starts = [passage.start for passage in found.passages]
    assert starts == sorted(set(starts))
    for start, end, new in found.passages:
        assert 0 <= start < end <= len(text)
        matched = text[start:end]
        assert [line.strip() for line in matched.splitlines()] == [line.strip() for line in old.splitlines()]
        assert new.replace("\r\n", "\n").replace("\r", "\n").strip() in ("NEW\nTEXT", "NEW\n  TEXT", "NEW\n\tTEXT")


def test_large_files_are_searched_quickly() -> None:
    text = "".join(f"    value_{n} = {n}  \r\n" for n in range(100_000))
    old = "\n".join(f"value_{n} = {n}" for n in range(70_000, 70_300))
    with processor_time_below(5):
        assert find(text, old, "x").rule == "indentation"
        assert find(text, "nothing like it\nat all", "x").passages == []
        assert find(" " * 200_000 + "x", "\na \nb", "x").passages == []
        assert find("a \n" * 50_000, "a\n" * 200 + "b", "x").passages == []


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("var a=1;" * 60_000, "a", "b"),  # a minified file is one line
        ("var a=1;" * 60_000, "a", "b\nc"),
        ("x" * 200_000, "x" * 100_000, "y"),
        ("a\r\n" + "b " * 200_000, "b ", "c\n"),
        ("x\r\n" * 100_000, "x\n" * 5_000, "y\n"),
        ("  x\n" * 100_000, "x\n" * 5_000, "y\n"),
        ("  x \n" * 50_000, "x\n", "y\n"),
    ],
)
def test_many_occurrences_are_found_quickly(text: str, old: str, new: str) -> None:
    with processor_time_below(5):
        passages = find(text, old, new).passages
    end = free = 0
    for passage in passages:
        if passage.start >= end:
            end, free = passage.end, free + 1
    lines = [line.strip() for line in text.splitlines()]
    assert free == max(text.count(old), len(lines) // len(old.splitlines()) if old.endswith("\n") else 0)


def test_mixed_endings_of_long_texts_are_kept_quickly() -> None:
    place = "".join(f"line {n % 5}" + ("\r\n" if n % 2 else "\n") for n in range(40_000))
    with processor_time_below(5):
        assert with_line_endings_of(place, place.replace("\r\n", "\n") + "more\n") == place + "more\r\n"
        changed = with_line_endings_of(place, "".join(f"line {n % 7}\n" for n in range(40_000)))
        assert changed.count("\n") == 40_000


def test_last_line_takes_the_previous_ending() -> None:
    assert replaced("a\r\nb", "b", "b\nc") == ("a\r\nb\r\nc", "")
    assert replaced("a\rb", "b", "b\nc") == ("a\rb\rc", "")
    assert replaced("b", "b", "b\nc") == ("b\nc", "")


def test_line_numbers_count_as_editors_do() -> None:
    assert line_number("a\r\nb\nc", 5) == 3
    assert line_number("a\rb\rc", 4) == 3


def test_the_nearest_lines_are_found() -> None:
    text = "import os\n\n\ndef add(first, second):\n    return first + second\n\n\ndef main():\n    pass\n"
    assert nearest_lines(text, "def add(a, second):\n    return a + second") == (4, 2)
    assert nearest_lines(text, "@@@@@@@@@@") is None
    assert nearest_lines("", "x") is None


def test_line_endings_of_another_text_are_taken_over() -> None:
    assert with_line_endings_of("a\r\nb\r\n", "x\ny\n") == "x\r\ny\r\n"
    assert with_line_endings_of("one line", "x\ny") == "x\ny"
