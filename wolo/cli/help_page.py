"""The page of `wolo --help`: subcommands first, then the options in groups."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from wolo.cli.options import OPTIONS, SUBCOMMANDS, Option

GROUPS: dict[str, tuple[str, ...]] = {
    "Prompt and output": (
        *("print", "interactive", "file", "ignore_unsupported", "output_format", "json", "partial"),
        *("output_last_message", "plain", "verbose"),
    ),
    "Sessions": ("continue", "resume", "session", "fork", "no_session"),
    "Model": ("model", "thinking", "fallback_model", "base_url", "api_key", "api", "debug_wire"),
    "Agent": ("agent", "system_prompt", "append_system_prompt", "name", "tools", "disallow_tools", "verify"),
    "Permissions": ("mode", "yolo", "allow", "deny", "add_dir", "cd", "sandbox", "trust"),
    "Budgets": ("max_turns", "max_cost", "max_tokens", "max_seconds"),
    "Settings and help": ("set", "version", "help"),
}
"""Headings with the names of their options."""
OTHERS = "Other options"


class HelpPage(TyperGroup):
    """The top-level command, with a help page of its own order."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the table, groups and single commands alike."""
        return [name for name in SUBCOMMANDS if name in self.commands]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        for heading, options in grouped():
            with formatter.section(heading):
                formatter.write_dl([(_spelled(option), option.help) for option in options])


def grouped() -> list[tuple[str, list[Option]]]:
    """Every option under its heading; the last group holds those that no heading names."""
    by_name = {option.name: option for option in OPTIONS}
    found = [(heading, [by_name.pop(name) for name in names if name in by_name]) for heading, names in GROUPS.items()]
    return [*found, (OTHERS, list(by_name.values()))] if by_name else found


def _spelled(option: Option) -> str:
    return f"{', '.join(option.spellings)} {option.metavar}".rstrip()
