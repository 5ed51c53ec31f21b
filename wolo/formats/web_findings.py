"""Pages that a provider's own web search names in a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from wolo.formats.tolerant_json import read_json
from wolo.messages.deltas import TextMark
from wolo.messages.message import Message
from wolo.messages.parts import Blob, TextPart, blob_of

WEB_FINDINGS = "web.findings"
"""Blob kind of the findings; never sent."""


class PageLink(Struct, frozen=True, omit_defaults=True):
    url: str
    title: str = ""
    text: str = ""
    """An excerpt, where the provider gives one."""


class WebFindings(Struct):
    """Collected while a response is decoded."""

    pages: dict[str, PageLink] = {}
    """By address."""
    num_searches: int = 0
    """Those that are charged."""
    error: str = ""
    """The provider's code for a search that failed."""

    def add(self, page: object, *, url: str = "url", text: str = "") -> None:
        """`url` and `text` name the fields of `page`. What has no address is skipped."""
        if not isinstance(page, Mapping):
            return
        address, title, excerpt = (value if isinstance(value := page.get(name), str) else "" for name in (url, "title", text))
        known = self.pages.get(address, PageLink(address))
        if address:
            self.pages[address] = PageLink(address, known.title or title, known.text or excerpt)

    def add_all(self, pages: object, *, url: str = "url", text: str = "") -> None:
        for page in pages if isinstance(pages, list) else ():
            self.add(page, url=url, text=text)

    def mark(self) -> TextMark:
        """Carries the findings in the message."""
        return TextMark(blobs=(Blob(WEB_FINDINGS, msgspec.json.encode(self).decode()),))


def findings_of(message: Message) -> WebFindings:
    """Empty where the provider did not search."""
    for part in message.of(TextPart):
        stored: Any = read_json(blob_of(part.blobs, WEB_FINDINGS))
        if stored is not None:
            return msgspec.convert(stored, WebFindings)
    return WebFindings()
