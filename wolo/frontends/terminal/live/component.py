"""Roles in the terminal: a component draws rows of the live region, actions start what slash commands ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wolo.agent.events import Event
from wolo.frontends.terminal.io.terminal_output import Sender
from wolo.frontends.terminal.prompt_loop import PromptLoop

Row = list[tuple[str, str]]
"""Style and text, piece by piece, as prompt_toolkit takes them."""


class Component(Protocol):
    """A part of the live region, drawn again after each `LiveRegion.paint`; a keystroke alone draws none of them."""

    most_rows: int
    least_window_rows: int
    """In a lower window the component is hidden."""

    def render(self, width: int) -> Sequence[Row]:
        """Rows that fit the width; none while there is nothing to show."""

    def on_event(self, event: Event) -> None:
        """Updates the state that `render` draws."""


class TerminalActions(Protocol):
    """Actions of the REPL that slash commands start."""

    @property
    def sender(self) -> Sender | None:
        """Writes control sequences. None: the terminal shows them as text."""

    def open_editor(self) -> None: ...

    def keys_listed(self) -> str: ...

    def use_theme(self, theme: str) -> None: ...

    @property
    def uses_vi(self) -> bool: ...

    def use_vi(self, enabled: bool) -> None: ...

    @property
    def loop(self) -> PromptLoop: ...
