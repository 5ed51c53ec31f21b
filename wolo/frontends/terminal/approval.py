"""Asking a person whether a call may run: the whole of it is shown, and the default is no."""

from __future__ import annotations

from collections.abc import Callable

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


Complaint = Callable[[ApprovalAsked, str], str]
"""What is wrong with a rule that a person wrote for this call; empty when it may be kept."""


async def ask(asked: ApprovalAsked, screen: Screen, keyboard: Keyboard, complaint: Complaint) -> ApprovalGiven:
    """Only one of the offered letters is a yes; any other text is a no with that reason. Raises Dismissed for Ctrl-C."""
    _show(asked, screen)
    rule = asked.rule
    while True:
        if rule:
            screen.say(f"  always: writes the rule {rule} for this workspace, everywhere: for all", "dim")
        try:
            typed = await ask_line(_choices(rule), screen, keyboard)
            if typed.strip().lower() not in ("e", "edit"):
                return _read_answer(asked, typed, rule)
            rule = await _edit(asked, rule, screen, keyboard, complaint)
        except EOFError:
            return ApprovalGiven(id=asked.id, allowed=False)


async def _edit(asked: ApprovalAsked, rule: str, screen: Screen, keyboard: Keyboard, complaint: Complaint) -> str:
    """The rule as the person wants it; the one there was when nothing is typed or what is typed cannot be kept."""
    typed = (await ask_line("  rule › ", screen, keyboard, draft=rule)).strip()
    if not typed or typed == rule:
        return rule
    if wrong := complaint(asked, typed):
        screen.say(f"  {wrong}", "yellow")
        return rule
    return typed


def _show(asked: ApprovalAsked, screen: Screen) -> None:
    wishes = " and ".join(dict.fromkeys(_WISHES[type(intent)] for intent in asked.intents)) or "go on"
    screen.print(Text.assemble(("? ", "bold yellow"), (f"{clean(asked.part.tool)} wants to {wishes}", "bold")))
    for intent in asked.intents:
        screen.print(_spelled_out(intent))
    if any(isinstance(intent, WriteIntent) for intent in asked.intents):
        screen.print(preview(asked.part), end="")
    if asked.reason:
        screen.say(f"  {asked.reason}", "dim")


def _choices(rule: str) -> str:
    """Short enough for 80 columns."""
    always = "  [a]lways  every[w]here" if rule else ""
    return f"  [y]es  [s]ession{always}  [e]dit  [N]o, or type why not › "


def _read_answer(asked: ApprovalAsked, typed: str, rule: str) -> ApprovalGiven:
    edited = rule if rule != asked.rule else ""
    match typed.lower().strip(" \t"):
        case "y" | "yes":
            return ApprovalGiven(id=asked.id, allowed=True)
        case "s" | "session":
            return ApprovalGiven(id=asked.id, allowed=True, scope="session", rule=edited)
        case "a" | "always" | "here" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="always", rule=edited)
        case "w" | "everywhere" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="everywhere", rule=edited)
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
