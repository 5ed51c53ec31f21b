"""Finds files of a folder by typed letters, for the completion of mentions."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from heapq import nsmallest
from pathlib import Path

from wolo.workspace.root import find_root
from wolo.workspace.walk import WalkLimits, WalkStopped, walk

MOST_OFFERED = 50
MOST_ENTRIES = 100_000
MOST_S = 2.0
"""Time limit for listing files; the rest is not offered."""
FRESH_S = 15.0
MOST_UNASKED = 2_000
"""Names considered before a letter is typed."""
AT_ONCE, BREATH_S = 5_000, 0.001
"""Pause after so many names: threads switch only while one waits, and keys come first."""
LISTED_AT_ONCE = 500


class FileNames:
    """File names below a directory, as git lists them; read again after FRESH_S."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        self._directory: Path | None = None
        self._index = NameIndex(())
        self._seen_at = float("-inf")

    def below(self, directory: Path) -> Sequence[str]:
        """Files, and folders with a trailing slash."""
        return self.index(directory).names

    def index(self, directory: Path) -> NameIndex:
        with self._looking:
            if directory != self._directory or time.monotonic() - self._seen_at > FRESH_S:
                self._index, self._directory = NameIndex(tuple(_look(directory))), directory
                self._seen_at = time.monotonic()
            return self._index


class NameIndex:
    """Finds names by typed letters; when letters are added, only the last matches are searched."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._folded = [name.casefold() for name in names]
        self._last: tuple[str, Sequence[int]] = ("", range(len(names)))
        """Typed letters and the positions of their matches; replaced as a whole, because threads share it."""

    def best(self, typed: str) -> list[str]:
        """Returns names that contain the typed letters in order, best match first."""
        if not (folded_typed := typed.casefold()):
            return nsmallest(MOST_OFFERED, self.names[:MOST_UNASKED], key=lambda name: (name.rstrip("/").count("/"), name))
        last, candidates = self._last
        if not folded_typed.startswith(last):
            candidates = range(len(self.names))
        names, folded = self.names, self._folded
        contains = re.compile("".join(f"[^{letter}]*+{letter}" for letter in map(re.escape, folded_typed))).match
        matches: list[int] = []
        best: list[tuple[int, int, str]] = []
        for start in range(0, len(candidates), AT_ONCE):
            found = [at for at in candidates[start : start + AT_ONCE] if contains(folded[at])]
            matches += found
            best = nsmallest(
                MOST_OFFERED, [*best, *((_distance(folded_typed, folded[at]), len(names[at]), names[at]) for at in found)]
            )
            time.sleep(BREATH_S)
        self._last = (folded_typed, matches)
        return [name for *_, name in best]


def _distance(typed: str, name: str) -> int:
    last = name.rstrip("/").rpartition("/")[2]
    if last.startswith(typed) or name.startswith(typed):
        return 0
    return 1 if typed in last else 2 if typed in name else 3


def _look(directory: Path) -> Iterator[str]:
    folders: set[str] = set()
    try:
        found = walk(directory, WalkLimits(max_entries=MOST_ENTRIES, max_s=MOST_S), top=find_root(directory))
        for number, name in enumerate(found):
            if number % LISTED_AT_ONCE == 0:
                time.sleep(BREATH_S)
            yield name
            folder = name.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                yield f"{folder}/"
                folder = folder.rpartition("/")[0]
    except WalkStopped:
        return
