"""Untrusted text loses its power over the terminal and keeps everything that can be seen."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wolo.messages.terminal_text import clean, clean_line, spelled_out

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
def test_control_is_taken_out_and_the_invisible_is_shown(hostile: str, left: str) -> None:
    assert clean(hostile) == left


@given(st.text(alphabet=st.characters(codec=None), max_size=200) | st.text("\x1b\x9b\x9d[]P;?0m\x07\\\n\u202e ", max_size=60))
@settings(deadline=None, max_examples=300)
def test_nothing_that_could_move_the_cursor_is_left(text: str) -> None:
    left = clean(text)
    assert not [
        character for character in left if character not in "\n\t" and (ord(character) < 32 or 127 <= ord(character) < 160)
    ]
    left.encode()
    assert "\n" not in clean_line(text)


@given(st.text("ab\x1b[]0;m\x07\\", max_size=40), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_pieces_cut_anywhere_are_as_harmless(text: str, cut: int) -> None:
    assert "\x1b" not in clean(text[:cut]) + clean(text[cut:])


@pytest.mark.parametrize("garbage", ["\x1b]0;", "\x1b[", "\x1b[1;", "\x9d", "\x1b]" + "x" * 1000, "\u202e", "\x1bP", "\x1b[?"])
def test_garbage_takes_linear_time(garbage: str) -> None:
    def seconds(size: int) -> float:
        text = (garbage * size)[:size]
        began = time.process_time()
        clean(text)
        return time.process_time() - began

    seconds(1000)
    assert seconds(400_000) < max(40 * seconds(40_000), 1.0)


def test_what_a_person_approves_is_spelled_out_to_the_last_character() -> None:
    pieces = list(spelled_out("rm \x1b[31m\t-r\u202e\nnext\ud800"))
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


@given(st.text(alphabet=st.characters(codec=None), max_size=100))
@settings(deadline=None, max_examples=200)
def test_spelling_out_loses_nothing(text: str) -> None:
    kept = "".join(piece for piece, is_escape in spelled_out(text) if not is_escape)
    escaped = sum(is_escape for _, is_escape in spelled_out(text))
    assert len(kept) + escaped == len(text)
