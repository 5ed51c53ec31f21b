"""Scans a tree for changes since the last scan and stores the contents.

A folder with unchanged times holds the same names, a file with unchanged times the same content, so most scans cost one system
call per file. A file changed at this very moment, whose times could not prove anything, is read again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import json

from wolo.workspace.checkpoints.directory_cache import DirectoryEntry, DirectoryListing, Stamp, rule_stamps, stamp_of, trusted
from wolo.workspace.checkpoints.path_state import ABSENT, NOT_STORED, PathChange, State, as_text
from wolo.workspace.search.walk import Rules, WalkLimits, WalkStopped, is_ignored, rules_in

MAX_FILE_BYTES = 10 << 20
MAX_ENTRIES = 100_000
_MOST_NAMED = 100
MAX_S = 20.0
"""For the first scan of a large tree on a slow disk."""
_KEEP_S = 12.0
"""Contents are not stored after this time; the next scan continues."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_MTIME, _SIZE, _MODE = 0, 2, 4
_FILES = ("file", "link")


class LeftOut(NamedTuple):
    """Paths that a scan does not cover."""

    large: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Ignored by git; folders as one."""
    later: int = 0
    """Number of files whose content is not stored yet for lack of time."""

    def encode(self) -> str:
        """A limited number of names each, for display."""
        lists = ([as_text(each) for each in paths[:_MOST_NAMED]] for paths in self[:4])
        return json.encode((*lists, self.later)).decode()


class Scan:
    """Compares trees with the listings in `known`, by path, and updates them.

    Raises walk.WalkStopped on a limit; `known` must then be discarded.
    """

    def __init__(
        self, known: dict[str, DirectoryListing], leave_out: Iterable[str], store_content: Callable[[bytes], bytes]
    ) -> None:
        self.known = known
        self.changes: list[PathChange] = []
        """In a possible order: a removed entry precedes what replaced it."""
        self.renewed: dict[str, DirectoryListing | None] = {}
        """Changed listings; None for a removed folder."""
        self._excluded = frozenset(leave_out)
        self._store_content = store_content
        self._start = time.monotonic()
        self._bounds = WalkLimits(MAX_ENTRIES, MAX_S)
        self._entries = 0
        self._large: list[str] = []
        self._special: list[str] = []
        self._unreadable: list[str] = []
        self._ignored: list[str] = []
        self._later = 0

    @property
    def left_out(self) -> LeftOut:
        large, special, unreadable, ignored = map(tuple, (self._large, self._special, self._unreadable, self._ignored))
        return LeftOut(large, special, unreadable, ignored, self._later)

    def at(self, root: str) -> None:
        """Scans a tree; `root` is absolute and real."""
        waiting = [_Visit(root, "", (), None)]
        while waiting:
            self._bounds.check()
            waiting += self._visit(waiting.pop())

    def _visit(self, visit: _Visit) -> list[_Visit]:
        """Scans one folder; returns its subfolders."""
        path = visit.path
        old = None if visit.is_new else self.known.get(path)
        try:
            status = os.lstat(path)
        except OSError:
            return []
        if (
            old is not None
            and not visit.is_fresh
            and old.stamp == stamp_of(status)
            and old.rules == rule_stamps(path, old.entries)
        ):
            self._recheck(path, old)
            self._count(path, old)
            folders = [name for name, entry in old.entries.items() if entry.kind == "folder"]
            return [_Visit(f"{path}/{name}", f"{visit.inner}{name}/", None, visit) for name in folders]
        try:
            with os.scandir(path) as found:
                entries = {entry.name: entry for entry in found}
        except OSError:
            self._unreadable.append(path)
            self._keep_unreadable(visit, old, stat.S_IMODE(status.st_mode))
            return []
        return self._relist(visit, old, status, entries)

    def _keep_unreadable(self, visit: _Visit, old: DirectoryListing | None, mode: int) -> None:
        """Handles a folder that became unreadable: its content is not known to be gone."""
        if old is not None and old.mode != mode and visit.inner:
            self.changes.append(PathChange(visit.path, State("folder", NOT_STORED, old.mode), State("folder", NOT_STORED, mode)))
            self._set_listing(visit.path, DirectoryListing((), mode, old.rules, old.entries))

    def _relist(
        self, visit: _Visit, old: DirectoryListing | None, status: os.stat_result, entries: dict[str, os.DirEntry[str]]
    ) -> list[_Visit]:
        path, mode = visit.path, stat.S_IMODE(status.st_mode)
        state = State("folder", NOT_STORED, mode)
        if visit.is_new:
            self.changes.append(PathChange(path, ABSENT, state))
        elif old is not None and old.mode != mode and visit.inner:
            self.changes.append(PathChange(path, State("folder", NOT_STORED, old.mode), state))
        before = old.entries if old is not None else {}
        for name in before.keys() - entries.keys():
            self._record_removal(f"{path}/{name}", before[name])
        rules = rules_in(path, visit.inner, self._rules_above(visit), entries, self._bounds)
        stamps = rule_stamps(path, entries)
        is_fresh = visit.is_fresh or (old is not None and old.rules != stamps)
        listing = DirectoryListing(trusted(stamp_of(status)), mode, stamps, {})
        following = []
        for name, entry in entries.items():
            was = before.get(name)
            is_made = visit.is_new or (old is not None and was is None)
            inner = f"{visit.inner}{name}{'/' if entry.is_dir(follow_symlinks=False) else ''}"
            if self._is_not_covered(entry, was, inner, rules, is_fresh=is_fresh):
                listing.entries[name] = DirectoryEntry("")
            elif inner.endswith("/"):
                if was is not None and was.kind in ("file", "link"):
                    self._record_removal(entry.path, was)
                    is_made = True
                listing.entries[name] = DirectoryEntry("folder")
                following.append(_Visit(entry.path, inner, rules, visit, is_made, is_fresh))
            else:
                listing.entries[name] = self._enter(entry.path, was, is_made=is_made)
        if old is None or not old.is_like(listing):
            self._set_listing(path, listing)
        self._count(path, listing)
        return following

    def _rules_above(self, visit: _Visit) -> tuple[Rules, ...]:
        """Computed only when names must be judged."""
        if visit.rules is not None or visit.above is None:
            return visit.rules or ()
        above = visit.above
        return rules_in(above.path, above.inner, self._rules_above(above), self.known[above.path].entries, self._bounds)

    def _is_not_covered(
        self, entry: os.DirEntry[str], was: DirectoryEntry | None, inner: str, rules: tuple[Rules, ...], *, is_fresh: bool
    ) -> bool:
        """Covered entries stay covered, and uncovered ones are never taken for new."""
        if entry.name == ".git" or entry.path in self._excluded:
            return True
        if was is not None and (was.kind or not is_fresh):
            return not was.kind
        return is_ignored(inner, rules)

    def _enter(self, path: str, was: DirectoryEntry | None, *, is_made: bool) -> DirectoryEntry:
        """Compares an entry that is not a folder."""
        if was is not None and was.kind == "folder":
            self._record_removal(path, was)
            was, is_made = None, True
        if was is not None and was.kind:
            return self._compare(path, was)
        now, _ = self._read(path)
        if is_made and now.kind:
            self.changes.append(PathChange(path, ABSENT, now.state))
        return now

    def _recheck(self, path: str, listing: DirectoryListing) -> None:
        """Checks the files of a folder whose names did not change."""
        renewed: dict[str, DirectoryEntry] = {}
        lstat, lead = os.lstat, f"{path}/"
        for name, entry in listing.entries.items():
            kind, stamp, key, _ = entry  # the hot loop over all files
            if kind not in _FILES:
                continue
            try:
                status = lstat(lead + name)
                if key and stamp == (
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                    status.st_size,
                    status.st_ino,
                    status.st_mode,
                ):
                    continue
            except OSError:
                pass  # the comparison will tell
            if (now := self._compare(lead + name, entry)) != entry:
                renewed[name] = now
        if renewed:
            self._set_listing(path, DirectoryListing(listing.stamp, listing.mode, listing.rules, {**listing.entries, **renewed}))

    def _compare(self, path: str, was: DirectoryEntry) -> DirectoryEntry:
        now, stamp = self._read(path)
        if now.kind != was.kind:
            self.changes.append(PathChange(path, was.state, ABSENT))
            if now.kind:
                self.changes.append(PathChange(path, ABSENT, now.state))
        elif stamp != was.stamp and (now.mode != was.mode or not _is_same(was, now, stamp)):
            self.changes.append(PathChange(path, was.state, now.state))
        return now

    def _record_removal(self, path: str, was: DirectoryEntry) -> None:
        if was.kind in _FILES:
            self.changes.append(PathChange(path, was.state, ABSENT))
        elif was.kind == "folder" and (listing := self.known.get(path)):
            for name, entry in listing.entries.items():
                self._record_removal(f"{path}/{name}", entry)
            self.changes.append(PathChange(path, State("folder", NOT_STORED, listing.mode), ABSENT))
            self._set_listing(path, None)

    def _set_listing(self, path: str, listing: DirectoryListing | None) -> None:
        self.renewed[path] = listing
        if listing is None:
            self.known.pop(path, None)
        else:
            self.known[path] = listing

    def _count(self, path: str, listing: DirectoryListing) -> None:
        self._entries += len(listing.entries)
        if self._entries > MAX_ENTRIES:
            raise WalkStopped(f"after {MAX_ENTRIES:,} files and folders")
        self._ignored += [f"{path}/{name}" for name, entry in listing.entries.items() if not entry.kind and name != ".git"]

    def _read(self, path: str) -> tuple[DirectoryEntry, Stamp]:
        """Reads the present state, storing the content, and the stamp; kind is empty for an uncovered entry."""
        try:
            status = os.lstat(path)
            stamp = stamp_of(status)
            if stat.S_ISLNK(status.st_mode):
                key = self._store_content(os.fsencode(os.readlink(path)))  # noqa: PTH115  # bytes of any kind
                return DirectoryEntry("link", trusted(stamp), key), stamp
        except OSError:
            return DirectoryEntry(""), ()
        if not stat.S_ISREG(status.st_mode):
            self._special.append(path)
            return DirectoryEntry(""), ()
        remembered, key = self._content(path, stamp)
        return DirectoryEntry("file", remembered, key, stat.S_IMODE(status.st_mode)), stamp

    def _content(self, path: str, stamp: Stamp) -> tuple[Stamp, bytes]:
        """Returns the stamp to remember and the hash of the stored content."""
        if stamp[_SIZE] > MAX_FILE_BYTES:
            self._large.append(path)
            return stamp, NOT_STORED
        if time.monotonic() - self._start > _KEEP_S:
            self._later += 1
            return stamp, NOT_STORED
        remembered = trusted(stamp)
        try:
            handle = os.open(path, _READ)
            try:
                data = b"".join(_pieces(handle))
                is_steady = stamp_of(os.fstat(handle)) == stamp
            finally:
                os.close(handle)
        except OSError:
            self._unreadable.append(path)
            return stamp, NOT_STORED
        return (remembered if is_steady else ()), self._store_content(data)


class _Visit(NamedTuple):
    """A folder to be scanned."""

    path: str
    inner: str
    """Relative to the root, with a trailing slash; empty for the root."""
    rules: tuple[Rules, ...] | None
    """Ignore rules of the parent; None when not computed yet."""
    above: _Visit | None
    is_new: bool = False
    is_fresh: bool = False
    """Ignore rules above it have changed."""


def _is_same(was: DirectoryEntry, now: DirectoryEntry, stamp: Stamp) -> bool:
    """Compares contents; by time, size and identity where the content is not stored."""
    if was.hash and now.hash:
        return was.hash == now.hash
    return bool(was.stamp) and (was.stamp[_MTIME], *was.stamp[_SIZE:_MODE]) == (stamp[_MTIME], *stamp[_SIZE:_MODE])


def _pieces(handle: int) -> Iterator[bytes]:
    size = 0
    while size <= MAX_FILE_BYTES and (piece := os.read(handle, 1 << 20)):
        size += len(piece)
        yield piece
