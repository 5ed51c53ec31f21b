"""The process that runs the tools of one file: started at the first call, ended with the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from wolo.errors import ToolError
from wolo.guard.sandbox_contract import MOST_TRIES, SandboxedCommand
from wolo.messages.terminal_text import clean_line
from wolo.workspace.processes.piped_program import OutputTail, PipedProgram, start_piped
from wolo.workspace.processes.process_runner import INTERRUPT_GRACE_S, Processes, ProgramStart

LONGEST_ANSWER_BYTES = 16 * 1024 * 1024
_LAST_LINES = 5


class ToolCrashedError(Exception):
    """The process ended during a call; the message says how."""


class ToolProcess:
    def __init__(self, program: PipedProgram) -> None:
        self._program = program
        self._number = 0

    async def exchange(self, sent: bytes) -> dict[str, Any]:
        """Sends a line; the answer to the first one is what is in the file. Raises ToolCrashedError."""
        try:
            await self._program.write(sent)
            line = await self._program.lines.readuntil(b"\n")
            answer: dict[str, Any] = msgspec.json.decode(line)
        except asyncio.LimitOverrunError as error:
            raise ToolCrashedError(f"its answer has more than {LONGEST_ANSWER_BYTES:,} bytes") from error
        except (OSError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
            program = self._program.program
            cause = await program.wait(1.0)
            await program.output.drain(0.1)
            how = "closed its output"
            if cause == "exited":
                code = program.exit_code
                how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            lines = self._program.stderr.lines(_LAST_LINES, clean_line)
            raise ToolCrashedError("\n".join([f"its process {how}", *lines])) from error
        return answer

    async def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolCrashedError."""
        self._number += 1
        return await self.exchange(msgspec.json.encode({"id": self._number, **fields}) + b"\n")

    async def end(self) -> None:
        """Ends it with everything it started."""
        await self._program.end(INTERRUPT_GRACE_S)


async def start_and_load(
    processes: Processes, enclose: Callable[[], SandboxedCommand], cwd: Path, env: Mapping[str, str], first_line: bytes
) -> tuple[ToolProcess, dict[str, Any]]:
    """The process, and what is in its file. Raises ToolError when it cannot be started, and ToolCrashedError."""
    for last in (*[False] * (MOST_TRIES - 1), True):
        command = await asyncio.to_thread(enclose)
        start = ProgramStart(
            argv=command.argv,
            cwd=cwd,
            env=env,
            pass_fds=command.pass_fds,
            cleanup=command.cleanup,
            has_begun=command.has_begun,
            is_alone=command.is_alone,
        )
        try:
            process = ToolProcess(await start_piped(processes, start, LONGEST_ANSWER_BYTES, OutputTail()))
        except OSError as error:
            raise ToolError(f"The tool could not be started: {error.strerror}.") from error
        try:
            return process, await process.exchange(first_line)
        except ToolCrashedError:
            await process.end()
            if last or command.has_begun():
                raise
        except BaseException:
            await process.end()
            raise
    raise AssertionError
