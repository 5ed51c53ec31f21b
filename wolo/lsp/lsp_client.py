"""Speaks with one language server: starts it, keeps its files open, and asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from wolo.lsp.messages import BadMessage, Problem, encode, path_of, read_errors, read_message
from wolo.lsp.server_table import ServerSpec, language_of
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.piped_program import PipedProgram

START_S = 30.0
"""Time for the first answer, and for the first errors: a server may read the whole project before."""
ANSWER_S = 10.0
"""Longest wait for errors of a file after that; then it is taken to have none."""
QUIET_S = 0.1
"""Servers may publish the errors of one text in several steps."""
MOST_SILENCES = 3
LONGEST_HEADER_BYTES = 64 * 1024
_GRACE_S, _DRAIN_S = 0.3, 0.1
MOST_OPEN = 30
"""Files that are open at once."""

State = Literal["starting", "running", "failed"]

_QUESTIONS = {
    "definition": {},
    "references": {},
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
    "rename": {"prepareSupport": False},
}
_CAPABILITIES = {
    "textDocument": {"publishDiagnostics": {"versionSupport": True}, "synchronization": {"didSave": True}, **_QUESTIONS},
    "workspace": {"configuration": True, "workspaceFolders": True},
    "general": {"positionEncodings": ["utf-16"]},
}
_PULLING = {**_CAPABILITIES, "textDocument": {**_QUESTIONS, "diagnostic": {}, "synchronization": {"didSave": True}}}


Start = Callable[[ServerSpec], Awaitable[PipedProgram]]
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
        self._root, self._start = root, start
        self._program: PipedProgram | None = None
        self._files: dict[str, _OpenFile] = {}
        self._answered = asyncio.Event()
        self._news = asyncio.Condition()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        """Questions without an answer."""
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
        known = self._files.get(str(path))
        if self._asked_at is None and (known is None or known.text != text or known.published != known.version):
            self._asked_at = asyncio.get_running_loop().time()
        file = await self._open(path, text)
        if self.spec.pulls and file.published != file.version:
            self._num_requests += 1
            self._pulled[self._num_requests] = (file, file.version)
            document = {"textDocument": {"uri": path.as_uri()}}
            await self._send({"id": self._num_requests, "method": "textDocument/diagnostic", "params": document})
        await self._until_published(file)
        return file.errors

    async def ask(self, path: Path, text: str, method: str, params: dict[str, Any]) -> Any:
        """The server's answer about a file that has this text. Raises ServerFailed, and TimeoutError for a late answer."""
        is_cold = not self._has_published
        await self._open(path, text)
        self._num_requests += 1
        id_ = self._num_requests
        answer = self._asked[id_] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": id_, "method": method, "params": params})
            async with asyncio.timeout(START_S if is_cold else ANSWER_S):
                return await answer
        finally:
            del self._asked[id_]

    async def _open(self, path: Path, text: str) -> _OpenFile:
        """Tells the server the text of a file. Raises ServerFailed."""
        await self._answered.wait()
        if self.state == "failed":
            raise ServerFailed(self.why)
        name = str(path)
        if (file := self._files.get(name)) is None:
            while len(self._files) >= MOST_OPEN:
                oldest = next(iter(self._files))
                del self._files[oldest]
                closed = {"textDocument": {"uri": Path(oldest).as_uri()}}
                await self._send({"method": "textDocument/didClose", "params": closed})
            file = self._files[name] = _OpenFile(text, 1)
            language = self.spec.languages.get(path.suffix.lower()) or language_of(path)
            document = {"uri": path.as_uri(), "languageId": language, "version": 1, "text": text}
            await self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        elif file.text != text:
            file.text, file.version = text, file.version + 1
            changed = {"textDocument": {"uri": path.as_uri(), "version": file.version}, "contentChanges": [{"text": text}]}
            await self._send({"method": "textDocument/didChange", "params": changed})
            await self._send({"method": "textDocument/didSave", "params": {"textDocument": {"uri": path.as_uri()}}})
        return file

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
            self._program = await self._start(self.spec)
            # Without a process id: a server in its own process namespace would take wolo to be gone
            root = self._root.as_uri()
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
                        **({} if self.spec.options is None else {"initializationOptions": self.spec.options}),
                    },
                }
            )
            async with asyncio.timeout(START_S) as limit:
                while message := await read_message(self._program.lines):
                    await self._take(message)
                    if self.state == "running":
                        limit.reschedule(None)
            await self._program.program.output.drain(_DRAIN_S)
            said = "".join(self._program.stderr.lines(1, clean_line))
            await self._fail(f"it ended: {said[:200]}" if said else "it ended")
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
            if self.spec.settings is not None:
                await self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": self.spec.settings}})
            self.state = "running"
            self._answered.set()
        elif method is None and isinstance(id_, int) and (asked := self._asked.get(id_)) is not None and not asked.done():
            asked.set_result(message.get("result"))

    async def _take_pulled(self, file: _OpenFile, version: int, result: Any) -> None:
        """Without a report the file is taken to have no errors."""
        self._has_published, self._asked_at = True, None
        if version == file.version:
            async with self._news:
                file.published = version
                file.errors = read_errors(result.get("items") if isinstance(result, dict) else [])
                self._news.notify_all()

    async def _answer(self, method: str, id_: Any, params: Any) -> None:
        """Only the settings of a plugin and the interpreter are known, and nothing is done for the server."""
        if method == "workspace/configuration":
            items = params.get("items") if isinstance(params, dict) else None
            await self._send({"id": id_, "result": [self._setting(each) for each in (items if isinstance(items, list) else ())]})
        elif method == "workspace/applyEdit":
            await self._send({"id": id_, "result": {"applied": False}})
        elif method == "workspace/workspaceFolders":
            await self._send({"id": id_, "result": [{"uri": self._root.as_uri(), "name": self._root.name}]})
        elif method.startswith(("client/", "window/", "workspace/")):
            await self._send({"id": id_, "result": None})
        else:
            await self._send({"id": id_, "error": {"code": -32601, "message": "not supported"}})

    def _setting(self, item: Any) -> Any:
        """Of a section (`a.b`) in the settings. For Python, the interpreter of the project, whose packages its code imports."""
        section = str(item.get("section") or "") if isinstance(item, dict) else ""
        setting = self.spec.settings
        for name in section.split(".") if section else ():
            setting = setting.get(name) if isinstance(setting, dict) else None
        if setting is not None:
            return setting
        python = self._root / ".venv/bin/python"
        is_python = section == "python"
        return {"pythonPath": str(python)} if is_python and python.exists() else None

    async def _send(self, message: dict[str, Any]) -> None:
        """Raises ServerFailed when the server no longer reads."""
        assert self._program is not None
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._program.write(encode(message))
        except (OSError, TimeoutError) as error:
            await self._fail("it no longer reads" if isinstance(error, TimeoutError) else "it ended")
            raise ServerFailed(self.why) from error

    async def _fail(self, why: str) -> None:
        if self.state != "failed":
            self.state, self.why = "failed", why
            self._answered.set()
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ServerFailed(why))
            async with self._news:
                self._news.notify_all()
            if self._program is not None:
                await self._program.end(_GRACE_S)
