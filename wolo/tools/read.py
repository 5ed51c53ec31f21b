"""The `read` tool: reads text files, images, PDF documents and notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent, ReadIntent
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.line_numbers import add_numbers
from wolo.messages.media import image_size, image_type
from wolo.messages.parts import ImagePart, ToolKind
from wolo.operating_system import os
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import FILE_ALIASES, folder_names, missing
from wolo.tools.tool_values import CallResult
from wolo.workspace.files.atomic_write import content_hash
from wolo.workspace.files.file_reading import MAX_TEXT_BYTES, FilePage, PageLimits, read_page
from wolo.workspace.files.safe_open import explain, open_regular, read_all
from wolo.workspace.root import Resolved

MAX_LINES = 2000
_MAX_WIDTH = 2000
_MAX_PAGE_BYTES = 50_000
_MAX_IMAGE_BYTES = 3_750_000
"""5 MB in base64, the lowest limit of all providers."""
_MAX_IMAGE_SIDE = 8_000
"""Pixels; the lowest limit of all providers."""
_MAX_LISTED = 40
_SMALL_BYTES = 128 * 1024
"""Read faster than a thread is asked to."""


class ReadArgs(Struct, frozen=True):
    path: str
    offset: Annotated[int | None, Meta(description="first line, from 1; negative counts from the end")] = None
    limit: Annotated[int | None, Meta(description=f"{MAX_LINES} at most")] = None
    pages: Annotated[str | None, Meta(description="of a PDF: `1-5` or `3,7-`")] = None


class Read:
    """Read a text file, a PDF or a notebook, or view an image. A text file's first and every tenth line are shown as
    `20→text`; number and arrow are not part of it."""

    name: ClassVar[str] = "read"
    Args: ClassVar[type[Struct]] = ReadArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **FILE_ALIASES,
        "start_line": "offset",
        "line_offset": "offset",
        "n_lines": "limit",
        "num_lines": "limit",
        "max_lines": "limit",
        "page": "pages",
        "page_range": "pages",
    }
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "read"

    def intents(self, args: ReadArgs, services: ToolServices) -> Sequence[Intent]:
        resolved = services.workspace.resolve(args.path)
        return (ReadIntent(resolved.path, args.path, resolved.inside),)

    async def run(self, args: ReadArgs, call: CallContext) -> CallResult:
        if args.limit is not None and args.limit < 1:
            raise ToolError("`limit` must be 1 or more.")
        found = _read(args, call, _SMALL_BYTES) if os.path.isfile(call.judged_path(args.path).path) else None
        found = await asyncio.to_thread(_read, args, call) if found is None else found
        assert found is not None  # without a limit
        return found if isinstance(found, CallResult) else await _read_pdf(found, args, call)


def _read(args: ReadArgs, call: CallContext, most_bytes: float = inf) -> CallResult | int | None:
    """Returns the descriptor of a PDF; None for a larger file."""
    resolved = call.judged_path(args.path)
    shown = call.services.workspace.relative(resolved.path)
    try:
        handle = _open(resolved.path, call)
    except FileNotFoundError:
        raise missing(resolved, call.services) from None
    except IsADirectoryError:
        raise _folder(resolved, shown, call.services) from None
    except OSError as error:
        raise explain(error, shown) from error
    try:
        if os.fstat(handle).st_size > most_bytes:
            return None
        head = os.pread(handle, 16, 0)
        if head.startswith(b"%PDF-"):
            return os.dup(handle)
        if args.pages is not None:
            raise ToolError(f"`{shown}` is no PDF, so it has no `pages`. Use `offset` and `limit`.")
        if media_type := image_type(head):
            return _image(handle, media_type, shown)
        if resolved.path.suffix.lower() == ".ipynb":
            from wolo.tools.editing import notebook  # noqa: PLC0415  # for notebooks only

            data = read_all(handle, notebook.MOST_BYTES + 1)
            cells = notebook.cells_of(data) if len(data) <= notebook.MOST_BYTES else None
            if cells is not None:  # otherwise it is read as text
                call.services.ledger.record(resolved.path, content_hash(data))
                return notebook.show(cells, args.offset or 1, args.limit, shown)
        limits = PageLimits(min(args.limit or MAX_LINES, MAX_LINES), _MAX_WIDTH, _MAX_PAGE_BYTES)
        page = read_page(handle, args.offset or 1, limits)
        size = os.fstat(handle).st_size
    except OSError as error:
        raise explain(error, shown) from error
    finally:
        os.close(handle)
    if page.hash is not None:
        call.services.ledger.record(resolved.path, page.hash)
    return CallResult(_render(page, args.offset or 1, size, shown, call.services.secrets))


def _open(path: Path, call: CallContext) -> int:
    if path not in call.unsaved:
        return open_regular(path)
    from wolo.tools.editing.open_files import open_text  # noqa: PLC0415  # only an editor has open files

    return open_text(call.unsaved[path])


async def _read_pdf(handle: int, args: ReadArgs, call: CallContext) -> CallResult:
    """Counts `offset` and `limit` in pages."""
    from wolo.tools.documents.pdf import checked_ranges, read_pdf  # noqa: PLC0415  # for PDF documents only

    try:
        if args.pages is not None:
            ranges = checked_ranges(args.pages)
        elif args.offset is not None and args.offset < 1:
            raise ToolError("`offset` counts the pages of a PDF from 1.")
        else:
            first = args.offset or 1
            ranges = f"{first}-" if args.limit is None else f"{first}-{first + args.limit - 1}"
        shown = call.services.workspace.relative(call.judged_path(args.path).path)
        return await read_pdf(handle, ranges, shown, call.services.secrets)
    finally:
        os.close(handle)


def _folder(resolved: Resolved, shown: str, services: ToolServices) -> ToolError:
    try:
        names = folder_names(resolved.path, services)
    except OSError as error:
        return explain(error, shown)
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ToolError(f"`{shown}` is a folder. It holds: {', '.join(names[:_MAX_LISTED]) or 'nothing'}{more}.")


def _image(handle: int, media_type: str, shown: str) -> CallResult:
    data = read_all(handle, _MAX_IMAGE_BYTES + 1)
    if len(data) > _MAX_IMAGE_BYTES:
        size = os.fstat(handle).st_size
        raise ToolError(
            f"`{shown}` is an image of {size:,} bytes; at most {_MAX_IMAGE_BYTES:,} can be shown. Scale it down first."
        )
    width, height = image_size(data) or (0, 0)
    if max(width, height) > _MAX_IMAGE_SIDE:
        raise ToolError(
            f"`{shown}` is an image of {width} x {height} pixels; at most {_MAX_IMAGE_SIDE} per side can be shown."
            " Scale it down first."
        )
    pixels = f", {width} x {height} pixels" if width else ""
    part = ImagePart(name=shown, media_type=media_type, data=data)
    return CallResult(f"[{shown}: {media_type}{pixels}, {len(data):,} bytes]", media=(part,))


def _render(page: FilePage, offset: int, size: int, shown: str, secrets: Secrets) -> str:
    if not page.lines:
        if page.total:
            raise ToolError(f"`{shown}` has {page.total} lines; line {offset} is past its end.")
        if size:
            raise ToolError(f"`{shown}` has no line {offset}.")
        return "[The file is empty.]"
    lines = [
        f"{secrets.hide_cut(line.text)} … [cut: the line has {line.full_bytes:,} bytes]" if line.full_bytes else line.text
        for line in page.lines
    ]
    first, last = page.lines[0].number, page.lines[-1].number
    if page.total is None:
        notes = [
            f"Lines {first} to {last}; the file has {size:,} bytes. "
            f"Over {MAX_TEXT_BYTES >> 20} MiB lines are not counted, and the file cannot be edited."
        ]
    elif len(page.lines) == page.total:
        notes = [f"{page.total} line{'s' if page.total > 1 else ''}."]
    else:
        notes = [f"Lines {first} to {last} of {page.total}."]
    if last not in (page.total, -1):
        notes.append(f"Continue with offset={last + 1}.")
    if page.encoding.label != "UTF-8":
        notes.append(f"Encoding: {page.encoding.label}.")
    if page.newline not in ("", "LF"):
        notes.append(f"Line endings: {page.newline}.")
    return "\n".join((*add_numbers(first, lines), f"[{' '.join(notes)}]"))
