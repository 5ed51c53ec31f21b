"""Lists the formats that sessions are exported to and imported from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError
from wolo.sessions.exchange import atif, html_export, jsonl, markdown_export, openai_messages, rows
from wolo.sessions.exchange.export_stream import Write
from wolo.sessions.exchange.foreign import claude_code, codex, kimi, opencode, pi, vibe
from wolo.sessions.exchange.foreign.discovery import FoundSession
from wolo.sessions.exchange.json_files import FilePreview, Reader
from wolo.sessions.exchange.redaction import Redactor
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store


class ImportFormat(Struct, frozen=True):
    name: str
    """Value of `--format`."""
    label: str
    """For messages to the user."""
    matches: Callable[[FilePreview], bool]
    read: Reader


IMPORT_FORMATS: tuple[ImportFormat, ...] = (
    ImportFormat("pi", "a session of pi", pi.matches, pi.read),
    ImportFormat("claude-code", "a session of Claude Code", claude_code.matches, claude_code.read),
    ImportFormat("codex", "a session of Codex", codex.matches, codex.read),
    ImportFormat("kimi", "a session of Kimi", kimi.matches, kimi.read),
    ImportFormat("opencode", "a session of OpenCode", opencode.matches, opencode.read),
    ImportFormat("vibe", "a session of Mistral Vibe", vibe.matches, vibe.read),
    ImportFormat(atif.FORMAT, "a trajectory (ATIF)", atif.matches, atif.read),
    ImportFormat(rows.FORMAT, "a thread of AgentPress", rows.matches, rows.read),
    ImportFormat(openai_messages.FORMAT, "a list of messages", openai_messages.matches, openai_messages.read),
)
"""In the order they are tried: specific formats before general ones. Wolo's own format is read by `jsonl_import`."""

AGENTS: Mapping[str, Callable[[Path, Mapping[str, str]], list[FoundSession]]] = {
    "claude-code": claude_code.find_sessions,
    "codex": codex.find_sessions,
    "opencode": opencode.find_sessions,
    "kimi": kimi.find_sessions,
    "pi": pi.find_sessions,
    "vibe": vibe.find_sessions,
}
"""Functions that find an agent's sessions of a directory, newest first; the environment says where they are stored."""

EXPORT_FORMATS: Mapping[str, Callable[[Store, SessionInfo, Write, Redactor | None], None]] = {
    jsonl.FORMAT: jsonl.write,
    rows.FORMAT: rows.write,
    openai_messages.FORMAT: openai_messages.write,
    markdown_export.FORMAT: markdown_export.write,
    html_export.FORMAT: html_export.write,
    atif.FORMAT: atif.write,
    "claude-code": claude_code.write,
    "codex": codex.write,
    "opencode": opencode.write,
    "pi": pi.write,
    "kimi": kimi.write,
}


def recognise(preview: FilePreview) -> ImportFormat | None:
    return next((format for format in IMPORT_FORMATS if format.matches(preview)), None)


def import_format(name: str) -> ImportFormat | None:
    return next((format for format in IMPORT_FORMATS if format.name == name), None)


def export(store: Store, info: SessionInfo, format: str, out: Write, redactor: Redactor | None) -> None:
    """Raises UsageError for an unknown format, and for an unredacted export in a format other than jsonl."""
    if (writer := EXPORT_FORMATS.get(format)) is None:
        raise UsageError(f"Unknown export format {format}.", hint=f"Choose one of {', '.join(EXPORT_FORMATS)}.")
    if redactor is None and format != jsonl.FORMAT:
        raise UsageError(f"Secrets cannot be exported to {format}.", hint=f"Only {jsonl.FORMAT} can contain them.")
    writer(store, info, out, redactor)
