"""Damage that a method of the store meets costs no run: what can be read is saved, and the method runs again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from wolo.sessions.storage_errors import Damaged

C = TypeVar("C", bound=type)


class Mendable(Protocol):
    def mend(self, damage: Damaged) -> bool:
        """Whether it was mended. False: another process has the database open."""
        ...


def retrying(*, but: Collection[str]) -> Callable[[C], C]:
    """For a class whose public methods can run twice, all `but` these."""

    def wrap(kind: C) -> C:
        for name, method in list(vars(kind).items()):
            if not name.startswith("_") and name not in but and inspect.isfunction(method):
                setattr(kind, name, _again(method))
        return kind

    return wrap


def _again(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Mendable, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Damaged as damage:
            if not self.mend(damage):
                raise
            return method(self, *args, **kwargs)

    return run
