"""Where a person is asked while the foot stands, and what can stand there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, TypeVar

from wolo.frontends.terminal.io.focus_tracking import Presence

if TYPE_CHECKING:
    from prompt_toolkit.layout import AnyContainer

T = TypeVar("T")


class Asked(Protocol[T]):
    """A panel, whatever kind of question it holds."""

    answer: asyncio.Future[T]
    container: AnyContainer

    def open(self) -> None:
        """It can be seen from now on; the keyboard is its own."""

    def close(self) -> None:
        """Nobody sees it any more."""


class Stage(Protocol):
    presence: Presence

    def send(self, sequence: str) -> None:
        """What the terminal obeys and does not show."""

    async def ask(self, question: str, *, draft: str = "", may_pass: bool = False) -> str: ...

    async def stand(self, panel: Asked[T]) -> T: ...
