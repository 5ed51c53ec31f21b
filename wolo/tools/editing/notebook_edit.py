"""Edits the source of notebook cells, and refuses changes that would leave a notebook unreadable."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import msgspec
from msgspec import Struct

from wolo.errors import ToolError
from wolo.tools.documents.notebook import SUFFIX, Cell, cells_of, with_sources
from wolo.tools.editing.matching import EditPassage, PassageMatches, find


class Wanted(Protocol):
    @property
    def old(self) -> str: ...
    @property
    def new(self) -> str: ...
    @property
    def replace_all(self) -> bool: ...


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


def edit_cells(text: str, edits: Sequence[Wanted], shown: str) -> EditedNotebook | None:
    """None: not a notebook, or some passage is in no cell, so that the edit is meant for the JSON. Raises ToolError."""
    cells = cells_of(text)
    if cells is None:
        return None
    passages: dict[int, list[EditPassage]] = {}
    rules: dict[str, None] = {}
    for number, edit in enumerate(edits, start=1):
        found = _find(cells, edit)
        if not found:
            return None
        name = f"edits[{number}]: " if len(edits) > 1 else ""
        count = sum(len(each.passages) for each in found.values())
        if count > 1 and not edit.replace_all:
            where = ", ".join(map(str, found))
            raise ToolError(
                f"{name}`old` occurs {count} times in `{shown}` (cell {where}). Add lines around it until it occurs once,"
                " or set `replace_all`."
            )
        for cell, each in found.items():
            passages.setdefault(cell, []).extend(each.passages)
            rules |= dict.fromkeys(filter(None, [each.rule]))
    changed = {cell: _replaced(cells[cell - 1].source, found, cell, shown) for cell, found in sorted(passages.items())}
    return EditedNotebook(with_sources(text, changed), tuple(changed), tuple(rules))


def _find(cells: Sequence[Cell], edit: Wanted) -> dict[int, PassageMatches]:
    found = {cell.number: find(cell.source, edit.old, edit.new) for cell in cells if cell.source}
    exact = {number: each for number, each in found.items() if each.passages and not each.rule}
    return exact or {number: each for number, each in found.items() if each.passages}


def _replaced(source: str, passages: list[EditPassage], cell: int, shown: str) -> str:
    passages.sort()
    for one, next_one in pairwise(passages):
        if next_one.start < one.end:
            raise ToolError(f"Two of the edits overlap in cell {cell} of `{shown}`; nothing was changed. Join them into one.")
    out, position = [], 0
    for passage in passages:
        out += [source[position : passage.start], passage.new]
        position = passage.end
    return "".join((*out, source[position:]))
