"""The errors of the HTTP API: a status, a sentence and a hint."""

from __future__ import annotations

from wolo.errors import SessionError, UsageError, WoloError
from wolo.sessions.storage import StorageFailed


class HttpError(Exception):
    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


def as_http(error: WoloError) -> HttpError:
    """422: a mistake of the request or the settings; 409: the session cannot be used now; 507: it cannot be saved."""
    if isinstance(error, UsageError):
        return HttpError(422, error.message, error.hint)
    if isinstance(error, StorageFailed):
        return HttpError(507, error.message, error.hint)
    return HttpError(409 if isinstance(error, SessionError) else 502, error.message, error.hint)
