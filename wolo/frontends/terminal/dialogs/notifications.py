"""Notifies a user who is away: by the terminal's notifications, the bell, or the user's own command."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from wolo.config.schema import Ui
from wolo.frontends.terminal.display.dialog_host import DialogHost
from wolo.messages.terminal_text import clean_line
from wolo.places import settings_folder
from wolo.workspace.processes.command_environment import user_environment

BELL = "\a"
LONGEST_TEXT = 200
COMMAND_S = 10.0
"""Time limit of the user's command."""
MESSAGE = "WOLO_NOTIFICATION"
"""Environment variable with the text, for the user's command."""

log = logging.getLogger(__name__)


class Notifier:
    """Notifies if the settings want it and the user is away."""

    def __init__(self, ui: Ui, dialog_host: DialogHost | None) -> None:
        """Without a `dialog_host` nothing tells whether the user is away: there are no notifications."""
        self._ui, self._dialog_host = ui, dialog_host if ui.notify else None
        self._ringing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def while_asking(self, text: str) -> AsyncIterator[None]:
        """Notifies once if the user is away, or leaves, before the block ends."""
        ringing = asyncio.ensure_future(self._ring_when_away(text))
        try:
            yield
        finally:
            ringing.cancel()
            with suppress(asyncio.CancelledError):
                await ringing

    def turn_ended(self, duration_s: float, text: str) -> None:
        """Does not wait for the user's command."""
        dialog_host, after_s = self._dialog_host, self._ui.notify_after_s
        if dialog_host is not None and duration_s >= after_s and dialog_host.presence.is_away(after_s):
            self._ringing = asyncio.ensure_future(self._ring(dialog_host, text))

    async def _ring_when_away(self, text: str) -> None:
        if self._dialog_host is not None:
            await self._dialog_host.presence.until_away(self._ui.notify_after_s)
            await self._ring(self._dialog_host, text)

    async def _ring(self, dialog_host: DialogHost, text: str) -> None:
        text = f"wolo: {clean_line(text)}"[:LONGEST_TEXT]
        if self._ui.notify_command:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._ui.notify_command,
                    cwd=settings_folder(),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    env={**user_environment(os.environ), MESSAGE: text},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                log.warning("ui.notify_command cannot be run: %s", error)
                return
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(COMMAND_S):
                        await process.wait()
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
        else:
            dialog_host.send(call(text, os.environ))


def call(text: str, environment: Mapping[str, str]) -> str:
    """The sequence that notifies in this terminal."""
    if not (sequence := _sequence(text, environment)) or "TMUX" not in environment:
        return sequence or BELL
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{doubled}\x1b\\{BELL}"  # tmux drops it unless `allow-passthrough` is on


def _sequence(text: str, environment: Mapping[str, str]) -> str:
    """Empty if the terminal is not known to show notifications."""
    program = environment.get("LC_TERMINAL") or environment.get("TERM_PROGRAM", "")
    term = environment.get("TERM", "")
    if "STY" in environment:
        return ""
    if program in ("iTerm2", "iTerm.app", "WarpTerminal") or "KITTY_WINDOW_ID" in environment or term == "xterm-kitty":
        return f"\x1b]9;{text}{BELL}"
    names = ("WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
    if (
        program in ("WezTerm", "ghostty")
        or any(name in environment for name in names)
        or term.startswith(("foot", "rxvt-unicode"))
    ):
        return f"\x1b]777;notify;wolo;{text.removeprefix('wolo: ')}{BELL}"
    return ""
