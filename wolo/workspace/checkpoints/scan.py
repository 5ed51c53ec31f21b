"""One look at a tree beside the last one: what differs, with the contents kept, as cheaply as it can be told.

A folder whose times did not change holds the same names, a file whose times did not change the same content. So most looks cost
one system call for each file. What another look would have to trust blindly (a file changed in this very moment) is read again.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec import json

from wolo.workspace.checkpoints.directory_cache import Entry, Listing, Stamp, rule_stamps, stamp_of, trusted
from wolo.workspace.checkpoints.path_state import ABSENT, UNKEPT, Change, State, as_text
from wolo.workspace.search.walk import Bounds, Rules, Stopped, is_ignored, rules_in

MAX_FILE_BYTES = 10 << 20
MAX_ENTRIES = 100_000
_MOST_NAMED = 100
MAX_S = 20.0
"""For the first look at a large tree on a slow disk."""
_KEEP_S = 12.0
"""After that much of a look no more contents are kept; the next one goes on."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_MTIME, _SIZE, _MODE = 0, 2, 4
_FILES = ("file", "link")


class LeftOut(NamedTuple):
    """What a look does not cover."""

    large: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """What git ignores, folders as one."""
    later: int = 0
    """Files whose content there was no time to keep yet."""

    def encode(self) -> str:
        """The names, not all of them where there are many, are for people."""
        lists = ([as_text(each) for each in paths[:_MOST_NAMED]] for paths in self[:4])
        return json.encode((*lists, self.later)).decode()


class Look:
    """Compares trees with `known`, the listings by path, and brings those up to date.

    Raises walk.Stopped when there is too much; `known` must be thrown away then.
    """

    def __init__(self, known: dict[str, Listing], leave_out: Iterable[str], keep: Callable[[bytes], bytes]) -> None:
        self.known = known
        self.changes: list[Change] = []
        """In the order in which they could have been made: what is gone before what took its place."""
        self.renewed: dict[str, Listing | None] = {}
        """Listings that differ from those before; None: the folder is gone."""
        self._leave_out = frozenset(leave_out)
        self._keep = keep
        self._began = time.monotonic()
        self._bounds = Bounds(MAX_ENTRIES, MAX_S)
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
        """`root` is absolute and real."""
        waiting = [_Visit(root, "", (), None)]
        while waiting:
            self._bounds.check()
            waiting += self._visit(waiting.pop())

    def _visit(self, visit: _Visit) -> list[_Visit]:
        """Looks at one folder; returns those in it."""
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
            self._shut(visit, old, stat.S_IMODE(status.st_mode))
            return []
        return self._relist(visit, old, status, entries)

    def _shut(self, visit: _Visit, old: Listing | None, mode: int) -> None:
        """A folder that may not be read any more: what is in it is not known to be gone."""
        if old is not None and old.mode != mode and visit.inner:
            self.changes.append(Change(visit.path, State("folder", UNKEPT, old.mode), State("folder", UNKEPT, mode)))
            self._put(visit.path, Listing((), mode, old.rules, old.entries))

    def _relist(
        self, visit: _Visit, old: Listing | None, status: os.stat_result, entries: dict[str, os.DirEntry[str]]
    ) -> list[_Visit]:
        path, mode = visit.path, stat.S_IMODE(status.st_mode)
        state = State("folder", UNKEPT, mode)
        if visit.is_new:
            self.changes.append(Change(path, ABSENT, state))
        elif old is not None and old.mode != mode and visit.inner:
            self.changes.append(Change(path, State("folder", UNKEPT, old.mode), state))
        before = old.entries if old is not None else {}
        for name in before.keys() - entries.keys():
            self._gone(f"{path}/{name}", before[name])
        rules = rules_in(path, visit.inner, self._rules_above(visit), entries, self._bounds)
        stamps = rule_stamps(path, entries)
        is_fresh = visit.is_fresh or (old is not None and old.rules != stamps)
        listing = Listing(trusted(stamp_of(status)), mode, stamps, {})
        following = []
        for name, entry in entries.items():
            was = before.get(name)
            is_made = visit.is_new or (old is not None and was is None)
            inner = f"{visit.inner}{name}{'/' if entry.is_dir(follow_symlinks=False) else ''}"
            if self._is_left_out(entry, was, inner, rules, is_fresh=is_fresh):
                listing.entries[name] = Entry("")
            elif inner.endswith("/"):
                if was is not None and was.kind in ("file", "link"):
                    self._gone(entry.path, was)
                    is_made = True
                listing.entries[name] = Entry("folder")
                following.append(_Visit(entry.path, inner, rules, visit, is_made, is_fresh))
            else:
                listing.entries[name] = self._enter(entry.path, was, is_made=is_made)
        if old is None or not old.is_like(listing):
            self._put(path, listing)
        self._count(path, listing)
        return following

    def _rules_above(self, visit: _Visit) -> tuple[Rules, ...]:
        """Worked out only where names have to be judged."""
        if visit.rules is not None or visit.above is None:
            return visit.rules or ()
        above = visit.above
        return rules_in(above.path, above.inner, self._rules_above(above), self.known[above.path].entries, self._bounds)

    def _is_left_out(
        self, entry: os.DirEntry[str], was: Entry | None, inner: str, rules: tuple[Rules, ...], *, is_fresh: bool
    ) -> bool:
        """What was covered once stays so, and what was left out until now is never taken for something new."""
        if entry.name == ".git" or entry.path in self._leave_out:
            return True
        if was is not None and (was.kind or not is_fresh):
            return not was.kind
        return is_ignored(inner, rules)

    def _enter(self, path: str, was: Entry | None, *, is_made: bool) -> Entry:
        """What is no folder."""
        if was is not None and was.kind == "folder":
            self._gone(path, was)
            was, is_made = None, True
        if was is not None and was.kind:
            return self._compare(path, was)
        now, _ = self._read(path)
        if is_made and now.kind:
            self.changes.append(Change(path, ABSENT, now.state))
        return now

    def _recheck(self, path: str, listing: Listing) -> None:
        """The files of a folder that holds the same names as before."""
        renewed: dict[str, Entry] = {}
        lstat, lead = os.lstat, f"{path}/"
        for name, entry in listing.entries.items():
            kind, stamp, key, _ = entry  # a loop over all files: what it costs is what a look costs
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
                pass  # the comparison finds out
            if (now := self._compare(lead + name, entry)) != entry:
                renewed[name] = now
        if renewed:
            self._put(path, Listing(listing.stamp, listing.mode, listing.rules, {**listing.entries, **renewed}))

    def _compare(self, path: str, was: Entry) -> Entry:
        now, stamp = self._read(path)
        if now.kind != was.kind:
            self.changes.append(Change(path, was.state, ABSENT))
            if now.kind:
                self.changes.append(Change(path, ABSENT, now.state))
        elif stamp != was.stamp and (now.mode != was.mode or not _is_same(was, now, stamp)):
            self.changes.append(Change(path, was.state, now.state))
        return now

    def _gone(self, path: str, was: Entry) -> None:
        if was.kind in _FILES:
            self.changes.append(Change(path, was.state, ABSENT))
        elif was.kind == "folder" and (listing := self.known.get(path)):
            for name, entry in listing.entries.items():
                self._gone(f"{path}/{name}", entry)
            self.changes.append(Change(path, State("folder", UNKEPT, listing.mode), ABSENT))
            self._put(path, None)

    def _put(self, path: str, listing: Listing | None) -> None:
        self.renewed[path] = listing
        if listing is None:
            self.known.pop(path, None)
        else:
            self.known[path] = listing

    def _count(self, path: str, listing: Listing) -> None:
        self._entries += len(listing.entries)
        if self._entries > MAX_ENTRIES:
            raise Stopped(f"after {MAX_ENTRIES:,} files and folders")
        self._ignored += [f"{path}/{name}" for name, entry in listing.entries.items() if not entry.kind and name != ".git"]

    # One file

    def _read(self, path: str) -> tuple[Entry, Stamp]:
        """What is there now, its content kept, with its stamp as it is; an entry without a kind for what is left out."""
        try:
            status = os.lstat(path)
            stamp = stamp_of(status)
            if stat.S_ISLNK(status.st_mode):
                key = self._keep(os.fsencode(os.readlink(path)))  # noqa: PTH115  # bytes of any kind
                return Entry("link", trusted(stamp), key), stamp
        except OSError:
            return Entry(""), ()
        if not stat.S_ISREG(status.st_mode):
            self._special.append(path)
            return Entry(""), ()
        remembered, key = self._content(path, stamp)
        return Entry("file", remembered, key, stat.S_IMODE(status.st_mode)), stamp

    def _content(self, path: str, stamp: Stamp) -> tuple[Stamp, bytes]:
        """The stamp to be remembered, and the hash of what was kept."""
        if stamp[_SIZE] > MAX_FILE_BYTES:
            self._large.append(path)
            return stamp, UNKEPT
        if time.monotonic() - self._began > _KEEP_S:
            self._later += 1
            return stamp, UNKEPT
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
            return stamp, UNKEPT
        return (remembered if is_steady else ()), self._keep(data)


class _Visit(NamedTuple):
    """A folder that is to be looked at."""

    path: str
    inner: str
    """From the root, with a slash at its end; empty for the root."""
    rules: tuple[Rules, ...] | None
    """What the folder above ignores; None: not worked out."""
    above: _Visit | None
    is_new: bool = False
    is_fresh: bool = False
    """What is ignored has changed above it."""


def _is_same(was: Entry, now: Entry, stamp: Stamp) -> bool:
    """The content. Of one that was not kept, time, size and identity must do."""
    if was.hash and now.hash:
        return was.hash == now.hash
    return bool(was.stamp) and (was.stamp[_MTIME], *was.stamp[_SIZE:_MODE]) == (stamp[_MTIME], *stamp[_SIZE:_MODE])


def _pieces(handle: int) -> Iterator[bytes]:
    size = 0
    while size <= MAX_FILE_BYTES and (piece := os.read(handle, 1 << 20)):
        size += len(piece)
        yield piece
