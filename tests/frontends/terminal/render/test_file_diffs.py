"""A change as lines: every character of it, the words that differ marked, the language's colours, folded when it is long."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from wolo.frontends.terminal.render.file_diffs import diff_lines
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import Diff


def marked(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if span.style in ("added word", "removed word")]


def test_words_that_differ_are_marked() -> None:
    lines, left = diff_lines(Diff("a.py", "@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2", 1, 1), None)
    assert [line.plain for line in lines] == ["1   def f():", "2 -     return 1", "2 +     return 2"]
    assert (marked(lines[1]), marked(lines[2])) == (["1"], ["2"])
    assert left == 0


def test_words_are_marked_between_similar_lines_only() -> None:
    for before, after in (("    return x", "    raise Error(y)"), ("a = 1", "import os"), ("}", "{"), ("    ", "  x")):
        lines, _ = diff_lines(Diff("a", f"-{before}\n+{after}", 1, 1), None)
        assert not any(map(marked, lines)), (before, after)
    lines, _ = diff_lines(Diff("a", "-a = one\n-b = two\n+a = 1\n+b = two + 2", 2, 2), None)
    assert marked(lines[3]) == [" + 2"]


def test_lines_have_their_file_numbers() -> None:
    text = "@@ -9,2 +9,2 @@\n kept\n-old\n+new\n@@ -99 +99,2 @@\n same\n+more"
    lines, _ = diff_lines(Diff("a", text, 2, 1), None)
    assert [line.plain.rstrip() for line in lines] == [
        "  9   kept",
        " 10 - old",
        " 10 + new",
        "    ⋮",
        " 99   same",
        "100 + more",
    ]


def test_lines_have_the_colours_of_their_language() -> None:
    (line,), _ = diff_lines(Diff("a.py", "+def f(): pass", 1, 0), None)
    coloured = {line.plain[span.start : span.end] for span in line.spans if span.style == "accent"}
    assert "def" in coloured


def test_a_long_change_is_folded() -> None:
    lines, left = diff_lines(Diff("a", "\n".join(f"+{number}" for number in range(100)), 100, 0), 40)
    assert (len(lines), left) == (40, 60)
    lines, left = diff_lines(Diff("a", "\n".join("+" + "x" * 100 for _ in range(10)), 10, 0), 6, 40)
    assert (len(lines), left) == (2, 8)  # each takes three rows


@given(
    st.lists(st.tuples(st.sampled_from("+- "), st.text(st.characters(exclude_characters="\n\r"), max_size=30)), max_size=12),
    st.sampled_from(["a.py", "b.html", "Makefile", "c.unknown", ""]),
)
def test_nothing_is_added_or_lost(signed: list[tuple[str, str]], path: str) -> None:
    text = "\n".join(sign + line for sign, line in signed)
    lines, _ = diff_lines(Diff(path, text, 0, 0), None)
    drawn = [re.fullmatch(r"(?:[ \d]+ )?(.) (.*)", line.plain, re.DOTALL) for line in lines]
    assert "\n".join(each[1] + each[2] for each in drawn if each) == clean(text)
