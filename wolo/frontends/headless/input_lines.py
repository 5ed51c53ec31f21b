"""Runs prompts that come as JSON lines on stdin, one turn each, and lines that interrupt the running turn."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wolo.errors import UsageError
from wolo.frontends.headless.headless_run import Headless
from wolo.frontends.prompt_lines import MAX_LINE_BYTES, read_lines, read_prompt
from wolo.frontends.streams import OutputLost, print_json
from wolo.messages.message import UserPrompt
from wolo.messages.parts import TextPart

if TYPE_CHECKING:
    from wolo.conversation.structured_output import OutputForm

Expand = Callable[[str], Awaitable[UserPrompt]]
_STRONGEST = (3, 75, 5, 1, 4)
"""Exit codes of runs, the one that counts first."""


async def run_lines(front: Headless, expanded: Expand, *, last_message_file: Path | None, form: OutputForm | None) -> int:
    """Returns the exit code that counts most. Raises UsageError for a line that is no prompt, after the turns before it.

    `expanded` makes the prompt of a text that begins with a slash or mentions something.
    """
    codes: set[int] = set()
    async for line in _lines(front):
        prompt = read_prompt(line)
        match prompt.parts:
            case [TextPart(text=text)] if text.startswith("/") or "@" in text:
                prompt = await expanded(text)
        codes.add(await front.run(prompt, last_message_file=last_message_file, form=form))
        if front.stopped_by:
            break
    if not codes and not front.stopped_by:
        raise UsageError("stdin contains no prompt.", hint='{"type":"user","message":{"role":"user","content":"…"}}')
    return front.stopped_by or next((code for code in _STRONGEST if code in codes), max(codes))


async def _lines(front: Headless) -> AsyncIterator[bytes]:
    """Lines that are not empty, until the end of stdin or a signal."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def take(line: bytes | None) -> None:
        if line is None or not _answer_control(line, front):
            queue.put_nowait(line)

    threading.Thread(target=read_lines, args=(sys.stdin.fileno(), loop, take), daemon=True).start()
    stopped = asyncio.create_task(front.stopped.wait())
    while not front.stopped_by:
        read = asyncio.create_task(queue.get())
        await asyncio.wait((read, stopped), return_when=asyncio.FIRST_COMPLETED)
        line = read.result() if read.done() else None
        if line is None:
            read.cancel()
            stopped.cancel()
            return
        if len(line) > MAX_LINE_BYTES:
            raise UsageError(f"A line on stdin is larger than {MAX_LINE_BYTES // 2**20} MB.")
        if line.strip():
            yield line


def _answer_control(line: bytes, front: Headless) -> bool:
    """Obeys a control request in the form of Claude Code, at once; False: the line is none."""
    if b"control_request" not in line:
        return False
    try:
        control = json.loads(line)
    except (ValueError, RecursionError):
        return False
    if not isinstance(control, dict) or control.get("type") != "control_request":
        return False
    request = control.get("request")
    subtype = request.get("subtype") if isinstance(request, dict) else None
    answer: dict[str, Any] = {"subtype": "success"}
    if subtype == "interrupt":
        front.interrupt()
    else:
        answer = {"subtype": "error", "error": f"There is no control request {subtype!r}, only interrupt."}
    with suppress(OutputLost):  # the running turn finds out too
        print_json({"type": "control_response", "response": {**answer, "request_id": control.get("request_id")}})
    return True
