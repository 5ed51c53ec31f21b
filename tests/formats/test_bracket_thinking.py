"""Thoughts between brackets on lines of their own; links, boxes, footnotes and JSON stay text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from tests.formats.streams import cut
from wolo.formats.xml_tools.decode import BRACKETS, BracketThinking, in_brackets
from wolo.messages.deltas import BreakDelta, TextDelta, ThinkingDelta


class Thought(str):
    __slots__ = ()


def scan(*pieces: str) -> list[Any]:
    """Text as text, thoughts as thoughts; deltas of one part are one."""
    brackets = BracketThinking()
    found: list[Any] = []
    is_new = True
    for each in [*(each for piece in pieces for each in brackets.feed(piece)), *brackets.flush()]:
        if isinstance(each, BreakDelta):
            is_new = True
            continue
        assert not isinstance(each, ThinkingDelta) or each.field == BRACKETS
        kind = str if isinstance(each, TextDelta) else Thought
        if found and type(found[-1]) is kind and not is_new:
            found[-1] = kind(found[-1] + each.text)
        else:
            found.append(kind(each.text))
        is_new = False
    return found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[I think.]\nSo it is.", [Thought("I think."), "So it is."]),
        ("[one]\n[two]\n\nText", [Thought("one"), Thought("two"), "\nText"]),
        ("Text\n  [indented]  \r\nmore", ["Text\n", Thought("indented"), "more"]),
        ("[over\nlines, with a[0] and [x]\n\nin it]\n", [Thought("over\nlines, with a[0] and [x]\n\nin it")]),
        ("[1. First, I read it]\n[2. Then I test]", [Thought("1. First, I read it"), Thought("2. Then I test")]),
        ("```\n[code]\n```\n[thought]", ["```\n[code]\n```\n", Thought("thought")]),
    ],
)
def test_a_line_between_brackets_is_a_thought(text: str, found: list[str]) -> None:
    assert scan(text) == scan(*text) == found
    assert [type(each) for each in scan(*text)] == [type(each) for each in found]


@pytest.mark.parametrize(
    "text",
    [
        "[a link](https://x)",
        "[reference]: https://x",
        "[a] and more",
        "Text [in a line]",
        "- [ ] a task\n- [x] done",
        "[ ]\n[x]\n[X]\n[1]\n[^note]\n[]",
        '["a", "b"]',
        '[{"a": 1}]',
        "[[1, 2], [3]]",
        "[1, 2]\n[-1.5, 2]",
        "[\n  1,\n  2\n]",
        "[true]",
        "```toml\n[section]\n```",
        "~~~\n[section]\n",
        "[never closed\n\nand so on",
        "]\n[",
        "   ",
        "",
    ],
)
def test_everything_else_is_text_to_the_letter(text: str) -> None:
    assert "".join(scan(text)) == "".join(scan(*text)) == text
    assert not any(isinstance(each, Thought) for each in scan(*text))


def test_text_after_something_else_begins_no_line() -> None:
    brackets = BracketThinking()
    brackets.feed("Text\n")
    brackets.flush()
    assert brackets.feed("[no thought]\n") == [TextDelta("[no thought]\n")]


def test_an_open_bracket_costs_linear_time() -> None:
    brackets = BracketThinking()
    with processor_time_below(10):
        for _ in range(100_000):
            brackets.feed("\n[0123456789")


FRAGMENTS = st.sampled_from(["[", "]", "\n", " ", "a thought", "x", "1", "```\n", "(", ":", '"', "{", ",", "[a]\n", "\r\n", "`"])


@given(st.lists(FRAGMENTS, max_size=10).map("".join), st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_text_cuts_change_nothing(text: str, sizes: list[int]) -> None:
    assert scan(*cut(text, sizes)) == scan(text) == scan(*text)
    written = "".join(in_brackets(each) if isinstance(each, Thought) else each for each in scan(text))
    assert written.split() == text.split() or "".join(written.split()) == "".join(text.split())
