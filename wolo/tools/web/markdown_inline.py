"""The paragraph of a page that is being written: its words, with code and links marked in them."""

from __future__ import annotations

import re

_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_SPACES = re.compile(" +")
_AROUND_BREAK = re.compile(r" *\n *")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
"""What no person would see, and a model would read."""


class Paragraph:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._code_from = -1
        self._link_from = -1
        self._target = ""

    def say(self, text: str) -> None:
        self._pieces.append(_BLANKS.sub(" ", _INVISIBLE.sub("", text)))

    def break_line(self) -> None:
        self._pieces.append("\n")

    def show_image(self, alt: str, source: str) -> None:
        """`source` is empty for one that cannot be found elsewhere."""
        alt = " ".join(alt.split())
        if alt:
            self.say(f"![{alt}]({source})" if source else alt)

    def begin_code(self) -> None:
        self.end_code()
        self._code_from = len(self._pieces)

    def end_code(self) -> None:
        begin, self._code_from = self._code_from, -1
        code = "".join(self._pieces[begin:]).strip() if begin >= 0 else ""
        if code:
            ticks = "``" if "`" in code else "`"
            self._pieces[begin:] = [f"{ticks}{code}{ticks}"]

    def begin_link(self, target: str) -> None:
        """Within code nothing can be marked: there a link is its text."""
        self.end_link()
        if target and self._code_from < 0:
            self._link_from, self._target = len(self._pieces), target

    def end_link(self) -> None:
        self._mark_link()
        self._link_from, self._target = -1, ""

    def take(self) -> str:
        """The text so far, and a new paragraph begins; a link that is not ended goes on in it."""
        self.end_code()
        self._mark_link()
        text = "".join(self._pieces)
        self._pieces.clear()
        self._link_from = 0 if self._target else -1
        return _AROUND_BREAK.sub("\n", _SPACES.sub(" ", text)).strip()

    def _mark_link(self) -> None:
        written = "".join(self._pieces[self._link_from :]) if self._link_from >= 0 else ""
        label = " ".join(written.split())
        if label:
            before, after = written[: written[:1] == " "], " " if written.endswith(" ") else ""
            self._pieces[self._link_from :] = [f"{before}[{label}]({self._target}){after}"]
