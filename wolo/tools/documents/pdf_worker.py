"""Extracts the text of PDF pages, in a process of its own with limited time and memory.

Reads the document from stdin and writes lines of JSON: the number of pages first, then the pages. Imports nothing of wolo.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

MOST_CPU_S = 20
MOST_MEMORY_BYTES = 1024**3


def main(ranges: str, most_pages: int, most_chars: int) -> None:
    """`ranges`: pages from 1, such as `1-5,8,20-`. Stops after `most_pages` pages or `most_chars` characters."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  # Windows has none

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    try:
        _extract(ranges, most_pages, most_chars)
    except MemoryError:
        _write(error="memory")
    except Exception as error:
        _write(error="damaged", why=f"{type(error).__name__}: {error}")


def _extract(ranges: str, most_pages: int, most_chars: int) -> None:
    import pypdf  # noqa: PLC0415  # with the limits in place
    from pypdf.errors import DependencyError, FileNotDecryptedError  # noqa: PLC0415  # as above

    logging.disable()
    with open(0, "rb", closefd=False) as document:
        reader = pypdf.PdfReader(document)
        try:
            if reader.is_encrypted and not reader.decrypt(""):
                _write(error="encrypted")
                return
            total = len(reader.pages)
        except (DependencyError, FileNotDecryptedError, NotImplementedError):
            _write(error="encrypted")
            return
        _write(total=total)
        room = most_chars
        for count, number in enumerate(_numbers(ranges, total)):
            if count == most_pages or room <= 0:
                return
            # A page that cannot be read costs itself only.
            try:
                text = str(reader.pages[number - 1].extract_text())
            except MemoryError:
                raise
            except Exception as error:
                text = f"(this page cannot be read: {type(error).__name__})"
            _write(page=number, text=text[:room], is_cut=len(text) > room)
            room -= len(text)


def _numbers(ranges: str, total: int) -> Iterator[int]:
    for each in ranges.split(","):
        first, dash, last = each.partition("-")
        end = int(last) if last else total if dash else int(first)
        yield from range(int(first), min(end, total) + 1)


def _write(**row: Any) -> None:
    print(json.dumps(row), flush=True)  # noqa: T201  # the answer to the process that started this one


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
