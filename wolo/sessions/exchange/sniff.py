"""A first look at a file whose kind is not known yet, and the lines of one that is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import SessionError

BEGINNING_BYTES = 64 * 1024
LINE_LIMIT_BYTES = 128 * 1024 * 1024
"""A longer line is no line of any session; it is passed over without being held."""
END_OF_TIME = 1e11
"""Unix seconds; later ones have no date."""
BOM = b"\xef\xbb\xbf"


class Glimpse(Struct, frozen=True):
    path: Path
    """A file, or the folder that was named."""
    beginning: bytes
    """Of the file, without a byte order mark; empty for a folder."""
    records: tuple[dict[str, Any], ...]
    """The JSON objects that stand each on a line of the beginning, in their order; lines that are none are left out."""


def look(path: Path) -> Glimpse:
    """Raises SessionError for what is not there or cannot be read."""
    try:
        if path.is_dir():
            return Glimpse(path, b"", ())
        with path.open("rb") as file:
            beginning = file.read(BEGINNING_BYTES).removeprefix(BOM)
    except OSError as error:
        raise unreadable(path, error) from error
    return Glimpse(path, beginning, tuple(_objects(beginning)))


def lines(path: Path) -> Iterator[bytes | None]:
    """Without their ends and without blank ones; None for a line that is too long to be one. Raises SessionError."""
    try:
        with path.open("rb") as file:
            at_start = True
            while line := file.readline(LINE_LIMIT_BYTES):
                too_long = len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n")
                while too_long and (rest := file.readline(LINE_LIMIT_BYTES)) and not rest.endswith(b"\n"):
                    pass
                line = line.removeprefix(BOM) if at_start else line
                at_start = False
                if too_long:
                    yield None
                elif stripped := line.strip():
                    yield stripped
    except OSError as error:
        raise unreadable(path, error) from error


def parsed(line: bytes | None) -> Any:
    """The JSON of a line; None for a torn one, for one with half a character in it, and for no JSON at all."""
    try:
        return _loads(line.decode()) if line is not None else None
    except (ValueError, RecursionError):
        return None


def document(path: Path) -> Any:
    """The JSON that a whole file is. Raises SessionError."""
    try:
        text = path.read_bytes().removeprefix(BOM).decode("utf-8", "replace")
        return _loads(text)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise SessionError(
            f"{path} is no whole JSON document: {error}.", hint="It may have been cut off; get it again."
        ) from error


def _whole_number(digits: str) -> int | None:
    """None for thousands of digits, which Python refuses to read."""
    try:
        return int(digits)
    except ValueError:
        return None


def _number(digits: str) -> float | None:
    value = float(digits)
    return value if math.isfinite(value) else None


_loads = json.JSONDecoder(strict=False, parse_int=_whole_number, parse_float=_number, parse_constant=lambda _: None).decode


def unreadable(path: Path, error: OSError) -> SessionError:
    return SessionError(f"{path} cannot be read: {error.strerror or error}.", hint="Name a file that is there.")


def _objects(beginning: bytes) -> Iterator[dict[str, Any]]:
    for line in beginning.splitlines():
        value = parsed(line)
        if isinstance(value, dict):
            yield value
