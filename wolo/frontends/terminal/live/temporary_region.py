"""A live region for a few questions, before there is a conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.key_binding import KeyBindings
from rich.text import Text

from wolo.frontends.terminal.display.terminal import Terminal, suspend
from wolo.frontends.terminal.live.live_region import LiveRegion
from wolo.frontends.terminal.panels.choice_panels import ChoicePanel, PanelChoice


@asynccontextmanager
async def temporary_region(terminal: Terminal, *, is_stoppable: bool = False) -> AsyncIterator[None]:
    """Does nothing where the cursor cannot move: questions are asked line by line there.

    `is_stoppable`: Esc and Ctrl-C stop the running work while no question is open.
    """
    screen = terminal.screen
    if screen.region is not None or not screen.stdout.can_move:
        yield
        return
    keys = KeyBindings()
    for key in ("escape", "c-c"):
        keys.add(key)(lambda event: terminal.signals.stop() if is_stoppable else None)
    keys.add("c-z")(lambda event: run_in_terminal(suspend))
    region = LiveRegion(terminal, Buffer(read_only=True), keys, prompt="")
    screen.attach(region)
    region.appear()
    try:
        yield
    finally:
        await region.vanish()
        screen.detach()


async def choose(lines: Sequence[Text], choices: Sequence[PanelChoice], terminal: Terminal) -> str:
    """The key of the selected choice. Raises Dismissed for Ctrl-C."""
    async with temporary_region(terminal):
        assert terminal.screen.dialog_host is not None  # callers ask so only where panels can stand
        return await terminal.screen.dialog_host.show_dialog(ChoicePanel(lines, choices))
