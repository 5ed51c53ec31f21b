"""Asks for a confirmation, a line of text, or a secret."""

from __future__ import annotations

import asyncio

from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import READING_S, Dismissed, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.io.keyboard import INTERRUPTED, Keyboard

ENTER, END_OF_INPUT, ERASE, ERASE_ALL = b"\r\n", 0x04, (0x7F, 0x08), 0x15
PASTE = (b"\x1b[200~", b"\x1b[201~")
"""Marks around a paste, where an earlier program asked the terminal for them and did not reset that."""
MOST_BYTES = 16 * 1024


async def confirm(question: str, terminal: Terminal, *, no: str = "No", yes: str = "Yes") -> bool:
    """The default is no. Raises Dismissed for Ctrl-C, and EOFError for Ctrl-D where a line is typed."""
    if not terminal.has_panels:
        typed = await ask_line(f"{question} [y/N] › ", terminal)
        return typed.strip().lower() in ("y", "yes")
    from wolo.frontends.terminal.live.temporary_region import choose  # noqa: PLC0415  # the same
    from wolo.frontends.terminal.panels.choice_panels import NO, YES, PanelChoice  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    lines = [Text.assemble(("? ", "bold warning"), (question, "bold"))]
    return await choose(lines, [PanelChoice(YES, yes, "y"), PanelChoice(NO, no, "n")], terminal) == YES


async def ask_text(question: str, terminal: Terminal) -> str:
    """Raises PassedOver for Esc, Dismissed for Ctrl-C, and EOFError for Ctrl-D on an empty line."""
    if (dialog_host := terminal.screen.dialog_host) is None:
        return (await ask_line(question, terminal, may_pass=True)).strip()
    from wolo.frontends.terminal.panels.line_panels import RequestedLine  # noqa: PLC0415  # prompt_toolkit is for panels only

    return (await dialog_host.show_dialog(RequestedLine(question, may_pass=True))).strip()


async def ask_secret(question: str, terminal: Terminal) -> str:
    """Reads one line that appears nowhere: not on the terminal, in no history.

    What was typed before the question is dropped. Raises EOFError for Ctrl-D on an empty line and for a closed terminal;
    Ctrl-C stays a signal.
    """
    if (dialog_host := terminal.screen.dialog_host) is not None:
        from wolo.frontends.terminal.panels.line_panels import SecretPanel  # noqa: PLC0415  # prompt_toolkit is for panels only

        return await dialog_host.show_dialog(SecretPanel(question))
    terminal.screen.ask_space()
    await asyncio.sleep(READING_S)
    terminal.keyboard.forget_typed()
    terminal.screen.show_text(question)
    try:
        typed = await _read_line(terminal.keyboard)
    finally:
        terminal.keyboard.forget_typed()
    for mark in PASTE:
        typed = typed.replace(mark, b"")
    return typed.decode("utf-8", "replace").strip()


async def _read_line(keyboard: Keyboard) -> bytes:
    typed = bytearray()
    while not _ends(typed, come := await keyboard.read(is_hidden=True) or bytes([END_OF_INPUT])):
        if come == INTERRUPTED:
            raise Dismissed
    if typed.endswith(bytes([END_OF_INPUT])):
        raise EOFError
    return bytes(typed)


def _ends(typed: bytearray, come: bytes) -> bool:
    """Appends new bytes to the typed ones; True at the end of the line. Ctrl-D on an empty line is appended."""
    for byte in come:
        if byte in ENTER:
            return True
        if byte == END_OF_INPUT:
            if not typed:
                typed.append(END_OF_INPUT)
            return True
        if byte in ERASE:
            del typed[-1:]
        elif byte == ERASE_ALL:
            typed.clear()
        elif len(typed) < MOST_BYTES:
            typed.append(byte)
    return False
