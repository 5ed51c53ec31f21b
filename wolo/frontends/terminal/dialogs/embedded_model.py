"""Offers the embedded model: installs its engine and downloads its weights, each after a confirmation."""

from __future__ import annotations

import asyncio
import importlib
import shlex
import threading

from wolo.diagnostics.installation import EMBEDDED_EXTRA, install_command, this_installation
from wolo.errors import WoloError
from wolo.frontends.streams import error_text
from wolo.frontends.terminal.dialogs.input_prompts import confirm
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import clean
from wolo.models.local.embedded import DEFAULT, has_engine, is_ready
from wolo.models.local.weights import ensure_weights, find_weights, format_size
from wolo.places import find_places

LAST_LINES = 3
"""Shown from the output of a failed installation."""


def about_embedded() -> str:
    wanted = find_weights(DEFAULT)
    return f"{wanted.repository}, {wanted.licence}, {format_size(wanted.size_bytes)} to download"


async def offer_embedded(terminal: Terminal) -> str:
    """The model's name; empty: the user declined, or it failed."""
    if not has_engine() and not await _install_engine(terminal):
        return ""
    if is_ready(find_places()):
        return f"local/{DEFAULT}"
    if not await confirm("Download it?", terminal, yes=f"Yes, {format_size(find_weights(DEFAULT).size_bytes)}"):
        return ""
    try:
        # Downloads in a thread, with progress in the status line; the thread ends soon after a cancellation
        progress = terminal.screen.weights_progress()
        stopped = threading.Event()

        def report(done: int, total: int) -> None:
            if stopped.is_set():
                raise _DownloadAbandoned
            if progress is not None:
                progress(done, total)

        terminal.screen.status.start("downloading")
        try:
            await asyncio.to_thread(ensure_weights, find_weights(DEFAULT), find_places().cache, download=True, progress=report)
        finally:
            stopped.set()
            terminal.screen.status.stop()
    except WoloError as error:
        terminal.screen.show_text(error_text(error), "warning")
        return ""
    return f"local/{DEFAULT}"


class _DownloadAbandoned(Exception):
    """Ends the thread of a cancelled download."""


async def _install_engine(terminal: Terminal) -> bool:
    """True once the engine is installed. Prints the command for users who prefer to run it themselves."""
    command = install_command(this_installation(), EMBEDDED_EXTRA)
    terminal.screen.show_text(f"This installs the engine:\n  {shlex.join(command)}")
    if not await confirm("Run it now?", terminal, no="No, I'll run it myself", yes="Yes, install"):
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
        terminal.screen.show_text(f"{command[0]} cannot be run: {error.strerror}.", "warning")
        return False
    finally:
        terminal.screen.status.stop()
    importlib.invalidate_caches()
    if process.returncode == 0 and has_engine():
        return True
    output = "\n".join(clean(printed.decode("utf-8", "replace")).strip().splitlines()[-LAST_LINES:])
    terminal.screen.show_text(f"The installation failed (status {process.returncode}):\n{output}", "warning")
    return False
