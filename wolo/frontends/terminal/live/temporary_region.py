"""A foot that stands for a few questions, before any conversation does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings
from rich.text import Text

from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.io.suspend import suspend
from wolo.frontends.terminal.live.live_output import Activity, Paper
from wolo.frontends.terminal.live.live_region import Foot
from wolo.frontends.terminal.panels.button_row import Choice, ChoicePanel


@asynccontextmanager
async def standing(screen: Screen, stop: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
    """Where nothing can move, lines are asked as ever. Esc and Ctrl-C call `stop` while nothing is asked."""
    if screen.foot is not None or not screen.stdout.can_move:
        yield
        return
    before = screen.stdout, screen.status
    keys = KeyBindings()
    for key in ("escape", "c-c"):
        keys.add(key)(lambda event: stop())
    keys.add("c-z")(lambda event: run_in_terminal(suspend))
    foot = Foot(Buffer(read_only=True), keys, facts=lambda columns: "", prompt="", is_light=lambda: screen.is_light)
    screen.stand_on(foot, Paper(foot), Activity(foot))
    foot.appear()
    try:
        yield
    finally:
        await foot.vanish()
        screen.stand_on(None, *before)


async def choose(lines: Sequence[Text], choices: Sequence[Choice], screen: Screen) -> str:
    """The key of what was chosen. Raises Dismissed for Ctrl-C."""
    async with standing(screen):
        assert screen.stage is not None  # whoever asks so has seen that panels can stand here
        return await screen.stage.stand(ChoicePanel(lines, choices))
