"""Traces of a wolo that runs commands: by them the next one sees at once whether a killed one left some running.

A second kind of trace says which commands are to go on without wolo, because a person detached them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from wolo.places import make_private
from wolo.workspace.processes.process_table import (
    Mark,
    everyone,
    family_of,
    has_table,
    is_dead_owner,
    mark_text,
    numbers_of,
    owner_name,
    send,
)

_DETACHED = "detached-"


def leave_trace(folder: Path, family: int) -> Path | None:
    """A file that stays when this process is killed; whoever made it removes it in the end. None where it cannot be made."""
    return _put(folder, f"{owner_name()}-{family}")


def let_go(folder: Path, mark: Mark) -> bool:
    """From now on no wolo ends what carries this mark. False where that cannot be noted."""
    return _put(folder, f"{_DETACHED}{mark.number}") is not None


def end_what_was_left(folder: Path) -> None:
    """Ends the commands of killed wolos, when there are traces of such: looking for them unasked would cost every start."""
    names = _names(folder)
    dead = {name: family for name in names if (family := _family_of_dead(name))}
    if dead:
        _kill({*dead.values()}, detached(folder))
        for name in dead:
            with suppress(OSError):
                (folder / name).unlink()


def end_orphans(spared: Collection[int] = ()) -> None:
    """Where no trace can be left, all processes are looked at for the mark of a wolo that was killed."""

    def is_orphan(pid: int) -> bool:
        owner, _, number = mark_text(pid).partition("/")
        return is_dead_owner(owner) and not (number.isdecimal() and int(number) in spared)

    _kill_where(is_orphan)


def end_family(family: int, spared: Collection[int] = ()) -> None:
    """Kills every process that one conversation's commands have started, but for those of the marks to spare."""
    _kill({family}, spared)


def detached(folder: Path) -> frozenset[int]:
    """The marks' numbers."""
    found = (name.removeprefix(_DETACHED) for name in _names(folder) if name.startswith(_DETACHED))
    return frozenset(int(number) for number in found if number.isdecimal())


def forget_ended(folder: Path) -> None:
    """Removes the traces of detached commands that have come to their end."""
    if not (noted := detached(folder)):
        return
    living = {number for status in everyone() for number in numbers_of(status.pid)}
    for number in noted - living:
        with suppress(OSError):
            (folder / f"{_DETACHED}{number}").unlink()


def _kill(families: Collection[int], spared: Collection[int]) -> None:
    _kill_where(lambda pid: any(family_of(number) in families and number not in spared for number in numbers_of(pid)))


def _kill_where(is_meant: Callable[[int], bool]) -> None:
    if not has_table():
        return
    for status in list(everyone()):
        if status.pid != os.getpid() and is_meant(status.pid):
            send(status.pid, signal.SIGKILL)


def _family_of_dead(name: str) -> int:
    """Of a trace; 0 when its wolo lives."""
    owner, _, family = name.partition("-")
    return int(family) if family.isdecimal() and is_dead_owner(owner) else 0


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  # names, not paths: this is on the way to the first request
    except OSError:
        return []


def _put(folder: Path, name: str) -> Path | None:
    trace = folder / name
    try:
        make_private(folder)
        os.close(os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return trace
