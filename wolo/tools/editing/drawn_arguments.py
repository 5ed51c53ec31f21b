"""Finds the arguments of a call that its view shows whole, so that an approval lists all others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, to_builtins

from wolo.tools.tool_values import Diff, Output, View
from wolo.workspace.files.encodings import printable
from wolo.workspace.files.line_diff import is_cut

_CHANGES = ("content", "old", "new", "edits", "patch")
"""Arguments of the built-in tools that a diff is made from."""
_NOT_DRAWN = r"\r|\*\*\* (?:Move to|Delete File):"


def changed_texts(arguments: Mapping[str, Any], args: Any) -> Iterator[str]:
    """Names of the arguments that a change is made from: those that the tool reads exactly as they were given."""
    if not isinstance(args, Struct):
        return
    read = [value for name in _CHANGES if (value := getattr(args, name, None)) is not None]
    for name, value in arguments.items():
        if any(_is_read_as(value, each) for each in read):
            yield name


def _is_read_as(value: Any, read: Any) -> bool:
    if isinstance(read, str) or not isinstance(value, list):
        return bool(value == read)
    replacements = to_builtins(read)
    return len(value) == len(replacements) and all(
        isinstance(each, dict) and each.items() <= made.items() for each, made in zip(value, replacements, strict=True)
    )


def arguments_in_view(arguments: Mapping[str, Any], args: Any, view: View | None) -> Iterator[str]:
    """Names of the arguments that a view shows whole."""
    match view:
        case Output():
            yield from (name for name, value in arguments.items() if value == view.command)
        case Diff() if not is_cut(view.text):
            yield from (name for name, value in arguments.items() if value == view.path)
            yield from (name for name in changed_texts(arguments, args) if _is_drawn(arguments[name]))


def _is_drawn(value: Any) -> bool:
    """A diff leaves out carriage returns and where a patch moves a file, and draws another character for NUL."""
    texts = [text for each in value for text in each.values()] if isinstance(value, list) else [value]
    return not any(isinstance(text, str) and (re.search(_NOT_DRAWN, text) or printable(text) != text) for text in texts)
