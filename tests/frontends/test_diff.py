"""A change as lines: every character of it, the words that differ marked, the language's colours, folded when it is long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from wolo.frontends.terminal.render.diff import diff_lines
from wolo.messages.terminal_text import clean
from wolo.tools.tool import Diff


def marked(line: Text) -> list[str]:
    return [line.plain[span.start : span.end] for span in line.spans if "reverse" in str(span.style)]


def test_words_that_differ_are_marked() -> None:
    lines, left = diff_lines(Diff("a.py", "@@ -1,2 +1,2 @@\n def f():\n-    return 1\n+    return 2", 1, 1), None)
    assert [line.plain for line in lines] == ["  @@ -1,2 +1,2 @@", "   def f():", "  -    return 1", "  +    return 2"]
    assert (marked(lines[2]), marked(lines[3])) == (["1"], ["2"])
    assert left == 0


def test_lines_have_the_colours_of_their_language() -> None:
    (line,), _ = diff_lines(Diff("a.py", "+def f(): pass", 1, 0), None)
    coloured = {line.plain[span.start : span.end] for span in line.spans if "blue" in str(span.style)}
    assert "def" in coloured


def test_a_long_change_is_folded() -> None:
    lines, left = diff_lines(Diff("a", "\n".join(f"+{number}" for number in range(100)), 100, 0), 40)
    assert (len(lines), left) == (40, 60)


@given(
    st.lists(st.tuples(st.sampled_from("+- "), st.text(st.characters(exclude_characters="\n\r"), max_size=30)), max_size=12),
    st.sampled_from(["a.py", "b.html", "Makefile", "c.unknown", ""]),
)
def test_nothing_is_added_or_lost(signed: list[tuple[str, str]], path: str) -> None:
    text = "\n".join(sign + line for sign, line in signed)
    lines, _ = diff_lines(Diff(path, text, 0, 0), None)
    assert "\n".join(line.plain.removeprefix("  ") for line in lines) == clean(text)
