"""Shows the end of a conversation that continues: the last screenful of it, dimmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.render.markdown import MarkdownStream
from wolo.frontends.terminal.render.row_wrapping import Wrapper
from wolo.frontends.terminal.render.tool_calls import headline
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean

BELOW = 5
"""Rows for what follows: an empty line, the place to write in, the facts, and the first lines of the next turn."""
LEAST_ROWS = 3
PLAIN_LINES = 24
"""Where lines are read aloud, or nothing is known of the window."""


def recall(history: Sequence[Message], screen: Screen) -> None:
    room = max(screen.stdout.rows - BELOW, LEAST_ROWS) if screen.stdout.can_move else PLAIN_LINES
    rows: list[Text] = []
    is_cut = False
    for message in reversed(history):
        rows = [*_rows(message, screen), *rows]
        if len(rows) > room:
            is_cut = True
            break
    while rows and not rows[0].plain.strip():
        del rows[0]
    if not rows:
        return
    shown = [Text("…"), *rows[-room + 1 :]] if is_cut else rows
    text = Text("\n").join([Text(), *shown])
    text.stylize("dim")
    text.no_wrap = True
    screen.print(text)


def _rows(message: Message, screen: Screen) -> list[Text]:
    """As it was drawn when it was new."""
    columns, wrapper, drawn = screen.stdout.columns, Wrapper(), Text()
    if not screen.stdout.can_move:
        return list(Text().join(_said(message, plain=True)).split("\n"))
    for text in _said(message, plain=not screen.stdout.has_colours):
        drawn.append_text(wrapper.wrap(text, columns))
    rows: list[Text] = []
    for line in drawn.split("\n"):
        for at in range(0, max(len(line), 1), columns):
            rows.append(line[at : at + columns])
    return rows


def _said(message: Message, *, plain: bool) -> Iterator[Text]:
    if message.is_from_user:
        if message.text.strip():
            yield Text(f"\n› {clean(message.text.strip())}\n")
    elif message.role == "assistant":
        if message.text.strip():
            yield Text("\n")
            markdown = MarkdownStream(plain=plain)
            for each in (*markdown.feed(message.text.strip()), *markdown.close()):
                yield each if isinstance(each, Text) else Text(each.source, no_wrap=True)
        for part in message.calls:
            yield Text("", no_wrap=True).append_text(headline(part)).append("\n")


def last_exchange(history: Sequence[Message]) -> tuple[str, str]:
    """The last prompt of the person and the last words of the model after it."""
    asked = answered = ""
    for message in history:
        if message.is_prompt and message.text:
            asked, answered = message.text, ""
        elif message.role == "assistant" and message.text:
            answered = message.text
    return asked, answered
