"""Graphemes: characters as a reader sees them, with their width on the screen.

Programs count an emoji of several code points as the sum of its parts, most terminals show it as one of two cells. On its way
to the screen it is replaced by one private character of the right width, which is spelled out last of all, between saving
and restoring the cursor: so the cursor is right whatever a terminal makes of it.
"""

from __future__ import annotations

import re

from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth
from wcwidth import iter_graphemes, wcswidth

from wolo.frontends.terminal.io.prompt_toolkit_adapter import set_char_width

_FIRST, _LAST = 0x100000, 0x10FFFD
"""Private characters of Unicode."""
_STANDS_IN = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SAVE, _RESTORE = "\x1b7", "\x1b8"

_stand_ins: dict[str, str] = {}
_spelled: dict[str, str] = {}


def stand_in(grapheme: str) -> str:
    """A private character of the same width; the grapheme itself where its parts add up to its width."""
    if len(grapheme) == 1 and not _STANDS_IN.match(grapheme):
        return grapheme
    width, of_parts = max(wcswidth(grapheme), 1), sum(map(get_cwidth, grapheme))
    if (of_parts == width and len(grapheme) > 1) or len(_stand_ins) > _LAST - _FIRST:
        return grapheme
    if grapheme not in _stand_ins:
        character = chr(_FIRST + len(_stand_ins))
        _stand_ins[grapheme] = character
        # Erases what a terminal that shows the parts one by one has drawn beyond the width
        beyond = f"\x1b[{of_parts - width}X" if of_parts > width else ""
        _spelled[character] = f"\x1b[{max(width, of_parts)}X{_SAVE}{grapheme}{_RESTORE}\x1b[{width}C{beyond}"
        set_char_width(character, width)
    return _stand_ins[grapheme]


def spell_out(shown: str) -> str:
    """Replaces stand-ins by their graphemes; returns the same object where there are none."""
    return shown if not _spelled or shown.isascii() else _STANDS_IN.sub(lambda found: _spelled.get(found[0], found[0]), shown)


def before_cursor(document: Document) -> int:
    """Length of the grapheme before the cursor; 0 at the beginning of a line."""
    graphemes = list(iter_graphemes(document.current_line_before_cursor))
    return len(graphemes[-1]) if graphemes else 0


def after_cursor(document: Document) -> int:
    """Length of the grapheme after the cursor; 0 at the end of a line."""
    return len(next(iter_graphemes(document.current_line_after_cursor), ""))
