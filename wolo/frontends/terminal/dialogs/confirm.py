"""A yes or a no: in a panel where one can stand, else as a line; the default is no."""

from __future__ import annotations

from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal


async def confirm(question: str, terminal: Terminal, *, no: str = "No", yes: str = "Yes") -> bool:
    """`no` and `yes` are what the answers mean. Raises Dismissed for Ctrl-C, EOFError for Ctrl-D where a line is typed."""
    if not terminal.has_panels:
        typed = await ask_line(f"{question} [y/N] › ", terminal.screen, terminal.keyboard)
        return typed.strip().lower() in ("y", "yes")
    from wolo.frontends.terminal.live.temporary_region import choose  # noqa: PLC0415  # the same
    from wolo.frontends.terminal.panels.button_row import Choice  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    lines = [Text.assemble(("? ", "bold warning"), (question, "bold"))]
    return await choose(lines, [Choice("n", no), Choice("y", yes)], terminal) == "y"
