"""Asks the user for one line: in the live region, below the output, or as the terminal itself reads it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.io.keyboard import Keyboard
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.messages.terminal_text import clean

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent
    from prompt_toolkit.output import Output

ESCAPE_S = 0.1
"""Time for the rest of a key that begins with Esc."""
READING_S = 0.4
"""Keys pressed sooner are dropped: the question could not have been read."""

_BURST_S = 0.02
"""Lines of a paste follow each other faster than this."""


class Dismissed(Exception):
    """Ctrl-C instead of an answer. A KeyboardInterrupt would end the event loop."""


class LineInterrupted(Dismissed):
    """Ctrl-C where a second one quits."""


class PassedOver(Exception):
    """Esc instead of an answer."""


async def ask_line(question: str, terminal: Terminal, *, draft: str = "", may_pass: bool = False) -> str:
    """Drops keys typed before the question or right after it. The answer begins with the `draft`.

    Raises Dismissed for Ctrl-C, PassedOver for Esc if `may_pass`, EOFError for Ctrl-D and a closed terminal.
    """
    screen, keyboard = terminal.screen, terminal.keyboard
    if screen.region is not None:
        return await screen.region.ask(question, draft=draft, may_pass=may_pass)
    screen.ask_space()
    try:
        await asyncio.sleep(READING_S)
        if not screen.stdout.can_move:
            keyboard.forget_typed()
            return (
                await read_typed(f"{clean(question).replace('›', '>')}{draft and f'[{draft}] '}", keyboard, screen.stdout)
                or draft
            )
        return await _read(question, keyboard, draft, may_pass)
    finally:
        screen.fresh()


async def _read(question: str, keyboard: Keyboard, draft: str, may_pass: bool) -> str:
    from prompt_toolkit import PromptSession  # noqa: PLC0415  # 100 ms, only when something is asked
    from prompt_toolkit.input.typeahead import clear_typeahead  # noqa: PLC0415  # the same
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415  # the same

    from wolo.frontends.terminal.io.input_parser import (  # noqa: PLC0415  # the same
        FocusTracker,
        TerminalInput,
        is_within_paste,
    )

    keys = KeyBindings()
    keys.add("enter")(lambda event: _send(event, is_line_end=is_within_paste(event.app)))
    keys.add("c-c")(lambda event: event.app.exit(exception=Dismissed(), style="class:aborting"))
    if may_pass:
        keys.add("escape")(lambda event: event.app.exit(exception=PassedOver(), style="class:aborting"))
    session: PromptSession[str] = PromptSession(
        clean(question), key_bindings=keys, input=TerminalInput(FocusTracker(None)), output=make_output()
    )
    session.app.timeoutlen = session.app.ttimeoutlen = ESCAPE_S
    clear_typeahead(session.app.input)
    keyboard.forget_typed()
    return await session.prompt_async(default=draft, handle_sigint=False, set_exception_handler=False)


def _send(event: KeyPressEvent, *, is_line_end: bool) -> None:
    """Some terminals do not mark a paste: an Enter in the middle of one is a line end."""
    if is_line_end:
        event.current_buffer.insert_text("\n")
    else:
        event.current_buffer.validate_and_handle()


def make_output() -> Output | None:
    """An output that never asks for the cursor position: the reply could end up in typed text. None on dumb terminals."""
    from prompt_toolkit.output.vt100 import Vt100_Output  # noqa: PLC0415  # as above

    if (term := os.environ.get("TERM", "dumb")) in ("dumb", "unknown"):
        return None
    output = Vt100_Output.from_pty(sys.stdout, term=term)
    output.enable_cpr = False
    return output


async def read_typed(question: str, keyboard: Keyboard, stdout: Stdout) -> str:
    """The line up to Enter, or all lines of a paste. Raises EOFError for Ctrl-D on an empty line; Ctrl-C stays a signal."""
    was_hushed = keyboard.is_hushed
    keyboard.release()
    stdout.write(question)
    stdout.flush()
    try:
        data = await keyboard.read()
        while data.endswith(b"\n") and (more := await keyboard.read(_BURST_S)):
            data += more
    finally:
        if was_hushed:
            keyboard.hush()
    if not data:
        raise EOFError
    return data.decode("utf-8", "replace").removesuffix("\n")
