"""The embedded model: weights from the cache, and an engine in a child process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import ConfigError, ProviderError, Unavailable, WoloError
from wolo.formats.format import ThinkingLevel
from wolo.messages.message import Message
from wolo.models import capabilities, probe_cache, protocol, provider
from wolo.models.http.http_transport import HttpTransport
from wolo.models.local import driving, weight_sources
from wolo.models.local.weights import (
    MissingWeights,
    ensure_weights,
    find_cached,
    find_weights,
    format_size,
    is_available,
    own_file,
)
from wolo.places import Places, make_private

STOP_S: Final = 1.0
LARGEST_LOG_BYTES: Final = 1_000_000
LOG_TAIL_LINES: Final = 5
LIBRARY: Final = re.compile(r"(lib[\w.+-]+\.so[\w.]*)")


class ServerAddress(Struct, frozen=True):
    url: str
    """Without trailing slash; the API is below `/v1`."""
    key: str
    n_params: int


class EmbeddedProcess:
    """Child process for one weights file; ends with `stop`, or when this process ends."""

    def __init__(self, weights: Path, log: Path) -> None:
        self._log = log
        self._key = os.urandom(16).hex()
        self._log_start = _prepare_log(log)
        self._reading: asyncio.Future[bytes] | None = None
        environ = {**os.environ, "OMP_WAIT_POLICY": "passive", "WOLO_LOCAL_KEY": self._key}
        # -P: do not import modules from the working directory. New session: Ctrl-C must not reach the child.
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
        """Check whether it is ending: connections break shortly before the process exits."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._child.wait, STOP_S)
        return self.has_ended

    async def ready(self) -> ServerAddress:
        """Wait until the model can answer. Raises ProviderError if it never will."""
        if self._reading is None:
            # Independent of this caller, so that cancellation does not lose the line.
            self._reading = asyncio.get_running_loop().run_in_executor(None, _stdout(self._child).readline)
        line = await asyncio.shield(self._reading)
        if not line:
            await asyncio.to_thread(self._child.wait)
            raise self.ending()
        report = json.loads(line)
        if "error" in report:
            if report["missing_engine"]:
                raise _permanent(*_no_engine(report["error"]))
            message = f"The embedded engine cannot load the model: {self._log_tail() or report['error']}"
            raise _permanent(message, "The file may be damaged, or too new or too large for it.")
        return ServerAddress(url=report["url"], key=self._key, n_params=report["n_params"])

    def ending(self) -> Unavailable:
        """Error for an unexpected end of the child."""
        code = self._child.poll()
        how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with status {code}"
        tail = self._log_tail()
        hint = "It may have run out of memory." if code == -9 else f"Its log is {self._log}."
        return Unavailable(f"The embedded model's process {how}.{f' Its last output: {tail}' if tail else ''}", hint=hint)

    def stop(self) -> None:
        """Blocks briefly; idempotent."""
        if self._child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        _stdout(self._child).close()

    def _log_tail(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(self._log_start)
                lines = file.read(LARGEST_LOG_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return " / ".join(line.strip() for line in lines[-LOG_TAIL_LINES:] if line.strip())


def _prepare_log(log: Path) -> int:
    """Create the private log file; returns the offset of this child's output."""
    make_private(log.parent)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if os.fstat(handle).st_size > LARGEST_LOG_BYTES:
            os.ftruncate(handle, 0)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def _stdout(child: subprocess.Popen[bytes]) -> BinaryIO:
    assert child.stdout is not None  # requested above
    return child.stdout  # type: ignore[return-value]  # IO[bytes] says less than it is


def _no_engine(reason: str) -> tuple[str, str]:
    if library := LIBRARY.search(reason):
        hint = f"Install the package that holds {library[1]}"
        return (
            f"The engine of the embedded model needs the system library {library[1]}, which is missing.",
            f"{hint}; on Debian and Ubuntu: apt-get install libgomp1." if "gomp" in library[1] else f"{hint}.",
        )
    return (f"The engine of the embedded model cannot be used: {reason}.", "pip install 'wolo-cli[local]' reinstalls it.")


def _permanent(message: str, hint: str) -> ProviderError:
    """Not retryable; nothing was sent."""
    error = ProviderError(message, hint=hint)
    error.exit_code = 2
    return error


DEFAULT: Final = "qwen2.5-coder-0.5b"
ENGINE: Final = "xllamacpp"
CONTEXT_TOKENS: Final = 8192
FREE: Final = provider.Price(input=0.0, output=0.0, cache_read=0.0, cache_write=0.0, source="runs on this machine")


def has_engine() -> bool:
    return find_spec(ENGINE) is not None


def is_ready(places: Places, model: str = DEFAULT) -> bool:
    """Check that engine and weights are installed."""
    return has_engine() and is_available(find_weights(model), places.cache)


class EmbeddedModel:
    """Client for `local/NAME` and `local/PATH.gguf`. `start` may be called early; `ask` completes it."""

    def __init__(
        self,
        choice: provider.ModelChoice,
        places: Places,
        cwd: Path | None = None,
        *,
        download: bool = False,
        progress: weight_sources.Progress | None = None,
    ) -> None:
        """Raises ConfigError if engine, model or weights are missing and may not be downloaded."""
        if not has_engine():
            raise ConfigError(
                "The engine of the embedded model is not installed.",
                hint="pip install 'wolo-cli[local]' installs it; `wolo models pull local/NAME` fetches a model.",
            )
        self._places = places
        self._cwd = cwd or Path.cwd()
        self._download = download
        self._progress = progress
        self._spec, self._weights = _find(choice.model.id, places, self._cwd, download=download)
        own_model = replace(choice.model, context=CONTEXT_TOKENS, price=FREE)  # the user's own file is in no catalogue
        self.choice = choice if self._spec else replace(choice, model=own_model)
        self._transport = HttpTransport({})
        self._process: EmbeddedProcess | None = None
        self._client: protocol.ModelClient | None = None
        self._attachment_notices = capabilities.AttachmentNotices()

    @property
    def pid(self) -> int | None:
        """Process id of the child, once started."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Load the weights in the background; no effect unless they are cached."""
        if self._process is not None and self._process.has_ended:
            self._process.stop()
            self._process = None
        if self._weights is not None and self._process is None:
            self._process = EmbeddedProcess(self._weights, self._places.state / "embedded.log")
            self._client = None

    async def ask(self, question: protocol.ModelQuestion, listener: protocol.Listener) -> Message:
        if notice := self._attachment_notices.notice(self.choice, question.messages):
            await listener.on_notice(notice)
        if self._weights is None:
            self._weights = await self._prepare(listener)
        self.start()
        process = self._process
        assert process is not None  # set by `start`
        if self._client is None:
            serving = await process.ready()
            facts = probe_cache.ServerFacts(kind="llama.cpp", parameters=serving.n_params, context=CONTEXT_TOKENS)
            drive = self.choice.drive or driving.decide(self.choice, facts).mode
            self.choice = replace(self.choice, drive=drive)
            choice = replace(self.choice, base_url=f"{serving.url}/v1", api_key=serving.key)
            if drive not in provider.DRIVEN:
                self._client = self._plain(driving.as_written(choice) if drive == "written" else choice)
            else:
                from wolo.models.local.driver import LocalDriver  # noqa: PLC0415  # only for small models
                from wolo.models.local.local_chat import LocalChat, server_of  # noqa: PLC0415  # the same

                self._client = LocalDriver(LocalChat(self._transport, server_of(choice, facts)), choice, self._cwd, self._plain)
        try:
            return await self._client.ask(question, listener)
        except Unavailable as error:
            if await process.ends_soon():
                raise process.ending() from error
            raise

    def think(self, level: ThinkingLevel) -> None:
        """Embedded models do not think."""

    async def close(self) -> None:
        await self._transport.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.stop)
            self._process = None

    async def _prepare(self, listener: protocol.Listener) -> Path:
        """Download or join the weights in a thread that stops on cancellation."""
        assert self._spec is not None  # the user's own file needs no preparation
        if self._progress is None:
            await listener.on_notice(f"Preparing the embedded model, once ({format_size(self._spec.size_bytes)}).")
        stop = threading.Event()

        def on_progress(done: int, total: int) -> None:
            if stop.is_set():
                raise _PreparationAbandoned
            if self._progress:
                self._progress(done, total)

        try:
            return await asyncio.to_thread(
                ensure_weights, self._spec, self._places.cache, download=self._download, progress=on_progress
            )
        except WoloError as error:
            if isinstance(error, ProviderError):
                raise
            failure = ProviderError(error.message, hint=error.hint)
            failure.exit_code = error.exit_code
            raise failure from error
        finally:
            stop.set()

    def _plain(self, choice: provider.ModelChoice) -> protocol.ModelClient:
        from wolo.models import retry  # noqa: PLC0415
        from wolo.models.client import ClientOptions, HttpModelClient  # noqa: PLC0415  # only for large models
        from wolo.models.format_selection import format_of  # noqa: PLC0415

        around = ClientOptions(
            retries=retry.RetrySettings(tries=retry.SERVER_FAILURE.tries)
        )  # a process that ended does not return
        return HttpModelClient(choice, format_of(choice), self._transport, around)


class _PreparationAbandoned(Exception):
    """Preparation was cancelled."""


def _find(model: str, places: Places, cwd: Path, *, download: bool) -> tuple[weight_sources.WeightSpec | None, Path | None]:
    """Weight spec (None: the user's own file) and path (None: not prepared yet)."""
    if model.lower().endswith(".gguf"):
        return None, own_file(model, cwd)
    spec = find_weights(model)
    if not download and not is_available(spec, places.cache):
        raise MissingWeights.of(spec)
    return spec, find_cached(spec, places.cache)
