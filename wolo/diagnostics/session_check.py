"""Checks a saved session, and its next request, for errors and losses.

Every request is repaired when it is built, so an error is damage in the store, an oversized request, or a bug. A note tells
which content another model will not get, and what is repaired.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wolo.diagnostics.request_preview import NextRequest
from wolo.formats.encoding.attachments import base64_text
from wolo.formats.encoding.encoder import visible_message
from wolo.formats.encoding.wire_forms import outcome_of
from wolo.formats.lint.linters import BODY_LIMITS_BYTES, LINTERS
from wolo.messages.call_arguments import Unreadable, read_arguments
from wolo.messages.message import Message
from wolo.messages.parts import AudioPart, MediaPart, ThinkingPart, ToolPart
from wolo.sessions.entries import AnyEntry, ResultsEntry
from wolo.sessions.loading import Loaded
from wolo.sessions.replay_entries import as_stored, messages

LOOKED_FOR_BYTES = 3_000
"""Searched part of an attachment; a multiple of three, so that it is a prefix of the base64."""
SAID = {"never_started": "it never started", "interrupted": "it was interrupted and may have had effects"}

Severity = Literal["error", "note"]


class SessionFinding(Struct, frozen=True, kw_only=True):
    severity: Severity
    format: str = ""
    """Empty: any format."""
    place: str
    text: str


def check_kept(loaded: Loaded) -> list[SessionFinding]:
    """Finds problems that no request shows, because they are repaired or unreadable."""
    history = as_stored(loaded.entries)
    outcomes = {call.id: outcome_of(call) for message in messages(loaded.entries) for call in message.calls}
    findings = [SessionFinding(severity="error", place="session", text=loaded.warning)] if loaded.warning else []
    findings += _orphans(loaded.entries, history)
    for place, call in _calls(history):
        if call.status in ("pending", "running"):
            words = SAID.get(outcomes[call.id], "it did not end")
            findings.append(_note(place, f"This call of `{call.tool}` has no result; the model is told that {words}."))
        elif not _is_readable(call):
            text = "could not be read; the session keeps them, and the model gets {} and the reason."
            findings.append(_note(place, f"The arguments of this call of `{call.tool}` {text}"))
    return [*findings, *_repeated_calls(history)]


def check_request(outgoing: NextRequest, history: Sequence[Message]) -> list[SessionFinding]:
    """Finds what a strict server would reject, and content that this model does not get."""
    format, findings = outgoing.format, list(_size(outgoing))
    if outgoing.is_compacted:
        findings.append(_note("session", "It exceeds the context window, so old outputs and messages are omitted.", format))
    if (linter := LINTERS.get(format)) is None:
        findings.append(_note("request", f"There are no rules for {format}; the request was not checked.", format))
    else:
        body = json.loads(outgoing.body)
        findings += [_error("request", text, format) for text in linter(body, _request_before(outgoing))]
    return [*findings, *_withheld(outgoing, history), *_media_left_out(outgoing, history)]


def _request_before(outgoing: NextRequest) -> dict[str, Any] | None:
    """The request of the last answer: the prefix of the next one."""
    messages = outgoing.request.messages
    last = next((at for at in range(len(messages) - 1, 0, -1) if messages[at].role == "assistant"), 0)
    if not last:
        return None
    seen = {call.id for message in messages[: last - 1] if message.role == "assistant" for call in message.calls}
    asking = visible_message(messages[last - 1], seen)
    if asking is None or not (asking.role == "user" or asking.calls):
        return None  # that request ended with a nudge, which is not saved
    body: dict[str, Any] = json.loads(outgoing.encode(messages[:last]))
    return body


# The session


def _orphans(entries: Iterable[AnyEntry], history: Sequence[Message]) -> Iterator[SessionFinding]:
    calls_by_message = {message.id: {part.id for part in message.calls} for message in history}
    for entry in entries:
        if isinstance(entry, ResultsEntry):
            for part in entry.parts:
                if part.id not in calls_by_message.get(entry.message_id, ()):
                    text = f"This result of `{part.tool}` belongs to a missing call; it cannot be sent."
                    yield _error(f"result {part.id}", text)


def _calls(history: Sequence[Message]) -> Iterator[tuple[str, ToolPart]]:
    for at, message in enumerate(history, 1):
        for call in message.calls:
            yield f"message {at}, call {call.wire_id}", call


def _is_readable(call: ToolPart) -> bool:
    if call.input:
        return True
    if not call.raw_input:
        return call.outcome != "invalid"
    try:
        read_arguments(call.raw_input)
    except Unreadable:
        return False
    return True


def _repeated_calls(history: Sequence[Message]) -> Iterator[SessionFinding]:
    parts: dict[str, list[str]] = {}
    wire_ids: dict[str, list[str]] = {}
    for at, message in enumerate(history, 1):
        for call in message.calls:
            parts.setdefault(call.id, []).append(str(at))
            wire_ids.setdefault(call.wire_id, []).append(str(at))
    for part_id, places in parts.items():
        if len(places) > 1:
            yield _note(f"messages {', '.join(places)}", f"The call {part_id} is there more than once; only the first is sent.")
    for wire_id, places in wire_ids.items():
        if len(places) > 1:
            text = f"The provider called {len(places)} calls {wire_id!r}; each gets its own id in requests."
            yield _note(f"messages {', '.join(dict.fromkeys(places))}", text)


# The request


def _size(outgoing: NextRequest) -> Iterator[SessionFinding]:
    window, limit = outgoing.window, BODY_LIMITS_BYTES.get(outgoing.format)
    if window is not None and outgoing.tokens > window:
        text = f"About {outgoing.tokens:,} tokens exceed the context window of {outgoing.choice.label}, {window:,}."
        yield _error("request", text, outgoing.format)
    if limit is not None and len(outgoing.body) > limit:
        yield _error("request", f"{len(outgoing.body):,} bytes exceed the limit of such servers, {limit:,}.", outgoing.format)


def _withheld(outgoing: NextRequest, history: Sequence[Message]) -> Iterator[SessionFinding]:
    """Reasoning and signatures go to their producer only."""
    lost: dict[str, list[int]] = {}
    for at, message in enumerate(history, 1):
        wrote = message.producer
        if wrote != outgoing.request.producer and any(part.blobs or isinstance(part, ThinkingPart) for part in message.parts):
            name = f"{wrote.provider}/{wrote.model} ({wrote.format})" if wrote else "an unknown model"
            lost.setdefault(name, []).append(at)
    for name, places in lost.items():
        where = f"message {places[0]}" if len(places) == 1 else f"messages {places[0]} to {places[-1]}"
        count = "1 answer" if len(places) == 1 else f"{len(places)} answers"
        text = f"The reasoning and signatures in {count} of {name} are not sent; only their own model can read them."
        yield _note(where, text, outgoing.format)


def _media_left_out(outgoing: NextRequest, history: Sequence[Message]) -> Iterator[SessionFinding]:
    for at, message in enumerate(history, 1):
        for part in _media(message):
            if (part.data or _url(part)) and not _is_in(part, outgoing.body):
                name = f" ({part.name})" if part.name else ""
                text = f"This {part.type}{name} is not sent: {outgoing.choice.label} does not accept it; a note replaces it."
                yield _note(f"message {at}", text, outgoing.format)


def _media(message: Message) -> Iterator[MediaPart]:
    for part in message.parts:
        if isinstance(part, ToolPart):
            yield from part.output_parts
        elif isinstance(part, MediaPart):
            yield part


def _is_in(part: MediaPart, body: bytes) -> bool:
    if part.data:
        return base64_text(part.data[:LOOKED_FOR_BYTES]).encode() in body
    return msgspec.json.encode(_url(part))[1:-1] in body


def _url(part: MediaPart) -> str:
    return "" if isinstance(part, AudioPart) else part.url


def _note(place: str, text: str, format: str = "") -> SessionFinding:
    return SessionFinding(severity="note", format=format, place=place, text=text)


def _error(place: str, text: str, format: str = "") -> SessionFinding:
    return SessionFinding(severity="error", format=format, place=place, text=text)
