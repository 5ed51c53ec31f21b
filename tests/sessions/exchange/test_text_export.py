"""Exports to Markdown and HTML, which no content can break out of."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.sessions.exchange.histories_kept import keep, said
from wolo.messages.message import Message, user
from wolo.messages.parts import ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange import html_export, markdown_export
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.store import Store

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)

PIECES = (
    *(
        "```",
        "````py",
        "~~~",
        "# up",
        "## up",
        "===",
        "---",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "    ",
        "\t",
        "\r",
        "words",
        "]]>",
        "&lt;",
    ),
    *("<!-- ", "<script>alert(1)</script>", "<details>", "</article>", "<style>", "\x00", "\x1b[2J", "\u202e"),
    *("[a](javascript:alert(1))", "![i](http://x/y.png)"),
)
nasty = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def exported(store: Store, session_id: str, shape: object) -> str:
    pieces: list[bytes] = []
    shape.write(store, store.find(session_id), pieces.append, Redactor())  # type: ignore[attr-defined]  # a module
    return b"".join(pieces).decode()


def turn(text: str) -> list[Message]:
    call = ToolPart(tool="shell", input={"command": text}, status="completed", outcome="ok", output=text)
    return [user(text or "x"), Message(role="assistant", parts=(ThinkingPart(text=text), TextPart(text=text), call))]


def headings(document: str) -> list[str]:
    tokens = MarkdownIt("commonmark").parse(document)
    return [
        tokens[at + 1].content
        for at, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag in ("h1", "h2") and not token.level
    ]


class Page(HTMLParser):
    """Which elements there are, and whether each is closed where it belongs."""

    EMPTY = ("meta", "img", "br", "hr")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@settings(max_examples=25)
@given(text=nasty)
def test_nothing_that_is_said_breaks_out(text: str) -> None:
    with TemporaryDirectory() as folder, Store.open(Path(folder)) as store:
        session_id = keep(store, Path.cwd(), said(*turn(text), user("the end")))
        store.rename(session_id, "a name")
        document = exported(store, session_id, markdown_export)
        assert [heading.split(" · ")[0] for heading in headings(document)] == ["a name", "User", "Assistant", "User"]
        assert "\x1b" not in document
        assert "\x00" not in document
        page = Page(exported(store, session_id, html_export))
        assert page.tags.count("article") == 3
        assert page.tags.count("style") == 1
        assert not {"script", "iframe", "object", "link", "form", "input"} & set(page.tags)
        for name, value in page.attributes:
            assert not name.startswith("on")
            assert name != "src" or value.startswith("data:")
            assert not value.lower().strip().startswith("javascript:")


def test_a_page_stands_alone(store: Store) -> None:
    picture = Message(role="user", parts=(TextPart(text="see <b>this</b>"), ImagePart(media_type="image/png", data=PNG)))
    answer = Message(role="assistant", parts=(TextPart(text="It is **red**:\n\n```py\nx < 1\n```"),))
    failed = ToolPart(tool="read", input={"path": "a.py"}, status="failed", outcome="denied_by_person", output="No.")
    session_id = keep(store, Path.cwd(), said(picture, answer, Message(role="assistant", parts=(failed,))))
    text = exported(store, session_id, html_export)
    page = Page(text)
    assert "see <b>this</b>" in page.text
    assert {"strong", "details", "summary", "img"} <= set(page.tags)
    assert "denied by person" in page.text
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert "http://" not in text
    assert "https://" not in text


def test_a_document_reads_well(store: Store) -> None:
    call = ToolPart(tool="shell", input={"command": "ls"}, status="completed", outcome="ok", output="a\n```\nb\n")
    session_id = keep(
        store, Path.cwd(), said(user("list *it*"), Message(role="assistant", parts=(TextPart(text="## Here\n\nIt is:"), call)))
    )
    document = exported(store, session_id, markdown_export)
    assert "> list *it*\n" in document
    assert "### Here\n\nIt is:\n" in document
    assert "**shell**\n\n```sh\nls\n```\n\n````\na\n```\nb\n````\n" in document
