"""MCP server processes that speak over stdin and stdout."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.process_runner import Processes, Program, ProgramStart

LONGEST_LINE_BYTES = 64 * 1024 * 1024
"""Maximum message size: one message per line."""
_LEAVING_S = 0.7
"""Time between closing stdin and the first signal."""
_KEPT_BYTES = 8 * 1024
LAST_LINES = 3


class StderrTail:
    """The last lines of stderr, which explain failures."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size_bytes = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece[-_KEPT_BYTES:])
        self._size_bytes += len(self._pieces[-1])
        while self._size_bytes - len(self._pieces[0]) >= _KEPT_BYTES:
            self._size_bytes -= len(self._pieces.popleft())

    def last_lines(self) -> list[str]:
        """Cleaned for the terminal."""
        lines = b"".join(self._pieces).decode(errors="replace").splitlines()
        return [shown for line in lines if (shown := clean_line(line).strip())][-LAST_LINES:]


class McpServerProcess:
    def __init__(self, processes: Processes, program: Program, lines: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines = lines
        self._processes = processes
        self._program = program
        self._writer = writer

    async def write(self, line: bytes) -> None:
        """Raises OSError when the process no longer reads."""
        self._writer.write(line)
        await self._writer.drain()

    async def end(self) -> str:
        """Close stdin, then signal the process if needed; returns the exit description."""
        try:
            self._writer.close()
            await self._program.wait(_LEAVING_S)
        finally:
            await self._processes.end(self._program, grace_s=0.3)
        code = self._program.exit_code
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"


async def start_server(
    processes: Processes, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stderr: StderrTail
) -> McpServerProcess:
    """Raises OSError when it cannot be started."""
    its_input, to_it = os.pipe()
    from_it, its_output = os.pipe()
    start = ProgramStart(argv=argv, cwd=cwd, env=env, stdin=its_input, stdout=its_output)
    try:
        program = processes.start(start, stderr.add, in_background=True)
    except BaseException:
        os.close(to_it)
        os.close(from_it)
        raise
    finally:
        os.close(its_input)
        os.close(its_output)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(from_it, "rb", 0))
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: protocol, os.fdopen(to_it, "wb", 0))
    return McpServerProcess(processes, program, lines, asyncio.StreamWriter(transport, protocol, None, loop))
