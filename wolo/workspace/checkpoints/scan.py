"""Scans a tree for changes since the last scan, and remembers each folder's entries for the next.

A folder with unchanged times holds the same names, a file with unchanged times the same content, so most scans cost one system
call per file. A file changed at this very moment, whose times could not prove anything, is read again.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from msgspec import json, msgpack

from wolo.operating_system import os
from wolo.workspace.checkpoints.path_state import ABSENT, NOT_STORED, UNKNOWN_MODE, Kind, PathChange, State, as_text
from wolo.workspace.walk import Rules, WalkLimits, WalkStopped, is_ignored, rules_in

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
_COARSE_NS = 1_000_000
RACY_NS = 50_000_000
"""File system clocks have a resolution of milliseconds: two changes may have the same time."""
_RACY_COARSE_NS = 2_000_000_000

Stamp = tuple[int, ...]
"""Times, size, identity and mode; empty for an entry that must be read again."""


class DirectoryEntry(NamedTuple):
    kind: Kind
    """Empty for entries not covered."""
    stamp: Stamp = ()
    hash: bytes = NOT_STORED
    mode: int = UNKNOWN_MODE

    @property
    def state(self) -> State:
        """For a file or link."""
        return State(self.kind, self.hash, self.mode)


class DirectoryListing:
    """A folder as of the last scan."""

    __slots__ = ("entries", "mode", "rules", "stamp")

    def __init__(self, stamp: Stamp, mode: int, rules: Stamp, entries: dict[str, DirectoryEntry]) -> None:
        self.stamp, self.mode = stamp, mode
        self.rules = rules
        """Stamps of the files with ignore rules."""
        self.entries = entries

    def is_like(self, other: DirectoryListing) -> bool:
        mine, theirs = ((each.stamp, each.mode, each.rules, each.entries) for each in (self, other))
        return mine == theirs

    def encode(self) -> bytes:
        names = os.fsencode("/".join(self.entries))
        return msgpack.encode((self.stamp, self.mode, self.rules, names, list(self.entries.values())))


_DECODER = msgpack.Decoder(tuple[Stamp, int, Stamp, bytes, list[DirectoryEntry]])


def decode(data: bytes) -> DirectoryListing:
    """Raises msgspec.DecodeError."""
    stamp, mode, rules, names, entries = _DECODER.decode(data)
    return DirectoryListing(stamp, mode, rules, dict(zip(os.fsdecode(names).split("/"), entries, strict=False)))


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
            visit = waiting.pop()
            path = visit.path
            old = None if visit.is_new else self.known.get(path)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            is_unchanged = old is not None and not visit.is_fresh and old.stamp == stamp_of(status)
            if old is not None and is_unchanged and old.rules == rule_stamps(path, old.entries):
                self._recheck(path, old)
                self._count(path, old)
                folders = [name for name, entry in old.entries.items() if entry.kind == "folder"]
                waiting += [_Visit(f"{path}/{name}", f"{visit.inner}{name}/", None, visit) for name in folders]
                continue
            try:
                with os.scandir(path) as children:
                    entries = {entry.name: entry for entry in children}
            except OSError:
                self._unreadable.append(path)
                mode = stat.S_IMODE(status.st_mode)
                if old is not None and old.mode != mode and visit.inner:  # its content is not known to be gone
                    self.changes.append(
                        PathChange(path, State("folder", NOT_STORED, old.mode), State("folder", NOT_STORED, mode))
                    )
                    self._set_listing(path, DirectoryListing((), mode, old.rules, old.entries))
                continue
            waiting += self._relist(visit, old, status, entries)

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
        listing = DirectoryListing(trust(stamp_of(status)), mode, stamps, {})
        following = []
        for name, entry in entries.items():
            was = before.get(name)
            is_made = visit.is_new or (old is not None and was is None)
            inner = f"{visit.inner}{name}{'/' if entry.is_dir(follow_symlinks=False) else ''}"
            # Covered entries stay covered, and uncovered ones are never taken for new.
            if name == ".git" or entry.path in self._excluded:
                is_covered = False
            elif was is not None and (was.kind or not is_fresh):
                is_covered = bool(was.kind)
            else:
                is_covered = not is_ignored(inner, rules, self._bounds)
            is_folder = inner.endswith("/")
            if is_covered and was is not None and was.kind and (was.kind == "folder") != is_folder:
                self._record_removal(entry.path, was)
                was, is_made = None, True
            if not is_covered:
                listing.entries[name] = DirectoryEntry("")
            elif is_folder:
                listing.entries[name] = DirectoryEntry("folder")
                following.append(_Visit(entry.path, inner, rules, visit, is_made, is_fresh))
            elif was is not None and was.kind:
                listing.entries[name] = self._compare(entry.path, was)
            else:
                now, _ = self._read(entry.path)
                listing.entries[name] = now
                if is_made and now.kind:
                    self.changes.append(PathChange(entry.path, ABSENT, now.state))
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

    def _recheck(self, path: str, listing: DirectoryListing) -> None:
        renewed: dict[str, DirectoryEntry] = {}
        lstat, lead = os.lstat, f"{path}/"
        for name, entry in listing.entries.items():
            kind, stamp, key, _ = entry  # the hot loop over all files
            if kind not in _FILES:
                continue
            try:
                status = lstat(lead + name)
                if key and stamp == (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode):
                    continue
            except OSError:
                pass  # the comparison will tell
            if (now := self._compare(lead + name, entry)) != entry:
                renewed[name] = now
        if renewed:
            self._set_listing(path, DirectoryListing(listing.stamp, listing.mode, listing.rules, {**listing.entries, **renewed}))

    def _compare(self, path: str, was: DirectoryEntry) -> DirectoryEntry:
        now, stamp = self._read(path)
        if was.hash and now.hash:
            is_same = was.hash == now.hash
        else:  # by time, size and identity where the content is not stored
            traits = [(each[_MTIME], *each[_SIZE:_MODE]) for each in (was.stamp, stamp) if each]
            is_same = len(traits) == 2 and traits[0] == traits[1]
        if now.kind != was.kind:
            self.changes.append(PathChange(path, was.state, ABSENT))
            if now.kind:
                self.changes.append(PathChange(path, ABSENT, now.state))
        elif stamp != was.stamp and (now.mode != was.mode or not is_same):
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
                key = self._store_content(os.fsencode(os.readlink(path)))  # bytes of any kind
                return DirectoryEntry("link", trust(stamp), key), stamp
        except OSError:
            return DirectoryEntry(""), ()
        if not stat.S_ISREG(status.st_mode):
            self._special.append(path)
            return DirectoryEntry(""), ()
        not_stored = DirectoryEntry("file", stamp, NOT_STORED, stat.S_IMODE(status.st_mode))
        if stamp[_SIZE] > MAX_FILE_BYTES:
            self._large.append(path)
            return not_stored, stamp
        if time.monotonic() - self._start > _KEEP_S:
            self._later += 1
            return not_stored, stamp
        remembered = trust(stamp)
        try:
            handle = os.open(path, _READ)
            try:
                pieces, size = [], 0
                while size <= MAX_FILE_BYTES and (piece := os.read(handle, 1 << 20)):
                    pieces.append(piece)
                    size += len(piece)
                is_steady = stamp_of(os.fstat(handle)) == stamp
            finally:
                os.close(handle)
        except OSError:
            self._unreadable.append(path)
            return not_stored, stamp
        key = self._store_content(b"".join(pieces))
        return not_stored._replace(stamp=remembered if is_steady else (), hash=key), stamp


class _Visit(NamedTuple):
    path: str
    inner: str
    """Relative to the root, with a trailing slash; empty for the root."""
    rules: tuple[Rules, ...] | None
    """Ignore rules of the parent; None when not computed yet."""
    above: _Visit | None
    is_new: bool = False
    is_fresh: bool = False
    """Ignore rules above it have changed."""


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode)


def trust(stamp: Stamp) -> Stamp:
    """Empty for a stamp so recent that a later change could have the same one."""
    newest = max(stamp[:2])
    racy_ns = _RACY_COARSE_NS if newest % _COARSE_NS == 0 else RACY_NS
    return stamp if time.time_ns() - newest > racy_ns else ()


def rule_stamps(path: str, names: Mapping[str, object]) -> Stamp:
    stamps: list[int] = []
    for known, file in ((".git", ".git/info/exclude"), (".gitignore", ".gitignore")):
        if known in names:
            with suppress(OSError):
                stamps += stamp_of(os.lstat(f"{path}/{file}"))
    return tuple(stamps)
