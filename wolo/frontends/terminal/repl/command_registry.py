"""The slash commands that the REPL knows, and the desk they work at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from wolo.commands.command import Command, CommandContext, named, split_command
from wolo.commands.user_commands import CommandList
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.display.event_view import Screen


class Known:
    def __init__(
        self, table: Callable[[], tuple[Command, ...]], conversation: Callable[[], Conversation], screen: Screen
    ) -> None:
        """`table` makes those of the program, at the first need."""
        self._table = table
        self._conversation = conversation
        self._screen = screen

    @cached_property
    def _written(self) -> CommandList:
        return CommandList(self._table())

    def desk(self, *, anew: bool = False) -> CommandContext:
        """`anew`: files that hold commands are looked for again, however short ago they were."""
        conversation = self._conversation()
        stdout = self._screen.stdout
        return CommandContext(conversation, self._written.all(conversation, anew=anew), rows=stdout.rows, columns=stdout.columns)

    def only_looks(self, line: str) -> bool:
        """It may run beside something else."""
        command = self._find(line)
        return command is not None and command.while_working

    def doing(self, line: str) -> str:
        """What it is doing, for whoever waits for it: in its own words, or else its name."""
        command = self._find(line)
        return (command and command.doing) or f"/{split_command(line)[0]}"

    def _find(self, line: str) -> Command | None:
        return named(split_command(line)[0], self._written.all(self._conversation()))
