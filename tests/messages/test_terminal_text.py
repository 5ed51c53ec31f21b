"""Untrusted text loses its power over the terminal and keeps everything that can be seen."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.clock import clock_counts
from wolo.messages.terminal_text import Cleaner, clean, clean_line, escape_hidden, escaped_pieces

HARMLESS = ["plain", "tabs\tand\nlines", "naïve 你好 العربية", "👩‍👩‍👧 ❤️ 🏳️‍🌈", "می‌خواهم", "price: 5 € – “quoted”"]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("hostile", "left"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("a\x1b[2Jb", "ab"),
        ("a\x1b[?1049hb", "ab"),
        ("a\x9b6nb", "ab"),
        ("a\x1b]52;c;ZXZpbA==\x07b", "ab"),
        ("a\x1b]0;title\x1b\\b", "ab"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1bP1$r\x1b\\b", "ab"),
        ("a\x1b^pm\x1b\\\x1b_apc\x1b\\\x1bXsos\x1b\\b", "ab"),
        ("a\x1b]8;;http://evil\x07link\x1b]8;;\x07b", "alinkb"),
        ("a\x1b(0\x1b7\x1bcb", "ab"),
        ("a\x08\x07\x00\x7f\x85b", "ab"),
        ("one\rtwo", "onetwo"),
        ("one\r\ntwo", "one\ntwo"),
        ("a\x1b[12", "a"),
        ("a\x1b]0;never ends\nnext line", "a\nnext line"),
        ("a\x1b", "a"),
        ("a\x1b[\x1b[31mb", "ab"),
        ("\u202eevil\u2066\u200b\ufeff", "\\u{202e}evil\\u{2066}\\u{200b}\\u{feff}"),
        ("tag\U000e0041", "tag\\u{e0041}"),
        ("a\u200db", "a\\u{200d}b"),
        ("\u115f\u3164\u2028", "\\u{115f}\\u{3164}\\u{2028}"),
        ("half \ud83d", "half ?"),
    ],
)
def test_controls_are_removed_and_invisible_characters_shown(hostile: str, left: str) -> None:
    assert clean(hostile) == left


@given(st.text(alphabet=st.characters(codec=None), max_size=200) | st.text("\x1b\x9b\x9d[]P;?0m\x07\\\n\u202e ", max_size=60))
def test_nothing_that_could_move_the_cursor_is_left(text: str) -> None:
    left = clean(text)
    assert not [
        character for character in left if character not in "\n\t" and (ord(character) < 32 or 127 <= ord(character) < 160)
    ]
    left.encode()
    assert "\n" not in clean_line(text)


def in_pieces(text: str, cuts: list[int]) -> str:
    cleaner, places = Cleaner(), [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return "".join(cleaner.feed(text[one:other]) for one, other in pairwise(places)) + cleaner.close()


@given(st.text("ab\x1b[]P0;m\x07\x9b\x9d\x9c\\\r\n\u202e\ud83d\ude00é", max_size=40), st.lists(st.integers(0, 40), max_size=8))
@example("\x9d\ud83d", [])
def test_text_cut_anywhere_gives_the_same_text(text: str, cuts: list[int]) -> None:
    assert in_pieces(text, cuts) == clean(text)


@given(st.text(alphabet=st.characters(codec=None), max_size=100), st.lists(st.integers(0, 100), max_size=8))
def test_no_piece_holds_anything_a_terminal_obeys(text: str, cuts: list[int]) -> None:
    left = in_pieces(text, cuts)
    assert left == clean(left)
    left.encode()


def test_endless_string_swallows_only_its_line() -> None:
    cleaner = Cleaner()
    assert cleaner.feed("a\x1b]52;c;") == "a"
    assert [cleaner.feed("ZXZpbA==" * 1000) for _ in range(50)] == [""] * 50
    assert cleaner.feed("\nnext") == "\nnext"
    assert cleaner.feed("\x1b]0;x") + cleaner.close() == ""


@pytest.mark.parametrize("data", ["😀\ufe0f\ufe0e\ufe0f\ufe0f", "é\u200d\u200c\u200d", "😀\U000e0101\U000e0102", "a\ufe0f"])
def test_hidden_message_carriers_are_shown(data: str) -> None:
    assert clean(data).count("\\u{") == escape_hidden(data).count("\\u{") >= 1


def test_keycaps_and_families_are_left_alone() -> None:
    for text in ("1️⃣ #️⃣", "👩‍❤️‍👩", "🏳️‍🌈", "می‌خواهم"):
        assert clean(text) == escape_hidden(text) == text


@pytest.mark.parametrize("garbage", ["\x1b]0;", "\x1b[", "\x1b[1;", "\x9d", "\x1b]" + "x" * 1000, "\u202e", "\x1bP", "\x1b[?"])
def test_garbage_takes_linear_time(garbage: str) -> None:
    def seconds(size: int) -> float:
        text = (garbage * size)[:size]
        began = time.process_time()
        clean(text)
        return time.process_time() - began

    seconds(1000)
    assert seconds(400_000) < max(40 * seconds(40_000), 1.0) or not clock_counts()


def test_approved_text_is_spelled_out_completely() -> None:
    pieces = list(escaped_pieces("rm \x1b[31m\t-r\u202e\nnext\ud800"))
    assert pieces == [
        ("rm ", False),
        ("\\x1b", True),
        ("[31m", False),
        ("\\t", True),
        ("-r", False),
        ("\\u{202e}", True),
        ("\nnext", False),
        ("\\u{d800}", True),
    ]


@pytest.mark.parametrize("blank", "\u00a0\u1680\u2002\u202f\u205f\u2800\u3000")
def test_an_approval_tells_other_blanks_from_spaces(blank: str) -> None:
    """A shell does: `rm -r a b` with one of them removes one file."""
    assert list(escaped_pieces(f"a{blank}b")) == [("a", False), (f"\\u{{{ord(blank):x}}}", True), ("b", False)]


@given(st.text(alphabet=st.characters(codec=None), max_size=100))
def test_spelling_out_loses_nothing(text: str) -> None:
    kept = "".join(piece for piece, is_escape in escaped_pieces(text) if not is_escape)
    escaped = sum(is_escape for _, is_escape in escaped_pieces(text))
    assert len(kept) + escaped == len(text)
