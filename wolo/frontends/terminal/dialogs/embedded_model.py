"""Offers the embedded model: installs its engine and fetches its weights, each only after a yes."""

from __future__ import annotations

import asyncio
import importlib
import shlex
import threading
from collections.abc import Callable
from typing import TypeVar

from wolo.diagnostics.installation import EMBEDDED_EXTRAS, install_command, this_installation
from wolo.errors import WoloError
from wolo.frontends.terminal.dialogs.confirm import confirm
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean
from wolo.models.local.embedded import DEFAULT, has_engine, is_ready
from wolo.models.local.weights import ensure_weights, find_weights, format_size
from wolo.places import find_places

T = TypeVar("T")
LAST_LINES = 3
"""Of what a failed installation printed."""


def about_embedded() -> str:
    wanted = find_weights(DEFAULT)
    return f"{wanted.repository}, {wanted.licence}, {format_size(wanted.size_bytes)} to download"


async def offer_embedded(terminal: Terminal) -> str:
    """Asks before the engine is installed or half a gigabyte is fetched; empty: it was not wanted, or cannot be had."""
    if not has_engine() and not await _install_engine(terminal):
        return ""
    if is_ready(find_places()):
        return f"local/{DEFAULT}"
    if not await confirm("Fetch it?", terminal, yes=f"Yes, {format_size(find_weights(DEFAULT).size_bytes)}"):
        return ""
    progress = terminal.screen.weights_progress()
    try:
        await _unless_stopped(
            lambda tell: ensure_weights(find_weights(DEFAULT), find_places().cache, download=True, progress=tell),
            progress or (lambda done, total: None),
            terminal,
        )
    except WoloError as error:
        terminal.screen.say(f"{error.message} {error.hint}".rstrip(), "warning")
        return ""
    return f"local/{DEFAULT}"


class _Abandoned(Exception):
    """Nobody waits any more."""


async def _unless_stopped(
    work: Callable[[Callable[[int, int], None]], T], progress: Callable[[int, int], None], terminal: Terminal
) -> T:
    """Blocking work in a thread, with its progress in the status line; it ends soon after this is cancelled."""
    stopped = threading.Event()

    def tell(done: int, total: int) -> None:
        if stopped.is_set():
            raise _Abandoned
        progress(done, total)

    terminal.screen.status.start("fetching")
    try:
        return await asyncio.to_thread(work, tell)
    finally:
        stopped.set()
        terminal.screen.status.stop()


async def _install_engine(terminal: Terminal) -> bool:
    """Whether it is there now. The command is printed where the user would rather run it themselves."""
    command = install_command(this_installation(), EMBEDDED_EXTRAS)
    terminal.screen.say(f"This installs the engine and a small model:\n  {shlex.join(command)}")
    if not await confirm("Run it now?", terminal, no="No, I run it myself", yes="Yes, install"):
        return False
    terminal.screen.status.start("installing")
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
    except OSError as error:
        terminal.screen.say(f"{command[0]} cannot be run: {error.strerror}.", "warning")
        return False
    finally:
        terminal.screen.status.stop()
    importlib.invalidate_caches()
    if process.returncode == 0 and has_engine():
        return True
    told = "\n".join(clean(printed.decode("utf-8", "replace")).strip().splitlines()[-LAST_LINES:])
    terminal.screen.say(f"The installation failed (status {process.returncode}):\n{told}", "warning")
    return False
