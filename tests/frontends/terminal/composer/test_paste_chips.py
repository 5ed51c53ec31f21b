"""How a line that is being written looks, and where its characters stand."""

from __future__ import annotations

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import Transformation, TransformationInput

from wolo.frontends.terminal.composer.paste_chips import Chips
from wolo.frontends.terminal.io.graphemes import spelled_out
from wolo.frontends.terminal.io.pastes import Pastes


def shown(line: str) -> tuple[str, Transformation]:
    given = TransformationInput(BufferControl(), Document(line), 0, lambda at: at, [("", line)], 80, 24)
    transformation = Chips(Pastes()).apply_transformation(given)
    return "".join(fragment[1] for fragment in transformation.fragments), transformation


@pytest.mark.parametrize(
    ("line", "looks"),
    [("a\tb", "a   b"), ("\tx", "    x"), ("abcd\tx", "abcd    x"), ("ü\t\tx", "ü       x"), ("no tab", "no tab")],
)
def test_a_tab_is_blanks_up_to_the_next_stop(line: str, looks: str) -> None:
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
def test_what_would_not_be_seen_is_spelled_out(line: str, looks: str) -> None:
    text, transformation = shown(line)
    assert text == looks
    assert transformation.source_to_display(len(line)) == len(looks)


def test_a_private_character_never_looks_like_another_emoji() -> None:
    text, _ = shown("👨‍👩‍👧")
    assert len(text) == 1
    typed, _ = shown(text)
    assert typed != text
    assert text in spelled_out(typed)
