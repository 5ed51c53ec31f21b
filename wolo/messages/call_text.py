"""Shows a tool call as text: the tool and all of its arguments, with an escape for every character that does not show."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from wolo.messages.parts import ToolPart
from wolo.messages.plural import counted
from wolo.messages.terminal_text import spelled_line

FILES = ("path", "file_path", "filepath", "filename", "file", "absolute_path", "target_file")
MAIN = ("command", "cmd", "script", "pattern", "url", "query", "prompt", *FILES)
"""The first of them that a call has is shown first, without its name."""
SOME = 200
"""Characters of each text of a change, for lists and reports: commands and all other arguments are whole there."""
CHANGING = frozenset({"write", "edit", "apply_patch", "todo", "ask"})
"""A front end shows their texts as a change, a list or a question: on the line of the call they may be short."""
_WORD = r"[\w./:@%+,=~*?-]+"
_PATCHED = r"(?m)^[ \t]*\*\*\* (?:(?:Add|Update|Delete) File|Move to):[ \t]*(.+?)[ \t\r]*$"


def call_line(part: ToolPart, *, most_chars: int | None = None, most_of_change: int | None = None) -> str:
    """`grep TODO path=src`"""
    return f"{spelled_line(part.tool)} {arguments_line(part, most_chars=most_chars, most_of_change=most_of_change)}".rstrip()


def arguments_line(part: ToolPart, *, most_chars: int | None = None, most_of_change: int | None = None) -> str:
    """All arguments on one line; what is longer than it may be ends with the number of characters that are missing.

    `most_of_change`: characters of each text that is shown elsewhere as a change; 0: the files of a patch and nothing else.
    """
    return shortened(" ".join(map(spelled_line, _spelled(part, most_of_change))), most_chars)


def arguments(part: ToolPart) -> list[tuple[str, str]]:
    """Names and values in the order given, unescaped; the raw text where it could not be read."""
    if not part.input and part.raw_input.strip() not in ("", "{}"):
        return [("arguments", part.raw_input)]
    return [(name, value if isinstance(value, str) else _as_json(value)) for name, value in part.input.items()]


def shortened(text: str, most_chars: int | None) -> str:
    if most_chars is None or len(text) <= most_chars:
        return text
    return f"{text[:most_chars]}… (+{counted(len(text) - most_chars, 'character')})"


def patched_files(patch: str) -> list[str]:
    """The files that a patch names."""
    return list(dict.fromkeys(re.findall(_PATCHED, patch)))


def _spelled(part: ToolPart, most_of_change: int | None) -> Iterator[str]:
    given = arguments(part)
    if given and not part.input:
        yield given[0][1]
        return
    main = next((name for name in MAIN if isinstance(part.input.get(name), str)), "")
    if main:
        yield part.input[main]
    for name, value in given:
        if name == main:
            continue
        is_change = part.tool in CHANGING and name not in FILES and not isinstance(part.input[name], bool)
        if is_change and most_of_change == 0:
            yield from patched_files(value)
        else:
            yield f"{name}={_quoted(part.input[name], shortened(value, most_of_change if is_change else None))}"


def _quoted(value: object, shown: str) -> str:
    return shown if not isinstance(value, str) or re.fullmatch(_WORD, shown) else _as_json(shown)


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
