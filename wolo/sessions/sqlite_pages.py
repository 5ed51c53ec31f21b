"""Reads records from the pages of an SQLite file, without its trees.

SQLite stops at a damaged page on the way down a tree. This reads the newest committed version of every page, from the write-ahead
log or the file. The caller tells records by their shape.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from wolo.sessions.database_file import frames, log_path

Value = int | float | str | bytes | None

USUAL_PAGE_BYTES = 4096
"""SQLite's default, used where the header is damaged."""

_MAGIC = b"SQLite format 3\0"
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)


class Pages:
    """The pages of a database that has no writer. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open_files = ExitStack()
        self._file = self._open(path)
        header = os.pread(self._file, 100, 0)
        is_whole = header[:16] == _MAGIC
        self._page_bytes = _page_bytes(header[16:18]) if is_whole else USUAL_PAGE_BYTES
        self._usable = self._page_bytes - (_number(header[20:21]) if is_whole else 0)
        self._log: int | None = None
        self._logged: dict[int, int] = {}
        # The pages of which the log has a newer version, up to its last commit.
        if log_path(path).exists():
            self._log = self._open(log_path(path))
            uncommitted: dict[int, int] = {}
            for frame in frames(self._log, self._page_bytes):
                uncommitted[frame.page] = frame.at
                if frame.ends_commit:
                    self._logged.update(uncommitted)
                    uncommitted.clear()
        in_file = -(-os.fstat(self._file).st_size // self._page_bytes)
        self._count = max([in_file, *self._logged])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open_files.close()

    def records(self) -> Iterator[list[Value]]:
        """Yields records of tables and indexes, in no particular order."""
        # Pages on the free list, as far as it can be read: their content was deleted
        freed: set[int] = set()
        header = self._page(1)
        trunk = _number(header[32:36]) if header.startswith(_MAGIC) else 0
        while 1 < trunk <= self._count and trunk not in freed:
            page = self._page(trunk)
            count = min(_number(page[4:8]), len(page) // 4 - 2)
            freed.add(trunk)
            freed.update(_number(page[at : at + 4]) for at in range(8, 8 + 4 * count, 4))
            trunk = _number(page[0:4])
        for number in range(2, self._count + 1):  # the first page holds the schema
            if number not in freed:
                yield from self._records_of(self._page(number))

    def _open(self, path: Path) -> int:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._open_files.callback(os.close, descriptor)
        return descriptor

    def _page(self, number: int) -> bytes:
        if self._log is not None and number in self._logged:
            return os.pread(self._log, self._page_bytes, self._logged[number])
        return os.pread(self._file, self._page_bytes, (number - 1) * self._page_bytes)

    def _records_of(self, page: bytes) -> Iterator[list[Value]]:
        kind = page[0] if page else 0
        if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
            return
        first = 12 if kind == _INDEX_INTERIOR else 8
        last = min(first + 2 * _number(page[3:5]), len(page) - 1)
        for at in range(first, last, 2):
            try:
                payload = self._payload(page, _number(page[at : at + 2]), kind)
                yield _values(payload)
            except (IndexError, ValueError, struct.error):
                continue  # noise

    def _payload(self, page: bytes, at: int, kind: int) -> bytes:
        size, at = _varint(page, at + 4 if kind == _INDEX_INTERIOR else at)
        if kind == _TABLE_LEAF:
            _, at = _varint(page, at)
        most = self._usable - 35 if kind == _TABLE_LEAF else (self._usable - 12) * 64 // 255 - 23
        if size <= most:
            return page[at : at + size]
        if size > self._count * self._page_bytes:
            raise ValueError(size)
        least = (self._usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (self._usable - 4)
        here = here if here <= most else least
        return page[at : at + here] + self._overflow(_number(page[at + here : at + here + 4]), size - here)

    def _overflow(self, number: int, size: int) -> bytes:
        pieces = []
        while size > 0 and 1 < number <= self._count:
            page = self._page(number)
            pieces.append(page[4 : min(self._usable, 4 + size)])
            size -= self._usable - 4
            number = _number(page[0:4])
        if size > 0:
            raise ValueError(size)
        return b"".join(pieces)


def _values(payload: bytes) -> list[Value]:
    header_bytes, at = _varint(payload, 0)
    values: list[Value] = []
    start = header_bytes
    while at < header_bytes:
        kind, at = _varint(payload, at)
        size = _INTEGER_BYTES[kind] if kind < 7 else 8 if kind == 7 else 0 if kind < 12 else (kind - 12) // 2
        data = payload[start : start + size]
        if len(data) < size:
            raise ValueError(size)
        start += size
        if kind == 0:
            values.append(None)
        elif kind < 7:
            values.append(int.from_bytes(data, "big", signed=True))
        elif kind == 7:
            values.append(float(struct.unpack(">d", data)[0]))
        elif kind < 12:
            values.append(kind - 8)
        else:
            values.append(data.decode() if kind % 2 else data)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for end in range(at, at + 8):
        value = value << 7 | data[end] & 0x7F
        if data[end] < 0x80:
            return value, end + 1
    return value << 8 | data[at + 8], at + 9


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _page_bytes(field: bytes) -> int:
    size = 65536 if field == b"\0\x01" else _number(field)
    return size if 512 <= size <= 65536 and size & (size - 1) == 0 else USUAL_PAGE_BYTES
