"""Writes crash reports and the log to private files, without secrets."""

from __future__ import annotations

import io
import logging
import os
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.errors import UsageError
from wolo.frontends.streams import print_message
from wolo.messages.terminal_text import clean
from wolo.places import find_places, make_private

if TYPE_CHECKING:
    from wolo.sessions.exchange.redaction import Redactor


def report(error: Exception, began_at: float) -> str:
    """Prints and returns a sentence; `began` is the time before which nothing of this run was saved."""
    where = _write(traceback.format_exc())
    saved = "; your session is saved" if _has_saved_since(began_at) else ""
    sentence = f"wolo crashed ({type(error).__name__}){saved}."
    print_message(sentence, hint=f"Details: {where}" if where else "")
    return sentence


def _has_saved_since(began_at: float) -> bool:
    """Looks into the store: a promise about a session must not rest on where the crash was."""
    try:
        from wolo.sessions.store import Store

        with Store.open_to_read(find_places().data) as store:
            session = store.latest(Path.cwd())
            return session is not None and session.updated >= began_at and store.check() == "ok"
    except Exception:
        return False


def _without_secrets(details: str) -> str:
    """Falls back to the file and line of each frame when redaction itself fails."""
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


LEVELS = ("debug", "info", "warning", "error")


def log_to_file(*, has_screen: bool = False) -> None:
    """Logs warnings to `wolo.log`; with WOLO_LOG everything from that level on, also to stderr unless wolo draws there.

    Raises UsageError for an unknown level.
    """
    logging.raiseExceptions = False
    handlers: list[logging.Handler] = [_PrivateFile(find_places().state / "wolo.log")]
    level = logging.WARNING
    if name := os.environ.get("WOLO_LOG", "").lower():
        if name not in LEVELS:
            raise UsageError(f"WOLO_LOG={name} is no level.", hint=f"Levels: {', '.join(LEVELS)}.")
        level = logging.getLevelNamesMapping()[name.upper()]
        logging.getLogger("wolo").setLevel(level)
        if not has_screen:
            handlers.append(logging.StreamHandler())
    formatter = _WithoutSecrets("%(asctime)s %(name)s %(levelname)s %(message)s")
    for handler in handlers:
        handler.setFormatter(formatter)
        handler.setLevel(level)
        logging.getLogger().addHandler(handler)


class _WithoutSecrets(logging.Formatter):
    """Redacts secrets and removes terminal control characters."""

    _redactor: Redactor | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._redactor is None:
            from wolo.conversation.resources.secrets import (
                best_redactor,  # loaded with the first record
            )

            self._redactor = best_redactor()
        return clean(self._redactor.text(super().format(record)))


class _PrivateFile(logging.FileHandler):
    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8", delay=True)

    def _open(self) -> io.TextIOWrapper:
        path = Path(self.baseFilename)
        make_private(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
