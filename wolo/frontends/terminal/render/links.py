"""Hyperlinks (OSC 8): an address stays one link where the window is too narrow for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rich.style import Style
from rich.text import Text

_ADDRESS = re.compile(r"https?://[!-~]+")
_BEHIND = ".,;:!?'\"*_`>"
_PAIRS = {")": "(", "]": "[", "}": "{"}
LONGEST = 2000
"""Terminals take no longer address."""
_PROGRAMS = frozenset({"iterm.app", "wezterm", "vscode", "ghostty", "hyper", "rio", "tabby", "mintty"})
_TERMS = ("xterm-kitty", "foot", "alacritty", "xterm-ghostty", "contour", "rio", "wezterm")


def takes_links(environment: Mapping[str, str]) -> bool:
    """Whether the terminal is known to show hyperlinks; FORCE_HYPERLINK says it for others."""
    if (forced := environment.get("FORCE_HYPERLINK")) is not None:
        return forced != "0"
    program = environment.get("TERM_PROGRAM", "").lower()
    if "TMUX" in environment:
        return program == "tmux" and _version(environment.get("TERM_PROGRAM_VERSION", "")) >= (3, 4)
    if "STY" in environment:
        return False
    if program in _PROGRAMS or environment.get("TERM", "").startswith(_TERMS):
        return True
    numbers = {"VTE_VERSION": 5001, "KONSOLE_VERSION": 201200}
    if any(_number(environment.get(name, "")) >= least for name, least in numbers.items()):
        return True
    return bool({"WT_SESSION", "KITTY_WINDOW_ID", "DOMTERM"} & environment.keys())


def link_addresses(text: Text) -> Text:
    """Each address leads to what it says, and to nothing else."""
    for found in _ADDRESS.finditer(text.plain) if "://" in text.plain else ():
        if len(found[0]) <= LONGEST:
            address = _without_end(found[0])
            text.stylize(Style(link=address), found.start(), found.start() + len(address))
    return text


def _without_end(address: str) -> str:
    """Without the punctuation of the sentence around it."""
    while address:
        last = address[-1]
        if last not in _BEHIND and (last not in _PAIRS or address.count(_PAIRS[last]) >= address.count(last)):
            break
        address = address[:-1]
    return address


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
