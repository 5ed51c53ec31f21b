"""Shows Jupyter notebooks cell by cell, with their outputs, and edits the source of cells without breaking them."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import ToolError
from wolo.formats.tolerant_json import read_json
from wolo.messages.media import image_type
from wolo.messages.parts import ImagePart
from wolo.tools.clipping import clean, clip
from wolo.tools.editing.matching import EditPassage, Replacement, find, join_passages
from wolo.tools.tool_values import CallResult

SUFFIX = ".ipynb"
MOST_BYTES = 20 * 1024 * 1024
MOST_SHOWN_BYTES = 50_000
MOST_SOURCE_BYTES = 20_000
"""Per cell."""
MOST_OUTPUT_BYTES = 4_000
"""Per output."""
MOST_IMAGES = 6
MOST_IMAGE_BYTES = 3_750_000
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Cell(Struct, frozen=True):
    number: int
    """From 1."""
    kind: str
    source: str
    fields: dict[str, Any]


def cells_of(text: str | bytes) -> list[Cell] | None:
    """None: not a notebook of format 4."""
    notebook = read_json(text)
    rows = notebook.get("cells") if isinstance(notebook, dict) else None
    if (
        not isinstance(rows, list)
        or not all(isinstance(row, dict) for row in rows)
        or not isinstance(notebook.get("nbformat"), int)
    ):
        return None
    return [Cell(number, str(row.get("cell_type", "?")), _join(row.get("source")), row) for number, row in enumerate(rows, 1)]


def show(cells: Sequence[Cell], offset: int, limit: int | None, shown: str) -> CallResult:
    """`offset`: first cell from 1, negative counts from the end. Raises ToolError past the end."""
    if not cells:
        return CallResult(f"[{shown} is a notebook without cells.]")
    first = offset if offset > 0 else max(len(cells) + offset + 1, 1) if offset < 0 else 1
    if first > len(cells):
        raise ToolError(f"`{shown}` has {len(cells)} cells; cell {first} is past its end.")
    rows: list[str] = []
    images: list[ImagePart] = []
    room, last = MOST_SHOWN_BYTES, first
    for cell in cells[first - 1 : None if limit is None else first - 1 + limit]:
        text = "\n".join(_describe(cell, images))
        room -= len(text.encode(errors="replace"))
        if room < 0 and rows:
            break
        rows.append(text)
        last = cell.number
    whole = first == 1 and last == len(cells)
    notes = [f"{len(cells)} cells." if whole else f"Cells {first} to {last} of {len(cells)}."]
    if last < len(cells):
        notes.append(f"Continue with offset={last + 1}.")
    notes.append("`edit` replaces text in the source of cells.")
    return CallResult("\n\n".join((*rows, f"[{' '.join(notes)}]")), media=tuple(images))


def _describe(cell: Cell, images: list[ImagePart]) -> Iterator[str]:
    count = cell.fields.get("execution_count")
    yield f"[cell {cell.number}, {cell.kind}{f', run {count}' if isinstance(count, int) else ''}]"
    yield _clip(cell.source, MOST_SOURCE_BYTES)
    outputs = cell.fields.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if isinstance(output, dict):
            yield from _output(output, cell.number, images)


def _output(output: Mapping[str, Any], number: int, images: list[ImagePart]) -> Iterator[str]:
    match output.get("output_type"):
        case "stream":
            yield f"[output of cell {number}, {output.get('name', 'stdout')}]"
            yield _clip(_join(output.get("text")), MOST_OUTPUT_BYTES)
        case "error":
            yield f"[error of cell {number}: {_clip(str(output.get('ename', '')), 200)}]"
            trace = output.get("traceback")
            lines = "\n".join(map(str, trace)) if isinstance(trace, list) and trace else str(output.get("evalue", ""))
            yield _clip(lines, MOST_OUTPUT_BYTES)
        case "execute_result" | "display_data":
            # The image and the text of an output; other forms are only named.
            data = forms if isinstance(forms := output.get("data"), dict) else {}
            yield from (_image(_join(data[kind]), kind, number, images) for kind in _IMAGES if kind in data)
            text = next((_join(data[kind]) for kind in ("text/markdown", "text/plain") if kind in data), None)
            if text is not None:
                yield f"[output of cell {number}]"
                yield _clip(text, MOST_OUTPUT_BYTES)
            elif others := [str(kind)[:60] for kind in data if kind not in _IMAGES]:
                yield f"[output of cell {number} is not shown: {', '.join(others[:5])}]"


def _image(encoded: str, kind: str, number: int, images: list[ImagePart]) -> str:
    try:
        data = b64decode("".join(encoded.split()), validate=True)
    except (BadBase64, ValueError):
        data = b""
    if not (media_type := image_type(data[:16])):
        return f"[output of cell {number}: {kind}, which is damaged]"
    if len(data) > MOST_IMAGE_BYTES or len(images) >= MOST_IMAGES:
        return f"[output of cell {number}: {media_type}, {len(data):,} bytes, left out]"
    images.append(ImagePart(name=f"output of cell {number}", media_type=media_type, data=data))
    return f"[output of cell {number}: {media_type}, {len(data):,} bytes, image {len(images)} below]"


def _join(source: Any) -> str:
    if isinstance(source, list):
        return "".join(each for each in source if isinstance(each, str))
    return source if isinstance(source, str) else ""


def _clip(text: str, most_bytes: int) -> str:
    return clip(b"".join(clean(text.encode(errors="replace"))), max_bytes=most_bytes).text.rstrip("\n")


class EditedNotebook(Struct, frozen=True):
    text: str
    cells: tuple[int, ...]
    """Numbers of the changed cells."""
    rules: tuple[str, ...]
    """Tolerated differences of the passages."""


def check_notebook(path: str, text: str, shown: str) -> None:
    """Raises ToolError if the file is a notebook and the text is not the JSON of one."""
    if not path.lower().endswith(SUFFIX) or not text.strip():
        return
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ToolError(f"`{shown}` would no longer be a notebook ({error}); nothing was written. A notebook is JSON.") from None
    if not isinstance(found, dict):
        raise ToolError(
            f"`{shown}` would no longer be a notebook; nothing was written. A notebook is a JSON object with `cells`."
        )


def edit_cells(text: str, edits: Sequence[Replacement], shown: str) -> EditedNotebook | None:
    """None: not a notebook, or some passage is in no cell, so that the edit is meant for the JSON. Raises ToolError."""
    if (cells := cells_of(text)) is None:
        return None
    passages: dict[int, list[EditPassage]] = {}
    rules: dict[str, None] = {}
    for number, edit in enumerate(edits, start=1):
        matches = {cell.number: find(cell.source, edit.old, edit.new) for cell in cells if cell.source}
        exact = {number: each for number, each in matches.items() if each.passages and not each.rule}
        hits = exact or {number: each for number, each in matches.items() if each.passages}
        if not hits:
            return None
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        count = sum(len(each.passages) for each in hits.values())
        if count > 1 and not edit.replace_all:
            where = ", ".join(map(str, hits))
            raise ToolError(
                f"{name}`old` occurs {count} times in `{shown}` (cell {where}). Add lines around it until it occurs once,"
                " or set `replace_all`."
            )
        for cell, each in hits.items():
            passages.setdefault(cell, []).extend(each.passages)
            rules |= dict.fromkeys(filter(None, [each.rule]))
    changed: dict[int, str] = {}
    for cell, inside in sorted(passages.items()):
        inside.sort()
        if any(next_one.start < one.end for one, next_one in pairwise(inside)):
            raise ToolError(f"Two of the edits overlap in cell {cell} of `{shown}`; nothing was changed. Join them into one.")
        changed[cell] = join_passages(cells[cell - 1].source, inside)
    # The notebook with other sources, by the number of the cell; indentation, order and outputs stay.
    notebook = json.loads(text)
    for number, source in changed.items():
        cell = notebook["cells"][number - 1]
        cell["source"] = source if isinstance(cell.get("source"), str) else source.splitlines(keepends=True)
    indented = re.search(r"\{\r?\n([ \t]+)", text)
    indent = indented[1] if indented else None
    escaped = text.isascii() and re.search(r"\\u(?!00[01])", text) is not None
    separators = None if indent is not None or re.search(r'^\s*\{"[^"]*": ', text) else (",", ":")
    written = json.dumps(notebook, indent=indent, ensure_ascii=escaped, separators=separators)
    ending = "\n" if text.endswith("\n") else ""
    return EditedNotebook(
        (written + ending).replace("\n", "\r\n") if "\r\n" in text else written + ending, tuple(changed), tuple(rules)
    )
