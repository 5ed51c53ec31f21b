"""A session in the shape that was asked for, written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wolo.errors import UsageError
from wolo.sessions.exchange import atif, html, jsonl, markdown, openai_messages, rows
from wolo.sessions.exchange.exporters import claude_code, codex, kimi, opencode, pi
from wolo.sessions.exchange.jsonl import Write
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store

Export = Callable[[Store, SessionInfo, Write, Redactor | None], None]

EXPORTS: Mapping[str, Export] = {
    jsonl.FORMAT: jsonl.write,
    rows.FORMAT: rows.write,
    openai_messages.FORMAT: openai_messages.write,
    markdown.FORMAT: markdown.write,
    html.FORMAT: html.write,
    atif.FORMAT: atif.write,
    "claude-code": claude_code.write,
    "codex": codex.write,
    "opencode": opencode.write,
    "pi": pi.write,
    "kimi": kimi.write,
}


def export(store: Store, info: SessionInfo, format: str, out: Write, redactor: Redactor | None) -> None:
    """Raises UsageError for a format that wolo does not write, and for secrets where they may not go."""
    writer = EXPORTS.get(format)
    if writer is None:
        raise UsageError(f"Wolo cannot export {format}.", hint=f"It can export {', '.join(EXPORTS)}.")
    if redactor is None and format != jsonl.FORMAT:
        raise UsageError(f"Secrets never go into {format}.", hint=f"Only {jsonl.FORMAT}, a copy for yourself, may hold them.")
    writer(store, info, out, redactor)
