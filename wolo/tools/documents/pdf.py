"""Reads PDF documents page by page. A child process parses them, so that a hostile one can neither hang nor exhaust wolo."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.secrets.redactor import Secrets
from wolo.tools.clipping import clean
from wolo.tools.tool_values import CallResult

MAGIC = b"%PDF-"
MOST_BYTES = 100 * 1024 * 1024
MOST_PAGES = 20
"""Per call."""
MOST_CHARS = 50_000
WHOLE_S = 20.0
"""Time limit for all pages of a call; those that were read until then are shown."""
_RANGES = r"\d{1,6}(?:-(?:\d{1,6})?)?"
_WORKER = Path(__file__).with_name("pdf_worker.py")
_SCANNED = (
    "These pages hold no text; they are probably scanned. Convert them to images with `shell`"
    " (such as `pdftoppm -r 100 -png`) and read the images."
)
_FAILURES = {
    "encrypted": "is encrypted with a password, so it cannot be read. The user can save it without one.",
    "memory": "needs too much memory to be read; read fewer pages, or convert it with `shell`.",
}


class _Found(Struct):
    total: int = 0
    """0: the document was not opened."""
    pages: list[dict[str, Any]] = msgspec.field(default_factory=list)
    error: str = ""
    why: str = ""
    timed_out: bool = False


async def read_pdf(handle: int, ranges: str, shown: str, secrets: Secrets) -> CallResult:
    """`ranges`: pages such as `1-5` or `3,7-`. Raises ToolError."""
    if (size := os.fstat(handle).st_size) > MOST_BYTES:
        raise ToolError(f"`{shown}` is a PDF of {size:,} bytes; at most {MOST_BYTES >> 20} MiB can be read.")
    content = await _extract(handle, ranges)
    if content.error in _FAILURES and not content.pages:
        raise ToolError(f"`{shown}` {_FAILURES[content.error]}")
    if not content.total:
        if content.timed_out:
            raise ToolError(f"`{shown}` could not be opened within {WHOLE_S:.0f} s; it may be damaged.")
        why = f" ({content.why[:200]})" if content.why else ""
        raise ToolError(f"`{shown}` is not a readable PDF: it is damaged or incomplete{why}.")
    if not content.pages:
        if content.timed_out or content.error:
            raise ToolError(
                f"`{shown}` has {content.total} pages, but those asked for cannot be read in the limits of time and memory."
            )
        raise ToolError(f"`{shown}` has {content.total} page{'' if content.total == 1 else 's'}; there is no page {ranges}.")
    rows = [f"[page {each['page']}]\n{_text(each, secrets) or '(no text)'}" for each in content.pages]
    numbers = [each["page"] for each in content.pages]
    first, last = numbers[0], numbers[-1]
    which = f"Page {first}" if len(numbers) == 1 else f"{len(numbers)} pages, {first} to {last},"
    notes = [f"{which} of {content.total}."]
    if not any(each["text"].strip() for each in content.pages):
        notes.append(_SCANNED)
    if content.timed_out:
        notes.append(f"Reading stopped after {WHOLE_S:.0f} s.")
    elif content.error:
        notes.append("Reading stopped: the document is damaged or needs too much memory.")
    ends = [int(each.partition("-")[2] or (content.total if "-" in each else each)) for each in ranges.split(",")]
    if last < min(max(ends), content.total) or (ranges.endswith("-") and last < content.total):
        notes.append(f'Continue with pages="{last + 1}-".')
    elif last < content.total:
        notes.append(f'The next page is pages="{last + 1}".')
    return CallResult("\n\n".join((*rows, f"[{' '.join(notes)}]")))


def checked_ranges(pages: str) -> str:
    """Raises ToolError for anything but pages and ranges."""
    ranges = "".join(pages.split())
    if not re.fullmatch(f"{_RANGES}(?:,{_RANGES}){{0,99}}", ranges) or re.search(r"(?<!\d)0+(?!\d)", ranges):
        raise ToolError('`pages` must be pages from 1 such as "3", "1-5" or "2,8-".')
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        if last and int(last) < int(first):
            raise ToolError(f"`pages`: {each} ends before it begins.")
    return ranges


async def _extract(handle: int, ranges: str) -> _Found:
    """Collects what the worker writes until it ends or its time is up."""
    program = (sys.executable, "-I", str(_WORKER), ranges, str(MOST_PAGES), str(MOST_CHARS))
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    os.lseek(handle, 0, os.SEEK_SET)
    process = await asyncio.create_subprocess_exec(
        *program, stdin=handle, stdout=pipe, stderr=nothing, env={}, cwd="/", limit=MOST_CHARS * 16
    )
    assert process.stdout is not None  # it was asked for
    extraction = _Found()
    try:
        async with asyncio.timeout(WHOLE_S):
            async for line in process.stdout:
                row = msgspec.json.decode(line)
                if "page" in row:
                    extraction.pages.append(row)
                elif "total" in row:
                    extraction.total = row["total"]
                else:
                    extraction.error, extraction.why = row["error"], row.get("why", "")
            await process.wait()
    except TimeoutError:
        extraction.timed_out = True
    except (ValueError, msgspec.DecodeError):
        extraction.error = extraction.error or "damaged"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode and not extraction.error and not extraction.timed_out:
        extraction.error = "memory"
    return extraction


def _text(page: dict[str, Any], secrets: Secrets) -> str:
    text = b"".join(clean(page["text"].encode(errors="replace"))).decode().strip()
    return f"{secrets.hide_cut(text)} … [cut: the page is longer]" if page["is_cut"] else text
