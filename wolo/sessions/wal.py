"""The write-ahead log, as far as it has to be understood without SQLite: which pages it holds, and whether it is torn."""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_BIG_ENDIAN = 0x377F0683
_MASK = 0xFFFFFFFF


class Frame(NamedTuple):
    page: int
    at: int
    """Where its content begins in the log."""
    ends_commit: bool


def log_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def frames(log: int, page_bytes: int) -> Iterator[Frame]:
    """Those of the newest round through the log, sound or not."""
    header = os.pread(log, _HEADER_BYTES, 0)
    # What noise has hit says nothing: the first frame then knows which round it is.
    salt = header[16:24] if _is_sound(header) else os.pread(log, 8, _HEADER_BYTES + 8)
    frame_bytes = _FRAME_HEADER_BYTES + page_bytes
    for at in range(_HEADER_BYTES, os.fstat(log).st_size - frame_bytes + 1, frame_bytes):
        page, size_after_commit, found = struct.unpack(">II8s", os.pread(log, 16, at))
        if found == salt:
            yield Frame(page, at + _FRAME_HEADER_BYTES, bool(size_after_commit))


def is_torn(path: Path, page_bytes: int) -> bool:
    """There are commits behind a place where SQLite stops reading.

    One alone says nothing: the power may have failed before it was on the disk, and then nobody was told that it is.
    """
    log = os.open(log_path(path), os.O_RDONLY | os.O_CLOEXEC)
    try:
        header = os.pread(log, _HEADER_BYTES, 0)
        sound, order, running = _is_sound(header), _order(header), _checksum(header[:24], (0, 0), _order(header))
        unread = 0
        for frame in frames(log, page_bytes):
            if sound:
                head = os.pread(log, _FRAME_HEADER_BYTES, frame.at - _FRAME_HEADER_BYTES)
                running = _checksum(head[:8] + os.pread(log, page_bytes, frame.at), running, order)
                sound = running == struct.unpack(">II", head[16:24])
            unread += frame.ends_commit and not sound
        return unread > 1
    finally:
        os.close(log)


def _is_sound(header: bytes) -> bool:
    return len(header) == _HEADER_BYTES and _checksum(header[:24], (0, 0), _order(header)) == struct.unpack(">II", header[24:])


def _order(header: bytes) -> str:
    return "big" if int.from_bytes(header[:4], "big") == _BIG_ENDIAN else "little"


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    words = array("I", data[: len(data) // 8 * 8])
    if order != sys.byteorder:
        words.byteswap()
    first, second = start
    each = iter(words)
    for left, right in zip(each, each, strict=True):
        first = first + left + second & _MASK
        second = second + right + first & _MASK
    return first, second
