"""Streamed Markdown: every line is printed once, as soon as it is certain, and stays the model's line."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from tests.clock import processor_time_below
from wolo.frontends.terminal.render.markdown import LONGEST_WAIT, Drawn, MarkdownStream


def draw(drawn: list[Drawn], width: int = 60) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    for each in drawn:
        if isinstance(each, Text):
            out.write(each.plain)
        else:
            console.print(each)
    return out.getvalue()


def stream(source: str, size: int = 7, *, plain: bool = False, width: int = 60) -> str:
    markdown = MarkdownStream(plain=plain)
    drawn = [each for at in range(0, len(source), size) for each in markdown.feed(source[at : at + size])]
    return draw([*drawn, *markdown.close()], width)


def styles(source: str) -> dict[str, str]:
    """Each styled stretch of text with its style."""
    markdown = MarkdownStream()
    texts = [each for each in [*markdown.feed(source), *markdown.close()] if isinstance(each, Text)]
    return {text.plain[span.start : span.end]: str(span.style) for text in texts for span in text.spans}


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("# Title #\ntext", "Title\n\ntext\n"),
        ("one\n\n\n\ntwo\n", "one\n\ntwo\n"),
        ("line one\nline two\n", "line one\nline two\n"),
        ("- a\n* b\n  + c\n1) d\n", "• a\n• b\n  • c\n1) d\n"),
        ("- [ ] open\n- [x] done\n", "• ☐ open\n• ☑ done\n"),
        ("> quoted **text**\n", "> quoted text\n"),
        ("> ```\n> a*b*c\n> ```\n> *end*\n", "> a*b*c\n> end\n"),
        ("#hash\n## Two ##x\n### C#\n#\n", "#hash\n\nTwo ##x\n\nC#\n\n\n"),
        ("---\n", "─" * 20 + "\n"),
        ("[text](http://e.org/x) <http://e.org>\n", "text (http://e.org/x) http://e.org\n"),
        ("[http://bank.example](http://evil.example)\n", "http://bank.example (http://evil.example)\n"),
        ("![cat](http://e.org/cat.png)\n", "image: cat (http://e.org/cat.png)\n"),
        ("a **bold\nend** here\n", "a bold\nend here\n"),
        ("[bold red]no markup[/] <b>html</b> :smile:\n", "[bold red]no markup[/] <b>html</b> :smile:\n"),
        ("2 * 3 * 4 and snake_case_name\n", "2 * 3 * 4 and snake_case_name\n"),
        ("never **closed\n\nnext\n", "never **closed\n\nnext\n"),
        ("&#x202e;x &amp; y\n", "\\u{202e}x & y\n"),
        ("a | b\nno table\n", "a | b\nno table\n"),
        ("    indented\n", "    indented\n"),
        ("- item\n\n      nested text\n", "• item\n\n      nested text\n"),
        ("text\n---\nmore\n", "text\n" + "─" * 20 + "\nmore\n"),
        ("no newline at the end", "no newline at the end\n"),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_a_block_becomes_what_a_person_reads(source: str, shown: str) -> None:
    assert stream(source) == shown


def test_code_is_printed_as_it_is() -> None:
    source = "def f():\n\treturn '  x'  # *no* markup\n\n\n    pass"
    shown = "  def f():\n  \treturn '  x'  # *no* markup\n\n\n      pass\n"
    assert stream(f"```python\n{source}\n```\nafter") == f"  python\n{shown}\nafter\n"
    assert stream(f"~~~~\n{source}\n~~~\n~~~~\n") == f"{shown}  ~~~\n"
    assert stream(f"```\n{source}") == shown
    assert stream(f"text\n```text\n{source}\n```") == f"text\n\n{shown}"


def test_listed_code_keeps_the_indent_of_its_list() -> None:
    source = "1. Do:\n\n   ```sh\n   make\n     indented\n   ```\n2. Then\n"
    assert stream(source) == "1. Do:\n\n     sh\n     make\n       indented\n\n2. Then\n"


def test_code_is_coloured_where_the_language_is_known() -> None:
    assert styles("```python\ndef f(): pass\n```\n")["def"] == "accent"
    assert styles("```nosuchlanguage\nx\n```\n") == {"  nosuchlanguage": "dim"}
    assert styles("```\ndef f(): pass\n```\n\n    def g(): pass\n") == {}


@pytest.mark.parametrize("end", ["", "\n"])
def test_paragraph_has_no_breaks_unlike_items(end: str) -> None:
    markdown = MarkdownStream()
    drawn = markdown.feed(f"{'word ' * 200}end\n\n- {'item ' * 200}end\n\n> quoted{end}") + markdown.close()
    texts = [each for each in drawn if isinstance(each, Text) and each.plain.strip()]
    assert {text.plain.split()[-1]: bool(text.no_wrap) for text in texts} == {"end": False, "quoted": False}
    assert texts[0].no_wrap


def test_unfinished_code_has_its_margin() -> None:
    markdown = MarkdownStream()
    markdown.feed("- a\n\n  ```py\n  x = 1\n  y")
    assert markdown.preview == "    y"
    markdown.feed("\n  ```\nafter")
    assert markdown.preview == "after"


def test_marks_become_styles() -> None:
    found = styles("**b** *e* `c` ~~s~~ [l](http://e.org)\n")
    assert found == {"b": "bold", "e": "italic", "c": "accent", "s": "strike", "l": "underline", " (http://e.org)": "dim"}


def test_a_table_is_laid_out() -> None:
    shown = stream("| Name | Count |\n|:--|--:|\n| a \\| b | 1 |\n| `c` | 22 |\n\nafter\n")
    rows = [line.rstrip() for line in shown.split("\n")]
    assert rows == ["Name    Count", "─────────────", "a | b       1", "c          22", "", "after", ""]


def test_long_table_does_not_wait_for_end() -> None:
    markdown = MarkdownStream()
    rows = "".join(f"| row {number} | x |\n" for number in range(12))
    assert draw(markdown.feed("| a | b |\n|---|---|\n| 1 | 2 |\n")) == ""
    first = draw(markdown.feed(rows))
    assert "row 10" in first
    assert draw(markdown.feed("| row 99 | y |\n")).rstrip() == "row 99   y"
    assert draw(markdown.close()) == ""


def test_a_wide_table_fits_a_narrow_terminal() -> None:
    shown = stream("| one | two |\n|---|---|\n| " + "word " * 20 + "| x |\n", width=30)
    assert max(map(len, shown.split("\n"))) <= 30


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("width", [5, 10, 20, 40, 80])
@pytest.mark.parametrize("columns", [2, 3, 5, 8, 12, 26, 500])
def test_every_table_cell_is_readable_in_any_window(width: int, columns: int) -> None:
    rows = [[f"漢字{row}.{column}." for column in range(columns)] for row in range(3)]
    later = [[f"much longer than those before {column}." for column in range(columns)]] * 11
    lines = ["|".join(cells) for cells in [rows[0], ["---"] * columns, *rows[1:], *later]]
    markdown, console = MarkdownStream(), Console(width=width, color_system=None, highlight=False)
    drawn = [*markdown.feed("".join(f"|{line}|\n" for line in lines)), *markdown.close()]
    shown = "".join(
        each.plain if isinstance(each, Text) else "".join(segment.text for segment in console.render(each)) for each in drawn
    )
    letters = "".join(cell for cells in [*rows, *later] for cell in cells).replace(" ", "")
    assert all(shown.count(letter) >= letters.count(letter) for letter in set(letters))


def test_line_prints_as_soon_as_certain() -> None:
    markdown = MarkdownStream()
    assert draw(markdown.feed("first line\nsec")) == "first line\n"
    assert draw(markdown.feed("ond **open\n")) == ""
    assert draw(markdown.feed("closed** now\n- item")) == "second open\nclosed now\n"
    assert draw(markdown.feed("\n```\ncode\nmore")) == "• item\n\n  code\n"
    assert draw(markdown.close()) == "  more\n"


def test_unclosed_markup_is_not_held_forever() -> None:
    markdown = MarkdownStream()
    shown = draw(markdown.feed("**open\n" + "line\n" * 20))
    assert shown.count("line") >= 15


def test_a_line_without_end_grows_on_the_screen() -> None:
    markdown = MarkdownStream()
    source = "word " * 500
    shown = ""
    for at in range(0, len(source), 10):
        shown += draw(markdown.feed(source[at : at + 10]))
        assert len(shown) >= at - 420
    assert markdown.is_mid_line
    assert shown + draw(markdown.close()) == f"{source}\n"
    assert not markdown.is_mid_line


@pytest.mark.parametrize("source", ["字" * 3000, "x" * 5000, "**" + "x " * 3000, "`" * 5000, "- " + "y" * 3000, "| " * 3000])
def test_a_line_of_anything_grows(source: str) -> None:
    markdown = MarkdownStream()
    shown = draw(markdown.feed(source))
    for _ in range(3):
        shown += draw(markdown.feed(source[-200:]))
    if not source.startswith("|"):
        assert len(shown) > LONGEST_WAIT
    assert len(shown + draw(markdown.close())) >= len(source) * 0.9


def test_emphasis_in_a_long_line_is_waited_for() -> None:
    shown = stream("word " * 90 + "**" + "bold " * 30 + "end** after")
    assert shown == "word " * 90 + "bold " * 30 + "end after\n"


def test_a_long_line_of_code_is_not_changed() -> None:
    line = "x = [" + "1,  " * 1000 + "]"
    assert stream(f"```\n{line}\nshort\n```\n") == f"  {line}\n  short\n"


def test_source_shows_unchanged_without_colours() -> None:
    source = "# Title\n\n**bold** [l](http://e.org)\n\n```python\nx = 1\n\n\n```\n\n| a |\n|---|\n| 1 |\n"
    assert stream(source, plain=True) == source


HOSTILE = [
    "# " + " \t" * 50_000 + "x",
    "-" + " " * 100_000 + "x",
    "a|b\n---" + " " * 100_000 + "x",
    "[" * 100_000,
    "*a " * 30_000,
]
HOSTILE += [
    "`" * 100_001,
    "> " * 50_000,
    "|" * 100_000,
    "a|b\n-|-\n" + "|" * 100_000,
    "```python\n" + "'\\" * 50_000,
    "<a " * 30_000,
]


@pytest.mark.parametrize("source", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_take_no_time(source: str) -> None:
    with processor_time_below(5.0):
        stream(f"{source}\n", len(source))
        stream(f"{source[:20_000]}\n", 100)


MARKDOWN = st.text(alphabet="ab *_`~#-|>[]()!\\\n\t1.é字", max_size=300)


@given(MARKDOWN, st.integers(1, 50))
def test_text_cuts_do_not_matter(source: str, size: int) -> None:
    assert stream(source, size) == stream(source, max(len(source), 1))


@given(st.text(alphabet="ab .,\n", max_size=1500), st.integers(1, 50))
def test_words_are_neither_lost_nor_changed(source: str, size: int) -> None:
    assert stream(source, size).split() == source.split()


def test_a_block_of_changes_has_their_backgrounds() -> None:
    found = styles("```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n```\n")
    assert (found["-old"], found["+new"]) == ("removed line", "added line")
    assert found["+++ b/x"] == "bold"
