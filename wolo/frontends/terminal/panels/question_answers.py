"""Reads and shows the user's answer to a question of the model."""

from __future__ import annotations

import re

from rich.text import Text

from wolo.messages.terminal_text import clean_line
from wolo.tools.questions.ask import in_words
from wolo.tools.tool_values import Question, Reply

_NUMBERS = re.compile(r"\s*\d+(?:[\s,;+&]+\d+)*\s*\Z")


def read_reply(question: Question, typed: str) -> Reply:
    """Numbers and labels select options; other text, and a number beyond the options, is an answer of its own."""
    text = typed.strip()
    if _NUMBERS.match(text):
        numbers = [int(number) for number in re.findall(r"\d{1,4}", text)]
        fits = all(1 <= number <= len(question.options) for number in numbers)
        if fits and (question.several or len(numbers) == 1):
            return Reply(chosen=tuple(question.options[number - 1].label for number in dict.fromkeys(numbers)))
    label = next((option.label for option in question.options if option.label.casefold() == text.casefold()), "")
    return Reply(chosen=(label,)) if label else Reply(text=text)


def as_line(question: Question, reply: Reply) -> Text:
    asked = clean_line(question.header) or clean_line(question.text)
    return Text.assemble(
        ("? ", "accent"), (asked, "dim"), " → ", (clean_line(in_words(reply)), "bold" if reply != Reply() else "dim")
    )
