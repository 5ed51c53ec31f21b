"""What a reader takes for one character: how wide it is on the screen, and how it is deleted and stepped over as one.

Programs count an emoji of several characters as the sum of its parts, terminals show most of them as one that takes two cells.
On its way to the screen such a character is one stand-in of the right width. It is spelled out last of all, between saving the
cursor's place and going there again, so that the cursor stands right whatever a terminal makes of it.
"""

from __future__ import annotations

import re

from prompt_toolkit.document import Document
from prompt_toolkit.utils import _CHAR_SIZES_CACHE, get_cwidth
from wcwidth import iter_graphemes, wcswidth

_FIRST, _LAST = 0x100000, 0x10FFFD
"""Private characters of Unicode."""
_STANDS_IN = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_SAVE, _RESTORE = "\x1b7", "\x1b8"

_stand_ins: dict[str, str] = {}
_spelled: dict[str, str] = {}


def stand_in(grapheme: str) -> str:
    """One character as wide as this one is shown; itself where its parts are as wide, and it stands in for nothing else."""
    if len(grapheme) == 1 and not _STANDS_IN.match(grapheme):
        return grapheme
    width, of_parts = max(wcswidth(grapheme), 1), sum(map(get_cwidth, grapheme))
    if (of_parts == width and len(grapheme) > 1) or len(_stand_ins) > _LAST - _FIRST:
        return grapheme
    if grapheme not in _stand_ins:
        character = chr(_FIRST + len(_stand_ins))
        _stand_ins[grapheme] = character
        _spelled[character] = _spelling(grapheme, width, of_parts)
        _CHAR_SIZES_CACHE[character] = width  # prompt_toolkit has no other way to be told
    return _stand_ins[grapheme]


def _spelling(grapheme: str, width: int, of_parts: int) -> str:
    """A terminal that shows the parts one by one has drawn beyond the width: that is wiped out."""
    beyond = f"\x1b[{of_parts - width}X" if of_parts > width else ""
    return f"\x1b[{max(width, of_parts)}X{_SAVE}{grapheme}{_RESTORE}\x1b[{width}C{beyond}"


def spelled_out(shown: str) -> str:
    """What the terminal gets; the same text where nothing stands in for anything."""
    return shown if not _spelled or shown.isascii() else _STANDS_IN.sub(lambda found: _spelled.get(found[0], found[0]), shown)


def before_cursor(document: Document) -> int:
    """How many characters the one before the cursor has; 0 at the beginning of a line."""
    graphemes = list(iter_graphemes(document.current_line_before_cursor))
    return len(graphemes[-1]) if graphemes else 0


def after_cursor(document: Document) -> int:
    """The same for the one behind it; 0 at the end of a line."""
    return len(next(iter_graphemes(document.current_line_after_cursor), ""))
