"""The parent's side of the embedded model's child process: start it, wait until it serves, end it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct

from wolo.errors import ProviderError, Unavailable
from wolo.places import make_private

STOP_S: Final = 1.0
LARGEST_LOG_BYTES: Final = 1_000_000
LOG_TAIL_LINES: Final = 5
LIBRARY: Final = re.compile(r"(lib[\w.+-]+\.so[\w.]*)")


class Serving(Struct, frozen=True):
    url: str
    """Without a trailing slash; the API lies below `/v1`."""
    key: str
    n_params: int


class EmbeddedProcess:
    """One child for one file of weights. It ends when told to, and by itself when this process is gone, however that went."""

    def __init__(self, weights: Path, log: Path) -> None:
        self._log = log
        self._key = os.urandom(16).hex()
        self._log_start = _prepare_log(log)
        self._reading: asyncio.Future[bytes] | None = None
        environ = {**os.environ, "OMP_WAIT_POLICY": "passive", "WOLO_LOCAL_KEY": self._key}
        # -P: a `json.py` in the directory worked in is not ours to import. A session of its own: Ctrl-C is for us alone.
        argv = [sys.executable, "-P", "-m", "wolo.models.local.embedded_server", str(weights)]
        with log.open("ab") as errors:
            self._child = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environ, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        return self._child.poll() is not None

    async def ends_soon(self) -> bool:
        """Whether it is on its way out: its connections break a moment before it is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._child.wait, STOP_S)
        return self.has_ended

    async def ready(self) -> Serving:
        """Returns once the model answers. Raises ProviderError when it never will."""
        if self._reading is None:
            # Not tied to this caller: one that is cancelled must not take the only line with it.
            self._reading = asyncio.get_running_loop().run_in_executor(None, _stdout(self._child).readline)
        line = await asyncio.shield(self._reading)
        if not line:
            await asyncio.to_thread(self._child.wait)
            raise self.ending()
        said = json.loads(line)
        if "error" in said:
            raise _permanent(*_no_engine(said["error"])) if said["missing_engine"] else self._cannot_load(said["error"])
        return Serving(url=said["url"], key=self._key, n_params=said["n_params"])

    def ending(self) -> Unavailable:
        """What to say when the child has ended without being asked to."""
        code = self._child.poll()
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"
        tail = self._log_tail()
        hint = "It may have run out of memory." if code == -9 else f"Its log is {self._log}."
        return Unavailable(f"The embedded model's process {how}.{f' Its last words: {tail}' if tail else ''}", hint=hint)

    def stop(self) -> None:
        """Blocks for a moment. May be called twice."""
        if self._child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        _stdout(self._child).close()

    def _cannot_load(self, reason: str) -> ProviderError:
        tail = self._log_tail() or reason
        return _permanent(
            f"The embedded engine cannot load the model: {tail}", "The file may be damaged, or too new or too large for it."
        )

    def _log_tail(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(self._log_start)
                lines = file.read(LARGEST_LOG_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return " / ".join(line.strip() for line in lines[-LOG_TAIL_LINES:] if line.strip())


def _prepare_log(log: Path) -> int:
    """Makes the file, readable by its owner alone, and tells where this child's words begin."""
    make_private(log.parent)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if os.fstat(handle).st_size > LARGEST_LOG_BYTES:
            os.ftruncate(handle, 0)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def _stdout(child: subprocess.Popen[bytes]) -> BinaryIO:
    assert child.stdout is not None  # it was asked for
    return child.stdout  # type: ignore[return-value]  # IO[bytes] says less than it is


def _no_engine(reason: str) -> tuple[str, str]:
    if library := LIBRARY.search(reason):
        hint = f"Install the package that holds {library[1]}"
        return (
            f"The engine of the embedded model needs the system library {library[1]}, which is missing.",
            f"{hint}; on Debian and Ubuntu: apt-get install libgomp1." if "gomp" in library[1] else f"{hint}.",
        )
    return (f"The engine of the embedded model cannot be used: {reason}.", "pip install 'wolo-cli[local]' installs it anew.")


def _permanent(message: str, hint: str) -> ProviderError:
    """Nothing was sent, and another try will not help."""
    error = ProviderError(message, hint=hint)
    error.exit_code = 2
    return error
