"""Pastes: folded in the text, shown by a label, sent whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import Transformation, TransformationInput

from wolo.frontends.terminal.composer.pastes import MOST_CHARS, MOST_LINES, Chips, Pastes, clean_paste, readable
from wolo.frontends.terminal.io.graphemes import spell_out

LONG = "line\n" * 5000
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def test_short_paste_stays_as_it_is() -> None:
    pastes = Pastes()
    assert pastes.fold("short\ntext") == "short\ntext"
    assert len(pastes.fold("x" * (MOST_CHARS + 1))) == 1
    assert len(pastes.fold("\n" * MOST_LINES)) == 1


def test_folded_paste_is_one_labelled_character() -> None:
    pastes = Pastes()
    folded = f"see {pastes.fold(LONG)} there"
    assert len(folded) == len("see x there")
    assert pastes.with_labels(folded) == "see [Pasted #1: 5,001 lines] there"
    assert pastes.unfold(folded) == f"see {LONG} there"
    assert pastes.without_pastes(folded) == "see   there"


def test_private_character_of_the_text_is_kept() -> None:
    pastes, other = Pastes(), Pastes()
    other.fold(LONG)
    own = "\U000f0000 \U000f0001"
    assert pastes.unfold(pastes.fold(own)) == own
    assert other.unfold(other.fold(own)) == own


def test_paste_stands_for_no_character_of_its_text() -> None:
    pastes = Pastes()
    whole = "".join(map(chr, range(0xF0000, 0xF0020))) * 100
    folded = pastes.fold(whole)
    assert folded not in whole
    assert pastes.unfold(pastes.unfold(folded)) == whole


def test_private_character_in_edited_text_is_no_paste() -> None:
    pastes = Pastes()
    character = pastes.fold(LONG)
    edited = f"typed {character} in an editor"
    assert pastes.unfold(pastes.fold_again(edited)) == edited
    again = pastes.fold_again(f"{LONG} and {character}")
    assert pastes.unfold(again) == f"{LONG} and {character}"


def test_an_edited_text_keeps_its_pastes_folded() -> None:
    pastes = Pastes()
    folded = pastes.fold(LONG)
    assert pastes.fold_again(f"a {LONG} b") == f"a {folded} b"
    assert pastes.unfold(pastes.fold_again(f"{LONG}changed{LONG}")) == f"{LONG}changed{LONG}"


@given(st.lists(st.tuples(texts, st.booleans()), max_size=6), st.lists(texts, max_size=3))
def test_any_text_is_sent_and_returns_elsewhere(pieces: list[tuple[str, bool]], before: list[str]) -> None:
    pastes, elsewhere = Pastes(), Pastes()
    for text in before:
        elsewhere.fold(text * 40)
    written = "".join(pastes.fold(text + "\n" * MOST_LINES if is_long else text) for text, is_long in pieces)
    whole = "".join(text + "\n" * MOST_LINES if is_long else text for text, is_long in pieces)
    assert pastes.unfold(written) == whole
    assert elsewhere.unfold(elsewhere.unpack(pastes.pack(written))) == whole


@given(st.text(st.characters(), max_size=200))
def test_cleaned_text_is_sendable_and_powerless(pasted: str) -> None:
    text = clean_paste(pasted)
    text.encode()
    assert not any((ord(letter) < 32 and letter not in "\t\n") or 0x7F <= ord(letter) < 0xA0 for letter in text)
    assert clean_paste(text) == text
    readable(pasted).encode()


def shown(line: str) -> tuple[str, Transformation]:
    given = TransformationInput(BufferControl(), Document(line), 0, lambda at: at, [("", line)], 80, 24)
    transformation = Chips(Pastes()).apply_transformation(given)
    return "".join(fragment[1] for fragment in transformation.fragments), transformation


@pytest.mark.parametrize(
    ("line", "looks"),
    [("a\tb", "a   b"), ("\tx", "    x"), ("abcd\tx", "abcd    x"), ("ü\t\tx", "ü       x"), ("no tab", "no tab")],
)
def test_tab_is_blanks_up_to_the_next_stop(line: str, looks: str) -> None:
    text, transformation = shown(line)
    assert text == looks
    assert transformation.source_to_display(len(line)) == len(looks)
    assert transformation.display_to_source(len(looks)) == len(line)


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("a\u202eb", "a\\u{202e}b"),
        ("ü\u2066\u200b", "ü\\u{2066}\\u{200b}"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\x1b[31mü", "\\x1b[31mü"),
    ],
)
def test_invisible_characters_are_spelled_out(line: str, looks: str) -> None:
    text, transformation = shown(line)
    assert text == looks
    assert transformation.source_to_display(len(line)) == len(looks)


def test_a_private_character_never_looks_like_another_emoji() -> None:
    text, _ = shown("👨‍👩‍👧")
    assert len(text) == 1
    typed, _ = shown(text)
    assert typed != text
    assert text in spell_out(typed)
