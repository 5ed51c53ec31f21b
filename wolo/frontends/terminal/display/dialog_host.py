"""The live region as those see it who print above it or show a dialog in it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from wolo.agent.events import Event
from wolo.frontends.terminal.display.activity import Surface
from wolo.frontends.terminal.display.terminal_state import Dialog
from wolo.frontends.terminal.io.terminal_output import Stdout

if TYPE_CHECKING:
    from wolo.frontends.terminal.io.input_parser import FocusTracker

T = TypeVar("T")


class DialogHost(Protocol):
    presence: FocusTracker

    @property
    def stdout(self) -> Stdout:
        """Prints above the region."""

    @property
    def activity(self) -> Surface:
        """Shows running work."""

    def send(self, sequence: str) -> None:
        """Writes a control sequence to the terminal."""

    def paint(self) -> None:
        """Schedules a repaint."""

    def on_event(self, event: Event) -> None:
        """Updates the components of the region."""

    def aside(self) -> AbstractAsyncContextManager[None]:
        """Gives the terminal to another program while the block runs."""

    async def ask(self, question: str, *, draft: str = "", may_pass: bool = False) -> str: ...

    async def show_dialog(self, panel: Dialog[T]) -> T: ...
