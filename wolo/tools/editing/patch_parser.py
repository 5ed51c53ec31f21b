"""Parses a patch: the `*** Begin Patch` envelope with its files and hunks.

Unambiguous mistakes of models are tolerated. Ambiguous or truncated patches are rejected as a whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wolo.errors import ToolError

BEGIN, END = "*** Begin Patch", "*** End Patch"
_END_OF_FILE = "*** End of File"
_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_WRAPPING = re.compile(r"\s*|```[\w+-]*|~~~[\w+-]*|(?:\$ )?apply_patch\s*<<-?\s*['\"]?\w+['\"]?|[A-Z_]{3,}")
"""A code fence or here-document around the envelope."""
_SPAN = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
"""Line numbers after `@@` in a unified diff, which models make up."""
_UNIFIED = re.compile(r"^(?:diff --git |--- \S.*\n\+\+\+ \S)", re.MULTILINE)
_FORM = (
    f"A patch begins with `{BEGIN}`, then come `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`, "
    f"then `{END}`."
)


class Hunk(NamedTuple):
    line: int
    """Line number in the patch, from 1."""
    anchors: tuple[str, ...]
    """Lines of the file above the change, outermost first."""
    lines: tuple[tuple[str, str], ...]
    """Sign (blank or empty: context, `-`: removed, `+`: added) and line without line end."""
    at_end: bool
    """The hunk ends at the end of the file."""

    def count(self, sign: str) -> int:
        """Number of old lines (`-`) or new lines (`+`)."""
        return sum(1 for each, _ in self.lines if each in (sign, " ", ""))

    @property
    def old(self) -> str:
        return "".join(f"{text}\n" for sign, text in self.lines if sign != "+")

    @property
    def new(self) -> str:
        return "".join(f"{text}\n" for sign, text in self.lines if sign != "-")


class AddFile(NamedTuple):
    path: str
    content: str
    replaces: bool = False
    """The patch deletes the file first."""


class DeleteFile(NamedTuple):
    path: str


class UpdateFile(NamedTuple):
    path: str
    move_to: str
    """Empty: not moved."""
    hunks: tuple[Hunk, ...]


Section = AddFile | DeleteFile | UpdateFile


def read_patch(patch: str) -> list[Section]:
    """Returns sections in order. Raises ToolError with the line of the mistake."""
    lines = patch.split("\n")
    if all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    return _PatchReader(_strip_padding(lines)).read()


def _strip_padding(lines: list[str]) -> list[str]:
    """Removes blanks before markers that cannot be lines of a file."""
    padded = [at for at, line in enumerate(lines) if line[:1] in " \t" and line.lstrip().startswith("*** ")]
    if not padded:
        return lines
    mended = list(lines)
    for at in reversed(padded):  # decided by what follows the marker
        marker = lines[at].strip()
        before = next((line for line in reversed(lines[:at]) if line.strip()), "")
        after = next((line for line in lines[at + 1 :] if line.strip()), "")
        # After a change, a padded deletion marker is a context line, unless the next marker is padded too.
        may_stay = marker.startswith("*** Delete") and before[:1] in ("+", "-", " ") and after.startswith("***")
        if _is_padded_marker(mended, at) and not may_stay:
            mended[at] = marker
    for at in padded:
        if at and _MOVE.fullmatch(lines[at].strip()) and _SECTION.fullmatch(mended[at - 1]):
            mended[at] = lines[at].strip()
    return mended


def _is_padded_marker(lines: list[str], at: int) -> bool:
    """Decides by the surrounding lines; within a change it may be a context line."""
    marker = lines[at].strip()
    before = next((line.strip() for line in reversed(lines[:at]) if line.strip()), "")
    after = next((line for line in lines[at + 1 :] if line.strip()), "")
    if marker == END:
        return all(_WRAPPING.fullmatch(line) for line in lines[at + 1 :])
    if marker == _END_OF_FILE:
        return after == END or _SECTION.fullmatch(after) is not None
    if (section := _SECTION.fullmatch(marker)) is None:
        return False
    if not before or before == BEGIN or before.startswith("*** Delete File:") or _WRAPPING.fullmatch(before):
        return True
    if section[1] == "Delete":
        return after == END or _SECTION.fullmatch(after) is not None
    return after.startswith("+") if section[1] == "Add" else after.startswith("@@") or _MOVE.fullmatch(after.strip()) is not None


class _PatchReader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def read(self) -> list[Section]:
        self._skip_to_begin()
        sections: list[Section] = []
        while True:
            if self._at == len(self._lines):
                raise ToolError(f"The patch ends without `{END}`: it was cut off, so nothing was changed.")
            line = self._lines[self._at]
            if line.strip() == END:
                self._at += 1
                if not self._begins_again():
                    break
            elif match := _SECTION.fullmatch(line):
                self._at += 1
                sections.append(self._section(match[1], match[2].strip()))
            elif line.strip():
                raise self._error(f"`{_short(line)}` does not name a file. {_FORM}")
            else:
                self._at += 1
        if not sections:
            raise ToolError("The patch names no file.")
        return sections

    def _skip_to_begin(self) -> None:
        """Accepts a missing start of the envelope if a file is named."""
        for number, line in enumerate(self._lines):
            if line.strip() == BEGIN:
                self._at = number + 1
                return
            if _SECTION.fullmatch(line):
                self._at = number
                return
        if _UNIFIED.search("\n".join(self._lines)):
            raise ToolError(
                f"This is a unified diff. {_FORM} Hunks are as in a diff, but `@@` is followed by a line of the file."
            )
        raise ToolError(f"This is not a patch. {_FORM}")

    def _begins_again(self) -> bool:
        """True when another envelope follows. Raises ToolError for other text."""
        for number, line in enumerate(self._lines[self._at :], start=self._at):
            if line.strip() == BEGIN:
                self._at = number + 1
                return True
            if not _WRAPPING.fullmatch(line):
                self._at = number
                raise self._error(f"`{_short(line)}` follows `{END}`; nothing was changed.")
        return False

    def _section(self, kind: str, path: str) -> Section:
        if not path:
            raise self._error(f"`*** {kind} File:` is not followed by a path.", back=1)
        if kind == "Delete":
            return DeleteFile(path)
        if kind == "Add":
            # Lines with `+`, or unchanged lines if none has one.
            begin = self._at
            lines = self._body()
            while lines and not lines[-1]:
                lines.pop()
            if any(line.startswith("+") for line in lines):
                for number, line in enumerate(lines):
                    if line and line[0] != "+":
                        self._at = begin + number
                        raise self._error(
                            f"`{_short(line)}` begins without `+`, as each line of the new file `{_short(path)}` must."
                        )
                lines = [line[1:] for line in lines]
            return AddFile(path, "".join(f"{line}\n" for line in lines))
        move_to = ""
        if self._at < len(self._lines) and (match := _MOVE.fullmatch(self._lines[self._at])):
            move_to = match[1].strip()
            self._at += 1
            if not move_to:
                raise self._error("`*** Move to:` is not followed by a path.", back=1)
        if not (hunks := self._hunks()) and not move_to:
            raise self._error(f"`*** Update File: {_short(path)}` is followed by no change.", back=1)
        return UpdateFile(path, move_to, hunks)

    def _body(self) -> list[str]:
        """Returns the lines up to the next marker."""
        begin = self._at
        while self._at < len(self._lines) and not self._is_marker(self._lines[self._at]):
            self._at += 1
        return self._lines[begin : self._at]

    def _hunks(self) -> tuple[Hunk, ...]:
        hunks: list[Hunk] = []
        while self._at < len(self._lines) and not _SECTION.fullmatch(self._lines[self._at]):
            line = self._lines[self._at]
            if line.strip() == END:
                break
            at = self._at
            while at < len(self._lines) and not self._lines[at].strip():
                at += 1
            # Empty lines that separate hunks or files are layout; others belong to the hunk.
            if at > self._at and (at == len(self._lines) or self._lines[at].startswith("@@") or self._is_marker(self._lines[at])):
                self._at = at
                continue
            first = self._at
            anchors: list[str] = []
            while self._at < len(self._lines) and self._lines[self._at].startswith("@@"):
                anchor = self._lines[self._at][2:].removeprefix(" ")
                if not _SPAN.fullmatch(anchor) and (anchor := anchor.rstrip().removesuffix(" @@")):
                    anchors.append(anchor)
                self._at += 1
            lines = self._changes()
            at_end = self._at < len(self._lines) and self._lines[self._at].strip() == _END_OF_FILE
            self._at += at_end
            while lines and not at_end and lines[-1] == ("", ""):
                lines.pop()  # empty lines before the next hunk or file are layout
            if all(sign not in ("+", "-") for sign, _ in lines):
                self._at = first
                raise self._error(
                    "This part of the patch changes nothing: lines to remove begin with `-`, lines to add with `+`."
                )
            hunks.append(Hunk(first + 1, tuple(anchors), tuple(lines), at_end))
        return tuple(hunks)

    def _changes(self) -> list[tuple[str, str]]:
        """Accepts context lines without the leading blank, with an empty sign."""
        lines: list[tuple[str, str]] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith("@@") or self._is_marker(line):
                break
            lines.append((line[0], line[1:]) if line.startswith(("+", "-", " ")) else ("", line))
            self._at += 1
        return lines

    def _is_marker(self, line: str) -> bool:
        if not line.startswith("*** "):
            return False
        if line.strip() in (END, BEGIN, _END_OF_FILE) or _SECTION.fullmatch(line):
            return True
        raise self._error(f"`{_short(line)}` is not valid here. {_FORM}", at=self._lines.index(line, self._at))

    def _error(self, complaint: str, *, back: int = 0, at: int | None = None) -> ToolError:
        number = (self._at if at is None else at) - back + 1
        return ToolError(f"Line {number} of the patch: {complaint}")


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"
