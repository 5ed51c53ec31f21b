"""Messages of the language server protocol: framing, and the errors in published diagnostics."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct

from wolo.messages.terminal_text import clean_line

MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of a message."""
MOST_HEADERS = 20
MOST_KEPT = 1_000
"""Errors per file."""
MOST_SHOWN = 10
MOST_CHARS = 400
"""Per error."""
_ERROR = 1


class BadMessage(Exception):
    """The server wrote something that is not a message of the protocol."""


class Problem(Struct, frozen=True):
    """An error in a file."""

    line: int
    column: int
    """Both from 1."""
    text: str
    """The message and its code, in one line."""


def encode(message: dict[str, Any]) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", **message})
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


async def read_message(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """None at the end. Raises BadMessage."""
    size = -1
    try:
        for _ in range(MOST_HEADERS):
            if not (line := await stream.readline()):
                return None
            if not line.strip():
                break
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or not re.fullmatch(r"[A-Za-z-]{1,60}", name):
                raise BadMessage(f"it printed {clean_line(line.decode(errors='replace').strip())[:80]!r}")
            if name.lower() == "content-length":
                size = int(value)
        if not 0 <= size <= MOST_BYTES:
            raise BadMessage("it sent a message without a usable length")
        decoded = msgspec.json.decode(await stream.readexactly(size))
    except asyncio.IncompleteReadError:
        return None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise BadMessage(f"it sent an unreadable message ({type(error).__name__})") from error
    if not isinstance(decoded, dict):
        raise BadMessage("it sent a message that is no object")
    return decoded


def path_of(uri: Any) -> str:
    """Empty for anything but a local file."""
    parts = urlsplit(uri) if isinstance(uri, str) else None
    return unquote(parts.path) if parts is not None and parts.scheme == "file" else ""


def read_errors(rows: Any) -> tuple[Problem, ...]:
    """Errors only, without warnings and hints; rows of another form are skipped."""
    found = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("severity", _ERROR) == _ERROR and (problem := _problem(row)):
            found.append(problem)
    return tuple(found[:MOST_KEPT])


def _problem(row: dict[str, Any]) -> Problem | None:
    try:
        start = row["range"]["start"]
        line, column = int(start["line"]) + 1, int(start["character"]) + 1
    except (KeyError, TypeError, ValueError):
        return None
    message = row.get("message")
    code = row.get("code")
    named = f" ({code})" if isinstance(code, str | int) and not isinstance(code, bool) and str(code) else ""
    text = clean_line(" ".join(str(message).split()))
    return Problem(line, column, f"{text[:MOST_CHARS]}{clean_line(named)[:80]}")


def new_errors(before: Sequence[Problem], after: Sequence[Problem]) -> tuple[Problem, ...]:
    """Errors that were not there before, wherever they have moved."""
    old = Counter(each.text for each in before)
    errors = []
    for each in after:
        if old[each.text]:
            old[each.text] -= 1
        else:
            errors.append(each)
    return tuple(errors)


def describe(server: str, shown: str, errors: Sequence[Problem]) -> str:
    """The text for the model."""
    count = f"{len(errors)} new error{'' if len(errors) == 1 else 's'}"
    rows = [f"{shown}:{each.line}:{each.column}: {each.text}" for each in errors[:MOST_SHOWN]]
    more = [f"… and {len(errors) - MOST_SHOWN} more"] if len(errors) > MOST_SHOWN else []
    return "\n".join((f"[{server}: {count} after this edit]", *rows, *more))
