"""The slash commands of the REPL, and the context they run in."""

from __future__ import annotations

from functools import cached_property

from wolo.commands.command import Command, CommandContext, by_name, split_command
from wolo.commands.user_commands import CommandList
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.live.component import TerminalActions


class CommandRegistry:
    def __init__(self, terminal: Terminal, actions: TerminalActions) -> None:
        self._terminal, self._actions = terminal, actions

    def context(self, *, anew: bool = False) -> CommandContext:
        """`anew`: reads the files of user-defined commands again, even if that was done a moment ago."""
        stdout = self._terminal.screen.stdout
        commands = self._written.all(self._conversation, anew=anew)
        return CommandContext(self._conversation, commands, rows=stdout.rows, columns=stdout.columns)

    def may_run_alongside(self, line: str) -> bool:
        """The command only shows something: it may run while a turn does."""
        command = self._find(line)
        return command is not None and command.while_working

    def is_chosen_ahead(self, line: str) -> bool:
        """The user chooses at once from a list; the command runs after the turn."""
        from wolo.frontends.terminal.repl.picker_commands import CHOSEN_AHEAD  # noqa: PLC0415  # the first prompt needs no lists

        return line in CHOSEN_AHEAD

    def opens_list(self, line: str) -> bool:
        """The command shows a list, which leaves nothing when it is cancelled."""
        from wolo.frontends.terminal.repl.picker_commands import LISTS  # noqa: PLC0415  # the first prompt needs no lists

        command = self._find(line)
        return command is not None and command.name in LISTS and not split_command(line)[1]

    def needs_argument(self, line: str) -> bool:
        command = self._find(line)
        return command is not None and command.usage[:1] not in ("", "[") and not split_command(line)[1]

    def doing(self, line: str) -> str:
        """Words for the status line: the command's own, or else its name."""
        command = self._find(line)
        return (command and command.doing) or f"/{split_command(line)[0]}"

    @cached_property
    def _written(self) -> CommandList:
        from wolo.commands.table import load_commands  # noqa: PLC0415  # the first prompt needs none of them
        from wolo.frontends.terminal.repl.picker_commands import with_lists  # noqa: PLC0415  # the same
        from wolo.frontends.terminal.repl.terminal_commands import own_commands  # noqa: PLC0415  # the same

        return CommandList(with_lists((*load_commands(), *own_commands(self._actions)), self._terminal))

    @property
    def _conversation(self) -> Conversation:
        assert self._terminal.state.conversation is not None  # the REPL opens one before it reads
        return self._terminal.state.conversation

    def _find(self, line: str) -> Command | None:
        return by_name(split_command(line)[0], self._written.all(self._conversation))
