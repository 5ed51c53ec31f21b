"""`--debug-wire DIR`: every request body and every raw response as files, without secrets, for the owner's eyes only."""

from __future__ import annotations

import codecs
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from wolo.errors import ConfigError
from wolo.messages.secret_values import ExactValues, Piecewise
from wolo.places import make_private


class WireLog:
    """Numbers its files from the first that is free, so that runs and conversations can share a directory."""

    def __init__(self, directory: Path, secrets: Callable[[], ExactValues] = ExactValues) -> None:
        """`secrets` takes out what is known by then."""
        with _writing_to(directory):
            make_private(directory)
        self._directory = directory
        self._secrets = secrets
        self._number = 0

    def begin(self, body: bytes) -> Exchange:
        """Writes the request; what is received goes into the exchange."""
        with _writing_to(self._directory):
            with os.fdopen(self._create_next(), "wb") as file:
                file.write(self._secrets().data(body))
            return Exchange(self._directory, self._create("response.txt"), self._secrets().piecewise())

    def _create_next(self) -> int:
        while True:
            self._number += 1
            with contextlib.suppress(FileExistsError):
                return self._create("request.json")

    def _create(self, ending: str) -> int:
        return os.open(self._directory / f"{self._number:04}-{ending}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


class Exchange:
    """The response of one request, written as it comes."""

    def __init__(self, directory: Path, descriptor: int, hiding: Piecewise) -> None:
        self._directory = directory
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._hiding = hiding
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def __call__(self, received: bytes) -> None:
        self._write(self._hiding.feed(self._decoder.decode(received)))

    def close(self) -> None:
        with self._file:
            self._write(self._hiding.feed(self._decoder.decode(b"", True)) + self._hiding.close())

    def _write(self, text: str) -> None:
        with _writing_to(self._directory):
            self._file.write(text.encode("utf-8", "surrogateescape"))


@contextlib.contextmanager
def _writing_to(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"Requests cannot be written to {directory}: {error.strerror}."
        raise ConfigError(message, hint="Name another directory with --debug-wire, or leave it out.") from error
