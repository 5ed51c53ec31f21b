"""Reads JSON and JSON lines that other programs wrote, skipping what is damaged."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import SessionError
from wolo.formats import tolerant_json
from wolo.messages.message import Message
from wolo.messages.unicode import whole

PREVIEW_BYTES = 64 * 1024
LINE_LIMIT_BYTES = 128 * 1024 * 1024
"""A longer line is skipped without being held in memory."""
END_OF_TIME = 1e11
"""Unix seconds; later times have no date. A larger number counts milliseconds."""
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n" + _BOM
_PADDING = b"\0" + _BLANKS

Record = dict[str, Any]


class FilePreview(Struct, frozen=True):
    """The beginning of a file, to recognise its format by."""

    path: Path
    """A file or a folder."""
    beginning: bytes
    """Without a byte order mark; empty for a folder."""
    records: tuple[Record, ...]
    """The JSON objects among the lines of the beginning."""


class Imported(Struct, frozen=True, kw_only=True):
    """A conversation read from a file. A field the file does not state is empty."""

    id: str = ""
    """Used as the session's id when it is free."""
    title: str = ""
    cwd: str = ""
    """As the file spells it; it may not exist on this machine."""
    created: float = 0.0
    """Unix seconds; 0 when unknown."""
    model: str = ""
    messages: tuple[Message, ...] = ()
    left_out: tuple[str, ...] = ()
    """Ids of messages that are no longer sent, because a later `compaction_summary` replaces them."""
    skipped: int = 0
    """Lines and records that could not be read; irrelevant ones are not counted."""
    notices: tuple[str, ...] = ()
    """For the user: how the file was read."""


Reader = Callable[[Path], Imported]
"""Reads a file without changing it; raises SessionError when it holds no conversation."""


class JsonLines:
    """The JSON objects in a file, one per line. `skipped` counts unreadable lines after an iteration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0

    def __iter__(self) -> Iterator[Record]:
        return (record for _, record in self.with_offsets())

    def with_offsets(self) -> Iterator[tuple[int, Record]]:
        """Yields each object with the byte offset of its line. Raises SessionError when the file cannot be read."""
        self.skipped = 0
        for offset, line in _raw_lines(self.path):
            # A crash leaves a hole of zeros; what was written behind it is a line like any other.
            stripped = (line or b"").strip(_BLANKS)
            written = stripped.strip(_PADDING)
            record = parse_object(written) if written else None
            self.skipped += line is None or len(written) < len(stripped) or (record is None and bool(written))
            if record is not None:
                yield offset, record

    def at_offsets(self, offsets: list[int]) -> Iterator[Record]:
        """Yields the objects at offsets that `with_offsets` returned."""
        try:
            with self.path.open("rb") as file:
                for offset in offsets:
                    file.seek(offset)
                    record = parse_object(file.readline(LINE_LIMIT_BYTES).strip(_PADDING))
                    if record is not None:
                        yield record
        except OSError as error:
            raise read_error(self.path, error) from error


def preview(path: Path) -> FilePreview:
    """Raises SessionError when the path does not exist or cannot be read."""
    try:
        if path.is_dir():
            return FilePreview(path, b"", ())
        with path.open("rb") as file:
            beginning = file.read(PREVIEW_BYTES).removeprefix(_BOM)
    except OSError as error:
        raise read_error(path, error) from error
    return FilePreview(path, beginning, tuple(parse_objects(beginning)))


def read_lines(path: Path) -> Iterator[bytes | None]:
    """Yields stripped, non-empty lines; None for one that is too long. Raises SessionError."""
    for offset, line in _raw_lines(path):
        if line is None:
            yield None
        elif stripped := (line if offset else line.removeprefix(_BOM)).strip():
            yield stripped


def read_items(path: Path, is_item: Callable[[Any], bool], key: str = "") -> tuple[list[Any], int]:
    """Reads a JSON array, an object that holds one (under `key`, or the first), or one JSON value per line.

    Returns the values and the number of unreadable lines. Raises SessionError.
    """
    try:
        document = read_document(path)
    except SessionError:
        lines = [parse_json(line and line.strip(b" ,")) for line in read_lines(path) if line not in (b"[", b"]")]
        items = [item for item in lines if item is not None]
        if not any(map(is_item, items)):
            raise
        return items, len(lines) - len(items)
    if isinstance(document, dict) and not is_item(document):
        values = (document.get(key),) if key else document.values()
        document = next((value for value in values if isinstance(value, list)), document)
    return (document if isinstance(document, list) else [document]), 0


def read_document(path: Path) -> Any:
    """Parses a whole file as one JSON value. Raises SessionError."""
    try:
        return _loads(path.read_bytes().removeprefix(_BOM).decode("utf-8", "replace"))
    except OSError as error:
        raise read_error(path, error) from error
    except (ValueError, RecursionError) as error:
        raise SessionError(
            f"{path} is not a complete JSON document: {error}.", hint="It may be truncated; get the file again."
        ) from error


def read_object(path: Path) -> Record:
    """Parses a file that holds one JSON object; empty when it is missing or something else."""
    try:
        return parse_object(path.read_bytes().strip(_PADDING)) or {}
    except OSError:
        return {}


def parse_json(data: bytes | None) -> Any:
    """Parses JSON, tolerating lone surrogates, control characters and huge numbers. None when it is not JSON."""
    if data is None:
        return None
    if (value := tolerant_json.read_json(data)) is not None:
        return value
    try:
        return _loads(data.decode())
    except (ValueError, RecursionError):
        return None


def parse_object(data: bytes) -> Record | None:
    value = parse_json(data)
    return value if isinstance(value, dict) else None


def parse_objects(data: bytes) -> list[Record]:
    return [record for line in data.splitlines() if (record := parse_object(line)) is not None]


def read_error(path: Path, error: OSError) -> SessionError:
    return SessionError(f"Cannot read {path}: {error.strerror or error}.", hint="Name a file that exists.")


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yields each line with its byte offset; None for one that is too long."""
    try:
        with path.open("rb") as file:
            end = 0
            while line := file.readline(LINE_LIMIT_BYTES):
                begin, end = end, end + len(line)
                if len(line) < LINE_LIMIT_BYTES or line.endswith(b"\n"):
                    yield begin, line
                    continue
                while (rest := file.readline(LINE_LIMIT_BYTES)) and not rest.endswith(b"\n"):
                    end += len(rest)
                end += len(rest)
                yield begin, None
    except OSError as error:
        raise read_error(path, error) from error


def _integer(digits: str) -> int | None:
    """None for thousands of digits, which Python refuses to read."""
    try:
        return int(digits)
    except ValueError:
        return None


_loads = json.JSONDecoder(
    strict=False,
    parse_int=_integer,
    parse_float=lambda digits: value if math.isfinite(value := float(digits)) else None,
    parse_constant=lambda _: None,
).decode


# Typed access to the fields of a record; a value of another type counts as missing.


record = tolerant_json.mapping_at


def records(of: Mapping[str, Any], name: str) -> list[Record]:
    return tolerant_json.list_at(of, name, dict)


def text(record: Mapping[str, Any], name: str) -> str:
    return whole(tolerant_json.text_at(record, name))


def number(record: Mapping[str, Any], name: str) -> int:
    """A count; 0 for a negative or huge value."""
    value = record.get(name)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < END_OF_TIME
    return int(value) if is_count and value is not None else 0


def amount(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, int | float) and 0 <= value < END_OF_TIME else 0.0


def content(of: Mapping[str, Any], name: str = "content") -> list[Record]:
    """Content blocks; a plain string becomes one text block."""
    value = of.get(name)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return []
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in value if isinstance(each, str | dict)]


def unix_time(value: object) -> float:
    """Unix seconds of an ISO 8601 string, or of a number of seconds or milliseconds; 0 for anything else."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return 0.0
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < END_OF_TIME * 1000:
        return value / 1000 if value >= END_OF_TIME else float(value)
    return 0.0
