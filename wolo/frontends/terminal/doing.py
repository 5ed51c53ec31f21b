"""What a command is doing, for whoever waits for it longer than a second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wolo.commands.command import Command, named, taken_apart
from wolo.frontends.terminal.status import SLOW_S
from wolo.frontends.terminal.terminal import Terminal


def doing(line: str, commands: Sequence[Command]) -> str:
    """In the words of the command, or else its name."""
    name, _ = taken_apart(line)
    command = named(name, commands)
    return (command and command.doing) or f"/{name}"


@contextmanager
def told_beside(words: str, terminal: Terminal) -> Iterator[None]:
    """At the end of the line that says what is under way, once it is slow."""
    due = asyncio.get_running_loop().call_later(SLOW_S, terminal.beside.append, words)
    try:
        yield
    finally:
        due.cancel()
        if words in terminal.beside:
            terminal.beside.remove(words)
