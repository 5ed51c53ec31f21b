"""The client's open files, as far as it offers them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from wolo.frontends.acp import acp_sdk as sdk

ANSWER_S = 5.0
"""A client that takes longer is not waited for."""


class ClientFiles:
    """The files of one session; `session_id` is known once it is open."""

    def __init__(self, client: sdk.AcpClient) -> None:
        self.session_id = ""
        self._client = client
        self._late: set[asyncio.Task[Any]] = set()
        """Requests that the client did not answer in time; until it does, it is asked nothing more."""
        self._has_told = False

    async def text(self, path: Path) -> str | None:
        """None: the client does not have it, or offers no files."""
        fs = self._client.capabilities.fs
        if not self.session_id or fs is None or not fs.read_text_file or self.is_late:
            return None
        text: str | None = await self._answer(self._client.read_file(self.session_id, str(path)))
        return text

    async def write(self, path: Path, text: str) -> None:
        """Shows a change in the client; the file on disk has it already."""
        fs = self._client.capabilities.fs
        if not self.session_id or fs is None or not fs.write_text_file or self.is_late:
            return
        await self._answer(self._client.write_file(self.session_id, str(path), text))

    @property
    def is_late(self) -> bool:
        return bool(self._late)

    async def _answer(self, request: Coroutine[Any, Any, Any]) -> Any:
        """None: the client refused, or took too long."""
        task = asyncio.create_task(request)
        try:
            done, _ = await asyncio.wait((task,), timeout=ANSWER_S)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return _result(task)
        self._late.add(task)
        task.add_done_callback(self._on_late_answer)
        if not self._has_told:
            self._has_told = True
            said = "The editor does not answer requests for files; until it does, wolo uses the files on disk.\n"
            await self._client.update(self.session_id, sdk.update_agent_thought_text(said))
        return None

    def _on_late_answer(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        _result(task)


def _result(task: asyncio.Task[Any]) -> Any:
    if task.cancelled():
        return None
    try:
        return task.result()
    except (sdk.RequestError, ConnectionError, ValueError):
        return None
