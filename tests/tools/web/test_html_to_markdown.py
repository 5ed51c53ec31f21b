"""Pages of HTML become Markdown that is good to read, whatever their state."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import clock_counts
from wolo.tools.web.html_to_markdown import Tag, readable, tokens

URL = "https://site.example/docs/page.html"
LONG = "This is what the page is about, and it goes on for a while. " * 5


def text_of(source: str) -> str:
    return readable(source, URL).text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>one\n  two&nbsp;three</p><p>four", "one two three\n\nfour"),
        ("<h1>One<a class=headerlink href='#one'>¶</a></h1><h3>Three</h3>", "# One\n\n### Three"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "- a\n- b\n  - c\n- d"),
        ("<ol start=4><li><p>a</p><p>b</p></li><li>c</ol>", "4. a\n\n  b\n5. c"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>c", "> a\n\n> > b\n\nc"),
        ("see <a href='../x.html'>there</a>.", "see [there](https://site.example/x.html)."),
        ("<a href='//other.example'>there</a>", "[there](https://other.example)"),
        ("<a href='#here'>here</a> <a href='javascript:x()'>click</a> <a href='data:x'>d</a> <a>none</a>", "here click d none"),
        ("<a href='/x'><h2>card</h2><p>text</p></a>after", None),
        ("<base href='https://cdn.example/a/'><a href=b>x</a>", "[x](https://cdn.example/a/b)"),
        ("<img src=/a.png alt='A  dog'><img src=b.png><img alt=c src='data:image/png;base64,x'>", None),
        ("use <code>x = 1</code> and <code>a`b</code>", "use `x = 1` and ``a`b``"),
        ("<code><a href=/x>f</a>()</code>", "`f()`"),
        (
            "<pre><code class='hljs language-rust'>fn main() {\n    a &amp;&amp; b\n}\n</code></pre>",
            "```rust\nfn main() {\n    a && b\n}\n```",
        ),
        ("<pre>a\n```\nb</pre>", "````\na\n```\nb\n````"),
        ("<div class='highlight'><pre><span>a</span> <span>b</span>\n  c</pre></div>", "```\na b\n  c\n```"),
        ("<table><tr><th>a<th>b|c<tr><td>1<td>2<br>3</table>", "| a | b\\|c |\n| --- | --- |\n| 1 | 2 3 |"),
        ("<table><tr><td>only one</td></tr><tr><td>column</td></tr></table>", "only one\n\ncolumn"),
        ("<table><tr><td><pre>1\n2</pre></td><td><pre>a\nb</pre></td></tr></table>", "```\na\nb\n```"),
        ("<table><tr><td>menu<td><table><tr><td>a<td>b</table></td></tr></table>", "menu\n\n| a | b |\n| --- | --- |"),
        ("<dl><dt>a<dd>b</dl>", "a\n\nb"),
        ("a<script>b</script><style>c</style><template>d</template><!-- e -->f<noscript>g</noscript>", "af\n\ng"),
        ("a<p hidden>b</p><div style='Display : none'>c<div>d</div></div><span style='color:red'>e</span>", "a\n\ne"),
        ("<p hidden>b<p>c", "c"),
        ("<ul><li hidden>b<li hidden>c<li>d", "- d"),
        ("a\u200bb\u00adc\U000e0041\U000e0042d\u202ee", "abcde"),
        ("&lt;b&gt; &#65; &#x42; &copy; &nosuch; &#99999999999; &#x110000; &#xD800;", "<b> A B © &nosuch; � � �"),
        ("<textarea>x</textarea><select><option>y</select>z", "z"),
        ("", ""),
        ("plain < text & more > so", "plain < text & more > so"),
        ("<p", ""),
        ("a<p title='x", "a"),
        ("a</p></div></ul></table></blockquote></pre></a></code>b", "a\n\nb"),
        ("<![CDATA[x]]>y<?php z ?>", "y"),
        ("<A HREF=/X>Y</A>", "[Y](https://site.example/X)"),
    ],
)
def test_markup_becomes_markdown(source: str, text: str | None) -> None:
    expected = {
        "<a href='/x'>": "[card](https://site.example/x)\n\n[text](https://site.example/x)\n\nafter",
        "<img": "![A dog](https://site.example/a.png)c",
    }
    if text is None:
        text = next(value for start, value in expected.items() if source.startswith(start))
        text = text.replace("[card]", "## [card]")
    assert text_of(source) == text


def test_main_part_shows_without_its_surroundings() -> None:
    around = f"<nav>menu</nav><header>top</header><main><h1>It</h1>{LONG}</main><aside>aside</aside><footer>foot</footer>"
    assert text_of(around) == f"# It\n\n{LONG.strip()}"
    articles = f"<p>before</p><article>{LONG}</article><article>more</article><p>after</p>"
    assert text_of(articles) == f"{LONG.strip()}\n\nmore"
    assert text_of(f"<div role=main>{LONG}</div>after").startswith("This is what")


def test_tiny_main_part_shows_everything() -> None:
    assert text_of("<nav>menu</nav><main>Loading</main><footer>foot</footer>") == "menu\n\nLoading\n\nfoot"
    assert "menu" not in text_of(f"<nav>menu</nav>{LONG}")


def test_the_title_is_told_apart() -> None:
    page = readable("<head><title>A\n &amp; B</title></head><svg><title>no</title></svg>x", URL)
    assert (page.title, page.text) == ("A & B", "x")


def test_a_walk_can_be_stopped() -> None:
    assert len(readable("<p>x" * 100_000, URL, lambda: True).text) == 0


DEEP = (
    "<div>",
    "<blockquote>",
    "<ul><li>",
    "<table><tr><td>",
    "<a href=x>",
    "<code>",
    "<b><i>",
    "<pre>",
    "<main>",
    "<article>",
    "<h1>",
)
BROKEN = (
    *("<", "<!--", "<!", "</", "<a ", "<a b=", "<a b='", '<a "', "<a b=\"'", "&", "&#", "&#9", "<script>", "<title>", "<svg>"),
    *("<textarea>", "`", "<pre>`", "\n ", "<br> ", "<td>x", "<li>x", "<p>x", "<p hidden>", "<img alt=x>", "\u202e", "|"),
)


@pytest.mark.parametrize("piece", [*DEEP, *BROKEN])
def test_no_page_takes_longer_than_its_length(piece: str) -> None:
    """Ten times as much may take ten times as long, and some patience with a busy machine; not a hundred times."""

    def took_s(times: int) -> float:
        source = piece * times + "text"
        began = time.thread_time()
        readable(source, URL)
        return time.thread_time() - began

    assert took_s(20_000) < max(took_s(2_000), 0.004) * 40 or not clock_counts()


def test_ten_thousand_levels_are_read_to_the_bottom() -> None:
    for piece in DEEP:
        assert "text at the bottom" in text_of(piece * 10_000 + "text at the bottom")


@given(
    st.lists(
        st.sampled_from([*DEEP, *BROKEN, "text", "</div>", "</a>", "</table>", "</ul>", "</pre>", ">", "'", '"', "<tr>", "=x"])
    )
)
def test_any_soup_is_read(pieces: list[str]) -> None:
    page = readable("".join(pieces), URL)
    assert "\n\n\n" not in page.text.replace("```", "") or "pre" in "".join(pieces)


@given(st.text(alphabet="<>/!-= \"'ab&;#x\n", max_size=200))
def test_text_without_tags_comes_back_whole(source: str) -> None:
    """Whatever is taken for a tag begins like one."""
    told = "".join(token for token in tokens(source) if isinstance(token, str))
    if "<" not in source and "&" not in source:
        assert told == source
    for token in tokens(source):
        assert isinstance(token, str) or f"<{'/' if token.is_end else ''}{token.name}" in source.lower()


def test_the_first_of_two_attributes_counts() -> None:
    assert list(tokens("<A b=1 B=2 c d='x>y' e=\"&lt;\"/>")) == [Tag("a", False, {"b": "1", "c": "", "d": "x>y", "e": "<"})]
