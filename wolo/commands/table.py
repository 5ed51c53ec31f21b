"""Loads all built-in slash commands, in the order of /help."""

from __future__ import annotations

from importlib import import_module

from wolo.commands.command import Command

FILES = (
    *("btw", "mode", "prompt_commands", "goal", "todo", "jobs", "tasks"),
    *("undo", "retry", "tree", "diff", "map"),
    *("sessions", "search", "export", "import_session", "worktree"),
    *("model", "thinking", "context", "login", "cost"),
    *("add_dir", "permissions", "sandbox", "hooks", "tools", "agents", "mcp", "lsp", "skills", "output_style", "memory"),
    *("help", "status", "config", "doctor", "exit"),
)
"""Modules of this package, each with its `COMMANDS`."""


def load_commands() -> tuple[Command, ...]:
    """Imports every command: about 40 ms, so only when the user types a slash."""
    modules = (import_module(f"wolo.commands.{name}") for name in FILES)
    return tuple(command for module in modules for command in module.COMMANDS)
