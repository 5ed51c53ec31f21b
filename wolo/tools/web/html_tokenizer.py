"""Splits HTML into text and tags in one linear pass, whatever the page contains."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
