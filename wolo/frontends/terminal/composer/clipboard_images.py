"""Finds programs for the clipboard of this machine, and saves the image in it to a file."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from wolo.errors import UsageError
from wolo.messages.media import image_type
from wolo.places import find_places
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.root import Workspace

PROGRAM_S = 5.0
MOST_KEPT = 20
"""Newest images that stay on disk."""
_APPLE_SCRIPT = "the clipboard as «class PNGf»"
_APPLE_DATA = "«data PNGf".encode()
"""Before the image in hexadecimal digits, as osascript prints it."""


async def save_clipboard_image(workspace: Workspace) -> Path:
    """The new file. Raises UsageError where no program can read the clipboard, or it holds no image."""
    readers = find_clipboard_programs(
        workspace,
        mac=(("pngpaste", "-"), ("osascript", "-e", _APPLE_SCRIPT)),
        wayland=(("wl-paste", "--no-newline", "--type", "image/png"),),
        x11=(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),),
    )
    if not readers:
        raise UsageError(
            "No program here reads images from the clipboard.",
            hint="wl-paste (Wayland), xclip (X11), pngpaste or osascript (macOS) do; a file can be dropped or named after @.",
        )
    for argv in readers:
        data = await _read(argv)
        if kind := image_type(data[:64]):
            return await asyncio.to_thread(_save, data, kind)
    raise UsageError("The clipboard holds no image.")


Programs = Sequence[tuple[str, ...]]


def find_clipboard_programs(workspace: Workspace, *, mac: Programs, wayland: Programs, x11: Programs) -> Programs:
    """Those that this machine has, but none over SSH: they would use the clipboard of another machine."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return ()
    candidates = [*(mac if sys.platform == "darwin" else ())]
    candidates += [*(wayland if os.environ.get("WAYLAND_DISPLAY") else ()), *(x11 if os.environ.get("DISPLAY") else ())]
    return [(path, *options) for name, *options in candidates if (path := find_program(name, workspace))]


async def _read(argv: Sequence[str]) -> bytes:
    """What the program prints; empty where it fails or takes too long."""
    nowhere = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*argv, stdin=nowhere, stdout=asyncio.subprocess.PIPE, stderr=nowhere)
    except OSError:
        return b""
    try:
        async with asyncio.timeout(PROGRAM_S):
            data, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    if process.returncode != 0:
        return b""
    if data.startswith(_APPLE_DATA):
        with suppress(ValueError):
            return bytes.fromhex(data.decode("utf-8", "replace").strip()[len("«data PNGf") : -1])
    return data


def _save(data: bytes, kind: str) -> Path:
    folder = find_places().state / "clipboard"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / f"image-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1000:03}.{kind.rpartition('/')[2]}"
        path.write_bytes(data)
        for old in sorted(folder.glob("image-*"))[:-MOST_KEPT]:
            old.unlink()
    except OSError as error:
        raise UsageError(f"Cannot save the image in {folder}: {error.strerror}.") from error
    return path
