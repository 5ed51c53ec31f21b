"""The last exchange of a session that goes on: what one sees of it first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from wolo.frontends.terminal.screen import Screen
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean_line

MOST_LINES = 30
"""Of the last answer."""


def recall(history: Sequence[Message], screen: Screen) -> None:
    asked, answered = last_exchange(history)
    if asked:
        screen.print(Text.assemble("\n", ("› ", "bold"), (clean_line(asked), "dim")))
    if answered:
        lines = answered.strip().split("\n")
        shown = lines[-MOST_LINES:]
        if len(lines) > len(shown):
            screen.say(f"… {len(lines) - len(shown)} lines above", "dim")
        screen.answer("\n".join(shown))


def last_exchange(history: Sequence[Message]) -> tuple[str, str]:
    """The last prompt of the person and the last words of the model after it."""
    asked = answered = ""
    for message in history:
        if message.is_prompt and message.text:
            asked, answered = message.text, ""
        elif message.role == "assistant" and message.text:
            answered = message.text
    return asked, answered
