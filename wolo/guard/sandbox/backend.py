"""Shared parts of the sandbox backends: private folder, protected names and their restoration."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.errors import ToolError
from wolo.guard.protected_paths import ABOVE, fold, runs_code
from wolo.guard.sandbox.mounts import is_below, topmost_missing
from wolo.guard.sandbox.name_watch import Watch, Watched, WatchProcess
from wolo.guard.sandbox.profile import SandboxProfile, hides
from wolo.guard.sandbox.protected_names import Names, Nested, names_at_the_top, names_in
from wolo.guard.sandbox_contract import Restored, Sandbox
from wolo.operating_system import LOCK_EX, LOCK_NB, LOCK_SH, flock, os
from wolo.places import make_private

if TYPE_CHECKING:
    from wolo.guard.sandbox.file_restore import FileSaver, Snapshot

SandboxFactory = Callable[[SandboxProfile], Sandbox]
_LOCK = "in-use"
NO_DOMAINS = "sandbox.allowed_domains, which needs namespaces"
"""What is not covered by a backend without `has_proxy`."""


Ending = Callable[[], None]


class Backend:
    """A sandbox of one conversation; `close` removes its private folder."""

    backend: str
    has_proxy = False

    def __init__(self, profile: SandboxProfile) -> None:
        self._profile = profile
        self._scratch = ScratchFolder(profile.state)
        self._nested = {root: Nested(root) for root in profile.writable}
        self._restored: list[Restored] = []
        self._second_names: dict[str, tuple[str, ...]] = {}
        """Protected files that other names lead to, by the protected path: no mount and no rule about paths holds those."""
        self._watcher = WatchProcess(profile.state)

    @cached_property
    def _saver(self) -> FileSaver:
        from wolo.guard.sandbox.file_restore import FileSaver  # noqa: PLC0415  # for the first command

        return FileSaver(self._profile.state)

    def prepare(self) -> None:
        for nested in () if self._profile.is_copy else self._nested.values():
            nested.look()

    def hides(self, path: str) -> bool:
        return hides(self._profile, path)

    def take_restored(self) -> Restored | None:
        return self._restored.pop(0) if self._restored else None

    def give_way(self, path: str) -> None:
        if runs_code(path) or path in self._profile.kept:
            self._watcher.give_way(path)

    def close(self) -> None:
        self._watcher.close()
        self._scratch.close()

    def _environment(self, tmp: str) -> dict[str, str]:
        """Variables that point caches and temporary files to the private folder."""
        return {
            "TMPDIR": tmp,
            "XDG_CACHE_HOME": f"{tmp}/.cache",
            "XDG_STATE_HOME": f"{tmp}/.state",
            "npm_config_cache": f"{tmp}/.cache/npm",
            "WOLO_SANDBOX": self.backend,
        }

    def _names(self) -> dict[str, Names]:
        """Protected names in each writable directory. Raises ToolError and OSError."""
        if self._profile.is_copy:
            return dict.fromkeys(self._nested, Names())
        return {root: names_in(root, self._profile.home, nested) for root, nested in self._nested.items()}

    def _hard_links(self, names: Mapping[str, Names]) -> list[str]:
        """Looks at each protected path once: inside the sandbox no second name can be made."""
        from wolo.guard.sandbox.saved_files import files_with_second_names  # noqa: PLC0415  # for the first command

        present = [path for each in names.values() for path in each.present]
        self._second_names |= {path: tuple(files_with_second_names(path)) for path in present if path not in self._second_names}
        return [file for path in present for file in self._second_names[path]]

    def _watch_tops(self) -> None:
        """Call before the search for names: what appears from now on is noticed. Raises OSError and ToolError."""
        self._watcher.drain()
        self._watcher.add((), self._profile.writable)

    def _watch(self, names: Mapping[str, Names], covered: Iterable[str], *, is_apart: bool = True, is_job: bool = False) -> Watch:
        """Watches the protected names for one command that is about to start. Raises OSError and ToolError."""
        if self._profile.is_copy:
            return self._watcher.watch(Watched(is_apart=is_apart), {})
        below: list[str] = []
        """Folders at the top in which some names are protected."""
        for root in names:
            with os.scandir(root) as entries:
                below += [entry.path for entry in entries if fold(entry.name) in ABOVE and entry.is_dir(follow_symlinks=False)]
        watched = Watched(
            tops=tuple(names),
            below=tuple(below),
            awaited=self._missing_paths(names),
            covered=tuple(covered),
            known=tuple(path for each in names.values() for path in each.known),
            is_apart=is_apart,
            is_job=is_job,
        )
        needed = (*watched.tops, *map(os.path.dirname, watched.awaited))
        folders = (*map(os.path.dirname, watched.covered), *watched.below)
        return self._watcher.watch(watched, self._watcher.add(folders, needed))

    def _missing_paths(self, names: Mapping[str, Names]) -> tuple[str, ...]:
        """Paths that are missing and protected, besides the names at the top."""
        kept = (topmost_missing(path, root) for path in self._profile.kept for root in names if is_below(path, root))
        return tuple(dict.fromkeys((*(path for each in names.values() for path in each.missing), *filter(None, kept))))

    def _begin(
        self, names: Mapping[str, Names], present: Iterable[str] = (), mounted: Iterable[str] = (), watch: Watch | None = None
    ) -> Ending:
        """Saves `present` and the places of `mounted`; returns the call that restores them once the command has ended.

        Raises ToolError.
        """
        if self._profile.is_copy:
            return watch.close if watch is not None else do_nothing
        snapshot = self._saver.save(present, self._missing_paths(names), mounted=mounted, roots=names)
        return partial(self._end, snapshot, {root: each.known for root, each in names.items()}, watch)

    def _end(self, snapshot: Snapshot, before: Mapping[str, frozenset[str]], watch: Watch | None) -> None:
        if watch is not None:
            seen = watch.finish()
            snapshot.note(seen.lost, seen.seized)
            written = {str(path) for each in watch.allowed for path in (Path(each), *Path(each).parents)}
            before = {root: known | written for root, known in before.items()}
        snapshot.open_folders()
        new = self._new(snapshot, before)
        if snapshot.move_back(new):
            new = self._new(snapshot, before)
        restored = snapshot.restore(new)
        if restored is not None:
            self._restored.append(restored)

    def _new(self, snapshot: Snapshot, before: Mapping[str, frozenset[str]]) -> list[str]:
        """Protected names that did not exist before. A search that is incomplete is a loss."""
        new: list[str] = []
        for root, known in before.items():
            try:
                found = self._nested[root].look()
                there = (*names_at_the_top(root), *found.paths, *found.links)
            except (ToolError, OSError):
                snapshot.note((root,))
                continue
            new += [path for path in there if path not in known]
        return new


def do_nothing() -> None: ...


def cannot_apply(error: OSError) -> ToolError:
    return ToolError(f"sandbox denied: cannot set up the sandbox: {error.strerror} ({error.filename or 'memory'}).")


class ScratchFolder:
    """The private folder of a conversation: `/tmp` and caches of its commands.

    Created on first use. A kernel lock marks it as in use, so that folders of killed wolos are found and removed.
    """

    def __init__(self, state: Path) -> None:
        self._above = state / "sandbox"
        self._folder: Path | None = None
        self._lock = -1

    @property
    def tmp(self) -> Path:
        """Raises OSError."""
        return self.folder / "tmp"

    @property
    def folder(self) -> Path:
        if self._folder is None:
            make_private(self._above)
            remove_abandoned(self._above)
            remove_placeholders(self._above.parent / "placeholders")
            name = os.urandom(8).hex()
            making = self._above / f".{name}"
            making.mkdir(mode=0o700)
            (making / "tmp").mkdir(mode=0o700)
            self._lock = mark_in_use(making)
            self._folder = making.rename(self._above / name)  # visible to others only now that it is locked
            atexit.register(self.close)
        return self._folder

    def close(self) -> None:
        """May be called again."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        remove(folder)
        os.close(self._lock)
        atexit.unregister(self.close)


def mark_in_use(folder: Path) -> int:
    """Protects a new private folder from `remove_abandoned` until the descriptor is closed. Raises OSError."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    flock(lock, LOCK_SH)
    return lock


def remove_abandoned(above: Path) -> None:
    """Removes private folders whose wolo has ended."""
    for folder in above.iterdir():
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                flock(lock, LOCK_EX | LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)


def remove_placeholders(records: Path) -> None:
    """Removes empty folders that a killed wolo of an older version has left in projects, and their records."""
    if not records.is_dir():
        return
    for record in filter(Path.is_file, records.iterdir()):
        with suppress(OSError), record.open("rb") as file:
            flock(file.fileno(), LOCK_EX | LOCK_NB)
            for path in file.read().split(b"\0")[:-1]:
                with suppress(OSError):  # no longer empty
                    os.rmdir(path)  # names are bytes here
            record.unlink()
    if not any(map(Path.is_file, records.iterdir())):
        remove(records)


def remove(folder: Path) -> None:
    """Removes the folder, whatever modes and depth commands gave to it."""
    from wolo.workspace.directory_copy import remove_tree  # noqa: PLC0415  # slow to load, and a plain turn has no folder

    remove_tree(folder)
