"""Edits text in an external editor."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from pathlib import Path

from wolo.errors import UsageError
from wolo.operating_system import os
from wolo.places import find_places, make_private

USUAL = ("sensible-editor", "nano", "vim", "vi")
"""Tried in this order if neither VISUAL nor EDITOR is set."""
GRACE_S = 0.5
"""Time for an editor to end by itself."""
HINT = "Set VISUAL or EDITOR to a program; your text is unchanged."


async def edit(text: str, *, suffix: str = ".md") -> str:
    """The edited text, without the final line end that editors add. Raises UsageError when the editor fails.

    Nothing else may use the terminal meanwhile.
    """
    argv = _find()
    folder = find_places().state / "editing"
    path = folder / f"{os.getpid()}-{os.urandom(4).hex()}{suffix}"
    try:
        make_private(folder)
        _write(path, text)
        if status := await _run([*argv, str(path)]):
            raise UsageError(f"The editor {Path(argv[0]).name} failed with exit code {status}.", hint=HINT)
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")
    except OSError as error:
        raise UsageError(f"Cannot use the editor {Path(argv[0]).name}: {error.strerror}.", hint=HINT) from error
    finally:
        path.unlink(missing_ok=True)


async def edit_file(path: Path) -> None:
    """Opens the file itself. Raises UsageError when the editor fails."""
    argv = _find()
    try:
        status = await _run([*argv, str(path)])
    except OSError as error:
        raise UsageError(f"Cannot use the editor {Path(argv[0]).name}: {error.strerror}.", hint=HINT) from error
    if status:
        raise UsageError(f"The editor {Path(argv[0]).name} failed with exit code {status}.", hint=HINT)


def _find() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if command := os.environ.get(name, "").strip():
            try:
                argv = shlex.split(command)
            except ValueError as error:
                raise UsageError(f"{name} is not a valid command: {command}", hint=HINT) from error
            if argv and shutil.which(argv[0]):
                return argv
            raise UsageError(f"{name} is set to {command}, which is not installed.", hint=HINT)
    if (found := next(filter(shutil.which, USUAL), None)) is None:
        raise UsageError("No editor found.", hint=HINT)
    return [found]


def _write(path: Path, text: str) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)


async def _run(argv: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(*argv)
    try:
        return await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        try:
            async with asyncio.timeout(GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        raise
