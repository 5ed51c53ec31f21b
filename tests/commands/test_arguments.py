"""Names with blanks behind a slash command: as they are typed, and as they are offered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.commands.arguments import last_word, quote_argument, words
from wolo.errors import UsageError


def test_argument_with_a_blank_is_quoted() -> None:
    assert words('2 "two words.txt" @"a b/c" @d.py plain --preview') == [
        "2",
        "two words.txt",
        "a b/c",
        "d.py",
        "plain",
        "--preview",
    ]
    assert words(r'"a \"b\" \\ c"') == [r'a "b" \ c']
    assert words("it's a\\b @") == ["it's", "a\\b", "@"]


@pytest.mark.parametrize("rest", ['"two words', 'a @"b', '"a"b'])
def test_an_open_quote_is_complained_about(rest: str) -> None:
    with pytest.raises(UsageError, match="A quote is not closed"):
        words(rest)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1))
def test_offered_file_name_reads_back_equal(names: list[str]) -> None:
    assert words(" ".join(map(quote_argument, names))) == names


def test_the_word_that_is_being_written() -> None:
    assert last_word("") == ("", 0)
    assert last_word("2 sr") == ("sr", 2)
    assert last_word("a.py ") == ("", 0)
    assert last_word('a "two wo') == ("two wo", 7)
    assert last_word('"done" @"two wo') == ("two wo", 8)
