"""Runs the user's own command for the status bar, with the facts as JSON on stdin."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress

from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line
from wolo.places import settings_folder
from wolo.workspace.processes.command_environment import user_environment

SETTING = "ui.status_command"
COMMAND_S = 2.0
"""Time limit of the command."""
MOST_BYTES = 4096


async def run_status_command(argv: Sequence[str], facts: Mapping[str, object]) -> str:
    """The first line that it prints, without colours. Raises UsageError when it cannot be run, fails or takes too long.

    Runs like the user's hooks: without a shell, without the keys of wolo, next to `config.toml`.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=settings_folder(),
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(user_environment(os.environ)),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"{SETTING} cannot be run: {error}.") from error
    try:
        async with asyncio.timeout(COMMAND_S):
            # Reads as much as a line can have; the rest is not waited for
            assert process.stdin is not None  # both are pipes
            assert process.stdout is not None
            with suppress(OSError):
                process.stdin.write(json.dumps(facts).encode())
                await process.stdin.drain()
            process.stdin.close()
            output = b""
            while len(output) < MOST_BYTES and (piece := await process.stdout.read(MOST_BYTES)):
                output += piece
            if len(output) < MOST_BYTES:
                await process.wait()
    except TimeoutError as error:
        raise UsageError(f"{SETTING} took longer than {COMMAND_S:.0f} seconds.") from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode not in (0, -signal.SIGKILL):
        raise UsageError(f"{SETTING} failed with exit code {process.returncode}.")
    line = next((line for line in output.decode("utf-8", "replace").splitlines() if line.strip()), "")
    return clean_line(re.sub(r"\x1b\[[0-9;:]*m", "", line)).strip()
