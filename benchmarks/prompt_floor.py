"""The least that can be done to have a person type: a line printed with Rich, and a prompt of prompt_toolkit."""

from __future__ import annotations

from prompt_toolkit import PromptSession
from rich.console import Console

Console().print("[bold]nothing[/] can be done here")
PromptSession("› ").prompt()
