"""Loads all built-in slash commands, in the order of /help."""

from __future__ import annotations

from importlib import import_module

from wolo.commands.command import Command

NAMES = """
btw plan mode init review commit goal todo jobs tasks undo redo retry rewind branch tree label diff map new resume sessions title
fork search export import worktree move model thinking context compact uncompact login logout cost add-dir permissions sandbox
hooks tools agents mcp lsp skills output-style memory help status debug config doctor exit
""".split()  # noqa: SIM905
FILES = (
    *("prompt_commands", "background_work", "undo", "tree", "sessions", "directories", "model", "usage", "permissions"),
    *("hooks", "extension_lists", "mcp", "config", "memory", "help", "status"),
)
"""Modules of this package, each with its `COMMANDS`."""


def load_commands() -> tuple[Command, ...]:
    """Imports every command: about 40 ms, so only when the user types a slash."""
    modules = (import_module(f"wolo.commands.{name}") for name in FILES)
    commands = [command for module in modules for command in module.COMMANDS]
    return tuple(sorted(commands, key=lambda command: NAMES.index(command.name)))
