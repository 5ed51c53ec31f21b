"""Writes styled text to the terminal: wrapped, with the colours of the theme, and with hyperlinks (OSC 8)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.io.theme import FULL_WIDTH, THEME, Depth, paint
from wolo.frontends.terminal.render.markdown_tables import Grid
from wolo.frontends.terminal.render.row_wrapping import Wrapper
from wolo.messages.terminal_text import clean

_ADDRESS = re.compile(r"https?://[!-~]+")
_BEHIND = ".,;:!?'\"*_`>"
_PAIRS = {")": "(", "]": "[", "}": "{"}
LONGEST = 2000
"""Characters; terminals ignore longer links."""
_PROGRAMS = frozenset({"iterm.app", "wezterm", "vscode", "ghostty", "hyper", "rio", "tabby", "mintty"})
_TERMS = ("xterm-kitty", "foot", "alacritty", "xterm-ghostty", "contour", "rio", "wezterm")
_FILL = "\x1b[K"
"""Erases to the end of the row in the current background, so that nothing of it is copied."""


class StyledOutput:
    def __init__(self, stdout: Stdout, themed: TerminalState) -> None:
        """Its palette may change at any time."""
        self._stdout, self._themed = stdout, themed
        self._has_links = stdout.has_colours and takes_links(os.environ)
        self._wrapper = Wrapper()
        self._console = Console(
            file=stdout,  # type: ignore[arg-type]  # as much of a text file as Rich needs
            color_system="auto" if stdout.can_move else None,
            no_color=not stdout.has_colours,
            highlight=False,
            markup=False,
            emoji=False,
            theme=THEME,
        )
        self._depth: Depth = self._console.color_system or ""  # type: ignore[assignment]  # Rich has one more, for Windows

    def write(self, text: Text) -> None:
        """As segments, because Rich would turn tabs into blanks; cleans whatever was not cleaned before."""
        if self._stdout.can_move:
            text = self._wrapper.wrap(text, self._stdout.columns)
        if self._has_links:
            link_addresses(text)
        if text.style:
            text.stylize_before(text.style)  # Rich leaves the style of a whole text to others
        self._write(Segment(clean(each.text), each.style) for each in text.render(self._console))

    def table(self, grid: Grid) -> None:
        if self._has_links:
            for cell in chain.from_iterable(grid.rows):
                link_addresses(cell)
        self._write(self._console.render(grid))
        self._wrapper = Wrapper()

    def _write(self, segments: Iterable[Segment]) -> None:
        self._console.print(Segments(self._paint(segments)), soft_wrap=True, end="")

    def _paint(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        is_filled = False
        for segment in segments:
            style = segment.style and paint(segment.style, theme=self._themed.palette, depth=self._depth)
            ground = segment.style.bgcolor if segment.style is not None else None
            fills_row = ground is not None and ground.name in FULL_WIDTH
            if style and fills_row and not is_filled and style.bgcolor is not None:
                yield Segment(_FILL, Style(bgcolor=style.bgcolor))
                is_filled = True
            yield Segment(segment.text, style, segment.control)
            is_filled = is_filled and "\n" not in segment.text


def takes_links(environment: Mapping[str, str]) -> bool:
    """True for terminals known to show hyperlinks; FORCE_HYPERLINK overrides it."""
    if (forced := environment.get("FORCE_HYPERLINK")) is not None:
        return forced != "0"
    program = environment.get("TERM_PROGRAM", "").lower()
    if "TMUX" in environment:
        version = re.findall(r"\d+", environment.get("TERM_PROGRAM_VERSION", ""))
        return program == "tmux" and tuple(map(int, version[:2])) >= (3, 4)
    if "STY" in environment:
        return False
    if program in _PROGRAMS or environment.get("TERM", "").startswith(_TERMS):
        return True
    numbers = {"VTE_VERSION": 5001, "KONSOLE_VERSION": 201200}
    if any((text := environment.get(name, "")).isdecimal() and int(text) >= least for name, least in numbers.items()):
        return True
    return bool({"WT_SESSION", "KITTY_WINDOW_ID", "DOMTERM"} & environment.keys())


def link_addresses(text: Text) -> Text:
    for match in _ADDRESS.finditer(text.plain) if "://" in text.plain else ():
        if len(match[0]) <= LONGEST:
            # Strips the punctuation of the sentence around an address
            address = match[0]
            while address:
                last = address[-1]
                if last not in _BEHIND and (last not in _PAIRS or address.count(_PAIRS[last]) >= address.count(last)):
                    break
                address = address[:-1]
            text.stylize(Style(link=address), match.start(), match.start() + len(address))
    return text
