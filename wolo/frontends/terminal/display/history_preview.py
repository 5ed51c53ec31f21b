"""Shows the end of a resumed conversation: its last screenful, dimmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from wolo.frontends.terminal.display.event_view import Screen, user_text
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.render.markdown import MarkdownStream
from wolo.frontends.terminal.render.row_wrapping import Wrapper
from wolo.frontends.terminal.render.tool_calls import headline
from wolo.messages.message import Message

BELOW = 5
"""Rows left for an empty line, the composer, the status bar, and the first lines of the next turn."""
LEAST_ROWS = 3
PLAIN_LINES = 24
"""Without a window, or for a screen reader."""


def recall(history: Sequence[Message], screen: Screen) -> None:
    room = max(screen.stdout.rows - BELOW, LEAST_ROWS) if screen.stdout.can_move else PLAIN_LINES
    rows: list[Text] = []
    is_cut = False
    for message in reversed(history):
        gap = [Text()] if message.is_from_user and rows and rows[0].plain.strip() else []
        rows = [*_rows(message, screen), *gap, *rows]
        if len(rows) > room:
            is_cut = True
            break
    while rows and not rows[0].plain.strip():
        del rows[0]
    if not rows:
        return
    shown = [Text("…"), *rows[-room + 1 :]] if is_cut else rows
    text = Text("\n").join([Text(), *shown])
    text.stylize_before("dim")
    text.no_wrap = True
    screen.print(text)


def _rows(message: Message, screen: Screen) -> list[Text]:
    """The message as it was first drawn."""
    columns, wrapper, drawn = screen.stdout.columns, Wrapper(), Text()
    calls = message.calls if message.role == "assistant" else ()
    texts = [
        *draw_text(message, screen.stdout),
        *(Text("", no_wrap=True).append_text(headline(part, has_signs=screen.stdout.can_move)).append("\n") for part in calls),
    ]
    if not screen.stdout.can_move:
        return list(Text().join(texts).split("\n"))
    for text in texts:
        drawn.append_text(wrapper.wrap(text, columns))
    rows: list[Text] = []
    for line in drawn.split("\n"):
        for at in range(0, max(len(line), 1), columns):
            rows.append(line[at : at + columns])
    return rows


def draw_text(message: Message, stdout: Stdout) -> list[Text]:
    """A prompt or an answer, without thinking and calls; empty if it has no text."""
    return list(_text(message, stdout))


def _text(message: Message, stdout: Stdout) -> Iterator[Text]:
    if message.is_from_user:
        if message.text.strip():
            yield Text("\n", no_wrap=True).append_text(user_text(message.text.strip(), stdout)).append("\n")
    elif message.role == "assistant" and message.text.strip():
        yield Text("\n")
        markdown = MarkdownStream(plain=not stdout.can_move)
        for each in (*markdown.feed(message.text.strip()), *markdown.close()):
            yield each if isinstance(each, Text) else Text(each.source, no_wrap=True)


def last_exchange(history: Sequence[Message]) -> tuple[str, str]:
    asked = answered = ""
    for message in history:
        if message.is_prompt and message.text:
            asked, answered = message.text, ""
        elif message.role == "assistant" and message.text:
            answered = message.text
    return asked, answered
