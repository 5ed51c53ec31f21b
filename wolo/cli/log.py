"""Where wolo's own complaints go: a private file that exists only once there is something to say."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.messages.terminal_text import clean
from wolo.places import find_places, make_private

if TYPE_CHECKING:
    from wolo.sessions.exchange.redaction import Redactor


def log_to_file() -> None:
    """Nothing that is logged reaches the terminal: a person reads sentences, not records."""
    logging.raiseExceptions = False
    handler = _PrivateFile(find_places().state / "wolo.log")
    handler.setFormatter(_WithoutSecrets("%(asctime)s %(name)s %(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)


class _WithoutSecrets(logging.Formatter):
    """Logs are handed on more lightly than sessions, and shown by programs that obey what they print."""

    _redactor: Redactor | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._redactor is None:
            from wolo.conversation.resources.secrets import (
                best_redactor,  # nothing of it is needed until there is something to say
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
