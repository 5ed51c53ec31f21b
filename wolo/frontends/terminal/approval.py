"""Asking a person whether a call may run: the whole of it is shown, and the default is no."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from prompt_toolkit import PromptSession
from rich.text import Text

from wolo.agent.events import ApprovalAsked
from wolo.conversation.conversation import Conversation
from wolo.frontends.terminal.clean import clean
from wolo.frontends.terminal.screen import Screen
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent

SETTLE_S = 0.4
"""Keys that arrive sooner were typed before the question could be read."""


async def ask(asked: ApprovalAsked, conversation: Conversation, screen: Screen) -> None:
    """Ctrl-C, Ctrl-D and an empty line mean no."""
    screen.ask_space()
    screen.print(Text.assemble(("? ", "bold yellow"), (f"{asked.part.tool} wants to ", "bold"), _wish(asked.intents)))
    if asked.reason:
        screen.print(Text(f"  {clean(asked.reason)}", style="dim"))
    for intent in asked.intents:
        screen.print(Text(f"  {_spelled_out(intent)}", style="cyan"))
    choices = "[y]es  [s]ession"
    if asked.rule:
        screen.print(Text(f"  always would write the rule {clean(asked.rule)}", style="dim"))
        choices += "  [a]lways"
    word = await _read(f"  {choices}  [N]o, or say why not: ")
    match word.strip().lower():
        case "y" | "yes":
            conversation.answer(asked.id, allowed=True)
        case "s" | "session":
            conversation.answer(asked.id, allowed=True, scope="session")
        case "a" | "always" if asked.rule:
            conversation.answer(asked.id, allowed=True, scope="always")
        case "" | "n" | "no":
            conversation.answer(asked.id, allowed=False)
        case _:
            conversation.answer(asked.id, allowed=False, reason=word.strip())


async def _read(question: str) -> str:
    _drop_typed_ahead()
    asked_at = time.monotonic()
    session: PromptSession[str] = PromptSession()
    with suppress(KeyboardInterrupt, EOFError):
        word = await session.prompt_async(question)
        while time.monotonic() - asked_at < SETTLE_S:
            asked_at = time.monotonic() - SETTLE_S
            word = await session.prompt_async(question)
        return word
    return ""


def _drop_typed_ahead() -> None:
    try:
        import termios  # noqa: PLC0415  # not on every platform
    except ImportError:
        return
    with suppress(termios.error, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _wish(intents: tuple[Intent, ...]) -> str:
    verbs = {ReadIntent: "read", WriteIntent: "write", RunIntent: "run a command", FetchIntent: "fetch", CallIntent: "call out"}
    return " and ".join(dict.fromkeys(verbs[type(intent)] for intent in intents)) or "go on"


def _spelled_out(intent: Intent) -> str:
    """The whole of it, escaped, never cut."""
    match intent:
        case RunIntent():
            return clean(intent.command)
        case ReadIntent() | WriteIntent():
            outside = "" if intent.inside else "   (outside the workspace)"
            return clean(str(intent.path)) + outside
        case FetchIntent():
            return clean(intent.url)
        case CallIntent():
            return clean(intent.target)
