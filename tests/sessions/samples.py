"""Entries as a conversation makes them, and programs that use a store from another process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from wolo.messages.message import Message, Usage, UsageCost, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import AnyEntry, MessageEntry, ResultsEntry

ROOT = Path(__file__).parents[2]
APPENDER = Path(__file__).with_name("appender.py")
NOBODY = 65534


def said(text: str) -> MessageEntry:
    return MessageEntry(message=user(text))


def texts(entries: tuple[AnyEntry, ...]) -> list[str]:
    return [entry.message.text for entry in entries if isinstance(entry, MessageEntry)]


def tool_turn(number: int, output: str = "y" * 2000, cost: float | None = 0.001) -> tuple[MessageEntry, ResultsEntry]:
    """An answer with one call, and the call's result."""
    call = ToolPart(id=f"part_{number}", tool="read", input={"path": f"f{number}.py"}, call_id=f"call_{number}")
    answer = Message(
        id=f"msg_{number}",
        role="assistant",
        parts=(TextPart(text=f"Looking at file {number}."), call),
        usage=Usage(input_tokens=100, output_tokens=20, cost=None if cost is None else UsageCost(total=cost)),
        finished=True,
        finish_reason="tool_calls",
    )
    done = replace(call, status="completed", outcome="ok", output=output)
    return MessageEntry(message=answer), ResultsEntry(message_id=answer.id, parts=(done,))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def python_argv(*arguments: str | Path) -> list[str]:
    return [sys.executable, *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))}


@contextmanager
def appender(
    data: Path, text: str = "entry", count: int = 1_000_000, before: list[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process that makes a session, prints its id, then appends and prints each number once it is kept."""
    argv = [*(before or []), *python_argv(APPENDER, data, text, str(count))]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def as_nobody(code: str, *arguments: str | Path, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    """Run Python code as an ordinary user (as ourselves, when we are one)."""
    # The interpreter may lie in a home that others cannot enter: start it, load everything, then become the other user.
    become = f"import os, wolo.sessions.store, encodings.utf_16_le\nos.umask({umask})\n"
    if os.geteuid() == 0:
        become += f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    return subprocess.run(
        python_argv("-c", become + code, *arguments), capture_output=True, text=True, env=environment(), timeout=60, check=False
    )
