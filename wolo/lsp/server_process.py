"""The process of a language server, which speaks over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.process_runner import Processes, Program, ProgramStart

_GRACE_S = 0.3
_DRAIN_S = 0.1
_KEPT_BYTES = 4096
_BUFFER_BYTES = 64 * 1024
"""Longest line of a header."""


class LanguageServerProcess:
    def __init__(self, processes: Processes, program: Program, lines: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines, self._processes, self._program, self._writer = lines, processes, program, writer
        self._said = b""

    def add_output(self, piece: bytes) -> None:
        self._said = (self._said + piece)[-_KEPT_BYTES:]

    async def last_line(self) -> str:
        """What it printed last on stderr."""
        await self._program.output.drain(_DRAIN_S)
        lines = self._said.decode(errors="replace").strip().splitlines()
        return clean_line(lines[-1])[:200] if lines else ""

    async def write(self, data: bytes) -> None:
        """Raises OSError when the process no longer reads."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        self.close()
        await self._processes.end(self._program, _GRACE_S)

    def close(self) -> None:
        self._writer.close()


async def start_process(
    processes: Processes, command: SandboxedCommand, cwd: Path, env: Mapping[str, str]
) -> LanguageServerProcess:
    """Raises OSError when it cannot be started."""
    its_input, to_it = os.pipe()
    from_it, its_output = os.pipe()
    start = ProgramStart(
        argv=command.argv,
        cwd=cwd,
        env=env,
        stdin=its_input,
        stdout=its_output,
        pass_fds=command.pass_fds,
        cleanup=command.cleanup,
    )
    pieces: list[bytes] = []
    take = pieces.append
    try:
        program = processes.start(start, lambda piece: take(piece), in_background=True)
    except BaseException:
        os.close(to_it)
        os.close(from_it)
        raise
    finally:
        os.close(its_input)
        os.close(its_output)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_BUFFER_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(from_it, "rb", 0))
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(to_it, "wb", 0))
    server = LanguageServerProcess(processes, program, lines, asyncio.StreamWriter(transport, protocol, None, loop))
    take = server.add_output
    for piece in pieces:
        server.add_output(piece)
    return server
