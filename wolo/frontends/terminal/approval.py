"""Asking a person whether a call may run: the whole of it is shown, and the default is no."""

from __future__ import annotations

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.frontends.terminal.keyboard import Keyboard
from wolo.frontends.terminal.question import ask_line
from wolo.frontends.terminal.render.tool import preview
from wolo.frontends.terminal.screen import Screen
from wolo.guard.intents import CallIntent, FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.messages.terminal_text import clean, spelled_out

_WISHES = {
    ReadIntent: "read a file",
    WriteIntent: "write a file",
    RunIntent: "run a command",
    FetchIntent: "fetch a page",
    CallIntent: "call out",
}


async def ask(asked: ApprovalAsked, screen: Screen, keyboard: Keyboard) -> ApprovalGiven:
    """Only one of the offered letters is a yes; any other text is a no with that reason. Raises Dismissed for Ctrl-C."""
    _show(asked, screen)
    try:
        typed = await ask_line(_choices(asked), screen, keyboard)
    except EOFError:
        typed = ""
    return _read_answer(asked, typed)


def _show(asked: ApprovalAsked, screen: Screen) -> None:
    wishes = " and ".join(dict.fromkeys(_WISHES[type(intent)] for intent in asked.intents)) or "go on"
    screen.print(Text.assemble(("? ", "bold yellow"), (f"{clean(asked.part.tool)} wants to {wishes}", "bold")))
    for intent in asked.intents:
        screen.print(_spelled_out(intent))
    if any(isinstance(intent, WriteIntent) for intent in asked.intents):
        screen.print(preview(asked.part), end="")
    if asked.reason:
        screen.say(f"  {asked.reason}", "dim")
    if asked.rule:
        screen.say(f"  always: writes the rule {asked.rule}", "dim")


def _choices(asked: ApprovalAsked) -> str:
    always = "  [a]lways" if asked.rule else ""
    return f"  [y]es once  [s]ession{always}  [N]o, or type why not › "


def _read_answer(asked: ApprovalAsked, typed: str) -> ApprovalGiven:
    match typed.lower().strip(" \t"):
        case "y" | "yes":
            return ApprovalGiven(id=asked.id, allowed=True)
        case "s" | "session":
            return ApprovalGiven(id=asked.id, allowed=True, scope="session")
        case "a" | "always" if asked.rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="always")
        case "" | "n" | "no":
            return ApprovalGiven(id=asked.id, allowed=False)
        case _:
            return ApprovalGiven(id=asked.id, allowed=False, reason=typed.strip())


def _spelled_out(intent: Intent) -> Text:
    """The whole of it, never cut; each line of a command carries a mark, so that none of them can pose as ours."""
    match intent:
        case RunIntent():
            return _marked(intent.command, "  $ ", "  > ")
        case ReadIntent() | WriteIntent():
            text = _marked(str(intent.path), "  ", "  ")
            return text if intent.inside else text.append("   outside the workspace", "yellow")
        case FetchIntent():
            return _marked(intent.url, "  ", "  ")
        case CallIntent():
            return _marked(intent.target, "  ", "  ")


def _marked(shown: str, first: str, following: str) -> Text:
    text = Text.assemble((first, "dim"))
    for piece, is_escape in spelled_out(shown):
        for number, line in enumerate(piece.split("\n")):
            if number:
                text.append("\n").append(following, "dim")
            text.append(line, "reverse" if is_escape else "cyan")
    return text
