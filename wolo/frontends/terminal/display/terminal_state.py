"""State of the terminal that the screen, the live region and the signal handlers share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.io.theme import select_theme
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from prompt_toolkit.layout import AnyContainer

T = TypeVar("T")


class Dialog(Protocol[T]):
    """A panel that takes the place of the input until it is answered."""

    answer: asyncio.Future[T]
    container: AnyContainer

    def open(self) -> None:
        """Called when it becomes visible; the keyboard is its own."""

    def close(self) -> None:
        """Called when it is answered or abandoned."""

    def dismiss(self) -> None:
        """Ends it without an answer, as Ctrl-C does."""


@dataclass(slots=True)
class TerminalState:
    theme: str = "auto"
    """A name in PALETTES, or `auto`: by the background."""
    ground: str = field(default_factory=lambda: select_theme("auto", os.environ))
    """`dark` or `light`, as the environment or the terminal says."""
    is_interactive: bool = False
    """More than one task: questions before a turn are asked in panels, too."""
    conversation: Conversation | None = None
    """The open conversation."""
    is_working: bool = False
    """A turn or a command runs."""
    is_stopping: bool = False
    stop_loop: Callable[[], bool] = lambda: False
    """Stops the prompt that is sent again and again; False: there is none."""
    is_ending: bool = False
    """A signal ends wolo, so nothing more is asked."""
    stopped_at: float = float("-inf")
    """Time at which the user last stopped a turn or a command."""
    interrupted_at: float = float("-inf")
    """Time of the last Ctrl-C on an empty line while nothing ran; the next key, if it is another one, quits."""
    vi_mode: str = ""
    """INSERT, NORMAL or REPLACE; empty without the keys of vi."""
    hint: str = ""
    """Shown beside an empty input line."""
    tail: str = ""
    """Beginning of a line that is still being written, with its colours."""
    unfinished: str = ""
    """Beginning of a line that is printed once it is complete."""
    background: list[str] = field(default_factory=list)
    """Commands that run alongside the turn."""
    dialogs: list[Dialog[Any]] = field(default_factory=list)
    """Open dialogs; the last one is visible."""
    typed_texts: dict[str, str] = field(default_factory=dict)
    """Steered messages as the user typed them, with pastes folded, by message id."""

    @property
    def palette(self) -> str:
        return self.ground if self.theme == "auto" else self.theme

    @property
    def is_asking(self) -> bool:
        return bool(self.dialogs)

    @property
    def running_jobs(self) -> str:
        """`2 jobs · 1 task`; empty when none runs."""
        jobs = self.conversation.jobs if self.conversation is not None else None
        tasks = self.conversation.subagents.background if self.conversation is not None else None
        counts = (("job", len(jobs.running) if jobs is not None else 0), ("task", len(tasks.running) if tasks is not None else 0))
        return " · ".join(quantity(count, what) for what, count in counts if count)

    @property
    def alongside(self) -> str:
        """Commands and jobs in the background, in short."""
        return " · ".join(filter(None, [*self.background, self.running_jobs]))
