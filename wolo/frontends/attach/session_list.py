"""All sessions in the background on one screen: what each does and waits for, one after another to follow and answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from wolo.frontends.attach.attached_session import LEAVING
from wolo.frontends.attach.line_printer import LinePrinter
from wolo.frontends.background_sessions import BackgroundSession, list_sessions

MOST_ROWS = 30
_ORDER = ("waiting", "interrupted", "working", "idle")


async def follow_sessions(data: Path, lines: AsyncIterator[str], follow: Callable[[BackgroundSession], Awaitable[int]]) -> int:
    """Lists them again after each; /quit in a session leads back here. Returns the exit code."""
    printer = LinePrinter(is_terminal=True)
    while True:
        sessions = sorted(list_sessions(data), key=lambda each: _ORDER.index(each.state))[:MOST_ROWS]
        for number, each in enumerate(sessions, 1):
            printer.line(f"{number}. {each.state:11}  {_age(each):>5}  {each.title}  {each.cwd}")
            if each.waits_for:
                printer.line(f"       waits for: {each.waits_for}")
        printer.ask("Number to follow and answer one, Enter to look again, /quit: ")
        typed = await anext(lines, None)
        printer.note_enter()
        if typed is None or typed.strip() in LEAVING:
            return 0
        if not typed.strip():
            continue
        if not typed.strip().isdecimal() or not 0 < int(typed) <= len(sessions):
            printer.line(f"There is no {typed.strip()} in this list.")
            continue
        if code := await follow(sessions[int(typed) - 1]):
            return code


def _age(session: BackgroundSession) -> str:
    minutes = max(int(time.time() - session.updated_at), 0) // 60
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} d"
