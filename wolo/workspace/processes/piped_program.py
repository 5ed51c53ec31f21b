"""A program that is spoken to over its stdin and stdout; the end of its stderr explains a failure."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from wolo.workspace.processes.process_runner import Processes, Program, ProgramStart

_KEPT_BYTES = 8 * 1024


class OutputTail:
    """The last lines of an output."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size_bytes = 0

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece[-_KEPT_BYTES:])
        self._size_bytes += len(self._pieces[-1])
        while self._size_bytes - len(self._pieces[0]) >= _KEPT_BYTES:
            self._size_bytes -= len(self._pieces.popleft())

    def lines(self, most: int, clean: Callable[[str], str]) -> list[str]:
        """The last ones that are not empty once they are clean: one may consist of colours only."""
        printed = b"".join(self._pieces).decode(errors="replace").splitlines()
        return [line for line in map(clean, printed) if line.strip()][-most:]


class PipedProgram:
    def __init__(
        self, processes: Processes, program: Program, stderr: OutputTail, lines: asyncio.StreamReader, stdin: asyncio.StreamWriter
    ) -> None:
        self.program, self.lines, self.stderr = program, lines, stderr
        self._processes, self._stdin = processes, stdin

    async def write(self, data: bytes) -> None:
        """Raises OSError when the program no longer reads."""
        self._stdin.write(data)
        await self._stdin.drain()

    def close_input(self) -> None:
        self._stdin.close()

    async def end(self, grace_s: float) -> None:
        """Closes its stdin, and ends it with everything it started."""
        self.close_input()
        await self._processes.end(self.program, grace_s)


async def start_piped(processes: Processes, start: ProgramStart, longest_line_bytes: int, stderr: OutputTail) -> PipedProgram:
    """Raises OSError when it cannot be started. `stderr` gets what it prints there."""
    its_input, to_it = os.pipe()
    from_it, its_output = os.pipe()
    try:
        program = processes.start(replace(start, stdin=its_input, stdout=its_output), stderr.add, in_background=True)
    except BaseException:
        os.close(to_it)
        os.close(from_it)
        raise
    finally:
        os.close(its_input)
        os.close(its_output)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=longest_line_bytes)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(from_it, "rb", 0))
    writers: list[asyncio.StreamWriter] = []
    # The protocol keeps the writer until the pipe is closed: a program may end without `end`, with its conversation
    protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(), lambda _, writer: writers.append(writer))
    await loop.connect_write_pipe(lambda: protocol, os.fdopen(to_it, "wb", 0))
    return PipedProgram(processes, program, stderr, lines, writers[0])
