"""`--debug-wire DIR`: every request body and every raw response as files, without the key, for the owner's eyes only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from wolo.errors import ConfigError

REDACTED = b"[key]"


class WireLog:
    """Numbers its files from the first that is free, so that runs and conversations can share a directory."""

    def __init__(self, directory: Path, secret: str = "") -> None:
        with _writing_to(directory):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._secret = secret.encode()
        self._number = 0

    def begin(self, body: bytes) -> Exchange:
        """Writes the request; what is received goes into the exchange."""
        with _writing_to(self._directory):
            with os.fdopen(self._create_next(), "wb") as file:
                file.write(redact(body, self._secret))
            return Exchange(self._directory, self._create("response.txt"), self._secret)

    def _create_next(self) -> int:
        while True:
            self._number += 1
            with contextlib.suppress(FileExistsError):
                return self._create("request.json")

    def _create(self, ending: str) -> int:
        return os.open(self._directory / f"{self._number:04}-{ending}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


class Exchange:
    """The response of one request, written as it comes."""

    def __init__(self, directory: Path, descriptor: int, secret: bytes) -> None:
        self._directory = directory
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._secret = secret
        self._held = b""
        """The last bytes, which may be the beginning of the secret."""

    def __call__(self, received: bytes) -> None:
        text = redact(self._held + received, self._secret)
        safe = max(0, len(text) - max(0, len(self._secret) - 1))
        with _writing_to(self._directory):
            self._file.write(text[:safe])
        self._held = text[safe:]

    def close(self) -> None:
        with self._file, _writing_to(self._directory):
            self._file.write(self._held)


def redact(text: bytes, secret: bytes) -> bytes:
    return text.replace(secret, REDACTED) if secret else text


@contextlib.contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"Requests cannot be written to {directory}: {error.strerror}."
        raise ConfigError(message, hint="Name another directory with --debug-wire, or leave it out.") from error
