"""Streamed Markdown: each block is printed once, as soon as nothing can change it any more."""

from __future__ import annotations

import re

from rich.console import RenderableType
from rich.markdown import Markdown

from wolo.frontends.terminal.clean import clean

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


class SettledBlocks:
    """Feed it text as it comes; it gives back the blocks that are complete.

    A block ends at a blank line outside a fence. A list goes on over blank lines as long as its lines are indented or marked.
    """

    def __init__(self) -> None:
        self._text = ""

    def feed(self, text: str) -> str:
        """The newly settled text, possibly empty."""
        self._text += text
        end = self._settled_end()
        settled, self._text = self._text[:end], self._text[end:]
        return settled

    def close(self) -> str:
        """What is left at the end of the answer."""
        rest, self._text = self._text, ""
        return rest

    @property
    def pending(self) -> str:
        """The unfinished block, for a preview."""
        return self._text

    def _settled_end(self) -> int:
        end = position = 0
        fence = ""
        while (line_end := self._text.find("\n", position)) >= 0:
            line = self._text[position:line_end]
            position = line_end + 1
            if mark := _FENCE.match(line):
                if not fence:
                    fence = mark[1]
                elif mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip(f" {fence[0]}"):
                    fence = ""
                    end = position
            elif not fence and not line.strip() and self._block_may_end(position):
                end = position
        return end

    def _block_may_end(self, position: int) -> bool:
        """A blank line settles what is before it once the next line has begun and does not continue a list."""
        following = self._text[position : position + 4]
        return bool(following.strip()) and not following.startswith((" ", "\t"))


def render(text: str) -> RenderableType:
    return Markdown(clean(text).strip("\n"), code_theme="ansi_dark", hyperlinks=False)
