"""What a person sees when wolo itself is at fault: a sentence and where the details lie."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

from wolo.frontends.streams import say
from wolo.messages.terminal_text import clean
from wolo.places import find_places, make_private

BROKEN = "Something in wolo broke ({name}); your session is kept."


def report(error: Exception) -> int:
    where = _write(traceback.format_exc())
    say(BROKEN.format(name=type(error).__name__), hint=f"The details are in {where}." if where else "")
    return 1


def _without_secrets(details: str) -> str:
    """Where wolo is too broken for that, only the places in its own code are told."""
    try:
        from wolo.conversation.resources.secrets import best_redactor

        return clean(best_redactor().text(details))
    except Exception:
        return "\n".join(line for line in details.splitlines() if line.startswith("  File "))


def _write(details: str) -> Path | None:
    try:
        folder = find_places().state
        make_private(folder)
        path = folder / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(_without_secrets(details))
    except OSError:
        return None
    return path
