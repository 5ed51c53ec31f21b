"""Converts HTML to readable Markdown: headings, paragraphs, lists, code, tables and links."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urljoin

from msgspec import Struct

from wolo.tools.web.markdown import MarkdownBuilder, Paragraph

LONGEST_TARGET_CHARS = 1_000
ENOUGH_CHARS = 200
"""A main part shorter than this is not taken for the whole page."""
_LOOK_EVERY = 2_000
"""Tokens between checks for cancellation."""

_UNSEEN = frozenset(
    (
        *("audio", "canvas", "datalist", "head", "iframe", "math", "noembed", "noframes", "object", "script", "select", "style"),
        *("svg", "template", "textarea", "video"),
    )
)
_AROUND = frozenset(("button", "dialog", "footer", "nav"))
"""Elements around the content of a page."""
_BLOCK_NAMES = """
address article aside body caption center dd details dialog div dl dt fieldset figcaption figure footer form header hgroup legend
main nav noscript p search section summary td th tr
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_ENDS_WITH_THE_NEXT = frozenset(("dd", "dt", "li", "p", "td", "th", "tr"))
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"))
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight|brush)-([\w+#.-]{1,20})")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LINE_NUMBERS = re.compile(r"[\d\s]*\Z")


class Readable(Struct, frozen=True):
    title: str
    text: str
    names_main: bool
    """The page marks its main part."""


def readable(source: str, url: str, is_stopped: Callable[[], bool] = lambda: False) -> Readable:
    """Converts the main part of a page if it is marked and long enough, otherwise all of it."""
    page = _HtmlPage(url, _UNSEEN | _AROUND, is_stopped)
    page.walk(source)
    if len(page.text) >= ENOUGH_CHARS:
        return Readable(page.title, page.text, page.names_main)
    whole = _HtmlPage(url, _UNSEEN, is_stopped)
    whole.walk(source)
    return Readable(page.title, max(page.text, whole.text, key=len), False)


class _Region:
    """Range from the first start to the last end of an element."""

    def __init__(self) -> None:
        self.begin = self.end = -1
        self.depth = 0

    def enter(self, at: int) -> None:
        self.begin = at if self.begin < 0 else self.begin
        self.depth += 1

    def leave(self, at: int) -> None:
        if self.depth:
            self.depth, self.end = self.depth - 1, at


class _HtmlPage:
    """State of the conversion: open elements and output."""

    def __init__(self, url: str, unseen: frozenset[str], is_stopped: Callable[[], bool]) -> None:
        self.title = ""
        self._base, self._unseen, self._is_stopped = url, unseen, is_stopped
        self._layout = MarkdownBuilder()
        self._paragraph = Paragraph()
        self._skipped = ""
        self._skipped_depth = 0
        self._is_title = False
        self._heading = 0
        self._pre: list[str] | None = None
        self._language = ""
        self._table: list[list[list[str]]] | None = None
        """Rows of cells of text pieces."""
        self._main, self._articles = _Region(), _Region()

    @property
    def text(self) -> str:
        return self._named_main() or self._layout.text()

    @property
    def names_main(self) -> bool:
        return bool(self._named_main())

    def _named_main(self) -> str:
        """Empty: no part is marked, or it is nearly empty."""
        for region in (self._main, self._articles):
            text = self._layout.text(region.begin, region.end) if region.begin >= 0 else ""
            if len(text) >= ENOUGH_CHARS:
                return text
        return ""

    def walk(self, source: str) -> None:
        for number, token in enumerate(tokens(source)):
            if number % _LOOK_EVERY == 0 and self._is_stopped():
                break
            if isinstance(token, str):
                self._add_text(token)
            elif token.is_end:
                self._end(token.name)
            else:
                self._begin(token)
        self._end_pre()
        self._end_table()
        self._end_block()
        for region in (self._main, self._articles):
            if region.depth:
                region.end = self._layout.count

    def _add_text(self, text: str) -> None:
        if self._is_title:
            self.title = " ".join(text.split())[:300]
        elif self._skipped:
            return
        elif self._pre is not None:
            self._pre.append(text)
        else:
            self._paragraph.add_text(text)

    def _end_block(self) -> None:
        if not (text := self._paragraph.take()):
            return
        if self._table is not None:
            text = " ".join(text.split())
            if not self._table or not self._table[-1]:
                self._layout.put(text)  # a caption, or text outside cells
            else:
                self._table[-1][-1].append(f"{self._layout.marker}{text}")
                self._layout.marker = ""
        elif self._heading:
            self._layout.put(f"{'#' * self._heading} {' '.join(text.split()).removesuffix('¶').rstrip()}")
        else:
            self._layout.put(text)

    def _begin(self, tag: Tag) -> None:
        name, style = tag.name, tag.attributes.get("style", "")
        if name == "title" and self._skipped in ("", "head") and not self.title:
            self._is_title = True
        elif self._skipped and not (name == self._skipped and name in _ENDS_WITH_THE_NEXT):
            self._skipped_depth += name == self._skipped
        elif name in self._unseen or (name not in _VOID and ("hidden" in tag.attributes or _HIDDEN.search(style))):
            if name in _BLOCKS:
                self._end_block()
            self._skipped, self._skipped_depth = name, 1
        elif self._skipped:
            self._skipped = ""
            self._begin(tag)
        elif name == "pre":
            self._end_pre()
            if self._table is None:
                self._end_block()
            self._pre, self._language = [], _language(tag)
        elif self._pre is not None:
            if name == "br":
                self._pre.append("\n")
            elif name == "code":
                self._language = self._language or _language(tag)
        elif name in _BLOCKS or name in _HEADINGS or name in ("ul", "ol", "li", "blockquote", "table", "hr"):
            self._begin_block(tag)
        else:
            attributes = tag.attributes
            match tag.name:
                case "br":
                    self._paragraph.break_line()
                case "code" | "kbd" | "samp" | "tt":
                    self._paragraph.begin_code()
                case "a":
                    self._paragraph.begin_link(self._absolute(attributes.get("href", "")))
                case "img":
                    self._paragraph.show_image(attributes.get("alt", ""), self._absolute(attributes.get("src", "")))
                case "base":
                    self._base = self._absolute(attributes.get("href", "")) or self._base

    def _end(self, name: str) -> None:
        if name == "title" and self._is_title:
            self._is_title = False
        elif self._skipped:
            self._skipped_depth -= name == self._skipped
            self._skipped = self._skipped if self._skipped_depth else ""
        elif self._pre is not None:
            if name == "pre":
                self._end_pre()
            elif name in _BLOCKS and self._pre and not self._pre[-1].endswith("\n"):
                self._pre.append("\n")
        elif name in ("code", "kbd", "samp", "tt"):
            self._paragraph.end_code()
        elif name == "a":
            self._paragraph.end_link()
        elif name == "table":
            self._end_table()
        elif name in _BLOCKS or name in _HEADINGS or name in ("ul", "ol", "li", "blockquote"):
            self._end_block()
            layout = self._layout
            if name in _HEADINGS:
                self._heading = 0
            elif name in ("ul", "ol"):
                layout.marker = ""
                if layout.lists:
                    layout.lists.pop()
            elif name == "li":
                layout.marker = ""
            elif name == "blockquote":
                layout.quotes = max(layout.quotes - 1, 0)
            elif name == "main":
                self._main.leave(layout.count)
            elif name == "article":
                self._articles.leave(layout.count)

    def _begin_block(self, tag: Tag) -> None:
        self._end_block()
        if (name := tag.name) in _HEADINGS:
            self._heading = _HEADINGS[name]
        elif name in ("ul", "ol"):
            start = tag.attributes.get("start", "1")
            is_number = start.isascii() and start.isdecimal() and len(start) < 6
            self._layout.lists.append(0 if name == "ul" else int(start) if is_number else 1)
        elif name == "li":
            self._layout.begin_item()
        elif name == "blockquote":
            self._layout.quotes += 1
        elif name == "hr":
            self._layout.put("---")
        elif name == "table":
            self._end_table(is_layout=True)  # nested tables: the outer one is layout
            self._table = []
        elif name == "tr" and self._table is not None:
            self._table.append([])
        elif name in ("td", "th") and self._table:
            self._table[-1].append([])
        if name == "main" or tag.attributes.get("role") == "main":
            self._main.enter(self._layout.count)
        elif name == "article":
            self._articles.enter(self._layout.count)

    def _absolute(self, target: str) -> str:
        """Empty for links within the page, scripts and data."""
        target = "".join(target.split())
        if not target or target.startswith("#"):
            return ""
        try:
            url = urljoin(self._base, target)
        except ValueError:
            return ""
        return url if url.startswith(("http:", "https:", "mailto:", "ftp:")) and len(url) <= LONGEST_TARGET_CHARS else ""

    def _end_pre(self) -> None:
        """Puts code in a table before the table, and drops columns of line numbers."""
        if self._pre is None:
            return
        code = "".join(self._pre).strip("\n")
        self._pre = None
        if code.strip() and not (self._table is not None and _LINE_NUMBERS.match(code)):
            self._layout.put_code(code, self._language)

    def _end_table(self, *, is_layout: bool = False) -> None:
        self._end_block()
        rows, self._table = [[" ".join(cell) for cell in row] for row in self._table or ()], None
        if is_layout:
            self._layout.put_cells(rows)
        else:
            self._layout.put_table(rows)


def _language(tag: Tag) -> str:
    named = _LANGUAGE.search(tag.attributes.get("class", ""))
    return named[1] if named else ""


RAW = frozenset(("script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp", "plaintext"))
"""Elements whose content is not HTML."""
MOST_ATTRIBUTES = 200

_TAG_NAME = re.compile(r"[a-zA-Z][^\s/>]*")
_NEXT_ATTRIBUTE = re.compile(r"[\s/]*")
_ATTRIBUTE_NAME = re.compile(r"=?[^\s/>=]*")
_EQUALS = re.compile(r"\s*=\s*")
_BARE_VALUE = re.compile(r"[^\s>]*")
_HUGE_NUMBER = re.compile(r"&#(?:\d{8,}|[xX][0-9a-fA-F]{7,});?")


class Tag(NamedTuple):
    name: str
    """Lower case."""
    is_end: bool
    attributes: Mapping[str, str]


def tokens(source: str) -> Iterator[str | Tag]:
    """Resolves entities in text. Unterminated constructs extend to the end, as in browsers."""
    at = 0
    while at < len(source):
        if (opens := source.find("<", at)) != at:
            yield _text(source[at : opens if opens >= 0 else len(source)])
        if opens < 0:
            return
        name = _TAG_NAME.match(source, opens + 2 if source.startswith("/", opens + 1) else opens + 1)
        if name is None:
            if source.startswith("<!--", opens):
                end = source.find("-->", opens + 2)
                at = end + 3 if end >= 0 else len(source)
            elif source.startswith(("<!", "<?", "</"), opens):
                end = source.find(">", opens)
                at = end + 1 if end >= 0 else len(source)
            else:
                at = opens + 1
                yield "<"
            continue
        attributes, at = _attributes(source, name.end())
        if at < 0:
            return
        tag = Tag(name[0].lower(), name.start() == opens + 2, attributes)
        yield tag
        if tag.name in RAW and not tag.is_end:
            ending = re.compile(rf"</{tag.name}(?=[\s/>])", re.IGNORECASE).search(source, at)
            end = ending.start() if ending and tag.name != "plaintext" else len(source)
            yield _text(source[at:end])
            at = end


def _attributes(source: str, at: int) -> tuple[dict[str, str], int]:
    """Returns the attributes and the position after the tag, or -1. The first of duplicate attributes counts."""
    attributes: dict[str, str] = {}
    while True:
        at = _NEXT_ATTRIBUTE.match(source, at).end()  # type: ignore[union-attr]  # matches anything
        if at >= len(source):
            return attributes, -1
        if source[at] == ">":
            return attributes, at + 1
        name = _ATTRIBUTE_NAME.match(source, at)
        assert name is not None  # matches anything
        value, at = _value(source, name.end())
        if at < 0:
            return attributes, -1
        if len(attributes) < MOST_ATTRIBUTES:
            attributes.setdefault(name[0].lower(), _text(value))


def _value(source: str, at: int) -> tuple[str, int]:
    if (equals := _EQUALS.match(source, at)) is None:
        return "", at
    at = equals.end()
    if (quote := source[at : at + 1]) in ('"', "'") and quote:
        end = source.find(quote, at + 1)
        return (source[at + 1 : end], end + 1) if end >= 0 else ("", -1)
    bare = _BARE_VALUE.match(source, at)
    assert bare is not None  # matches anything
    return bare[0], bare.end()


def _text(raw: str) -> str:
    return html.unescape(_HUGE_NUMBER.sub("\ufffd", raw)) if "&" in raw else raw
