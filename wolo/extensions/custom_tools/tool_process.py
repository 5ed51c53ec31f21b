"""The process that runs the tools of one file: started at the first call, ended with the conversation."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from wolo.errors import ToolError
from wolo.guard.sandbox_contract import MOST_TRIES, SandboxedCommand
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.process_runner import INTERRUPT_GRACE_S, Processes, Program, ProgramStart

LONGEST_ANSWER_BYTES = 16 * 1024 * 1024
_KEPT_CHUNKS = 32


class ToolCrashedError(Exception):
    """The process ended during a call; the message says how."""


class ToolProcess:
    def __init__(self, processes: Processes, program: Program, request_fd: int, answers: asyncio.StreamReader) -> None:
        self._processes = processes
        self._program = program
        self._requests = request_fd
        self._answers = answers
        self._said: deque[bytes] = deque(maxlen=_KEPT_CHUNKS)
        self._number = 0

    async def load(self, first_line: bytes) -> dict[str, Any]:
        """What is in the file. Raises ToolCrashedError."""
        return await self._exchange(first_line)

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolCrashedError."""
        return await self.request({"tool": tool, "input": arguments})

    async def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolCrashedError."""
        self._number += 1
        return await self._exchange(msgspec.json.encode({"id": self._number, **fields}) + b"\n")

    async def _exchange(self, sent: bytes) -> dict[str, Any]:
        try:
            await asyncio.to_thread(_write_all, self._requests, sent)
            line = await self._answers.readuntil(b"\n")
            answer: dict[str, Any] = msgspec.json.decode(line)
        except asyncio.LimitOverrunError as error:
            raise ToolCrashedError(f"its answer has more than {LONGEST_ANSWER_BYTES:,} bytes") from error
        except (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            cause = await self._program.wait(1.0)
            await self._program.output.drain(0.1)
            code = self._program.exit_code
            how = "closed its output"
            if cause == "exited":
                how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            lines = b"".join(self._said).decode(errors="replace").strip().splitlines()
            raise ToolCrashedError("\n".join([f"its process {how}", *map(clean_line, lines[-5:])])) from error
        return answer

    def collect(self, piece: bytes) -> None:
        self._said.append(piece[-4096:])

    async def end(self) -> None:
        """Ends it with everything it started."""
        try:
            await self._processes.end(self._program, INTERRUPT_GRACE_S)
        finally:
            os.close(self._requests)


async def start_and_load(
    processes: Processes, enclose: Callable[[], SandboxedCommand], cwd: Path, env: Mapping[str, str], first_line: bytes
) -> tuple[ToolProcess, dict[str, Any]]:
    """The process, and what is in its file. Raises ToolError when it cannot be started, and ToolCrashedError."""
    for last in (*[False] * (MOST_TRIES - 1), True):
        command = await asyncio.to_thread(enclose)
        process = await _start(processes, command, cwd, env)
        try:
            return process, await process.load(first_line)
        except ToolCrashedError:
            await process.end()
            if last or command.has_begun():
                raise
        except BaseException:
            await process.end()
            raise
    raise AssertionError


async def _start(processes: Processes, command: SandboxedCommand, cwd: Path, env: Mapping[str, str]) -> ToolProcess:
    its_input, requests = os.pipe()
    answers, its_output = os.pipe()
    output: list[bytes] = []
    take = output.append
    try:
        program = processes.start(
            ProgramStart(
                argv=command.argv,
                cwd=cwd,
                env=env,
                stdin=its_input,
                stdout=its_output,
                pass_fds=command.pass_fds,
                cleanup=command.cleanup,
                has_begun=command.has_begun,
                is_alone=command.is_alone,
            ),
            lambda piece: take(piece),
            in_background=True,
        )
    except OSError as error:
        os.close(requests)
        os.close(answers)
        raise ToolError(f"The tool could not be started: {error.strerror}.") from error
    finally:
        os.close(its_input)
        os.close(its_output)
    reader = asyncio.StreamReader(limit=LONGEST_ANSWER_BYTES)
    file = os.fdopen(answers, "rb", 0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    process = ToolProcess(processes, program, requests, reader)
    take = process.collect
    for piece in output:
        process.collect(piece)
    return process


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
