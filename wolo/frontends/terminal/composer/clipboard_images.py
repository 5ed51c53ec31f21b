"""Saves the image of the clipboard to a file, with the program that this machine has for it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
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
    if not (readers := list(_readers(workspace))):
        raise UsageError(
            "No program here reads images from the clipboard.",
            hint="wl-paste (Wayland), xclip (X11), pngpaste or osascript (macOS) do; a file can be dropped or named after @.",
        )
    for argv in readers:
        data = await _read(argv)
        if kind := image_type(data[:64]):
            return await asyncio.to_thread(_save, data, kind)
    raise UsageError("The clipboard holds no image.")


def _readers(workspace: Workspace) -> Iterator[Sequence[str]]:
    """Programs of this machine, not over SSH: their clipboard would be another one."""
    candidates: list[tuple[str, ...]] = []
    if sys.platform == "darwin":
        candidates += [("pngpaste", "-"), ("osascript", "-e", _APPLE_SCRIPT)]
    if os.environ.get("WAYLAND_DISPLAY"):
        candidates.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if os.environ.get("DISPLAY"):
        candidates.append(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"))
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        candidates = []
    for name, *options in candidates:
        if path := find_program(name, workspace):
            yield (path, *options)


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
