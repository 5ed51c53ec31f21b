"""What kind of session a file holds, told from its content."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from wolo.sessions.exchange import atif, openai_messages, rows
from wolo.sessions.exchange.import_result import Reader
from wolo.sessions.exchange.importers import claude_code, codex, kimi, opencode, pi, vibe
from wolo.sessions.exchange.sniff import Glimpse


class Shape(Struct, frozen=True):
    """A kind of file that can be imported."""

    name: str
    """As `--format` takes it."""
    label: str
    """As a person calls it."""
    is_shape_of: Callable[[Glimpse], bool]
    read: Reader


SHAPES: tuple[Shape, ...] = (
    Shape("pi", "a session of pi", pi.is_shape_of, pi.read),
    Shape("claude-code", "a session of Claude Code", claude_code.is_shape_of, claude_code.read),
    Shape("codex", "a session of Codex", codex.is_shape_of, codex.read),
    Shape("kimi", "a session of Kimi", kimi.is_shape_of, kimi.read),
    Shape("opencode", "a session of OpenCode", opencode.is_shape_of, opencode.read),
    Shape("vibe", "a session of Mistral Vibe", vibe.is_shape_of, vibe.read),
    Shape(atif.FORMAT, "a trajectory (ATIF)", atif.is_shape_of, atif.read),
    Shape(rows.FORMAT, "a thread of AgentPress", rows.is_shape_of, rows.read),
    Shape(openai_messages.FORMAT, "a list of messages", openai_messages.is_shape_of, openai_messages.read),
)
"""The first that recognises its own is taken, so the particular come before the general. Wolo's own, which is read entry by
entry and not as messages, is not among them."""


def recognise(glimpse: Glimpse) -> Shape | None:
    return next((shape for shape in SHAPES if shape.is_shape_of(glimpse)), None)


def named(name: str) -> Shape | None:
    return next((shape for shape in SHAPES if shape.name == name), None)
