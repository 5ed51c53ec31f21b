"""Finds the passage that an edit refers to: exactly, or by named rules that tolerate small differences.

The rules are tried from strict to lenient; the first that finds anything decides. An ambiguous passage is never chosen.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from wolo.messages.line_numbers import EVERY
from wolo.tools.tool import UNOFFERED
from wolo.workspace.files.encodings import printable, split_lines
from wolo.workspace.files.line_diff import compare

_ENDING = re.compile(r"\r\n|\r|\n")
_WRITTEN_ENDING = re.compile(r"\r\n|\n")
"""Line ends in the model's text; a lone CR is intentional."""
_MANY = 100
"""Overlapping passages beyond this number are not reported."""
_NUMBERED = re.compile(r"[ \t]*(\d{1,12})(?:→|\t|[:|])")
_ARROW = re.compile(r"(\d{1,12})→")
_NUMBERED_WIDE = re.compile(r"[ \t]*(\d{1,12})[:|](?: |(?=[\r\n]|\Z))")


class Replacement(Struct, frozen=True):
    old: str
    new: str
    replace_all: Annotated[bool, Meta(extra_json_schema={UNOFFERED: True})] = False


class EditPassage(NamedTuple):
    start: int
    end: int
    new: str
    """Replacement with the line ends and indentation of the passage."""


class PassageMatches(NamedTuple):
    passages: list[EditPassage]
    rule: str
    """Description of the tolerated difference; empty for an exact match."""


def find(text: str, old: str, new: str, *, fits: Callable[[EditPassage], bool] = lambda passage: True) -> PassageMatches:
    """Returns all passages that match `old` under the strictest rule that finds one."""
    for rule, finder in _LADDER:
        if passages := [passage for passage in finder(text, old, new) if fits(passage)]:
            return PassageMatches(passages, rule)
    return PassageMatches([], "")


def join_passages(text: str, passages: Sequence[EditPassage]) -> str:
    """The text with its passages replaced; they are in order and do not overlap."""
    out, position = [], 0
    for passage in passages:
        out += [text[position : passage.start], passage.new]
        position = passage.end
    return "".join((*out, text[position:]))


def line_number(text: str, position: int) -> int:
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    return text.count(end, 0, position) + 1


def with_line_endings_of(place: str, new: str, default: str = "\n") -> str:
    """Gives `new` the line ends of the text it replaces, line by line if these are mixed."""
    if _ENDING.sub("\n", place) == _ENDING.sub("\n", new):
        return new  # only line ends differ, so the edit changes them
    endings = _ENDING.findall(place)
    if len(set(endings)) < 2:
        ending = endings[0] if endings else default
        return _WRITTEN_ENDING.sub(lambda _: ending, new)
    old_lines, new_lines = _ENDING.split(place), _WRITTEN_ENDING.split(new)
    kept: dict[int, str] = {}
    at, at_new = 0, 0
    for begin, end, begin_new, end_new in (*compare(old_lines, new_lines), (len(old_lines), 0, len(new_lines), 0)):
        kept.update(zip(range(at_new, begin_new), endings[at:begin], strict=False))  # the last line may have no ending
        at, at_new = end, end_new
    out, ending = [], endings[0]
    for number, line in enumerate(new_lines[:-1]):
        ending = kept.get(number, ending)
        out += [line, ending]
    return "".join((*out, new_lines[-1]))


class _Places:
    """Creates passages with the line ends of their lines.

    Positions must come in order, so that the text is scanned once.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = _ENDING.search(text)

    def passage(self, start: int, end: int, new: str) -> EditPassage:
        if self._next and self._next.start() < end:
            self._next = _ENDING.search(self._text, end)
        default = self._next[0] if self._next else self._last
        return EditPassage(start, end, with_line_endings_of(self._text[start:end], new, default))

    @cached_property
    def _last(self) -> str:
        """Returns the last line end before a position."""
        feed, carriage = self._text.rfind("\n"), self._text.rfind("\r")
        if feed == carriage:
            return "\n"  # no line ends
        return "\r" if carriage > feed else "\r\n" if carriage == feed - 1 >= 0 else "\n"


def _positions(text: str, part: str) -> Iterator[int]:
    """Returns positions in order; overlapping ones are limited."""
    position, count, free = text.find(part), 0, 0
    while position >= 0:
        yield position
        count += 1
        free = position + len(part) if position >= free else free
        position = text.find(part, position + 1 if count < _MANY else free)


def _exact(text: str, old: str, new: str) -> list[EditPassage]:
    places = _Places(text)
    passages = []
    for position in _positions(text, old):
        end = position + len(old)
        # Half of a CRLF is not a line ending.
        torn = (old[0] == "\n" and text[position - 1 : position] == "\r") or (old[-1] == "\r" and text[end : end + 1] == "\n")
        if not torn:
            passages.append(places.passage(position, end, new))
    return passages


def _by_lines(text: str, old: str, new: str, trim: Callable[[str], str]) -> list[EditPassage]:
    """Compares trimmed lines; both ends may lie within a line."""
    if not all(trim(line) in text for line in _ENDING.split(old)):
        return []
    lines = _ENDING.split(text)
    starts = [0, *(ending.end() for ending in _ENDING.finditer(text))]
    trimmed = [trim(line) for line in lines]
    offsets = list(accumulate((len(line) + 1 for line in trimmed), initial=0))
    haystack = "\n".join(trimmed)
    old_lines = _ENDING.split(old)
    needle = "\n".join(map(trim, old_lines))
    to_line_end = trim(old_lines[-1]) != old_lines[-1]

    places = _Places(text)
    passages = []
    for position in _positions(haystack, needle):
        end = position + len(needle)
        first, last = bisect_right(offsets, position) - 1, bisect_right(offsets, end) - 1
        begin = starts[first] + position - offsets[first]
        if not to_line_end:
            passages.append(places.passage(begin, starts[last] + end - offsets[last], new))
        elif end == offsets[last] + len(trimmed[last]):
            passages.append(places.passage(begin, starts[last] + len(lines[last]), new))
    return passages


def _find_shifted(text: str, old: str, new: str) -> list[EditPassage]:
    """Finds lines that are all indented by the same amount more or less than in `old`."""
    old_lines = _ENDING.split(old)
    closed = len(old_lines) > 1 and not old_lines[-1].strip()
    old_lines = old_lines[:-1] if closed else old_lines
    if not all(line.strip() in text for line in old_lines):
        return []
    lines = split_lines(text)
    bare = [line.strip() for line in lines]
    counts = Counter(bare)
    # The rarest line of `old` leaves the fewest candidates.
    rarest = min((line.strip() for line in old_lines if line.strip()), key=lambda line: counts[line], default="")
    if not rarest or not counts[rarest]:
        return []
    anchor = [line.strip() for line in old_lines].index(rarest)
    starts = list(accumulate(map(len, lines), initial=0))
    places = _Places(text)
    passages: list[EditPassage] = []
    free = 0
    for place in (at - anchor for at, line in enumerate(bare) if line == rarest):
        if place < 0 or (len(passages) >= _MANY and starts[place] < free):
            continue
        window = lines[place : place + len(old_lines)]
        if len(window) < len(old_lines) or (shift := _shift(old_lines, window)) is None:
            continue
        if (moved := _move(new, *shift)) is None:
            continue
        ending = "" if closed else window[-1][len(window[-1].rstrip("\r\n")) :]
        passages.append(places.passage(starts[place], starts[place + len(old_lines)] - len(ending), moved))
        free = passages[-1].end if passages[-1].start >= free else free
    return passages


def _shift(old_lines: list[str], window: list[str]) -> tuple[str, str] | None:
    """Returns the indentation to add and the one to remove; one of them is empty."""
    shifts = set()
    for want, line in zip(old_lines, window, strict=True):
        if want.strip() != line.strip():
            return None
        if want.strip():
            ours, theirs = _indent(want), _indent(line)
            if theirs.endswith(ours):
                shifts.add((theirs.removesuffix(ours), ""))
            elif ours.endswith(theirs):
                shifts.add(("", ours.removesuffix(theirs)))
            else:
                return None
    return shifts.pop() if len(shifts) == 1 else None


def _move(new: str, more: str, less: str) -> str | None:
    """None: a line of `new` is indented too little to be moved left."""
    parts = re.split(r"(\r\n|\n)", new)
    for place in range(0, len(parts), 2):
        if not parts[place].strip():
            continue
        if not parts[place].startswith(less):
            return None
        parts[place] = more + parts[place].removeprefix(less)
    return "".join(parts)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _without_numbers(text: str, old: str, new: str) -> list[EditPassage]:
    """Removes line numbers that were copied from `read` or a search."""
    bare = _strip_page_numbers(old, new)
    if bare is None and (bare_old := _strip_numbers(old)):
        numbered = [bool(_NUMBERED.match(line)) for line in _ENDING.split(new) if line.strip()]
        bare_new = _strip_numbers(new, consecutive=False) if numbered and all(numbered) else new
        bare = None if bare_new is None or (any(numbered) and not all(numbered)) else (bare_old, bare_new)
    if bare is None:
        return []
    return next((passages for _, finder in _LADDER[:-1] if (passages := finder(text, *bare))), [])


def _strip_page_numbers(old: str, new: str) -> tuple[str, str] | None:
    """None: the numbered lines of `old` are not those of one file in pages of `read`, or `new` has others."""
    lines = split_lines(old)
    found = {at: int(match[1]) for at, match in enumerate(map(_ARROW.match, lines)) if match}
    every_tenth = len(found) < len(lines) or not any(found[at] % EVERY for at in found if at)
    is_one_file = every_tenth and len({number - at for at, number in found.items()}) == 1
    if not is_one_file or any(int(match[1]) not in found.values() for match in map(_ARROW.match, split_lines(new)) if match):
        return None
    bare_old, bare_new = (
        "".join(_ARROW.sub("", line, 1) if _ARROW.match(line) else line for line in split_lines(each)) for each in (old, new)
    )
    return (bare_old, bare_new) if bare_old else None


def _strip_numbers(copied: str, *, consecutive: bool = True) -> str | None:
    """None: a non-empty line has no number, or the numbers are not from one page."""
    lines = split_lines(copied)
    filled = [line.rstrip("\r\n") for line in lines if line.strip()]
    pattern = _NUMBERED_WIDE if all(map(_NUMBERED_WIDE.match, filled)) else _NUMBERED
    numbers = [int(match[1]) for match in map(pattern.match, filled) if match]
    if not numbers or len(numbers) < len(filled):
        return None
    if consecutive and len(lines) == len(filled) and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return "".join(pattern.sub("", line, count=1) for line in lines)


_LADDER: tuple[tuple[str, Callable[[str, str, str], list[EditPassage]]], ...] = (
    ("", _exact),
    ("line endings", lambda text, old, new: _by_lines(text, old, new, str) if _ENDING.search(old) else []),
    ("trailing spaces", lambda text, old, new: _by_lines(text, old, new, lambda line: line.rstrip(" \t")) if old.strip() else []),
    ("indentation", _find_shifted),
    ("copied line numbers", _without_numbers),
)


def nearest_lines(text: str, old: str) -> tuple[int, int] | None:
    """Returns first line and number of lines most similar to `old`, for display. None: nothing is similar."""
    from rapidfuzz import fuzz, process  # noqa: PLC0415  # only for a miss

    old_lines = [line.strip() for line in _ENDING.split(old)]
    anchor = max(old_lines, key=len)[:400]
    lines = [line.strip()[:400] for line in split_lines(text)[:100_000]]
    best: tuple[float, int] | None = None
    for _, score, at in process.extract(anchor, lines, scorer=fuzz.ratio, limit=5, score_cutoff=50):
        first = max(at - old_lines.index(max(old_lines, key=len)), 0)
        whole = fuzz.ratio("\n".join(old_lines)[:20_000], "\n".join(lines[first : first + len(old_lines)])[:20_000])
        best = max(best or (0.0, 0), (whole + score, -first))
    return None if best is None else (1 - best[1], len(old_lines))


_MAX_SHOWN_LINES = 12
_MAX_REGION_LINES = 60
_MAX_WIDTH = 400


def describe_ambiguity(what: str, text: str, matches: PassageMatches, shown: str, remedy: str) -> str:
    """`what` names the searched text at the start of the sentence."""
    lines = ", ".join(str(line_number(text, passage.start)) for passage in matches.passages[:10])
    lines += ", …" if len(matches.passages) > 10 else ""
    forgiven = f" (ignoring {matches.rule})" if matches.rule else ""
    return f"{what} occurs {len(matches.passages)} times in `{shown}`{forgiven}, at lines {lines}; nothing was changed. {remedy}"


def describe_miss(what: str, text: str, old: str, new: str, num_misses: int, shown: str) -> str:
    """The first miss shows the most similar lines; later ones show the whole region."""
    head = f"{what} was not found in `{shown}`; nothing was changed."
    if num_misses > 1:
        head += f" This is miss {num_misses} in a row on this file."
    if len(new.strip()) > 3 and len(done := find(text, new, "").passages) == 1:
        head += f" The new text is there already, at line {line_number(text, done[0].start)}."
    near = nearest_lines(text, old)
    if num_misses == 1 and near is None:
        return f"{head} No similar lines were found: read the file again."
    first, count = near or (1, 1)
    if num_misses == 1:
        return f"{head} Nearest lines:\n{_number_lines(text, first, min(count, _MAX_SHOWN_LINES))}"
    around = max((_MAX_REGION_LINES - count) // 2, 5)
    begin = max(first - around, 1)
    region = _number_lines(text, begin, min(count + 2 * around, _MAX_REGION_LINES))
    return f"{head} The file reads now:\n{region}\nCopy from these lines, without the numbers."


def _number_lines(text: str, first: int, num_lines: int) -> str:
    lines = split_lines(text)[first - 1 : first - 1 + num_lines]
    return "\n".join(f"{number}→{printable(line.rstrip()[:_MAX_WIDTH])}" for number, line in enumerate(lines, start=first))
