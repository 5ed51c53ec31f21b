"""The JSON objects in a file that another program writes, one a line, whatever else stands in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wolo.sessions.exchange.sniff import LINE_LIMIT_BYTES, unreadable

_BLANKS = b" \t\r\n\xef\xbb\xbf"
"""With the marks that some editors put in front of UTF-8."""
_PADDING = b"\0" + _BLANKS

Record = dict[str, Any]


class Lines:
    """One file. `skipped` counts the lines that could not be read, once the file has been gone through."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.placed())

    def placed(self) -> Iterator[tuple[int, Record]]:
        """Each object together with the place where its line begins. Raises SessionError when there is no such file."""
        self.skipped = 0
        try:
            with self.path.open("rb") as file:
                at = 0
                while line := file.readline(LINE_LIMIT_BYTES):
                    begin, at = at, at + len(line)
                    if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
                        while (rest := file.readline(LINE_LIMIT_BYTES)) and not rest.endswith(b"\n"):
                            at += len(rest)
                        at += len(rest)
                        self.skipped += 1
                    elif (record := self._parse(line)) is not None:
                        yield begin, record
        except OSError as error:
            raise unreadable(self.path, error) from error

    def at(self, places: list[int]) -> Iterator[Record]:
        """The objects at places that `placed` has named."""
        try:
            with self.path.open("rb") as file:
                for place in places:
                    file.seek(place)
                    record = parse(file.readline(LINE_LIMIT_BYTES).strip(_PADDING))
                    if record is not None:
                        yield record
        except OSError as error:
            raise unreadable(self.path, error) from error

    def _parse(self, line: bytes) -> Record | None:
        """What a crash left unwritten reads as zeros: a hole, and what was written behind it is a line like any other."""
        stripped = line.strip(_BLANKS)
        written = stripped.strip(_PADDING)
        record = parse(written) if written else None
        self.skipped += len(written) < len(stripped) or (record is None and bool(written))
        return record


def parse(data: bytes) -> Record | None:
    """None for what is no JSON object."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _parse_loosely(data)
    return value if isinstance(value, dict) else None


def read_object(path: Path) -> Record:
    """A file that is one JSON object; empty when it is not, or not there."""
    try:
        return parse(path.read_bytes().strip(_PADDING)) or {}
    except OSError:
        return {}


def _parse_loosely(data: bytes) -> Any:
    """Also half characters in escapes and numbers that are none, which some programs write."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
