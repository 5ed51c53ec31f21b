"""What a reader of another program's sessions makes of a file, before any of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from wolo.messages.message import Message


class Imported(Struct, frozen=True, kw_only=True):
    """A conversation as wolo keeps it; what the file did not say stays empty."""

    id: str = ""
    """Its own name for itself, kept when it is free."""
    title: str = ""
    cwd: str = ""
    """The directory it was about, as the file spells it; on this machine there may be no such place."""
    created: float = 0.0
    """Unix seconds; 0: the file does not say."""
    model: str = ""
    messages: tuple[Message, ...] = ()
    left_out: tuple[str, ...] = ()
    """Ids of messages that the program had stopped sending, because a `compaction_summary` further on stands for them."""
    skipped: int = 0
    """Lines and records that could not be read; those that are of no account are not counted."""
    notices: tuple[str, ...] = ()
    """What a person should know about how it was read."""


Reader = Callable[[Path], Imported]
"""Reads only, and takes what it can; raises SessionError when nothing in it is a conversation."""
