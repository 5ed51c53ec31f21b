"""What a command is doing, for whoever waits for it longer than a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from wolo.commands.command import Command, named, taken_apart
from wolo.frontends.terminal.terminal import Terminal

SLOW_S = 1.0


def doing(line: str, commands: Sequence[Command]) -> str:
    """In the words of the command, or else its name."""
    name, _ = taken_apart(line)
    command = named(name, commands)
    return (command and command.doing) or f"/{name}"


@contextmanager
def told_as_line(words: str, terminal: Terminal) -> Iterator[None]:
    """Where nothing moves: not before it is slow, and not while the person is the slow one."""

    def tell() -> bool:
        if not terminal.keyboard.answers:
            terminal.screen.status.start(words)
        return not terminal.keyboard.answers

    with _once_slow(tell if terminal.screen.stage is None else lambda: True):
        yield


@contextmanager
def told_beside(words: str, terminal: Terminal) -> Iterator[None]:
    """At the end of the line that says what is under way, once it is slow."""

    def tell() -> bool:
        terminal.beside.append(words)
        return True

    try:
        with _once_slow(tell):
            yield
    finally:
        if words in terminal.beside:
            terminal.beside.remove(words)


@contextmanager
def _once_slow(tell: Callable[[], bool]) -> Iterator[None]:
    """`tell` is called after a second, and again until it says that it has told."""
    loop = asyncio.get_running_loop()
    due = loop.call_later(SLOW_S, lambda: act())

    def act() -> None:
        nonlocal due
        if not tell():
            due = loop.call_later(SLOW_S, act)

    try:
        yield
    finally:
        due.cancel()
