"""Cleans and shortens program output; the whole output is saved in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from wolo.errors import SessionError
from wolo.messages.terminal_text import CONTROLS, without_sequences

MAX_LINES = 1000
MAX_BYTES = 30_000

_BLOCK_BYTES = 256 * 1024

_NOISE = "\ufffd{9,}"


class Clipped(Struct, frozen=True):
    text: str
    num_omitted_lines: int = 0
    omitted_bytes: int = 0

    @property
    def is_cut(self) -> bool:
        return self.omitted_bytes > 0


def clean(data: bytes) -> Iterator[bytes]:
    """Returns the output as a terminal would finally show it: UTF-8, without escapes, progress bars in their last state.

    Yields pieces, to avoid holding the text in memory in several forms.
    """
    for block in _blocks(data):
        text = block.decode(errors="replace")
        if "\ufffd" in text:
            text = re.sub(_NOISE, "\ufffd" * 8, text)
        if re.search(f"[{CONTROLS}]", text) is not None:
            text = without_sequences(text).replace("\r\n", "\n")
            if "\r" in text or "\x08" in text:
                text = "\n".join(map(_last_state, text.split("\n")))
            text = re.sub(f"[{CONTROLS}]", "", text)
        yield text.encode()


def clip(data: bytes, *, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES) -> Clipped:
    """Returns both ends of a UTF-8 text, cut at line ends where possible."""
    if len(data) <= max_bytes and data.count(b"\n") <= max_lines:
        return Clipped(data.decode(errors="replace"))
    head = _first_lines(data[: max_bytes // 2], max_lines // 2)
    tail = _last_lines(data[max(len(head), len(data) - max_bytes // 2) :], max_lines // 2)
    omitted = len(data) - len(head) - len(tail)
    lines = data.count(b"\n", len(head), len(data) - len(tail))
    left_out = f"{lines:,} lines, {_size(omitted)}" if lines else _size(omitted)
    text = f"{_whole_line(head.decode(errors='replace'))}[… {left_out} left out …]\n{tail.decode(errors='replace')}"
    return Clipped(text, lines, omitted)


def clip_and_keep(data: bytes, *, name: str, keep: Callable[[str, bytes], Path], dropped_bytes: int = 0) -> str:
    """Returns the text for the model; if it was cut, the last line names the file with all of it.

    `dropped_bytes`: number of bytes in the middle that the reader did not keep.
    """
    clipped = clip(data)
    if not clipped.is_cut:
        return clipped.text
    try:
        path = keep(name, data)
    except (OSError, SessionError) as error:
        why = error.message if isinstance(error, SessionError) else f"{error.strerror}."
        return f"{_whole_line(clipped.text)}[The rest could not be saved. {why}]\n"
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    kept = f"Beginning and end of the output without {_size(dropped_bytes)} between" if dropped_bytes else "Whole output"
    return f"{_whole_line(clipped.text)}[{kept}, {lines:,} lines: {path} — page it with read(path, offset, limit).]\n"


def _blocks(data: bytes) -> Iterator[bytes]:
    """Splits at line ends where possible."""
    start = 0
    while start < len(data):
        end = start + _BLOCK_BYTES
        if end < len(data):
            end = data.rfind(b"\n", start, end) + 1 or end
            while end > start + _BLOCK_BYTES - 4 and end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1  # not within a character
        yield data[start:end]
        start = end


def _last_state(line: str) -> str:
    """Applies carriage returns and backspaces."""
    if "\r" in line:
        line = next((state for state in reversed(line.split("\r")) if state), "")
    if "\x08" not in line:
        return line
    shown: list[str] = []
    for character in line:
        if character != "\x08":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


def _first_lines(data: bytes, num_lines: int) -> bytes:
    lines = data.split(b"\n", num_lines)
    if len(lines) > num_lines:
        return b"\n".join(lines[:num_lines]) + b"\n"
    whole = data.rfind(b"\n") + 1
    return data[:whole] if whole > len(data) // 2 else _whole_characters(data)


def _last_lines(data: bytes, num_lines: int) -> bytes:
    lines = data.rsplit(b"\n", num_lines + data.endswith(b"\n"))
    if len(lines) > num_lines + data.endswith(b"\n"):
        return b"\n".join(lines[1:])
    whole = data.find(b"\n") + 1
    return data[whole:] if 0 < whole < len(data) // 2 else _whole_characters(data)


def _whole_characters(data: bytes) -> bytes:
    return data.decode(errors="ignore").encode()


def _whole_line(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _size(num_bytes: int) -> str:
    for unit, size in (("MB", 1_000_000), ("kB", 1_000)):
        if num_bytes >= size:
            return f"{num_bytes / size:.1f} {unit}"
    return f"{num_bytes} bytes"
