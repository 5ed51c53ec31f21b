"""What a model may ask a person in so many words, and what the person says to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct


class Option(Struct, frozen=True):
    label: str
    """One line."""
    description: str = ""


class Question(Struct, frozen=True, kw_only=True):
    text: str
    header: str = ""
    """A word or two that say what it is about."""
    options: tuple[Option, ...] = ()
    """A person may always say something else."""
    several: bool = False
    """More than one option may be chosen."""


class Reply(Struct, frozen=True):
    chosen: tuple[str, ...] = ()
    """Labels of options."""
    text: str = ""
    """The person's own words; both empty: this question was passed over."""


Replies = tuple[Reply, ...]
AskQuestions = Callable[[str, Sequence[Question]], Awaitable[Replies | None]]
"""With the id of the call; one reply to each question, or None when the person answers none of them."""


class PutQuestions(Protocol):
    """The same, which can be told for which call of `task` another agent asks."""

    def __call__(self, call_id: str, questions: Sequence[Question], task: str = "") -> Awaitable[Replies | None]: ...
