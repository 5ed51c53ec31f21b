"""What is known of a conversation from outside, and how the one that follows it differs."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from wolo.config.schema import Ui
from wolo.messages.message import Message
from wolo.sessions.entries import CustomEntry


class ConversationInfo(Struct, frozen=True, kw_only=True):
    """What a front end may show about a conversation; only `set_mode` changes some of it while the conversation lives."""

    session_id: str
    model: str
    """`provider/model`."""
    cwd: Path
    root: Path
    """The directory that counts as inside; the repository's, when there is one."""
    mode: str
    sandbox: str = ""
    """The backend that holds commands; empty: none does."""
    tool_names: tuple[str, ...]
    ui: Ui = Ui()
    """How the settings want it to look and to be typed in."""
    keeps_session: bool = True
    begun_in: str = ""
    """The directory of the session that goes on; empty for a new one."""
    notices: tuple[str, ...] = ()
    """Said once, with the first prompt."""


class EnteredMode(Struct, frozen=True, kw_only=True):
    """Which mode holds once another one was asked for."""

    name: str
    sandbox: str
    """The backend that holds commands in it; empty: none does."""
    notice: str
    """For a person, when it is not the mode that was asked for."""


class Change(Struct, frozen=True, kw_only=True):
    """How the next conversation differs from this one."""

    model: str = ""
    """Empty: the same."""
    session: str | None = ""
    """Another one by id, name or title; empty: the same one; None: a new one."""
    at_own_address: bool = False
    """The model is asked at its provider's address from now on, whatever address was given for this run."""
    fork: bool = False
    """Continue in a copy of that session."""
    directories: tuple[str, ...] = ()
    """Added to the workspace, for all conversations of this process that follow."""
    behind: int | None = None
    """Go on behind this entry of the same session, on a new branch; 0: before the first."""
    summary: Message | None = None
    """What the model is told of the branch that is left."""
    why: CustomEntry | None = None
    """Kept with it."""
    said: tuple[Message, ...] | None = None
    """What counts as said from now on, where no session keeps it; None: all that was."""
