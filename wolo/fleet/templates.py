"""Makes tasks from a template and files, or the rows of a CSV file."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from string import Formatter
from typing import Any

from wolo.errors import UsageError
from wolo.fleet.tasks import MAX_ID
from wolo.workspace.root import find_root

_COLUMNS = ("id", "repo", "ref", "setup", "verify", "model", "mode", "image")
"""Columns of a CSV file that are fields of the task, besides what the template takes from them."""


def tasks_of_files(template: str, patterns: Sequence[str], more: Mapping[str, str], cwd: Path) -> Iterator[dict[str, Any]]:
    """A task for each file that a pattern matches, with `{path}` relative to `cwd`. Raises UsageError."""
    _check_template(template, {"path", "name"})
    ids, root = Ids(), str(find_root(cwd))
    paths = dict.fromkeys(path for pattern in patterns for path in _matching(pattern, cwd))
    for path in paths:
        prompt = _fill(template, {"path": path, "name": os.path.basename(path)})  # noqa: PTH119  # text all along
        yield {"id": ids.of(path), "prompt": prompt, "repo": root, **more}


def tasks_of_rows(template: str, file: Path, more: Mapping[str, str], cwd: Path) -> Iterator[dict[str, Any]]:
    """A task for each row; the template takes values by the names of columns. Raises UsageError."""
    ids, root = Ids(), str(find_root(cwd))
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = csv.DictReader(opened, strict=True)
            names = [name for name in rows.fieldnames or () if name]
            if not names:
                raise UsageError(f"{file} has no line with the names of its columns.")
            _check_template(template, set(names))
            for row in rows:
                if row.get(None) or None in row.values():  # further values are under None
                    raise UsageError(f"{file}:{rows.line_num}: the row has another number of values than the first line.")
                given = {name: row[name] for name in _COLUMNS if row.get(name, "").strip()}
                prompt = _fill(template, row)
                id = given.pop("id", "") or ids.of(row[names[0]])
                yield {"id": id, "prompt": prompt, "repo": root, **given, **more}
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not valid UTF-8.") from error
    except csv.Error as error:
        raise UsageError(f"{file}: {error}.") from error


def _matching(pattern: str, cwd: Path) -> list[str]:
    paths = [os.path.relpath(path, cwd) for path in sorted(glob(str(cwd / pattern), recursive=True)) if os.path.isfile(path)]  # noqa: PTH113, PTH207  # text all along
    if not paths:
        raise UsageError(f"No file matches {pattern}.", hint="Quote the pattern, so that the shell leaves it alone.")
    return paths


def _check_template(template: str, known: set[str]) -> None:
    if not template.strip():
        raise UsageError("The template is empty.")
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise UsageError(f"The template cannot be read: {error}.", hint="Write {{ and }} for braces of the text.") from error
    for _, name, form, conversion in parts:
        if name is not None and (name not in known or form or conversion):
            raise UsageError(
                f"The template names {{{name}}}; there is {', '.join(f'{{{each}}}' for each in sorted(known))}.",
                hint="Write {{ and }} for braces of the text.",
            )


def _fill(template: str, values: Mapping[str, str]) -> str:
    return "".join(text + (values[name] if name is not None else "") for text, name, _, _ in Formatter().parse(template))


class Ids:
    """Makes names of folders, each once."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def of(self, text: str) -> str:
        id = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip(".+-")[: MAX_ID - 10].rstrip(".+-") or "task"
        unique, number = id, 1
        while unique.casefold() in self._given:
            number += 1
            unique = f"{id}-{number}"
        self._given.add(unique.casefold())
        return unique
