"""The whole conversation as lines for the viewer: prompts, thinking, answers, and calls with all of their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from wolo.frontends.terminal.display.folded_output import THINKING
from wolo.frontends.terminal.display.history_preview import draw_text
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.frontends.terminal.render.tool_calls import whole_call
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import View


class Transcript(NamedTuple):
    lines: Sequence[Text]
    calls: Mapping[str, int]
    """The first line of each call, by its id; of the newest thinking, by THINKING."""


def draw_transcript(history: Sequence[Message], views: Mapping[str, View], stdout: Stdout) -> Transcript:
    """Calls without a view, as of a resumed session, show the text that the model got."""
    lines: list[Text] = []
    calls: dict[str, int] = {}

    def add(text: Text, *, is_output: bool = False) -> None:
        text.rstrip()
        for line in text.split("\n", allow_blank=True):
            line.no_wrap = is_output
            lines.append(line)

    for message in history:
        if message.role == "assistant" and (thinking := message.reasoning_content.strip()):
            calls[THINKING] = len(lines) + bool(lines)
            add(Text("\n" if lines else "").append(clean(thinking), "italic dim"))
        if drawn := draw_text(message, stdout):
            add(Text().join(drawn))
        for part in message.calls if message.role == "assistant" else ():
            calls[part.id] = len(lines) + bool(lines)
            add(Text("\n" if lines else "").append_text(whole_call(part, views.get(part.id))), is_output=True)
    while lines and not lines[0].plain.strip():
        del lines[0]
        calls = {name: max(at - 1, 0) for name, at in calls.items()}
    return Transcript(lines, calls)
