"""The minimal interactive program: a line printed with Rich, and a prompt of prompt_toolkit."""

from __future__ import annotations

from prompt_toolkit import PromptSession
from rich.console import Console

Console().print("[bold]ready[/] to type")
PromptSession("› ").prompt()
