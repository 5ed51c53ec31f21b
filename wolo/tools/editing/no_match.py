"""What to say when the text of an edit is not in the file, or is there more than once: lines to copy from."""

from __future__ import annotations

from wolo.tools.editing.matching import Found, find, line_number, nearest_lines
from wolo.workspace.files.encodings import printable, split_lines

_MAX_SHOWN_LINES = 12
_MAX_REGION_LINES = 60
_MAX_WIDTH = 400


def describe_ambiguity(what: str, text: str, found: Found, shown: str, remedy: str) -> str:
    """`what` names the text that was looked for, at the beginning of a sentence."""
    lines = ", ".join(str(line_number(text, passage.start)) for passage in found.passages[:10])
    lines += ", …" if len(found.passages) > 10 else ""
    forgiven = f" (ignoring {found.rule})" if found.rule else ""
    return f"{what} occurs {len(found.passages)} times in `{shown}`{forgiven}, at lines {lines}; nothing was changed. {remedy}"


def describe_miss(what: str, text: str, old: str, new: str, misses: int, shown: str) -> str:
    """The first miss shows what comes nearest; from the second on, the whole region as it is now."""
    head = f"{what} was not found in `{shown}`; nothing was changed."
    if misses > 1:
        head += f" This is miss {misses} in a row on this file."
    if len(new.strip()) > 3 and len(done := find(text, new, "").passages) == 1:
        head += f" The new text is there already, at line {line_number(text, done[0].start)}."
    near = nearest_lines(text, old)
    if misses == 1 and near is None:
        return f"{head} Nothing in it is like it: read the file again."
    first, count = near or (1, 1)
    if misses == 1:
        return f"{head} Nearest lines:\n{_numbered(text, first, min(count, _MAX_SHOWN_LINES))}"
    around = max((_MAX_REGION_LINES - count) // 2, 5)
    begin = max(first - around, 1)
    region = _numbered(text, begin, min(count + 2 * around, _MAX_REGION_LINES))
    return f"{head} The file reads now:\n{region}\nCopy from these lines, without the numbers."


def _numbered(text: str, first: int, count: int) -> str:
    lines = split_lines(text)[first - 1 : first - 1 + count]
    return "\n".join(f"{number}→{printable(line.rstrip()[:_MAX_WIDTH])}" for number, line in enumerate(lines, start=first))
