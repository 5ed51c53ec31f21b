"""Language servers: the one for a file, its start and open files, and the errors that an edit has made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from wolo.lsp.messages import BadMessage, Problem, describe, encode, new_errors, path_of, read_errors, read_message, uri_of
from wolo.lsp.server_table import ServerSpec, language_of
from wolo.messages.terminal_text import clean_line

COLD_S = 5.0
"""Longest wait of an edit while its server starts; errors that come later are told with the next call."""
WARM_S = 2.0
MOST_FILES = 20
"""Files of one call."""
MOST_FILE_BYTES = 1024 * 1024


class ServerState(Struct, frozen=True):
    name: str
    extensions: tuple[str, ...]
    state: str
    """`running`, `starting`, `failed: …`, or empty: not started."""


class _Check(Struct):
    path: Path
    before: str
    """The text that the model knows the errors of."""
    client: LspClient
    task: asyncio.Task[tuple[Problem, ...]]


class LanguageServers:
    """`installed`: those that can be started, in order of preference. `shown` names a file for the model."""

    def __init__(self, installed: Sequence[ServerSpec], root: Path, start: Start, shown: Callable[[Path], str]) -> None:
        self._installed = installed
        self._root = root
        self._start = start
        self._shown = shown
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

    def states(self) -> tuple[ServerState, ...]:
        return tuple(ServerState(each.name, each.extensions, self._state(each.name)) for each in self._installed)

    def close(self) -> None:
        for check in self._waiting.values():
            check.task.cancel()
        for client in self._clients.values():
            client.close()

    def _state(self, name: str) -> str:
        client = self._clients.get(name)
        if client is None:
            return ""
        return f"failed: {client.why}" if client.state == "failed" else client.state

    def _client(self, path: Path) -> LspClient | None:
        """Starts the server of the file if needed; None: there is none, or it has failed."""
        spec = self._spec(path)
        if spec is None:
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


START_S = 30.0
"""Time for the first answer, and for the first errors: a server may read the whole project before."""
ANSWER_S = 10.0
"""Longest wait for errors of a file after that; then it is taken to have none."""
QUIET_S = 0.1
"""Servers may publish the errors of one text in several steps."""
MOST_SILENCES = 3
MOST_OPEN = 30
"""Files that are open at once."""

State = Literal["starting", "running", "failed"]

_CAPABILITIES = {
    "textDocument": {"publishDiagnostics": {"versionSupport": True}, "synchronization": {"didSave": True}},
    "workspace": {"configuration": True, "workspaceFolders": True},
    "general": {"positionEncodings": ["utf-16"]},
}
_PULLING = {**_CAPABILITIES, "textDocument": {"diagnostic": {}, "synchronization": {"didSave": True}}}


class Pipe(Protocol):
    """The server's process."""

    @property
    def lines(self) -> asyncio.StreamReader: ...

    async def write(self, data: bytes) -> None:
        """Raises OSError."""
        ...

    async def end(self) -> object: ...

    async def last_line(self) -> str:
        """What it printed last on stderr."""
        ...


Start = Callable[[ServerSpec], Awaitable[Pipe]]
"""Raises OSError, or another exception whose text says why it cannot be started."""


class ServerFailed(Exception):
    """The server is of no use any more; its text says why."""


class _OpenFile(Struct):
    text: str
    version: int
    published: int = 0
    """Version of the text that `errors` belong to."""
    errors: tuple[Problem, ...] = ()


class LspClient:
    def __init__(self, spec: ServerSpec, root: Path, start: Start) -> None:
        self.spec = spec
        self.state: State = "starting"
        self.why = ""
        """Reason of a failure."""
        self._root = root
        self._start = start
        self._pipe: Pipe | None = None
        self._files: dict[str, _OpenFile] = {}
        self._answered = asyncio.Event()
        self._news = asyncio.Condition()
        self._silences = 0
        self._has_published = False
        self._asked_at: float | None = None
        """Time of the first text that nothing was published for."""
        self._num_requests = 1
        self._pulled: dict[Any, tuple[_OpenFile, int]] = {}
        """Files and versions that the server was asked about, by the request."""
        self._running = asyncio.create_task(self._run())

    async def errors_of(self, path: Path, text: str) -> tuple[Problem, ...]:
        """The errors of the file with this text. Raises ServerFailed."""
        await self._answered.wait()
        if self.state == "failed":
            raise ServerFailed(self.why)
        name = str(path)
        file = self._files.get(name)
        if self._asked_at is None and (file is None or file.text != text):
            self._asked_at = asyncio.get_running_loop().time()
        if file is None:
            while len(self._files) >= MOST_OPEN:
                oldest = next(iter(self._files))
                del self._files[oldest]
                closed = {"textDocument": {"uri": uri_of(Path(oldest))}}
                await self._send({"method": "textDocument/didClose", "params": closed})
            file = self._files[name] = _OpenFile(text, 1)
            document = {"uri": uri_of(path), "languageId": language_of(path), "version": 1, "text": text}
            await self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        elif file.text != text:
            file.text, file.version = text, file.version + 1
            changed = {"textDocument": {"uri": uri_of(path), "version": file.version}, "contentChanges": [{"text": text}]}
            await self._send({"method": "textDocument/didChange", "params": changed})
            await self._send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": uri_of(path)}}})
        if self.spec.pulls and file.published != file.version:
            await self._pull(path, file)
        await self._until_published(file)
        return file.errors

    def close(self) -> None:
        """Stops listening; the process is ended with the others of the conversation."""
        self._running.cancel()

    async def _until_published(self, file: _OpenFile) -> None:
        if file.published == file.version:
            return
        limit_s = ANSWER_S if self._has_published else START_S
        due = None if self._asked_at is None else self._asked_at + limit_s
        try:
            async with asyncio.timeout_at(due), self._news:
                await self._news.wait_for(lambda: file.published == file.version or self.state == "failed")
            with suppress(TimeoutError):
                while self.state != "failed":
                    async with asyncio.timeout(QUIET_S), self._news:
                        await self._news.wait()
            self._silences = 0
        except TimeoutError:
            self._silences, self._asked_at = self._silences + 1, None
            if not self._has_published:
                await self._fail(f"it published nothing within {limit_s:.0f} s")
            elif self._silences >= MOST_SILENCES:
                await self._fail(f"it published nothing within {limit_s:.0f} s, {MOST_SILENCES} times")
            file.published, file.errors = file.version, ()
        if self.state == "failed":
            raise ServerFailed(self.why)

    # The server's side

    async def _run(self) -> None:
        try:
            self._pipe = await self._start(self.spec)
            # Without a process id: a server in its own process namespace would take wolo to be gone
            root = uri_of(self._root)
            await self._send(
                {
                    "id": 1,
                    "method": "initialize",
                    "params": {
                        "processId": None,
                        "clientInfo": {"name": "wolo"},
                        "rootUri": root,
                        "workspaceFolders": [{"uri": root, "name": self._root.name}],
                        "capabilities": _PULLING if self.spec.pulls else _CAPABILITIES,
                    },
                }
            )
            async with asyncio.timeout(START_S) as limit:
                while message := await read_message(self._pipe.lines):
                    await self._take(message)
                    if self.state == "running":
                        limit.reschedule(None)
            said = await self._pipe.last_line()
            await self._fail(f"it ended: {said}" if said else "it ended")
        except asyncio.CancelledError:
            raise
        except TimeoutError:
            await self._fail(f"it did not answer within {START_S:.0f} s")
        except BadMessage as error:
            await self._fail(str(error))
        except Exception as error:
            await self._fail(str(getattr(error, "strerror", None) or error) or type(error).__name__)

    async def _take(self, message: dict[str, Any]) -> None:
        method, id_ = message.get("method"), message.get("id")
        if method == "textDocument/publishDiagnostics":
            params = message.get("params")
            if not isinstance(params, dict) or (file := self._files.get(path_of(params.get("uri")))) is None:
                return
            self._has_published, self._asked_at = True, None
            version = params.get("version")
            if isinstance(version, int) and version != file.version:
                return
            async with self._news:
                file.published, file.errors = file.version, read_errors(params.get("diagnostics"))
                self._news.notify_all()
        elif method is not None and id_ is not None:
            await self._answer(str(method), id_, message.get("params"))
        elif method is None and id_ in self._pulled:
            await self._take_pulled(*self._pulled.pop(id_), message.get("result"))
        elif id_ == 1 and method is None:
            if "result" not in message:
                error = message.get("error")
                reason = error.get("message") if isinstance(error, dict) else None
                raise BadMessage(f"it refused to start{f': {clean_line(reason)[:200]}' if isinstance(reason, str) else ''}")
            await self._send({"method": "initialized", "params": {}})
            self.state = "running"
            self._answered.set()

    async def _pull(self, path: Path, file: _OpenFile) -> None:
        self._num_requests += 1
        self._pulled[self._num_requests] = (file, file.version)
        document = {"textDocument": {"uri": uri_of(path)}}
        await self._send({"id": self._num_requests, "method": "textDocument/diagnostic", "params": document})

    async def _take_pulled(self, file: _OpenFile, version: int, result: Any) -> None:
        """Without a report the file is taken to have no errors."""
        self._has_published, self._asked_at = True, None
        if version == file.version:
            async with self._news:
                file.published = version
                file.errors = read_errors(result.get("items") if isinstance(result, dict) else [])
                self._news.notify_all()

    async def _answer(self, method: str, id_: Any, params: Any) -> None:
        """Only the interpreter is configured, and nothing is done for the server."""
        if method == "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            await self._send({"id": id_, "result": [self._setting(each) for each in (items if isinstance(items, list) else ())]})
        elif method == "workspace/applyEdit":
            await self._send({"id": id_, "result": {"applied": False}})
        elif method == "workspace/workspaceFolders":
            await self._send({"id": id_, "result": [{"uri": uri_of(self._root), "name": self._root.name}]})
        elif method.startswith(("client/", "window/", "workspace/")):
            await self._send({"id": id_, "result": None})
        else:
            await self._send({"id": id_, "error": {"code": -32601, "message": "not supported"}})

    def _setting(self, item: Any) -> dict[str, str] | None:
        """For Python, the interpreter of the project, whose packages are those that its code imports."""
        python = self._root / ".venv/bin/python"
        is_python = isinstance(item, dict) and item.get("section") == "python"
        return {"pythonPath": str(python)} if is_python and python.exists() else None

    async def _send(self, message: dict[str, Any]) -> None:
        """Raises ServerFailed when the server no longer reads."""
        assert self._pipe is not None
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._pipe.write(encode(message))
        except (OSError, TimeoutError) as error:
            await self._fail("it no longer reads")
            raise ServerFailed(self.why) from error

    async def _fail(self, why: str) -> None:
        if self.state != "failed":
            self.state, self.why = "failed", why
            self._answered.set()
            async with self._news:
                self._news.notify_all()
            if self._pipe is not None:
                await self._pipe.end()
