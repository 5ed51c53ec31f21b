"""What the sandboxes know of the protected names in the writable directories, before and after each command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from wolo.errors import ToolError
from wolo.guard.sandbox.file_restore import Keeper, Snapshot
from wolo.guard.sandbox.nested_names import Nested
from wolo.guard.sandbox.profile import Profile
from wolo.guard.sandbox.protected_names import Names, names_in
from wolo.guard.sandbox_contract import Restored


class Ending(Protocol):
    def __call__(self) -> None: ...


class Around:
    """Of one conversation."""

    def __init__(self, profile: Profile) -> None:
        self._home = profile.home
        self._nested = {root: Nested(root) for root in profile.writable}
        self._keeper = Keeper(profile.state)
        self._restored: list[Restored] = []

    def prepare(self) -> None:
        """A first look, which takes long in a large tree. Raises ToolError."""
        for nested in self._nested.values():
            nested.look()

    def names(self, root: str) -> Names:
        """Raises ToolError and OSError."""
        return names_in(root, self._home, self._nested[root])

    def begin(self, names: Mapping[str, Names], present: Iterable[str] = (), missing: Iterable[str] = ()) -> Ending:
        """What is to be called when the command has ended. All that is `present` and `missing` is restored then.

        Raises ToolError.
        """
        snapshot = self._keeper.save(present, missing)
        return partial(self._end, snapshot, {root: each.below for root, each in names.items()})

    def take_restored(self) -> Restored | None:
        return self._restored.pop(0) if self._restored else None

    def _end(self, snapshot: Snapshot, before: Mapping[str, frozenset[str]]) -> None:
        new: list[str] = []
        for root, known in before.items():
            try:
                found = self._nested[root].look()
            except (ToolError, OSError):
                snapshot.could_not_see(root)
                continue
            new += [path for path in (*found.paths, *found.links) if path not in known]
        restored = snapshot.restore(path for path in new if os.path.lexists(path))
        if restored is not None:
            self._restored.append(restored)
