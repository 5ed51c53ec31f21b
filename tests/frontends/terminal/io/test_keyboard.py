"""Both keyboards, at a pseudo terminal: that of POSIX and the one for consoles without modes, as those of Windows."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import threading
import tty
from collections.abc import Iterator

import pytest

from wolo.frontends.terminal.io.keyboard import Keyboard, LineKeyboard, PosixKeyboard


@pytest.fixture
def typist(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other side of the terminal that stdin is."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


@pytest.fixture(params=[PosixKeyboard, LineKeyboard])
def keyboard(request: pytest.FixtureRequest, typist: int) -> Keyboard:
    made: Keyboard = request.param()
    return made


async def test_a_line_is_read_when_it_ends(keyboard: Keyboard, typist: int) -> None:
    reading = asyncio.ensure_future(keyboard.read())
    os.write(typist, "schön\n".encode())
    assert await reading == "schön\n".encode()
    assert await keyboard.read(0.02) == b""
    os.write(typist, b"two\nthree\n")
    lines = await keyboard.read()
    lines += await keyboard.read(5) if lines == b"two\n" else b""
    assert lines == b"two\nthree\n"


async def test_ctrl_d_ends_the_input(keyboard: Keyboard, typist: int) -> None:
    reading = asyncio.ensure_future(keyboard.read())
    os.write(typist, b"\x04")
    assert await reading == b""


async def test_typed_keys_are_forgotten(keyboard: Keyboard, typist: int) -> None:
    os.write(typist, b"typed before\n")
    assert await asyncio.to_thread(tty_has_input)
    keyboard.forget_typed()
    os.write(typist, b"typed after\n")
    assert await keyboard.read() == b"typed after\n"


def tty_has_input() -> bool:
    import select

    return bool(select.select([sys.stdin.fileno()], [], [], 10)[0])


async def test_line_after_a_cancelled_read_is_kept(keyboard: Keyboard, typist: int) -> None:
    reading = asyncio.ensure_future(keyboard.read())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    os.write(typist, b"for the next question\n")
    assert await keyboard.read() == b"for the next question\n"


async def test_line_typed_before_a_question_is_forgotten(typist: int) -> None:
    """It may be the `y` of another; the read of that one was cancelled."""
    keyboard, before = LineKeyboard(), {*threading.enumerate()}
    reading = asyncio.ensure_future(keyboard.read())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    (reader,) = {*threading.enumerate()} - before
    os.write(typist, b"y\n")
    await asyncio.to_thread(reader.join)
    keyboard.forget_typed()
    os.write(typist, b"n\n")
    assert await keyboard.read() == b"n\n"


async def test_keys_that_windows_ends_lines_with_are_one(typist: int) -> None:
    tty.setraw(sys.stdin.fileno(), termios.TCSANOW)
    keyboard = LineKeyboard()
    for typed, line in ((b"one\r\n", b"one\n"), (b"\x1a\r\n", b"")):
        reading = asyncio.ensure_future(keyboard.read())
        os.write(typist, typed)
        assert await reading == line
