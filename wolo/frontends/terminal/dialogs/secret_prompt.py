"""One line that must not be seen: an API key. It is read byte by byte and shown nowhere, in no history, on no terminal."""

from __future__ import annotations

import asyncio
import os
import sys

from wolo.frontends.terminal.display.line_prompt import SETTLE_S
from wolo.frontends.terminal.display.terminal import Terminal

ENTER, LEAVE, ERASE, ERASE_ALL = b"\r\n", 0x04, (0x7F, 0x08), 0x15
PASTE = (b"\x1b[200~", b"\x1b[201~")
"""Around what is pasted, where a program before this one asked for that and did not take it back."""
MOST_BYTES = 16 * 1024


async def ask_unseen(question: str, terminal: Terminal) -> str:
    """What stands on the first line. What was typed before the question is no answer; the line a paste ends with is.

    Raises EOFError for Ctrl-D on an empty line and for a terminal that is gone. Ctrl-C is a signal, as ever.
    """
    if (stage := terminal.screen.stage) is not None:
        from wolo.frontends.terminal.panels.line_panels import SecretPanel  # noqa: PLC0415  # prompt_toolkit is for panels only

        return await stage.stand(SecretPanel(question))
    terminal.screen.ask_space()
    await asyncio.sleep(SETTLE_S)
    terminal.keyboard.forget_typed()
    terminal.screen.say(question)
    try:
        typed = await _read_line()
    finally:
        terminal.keyboard.forget_typed()
    for mark in PASTE:
        typed = typed.replace(mark, b"")
    return typed.decode("utf-8", "replace").strip()


async def _read_line() -> bytes:
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    line: asyncio.Future[bytes] = loop.create_future()
    typed = bytearray()

    def take() -> None:
        try:
            come = os.read(descriptor, 1024)
        except OSError:
            come = b""
        if not line.done() and _ends(typed, come or bytes([LEAVE])):
            line.set_result(bytes(typed))

    loop.add_reader(descriptor, take)
    try:
        typed_line = await line
    finally:
        loop.remove_reader(descriptor)
    if typed_line.endswith(bytes([LEAVE])):
        raise EOFError
    return typed_line


def _ends(typed: bytearray, come: bytes) -> bool:
    """Puts what has come behind what was typed; whether the line is at its end. Ctrl-D then stands on it."""
    for byte in come:
        if byte in ENTER:
            return True
        if byte == LEAVE:
            if not typed:
                typed.append(LEAVE)
            return True
        if byte in ERASE:
            del typed[-1:]
        elif byte == ERASE_ALL:
            typed.clear()
        elif len(typed) < MOST_BYTES:
            typed.append(byte)
    return False
