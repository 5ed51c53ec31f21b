"""Reads text files for the model and remembers their content hashes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.operating_system import hold_open, os
from wolo.workspace.files.atomic_write import content_hash
from wolo.workspace.files.encodings import Encoding, binary_kind, find_encoding, newline_name, printable, split_lines
from wolo.workspace.files.file_locks import clear_leftovers
from wolo.workspace.files.safe_open import open_regular, read_all

MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Larger files are read in part, and neither edited nor remembered."""


class FileLedger:
    """Content hashes of the files this session has read or written.

    Construction removes temporary files of a killed wolo.
    """

    def __init__(self, locks: Path) -> None:
        self.locks = locks
        """Folder of the file locks, shared by all sessions of the user."""
        self._hashes: dict[Path, str] = {}
        self._misses: dict[Path, int] = {}
        clear_leftovers(locks)

    def copy(self) -> FileLedger:
        """A ledger that knows the same files; changes do not reach this one."""
        other = FileLedger.__new__(FileLedger)
        other.locks, other._hashes, other._misses = self.locks, dict(self._hashes), dict(self._misses)
        return other

    def last_hash(self, path: Path) -> str | None:
        """Hash of the content last seen; None for none. `path` must be real."""
        return self._hashes.get(path)

    def record(self, path: Path, content_hash: str) -> None:
        self._hashes[path] = content_hash
        self._misses.pop(path, None)

    def forget(self, path: Path) -> None:
        self._hashes.pop(path, None)

    def count_miss(self, path: Path) -> int:
        """Counts consecutive edits that did not find their text, including this one."""
        self._misses[path] = self._misses.get(path, 0) + 1
        return self._misses[path]

    def reset_misses(self, path: Path) -> None:
        """Resets `count_miss`."""
        self._misses.pop(path, None)


class TextFile(Struct, frozen=True):
    data: bytes
    hash: str
    encoding: Encoding
    text: str
    """Without the byte order mark; original line endings."""


def read_file(path: Path) -> TextFile:
    """Reads a text file at a real path. Raises OSError, or ToolError for a binary or too large file."""
    data = read_whole(path)
    if (encoding := find_encoding(data)) is None:
        raise ToolError(f"This is {binary_kind(data[:16])}, not text.")
    return TextFile(data, content_hash(data), encoding, encoding.decode(data))


def read_whole(path: Path) -> bytes:
    """Reads a regular file at a real path. Raises OSError, or ToolError for a too large file."""
    with hold_open(open_regular(path)) as handle:
        is_huge = os.fstat(handle).st_size > MAX_TEXT_BYTES
        data = b"" if is_huge else read_all(handle, MAX_TEXT_BYTES + 1)
    if is_huge or len(data) > MAX_TEXT_BYTES:
        raise ToolError(f"The file is larger than {MAX_TEXT_BYTES >> 20} MiB; change it with `shell`.")
    return data


_WHOLE_BYTES = 4 * 1024 * 1024
"""Smaller files are read whole."""
_SCAN_BYTES = 256 * 1024 * 1024
"""Files too large to count are searched this far for a line."""
_TAIL_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_SAMPLE_BYTES = 64 * 1024
_HIGH_BYTES = bytes(range(128, 256))


class PageLimits(Struct, frozen=True):
    max_lines: int
    width: int
    """In characters; longer lines are cut."""
    size_bytes: int
    """Size of the page."""


class NumberedLine(Struct, frozen=True):
    number: int
    """From 1; negative, from the end, in a file too large to count."""
    text: str
    full_bytes: int = 0
    """Size of the whole line when it is cut."""


class FilePage(Struct, frozen=True):
    lines: list[NumberedLine]
    total: int | None
    """Lines of the file; None when it is too large to count."""
    hash: str | None
    """Hash of the whole file; None when it is too large."""
    encoding: Encoding
    newline: str
    """See `newline_name`; judged by the beginning of a large file."""


def read_page(handle: int, offset: int, limits: PageLimits) -> FilePage:
    """Reads lines from `offset` (1-based; negative counts from the end), within `limits`.

    Raises ToolError for binary data, and for lines too deep in a huge file.
    """
    if (size := os.fstat(handle).st_size) <= _WHOLE_BYTES:
        return _page_of_whole(read_all(handle, MAX_TEXT_BYTES), offset, limits)
    sample = os.pread(handle, _SAMPLE_BYTES, 0)
    # The sample may end within a character.
    encoding = _encoding(sample.rstrip(_HIGH_BYTES) or sample, size)
    if encoding.codec.startswith(("utf-16", "utf-32")):
        if size > MAX_TEXT_BYTES:
            raise ToolError(f"The file is {encoding.label} and too large to read ({size:,} bytes); convert it with `shell`.")
        return _page_of_whole(read_all(handle, MAX_TEXT_BYTES), offset, limits)
    newline = newline_name(sample.decode("latin-1"))
    if size <= MAX_TEXT_BYTES:
        total, whole_hash = _count(handle)
        return FilePage(_scan(handle, _first(offset, total), limits, encoding), total, whole_hash, encoding, newline)
    if offset < 0:
        start = max(size - _TAIL_BYTES, 0)
        parts = os.pread(handle, _TAIL_BYTES, start).removesuffix(b"\n").split(b"\n")
        if start and len(parts) > 1:
            del parts[0]  # it began before the block
        wanted = parts[offset:] if size else []
        numbered = enumerate(wanted, start=-len(wanted))
        return FilePage(
            _fill((_decode(number, part[: 4 * limits.width], len(part), limits, encoding) for number, part in numbered), limits),
            None,
            None,
            encoding,
            newline,
        )
    return FilePage(_scan(handle, max(offset, 1), limits, encoding), None, None, encoding, newline)


def _encoding(data: bytes, size: int) -> Encoding:
    encoding = None if data.startswith(b"%PDF-") else find_encoding(data)
    if encoding is None:
        raise ToolError(f"This is {binary_kind(data[:16])}, not text ({size:,} bytes).")
    return encoding


def _page_of_whole(data: bytes, offset: int, limits: PageLimits) -> FilePage:
    encoding = _encoding(data, len(data))
    text = encoding.decode(data)
    every = split_lines(text)
    first = _first(offset, len(every))
    wanted = every[first - 1 : first - 1 + limits.max_lines]
    cut = (_line(number, line, 0, limits) for number, line in enumerate(wanted, start=first))
    return FilePage(_fill(cut, limits), len(every), content_hash(data), encoding, newline_name(text))


def _first(offset: int, total: int) -> int:
    return max(offset if offset >= 0 else total + offset + 1, 1)


def _fill(lines: Iterable[NumberedLine], limits: PageLimits) -> list[NumberedLine]:
    """Takes as many lines as the page holds, at least one."""
    page: list[NumberedLine] = []
    room = limits.size_bytes
    for line in lines:
        room -= len(line.text.encode())
        if room < 0 and page:
            break
        page.append(line)
        if len(page) == limits.max_lines:
            break
    return page


def _line(number: int, text: str, full_bytes: int, limits: PageLimits) -> NumberedLine:
    """`full_bytes` is given when `text` is only the beginning of the line."""
    text = text.rstrip("\r\n")
    shown = printable(text[: limits.width])
    if len(text) > limits.width:
        full_bytes = full_bytes or len(text.encode(errors="replace"))
    return NumberedLine(number, shown, full_bytes)


def _count(handle: int) -> tuple[int, str]:
    digest, total, last = sha256(), 0, b"\n"
    for chunk in _chunks(handle, 0):
        digest.update(chunk)
        total += chunk.count(b"\n")
        last = chunk[-1:]
    return total + (last != b"\n"), digest.hexdigest()


def _scan(handle: int, first: int, limits: PageLimits, encoding: Encoding) -> list[NumberedLine]:
    """Splits at LF only: a large file with other endings is one line."""
    if (position := _find_line(handle, first)) is None:
        return []
    raw = _lines_from(handle, position, 4 * limits.width)
    return _fill((_decode(number, *line, limits, encoding) for number, line in enumerate(raw, start=first)), limits)


def _decode(number: int, kept: bytes, length: int, limits: PageLimits, encoding: Encoding) -> NumberedLine:
    text = kept.decode(encoding.codec, "replace")
    return _line(number, text, length if length > len(kept) else 0, limits)


def _find_line(handle: int, number: int) -> int | None:
    missing = number - 1
    position = 0
    for chunk in _chunks(handle, 0):
        if not missing:
            return position
        if (count := chunk.count(b"\n")) >= missing:
            place = -1
            for _ in range(missing):
                place = chunk.find(b"\n", place + 1)
            return position + place + 1
        missing -= count
        position += len(chunk)
    if position >= _SCAN_BYTES:
        raise ToolError(f"Line {number} is more than {_SCAN_BYTES >> 20} MiB into the file; extract it with `shell`.")
    return None


def _lines_from(handle: int, position: int, keep_bytes: int) -> Iterator[tuple[bytes, int]]:
    kept, length = b"", 0
    for chunk in _chunks(handle, position):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield kept + piece[: keep_bytes - len(kept)], length + len(piece)
            kept, length = b"", 0
        kept += rest[: keep_bytes - len(kept)]
        length += len(rest)
    if length:
        yield kept, length


def _chunks(handle: int, position: int) -> Iterator[bytes]:
    end = position + _SCAN_BYTES
    while position < end and (chunk := os.pread(handle, _CHUNK_BYTES, position)):
        yield chunk
        position += len(chunk)
