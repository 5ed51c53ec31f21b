"""Language servers: the one for a file, its start and open files, and the errors that an edit has made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.lsp.lsp_client import LspClient, ServerFailed, Start
from wolo.lsp.messages import Problem, describe, new_errors
from wolo.lsp.server_table import ServerSpec

COLD_S = 5.0
"""Longest wait of an edit while its server starts; errors that come later are told with the next call."""
WARM_S = 2.0
MOST_FILES = 20
"""Files of one call."""
MOST_FILE_BYTES = 1024 * 1024


class _Check(Struct):
    path: Path
    before: str
    """The text that the model knows the errors of."""
    client: LspClient
    task: asyncio.Task[tuple[Problem, ...]]


class LanguageServers:
    """`installed`: those that can be started, in order of preference. `shown` names a file for the model."""

    def __init__(self, installed: Sequence[ServerSpec], root: Path, start: Start, shown: Callable[[Path], str]) -> None:
        self._installed, self._root, self._start, self._shown = installed, root, start, shown
        self._clients: dict[str, LspClient] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[Path, _Check] = {}
        """Checks whose result was not told yet."""
        self._late: set[str] = set()
        """Servers that did not answer in time: no edit waits for one until it has."""
        self._told: set[str] = set()
        """Failed servers that the user was told about."""

    def read_known(self, paths: Sequence[Path]) -> dict[Path, str]:
        """The texts of files that a server knows, empty for new ones. May block."""
        texts = ((path, _read(path)) for path in paths[:MOST_FILES] if self._spec(path) is not None)
        return {path: text for path, text in texts if text is not None}

    def warm_up(self, paths: Iterable[Path]) -> None:
        """Starts the servers of these files in the background."""
        for path in paths:
            self._client(path)

    async def check(self, before: dict[Path, str]) -> str:
        """New errors of the files, which had these texts before, as far as they are known in time; empty: none."""
        cold = False
        for path, text in before.items():
            client, after = self._client(path), _read(path)
            if client is None or after is None or not path.exists():
                continue
            cold = cold or client.state == "starting"
            if (waiting := self._waiting.pop(path, None)) is not None:
                waiting.task.cancel()
                text = waiting.before
            task = asyncio.create_task(self._compare(client, path, text, after))
            self._waiting[path] = _Check(path, text, client, task)
        checks = [self._waiting[path] for path in before if path in self._waiting]
        if tasks := [each.task for each in checks if each.client.spec.name not in self._late]:
            _, pending = await asyncio.wait(tasks, timeout=COLD_S if cold else WARM_S)
            self._late.update(each.client.spec.name for each in checks if each.task in pending)
        return self.late_errors()

    async def ask(self, path: Path, method: str, params: dict[str, Any]) -> Any:
        """What the server of a file answers about it; `params` without the document. Raises ServerFailed, whose text says why."""
        client, text = self._client(path), await asyncio.to_thread(_read, path)
        if client is None or text is None:
            failed = self._spec(path) is not None and client is None
            raise ServerFailed("the server has failed" if failed else "no installed language server knows this file")
        try:
            async with self._locks[client.spec.name]:
                return await client.ask(path, text, method, {"textDocument": {"uri": path.as_uri()}, **params})
        except TimeoutError:
            raise ServerFailed(f"{client.spec.name} did not answer in time; it may still be reading the project") from None

    def late_errors(self) -> str:
        """New errors that have become known; each is returned once."""
        rows = []
        for check in [each for each in self._waiting.values() if each.task.done()]:
            del self._waiting[check.path]
            if not check.task.cancelled() and check.task.exception() is None and (found := check.task.result()):
                rows.append(describe(check.client.spec.name, self._shown(check.path), found))
        return "\n".join(rows)

    def failures(self) -> Iterator[str]:
        """A sentence for each server that has failed; each once."""
        for name, client in self._clients.items():
            if client.state == "failed" and name not in self._told:
                self._told.add(name)
                yield f"The language server {name} is not used any more: {client.why}."

    def states(self) -> dict[str, str]:
        """By server: `running`, `starting`, `failed: …`, or empty: not started."""
        states = {name: f"failed: {each.why}" if each.state == "failed" else each.state for name, each in self._clients.items()}
        return {each.name: states.get(each.name, "") for each in self._installed}

    def close(self) -> None:
        for check in self._waiting.values():
            check.task.cancel()
        for client in self._clients.values():
            client.close()

    def _client(self, path: Path) -> LspClient | None:
        """Starts the server of the file if needed; None: there is none, or it has failed."""
        if (spec := self._spec(path)) is None:
            return None
        if spec.name not in self._clients:
            self._clients[spec.name] = LspClient(spec, self._root, self._start)
            self._locks[spec.name] = asyncio.Lock()
        client = self._clients[spec.name]
        return None if client.state == "failed" else client

    def _spec(self, path: Path) -> ServerSpec | None:
        suffix = path.suffix.lower()
        return next((each for each in self._installed if suffix and suffix in each.extensions), None)

    async def _compare(self, client: LspClient, path: Path, before: str, after: str) -> tuple[Problem, ...]:
        try:
            async with self._locks[client.spec.name]:
                had = await client.errors_of(path, before)
                has = await client.errors_of(path, after)
                self._late.discard(client.spec.name)
                return new_errors(had, has)
        except ServerFailed:
            return ()


def _read(path: Path) -> str | None:
    """None: no text, or too large. Empty for a file that does not exist."""
    try:
        if path.stat().st_size > MOST_FILE_BYTES:
            return None
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        return None
