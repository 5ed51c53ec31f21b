"""Lines are broken at spaces, and only there; addresses are links where the terminal knows them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.display.styled_output import link_addresses, takes_links
from wolo.frontends.terminal.render.code_blocks import PLAIN_CODE
from wolo.frontends.terminal.render.row_wrapping import Wrapper, newest_rows, wrap_coloured
from wolo.frontends.terminal.render.row_wrapping import wrap as wrapped_text
from wolo.frontends.terminal.render.scroll_insert import COLOURS
from wolo.frontends.wrapping import cells, lead_of_column, wrap

words = st.text(alphabet="abc.-漢é", min_size=1, max_size=12)
lines = st.lists(words, max_size=20).map(" ".join)
columns = st.integers(2, 40)


def is_right(row: str, columns: int) -> bool:
    """It fits, but for a word that no row has room for, and what follows in the rows that the terminal makes of it."""
    return cells(row) <= columns or cells(row.split()[0]) > columns or "漢" in row


@given(lines, columns)
def test_no_word_is_broken_and_none_is_lost(line: str, columns: int) -> None:
    rows = wrap(line, columns).split("\n")
    assert " ".join(rows).split() == line.split()
    for row in rows:
        assert is_right(row, columns)


@given(lines, columns, st.lists(st.integers(0, 200), max_size=5))
def test_pieces_wrap_like_the_whole_line(line: str, columns: int, cuts: list[int]) -> None:
    """As far as they end with a blank."""
    wrapper = Wrapper()
    places = sorted({0, len(line), *(at for at in cuts if 0 < at < len(line) and line[at - 1] == " ")})
    pieces = [line[a:b] for a, b in pairwise(places)]
    drawn = "".join(wrapper.wrap(Text(piece), columns).plain for piece in pieces)
    assert drawn.split() == line.split()
    for row in drawn.split("\n"):
        assert is_right(row.rstrip(), columns)


@given(lines, columns)
def test_colours_change_nothing(line: str, columns: int) -> None:
    coloured = "".join(f"\x1b[3{at % 8}m{char}" if at % 3 == 0 else char for at, char in enumerate(line)) + "\x1b[0m"
    assert COLOURS.sub("", wrap_coloured(coloured, columns)) == wrap(line, columns)
    assert sorted(COLOURS.findall(wrap_coloured(coloured, columns))) == sorted(COLOURS.findall(coloured))


def test_other_rows_begin_below_the_words() -> None:
    assert wrap("- one two three four five", 14) == "- one two\n  three four\n  five"
    assert wrap("12. one two three four", 14) == "12. one two\n    three four"
    assert wrap("  one two three four", 14) == "  one two\n  three four"
    assert wrap("> one two three four", 14) == "> one two\n> three four"
    assert wrap("   - one two", 8) == "   - one\ntwo"  # there would be no room for words


def test_rows_of_a_table_stay_in_their_column() -> None:
    assert wrap("ok    model  one two three", 24, lead_of_column) == "ok    model  one two\n    three"  # the column has no room
    assert wrap("model  another/model", 18, lead_of_column) == "model\n    another/model"
    assert wrap("model  one two three", 15, lead_of_column) == "model  one two\n       three"
    assert wrap("A sentence of words", 12, lead_of_column) == "A sentence\nof words"
    assert wrap("- one two three", 10, lead_of_column) == "- one two\n  three"


def test_overlong_line_is_left_to_the_terminal() -> None:
    address = "https://example.org/" + "a" * 30
    assert wrap(f"see {address} now", 20) == f"see\n{address} now"
    assert wrap("漢字" * 20, 10) == "漢字" * 20
    assert wrap("看 " + "漢字" * 20, 10) == "看 " + "漢字" * 20


def test_code_is_broken_nowhere() -> None:
    text = Text("run ").append("git log -p", PLAIN_CODE).append(" now and then")
    assert wrapped_text(text, 12).plain == "run\ngit log -p\nnow and then"
    fenced = Text("a b c d e f g h\n", no_wrap=True)
    assert wrapped_text(fenced, 5) is fenced
    styled = wrapped_text(Text("one two three", Style(bold=True)), 8)
    assert [(each.text, each.style and each.style.bold) for each in styled.render(Console()) if each.text.strip()] == [
        ("one two", True),
        ("three", True),
    ]


def test_the_newest_rows_of_a_line_that_grows() -> None:
    assert newest_rows("one two three four five", 9, 2) == "hree four five"
    assert newest_rows("- one two three four", 11, 2) == "  three\n  four"
    assert newest_rows("\x1b[1m- one two three four\x1b]8;;x\x1b\\", 11, 1) == "\x1b[1m  four"
    assert newest_rows("a" * 100, 10, 3) == "a" * 30


def test_an_address_leads_to_what_it_says() -> None:
    text = link_addresses(Text("(see https://en.wikipedia.org/wiki/A_(b), http://x.y/z?a=1.) and ftp://no"))
    links = [(span.style.link, text.plain[span.start : span.end]) for span in text.spans if isinstance(span.style, Style)]
    assert [link for link, _ in links] == ["https://en.wikipedia.org/wiki/A_(b)", "http://x.y/z?a=1"]
    assert all(link == shown for link, shown in links)


@pytest.mark.parametrize(
    ("environment", "does"),
    [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "foot-extra"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4803"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "tmux-256color", "TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.4"}, True),
        ({"TERM": "screen", "TMUX": "x", "TERM_PROGRAM": "tmux", "TERM_PROGRAM_VERSION": "3.3a"}, False),
        ({"TERM": "screen", "STY": "x", "VTE_VERSION": "7600"}, False),
        ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False),
        ({"TERM": "anything", "FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links_only_where_they_are_understood(environment: dict[str, str], does: bool) -> None:
    assert takes_links(environment) == does


def test_hostile_lines_take_no_time() -> None:
    for line in (" " * 200_000, "a " * 100_000, "> " * 100_000, "http://" + ")" * 200_000, "- " * 100_000):
        rows = wrap(line, 40)
        assert "".join(rows.split()) == "".join(line.split())
        assert link_addresses(Text(rows)).plain == rows
        assert len(newest_rows(line[:2000], 40, 6).split("\n")) <= 6
