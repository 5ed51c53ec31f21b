"""Asking a person whether a call may run: the whole of it is shown, and the default is no."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from wolo.agent.events import ApprovalAsked, ApprovalGiven
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.io.keyboard import Keyboard
from wolo.frontends.terminal.panels.approval_preview import Answer, outcome

Complaint = Callable[[ApprovalAsked, str], str]
"""What is wrong with a rule that a person wrote for this call; empty when it may be kept."""


async def ask(
    asked: ApprovalAsked,
    lines: Sequence[Text],
    screen: Screen,
    keyboard: Keyboard,
    complaint: Complaint,
    *,
    may_accept_edits: bool = False,
) -> Answer:
    """Whatever is not a yes is a no. `lines` are the proposal. Raises Dismissed for Ctrl-C.

    `may_accept_edits`: one may answer that later edits need no yes.
    """
    if (stage := screen.stage) is None:
        for line in lines:
            screen.print(line)
        return await _ask_by_line(asked, screen, keyboard, complaint, may_accept_edits)
    from wolo.frontends.terminal.panels.approval import ApprovalPanel  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    screen.ask_space()
    panel = ApprovalPanel(asked, lines, lambda rule: complaint(asked, rule), may_accept_edits=may_accept_edits)
    answer = await stage.stand(panel)
    if (said := outcome(asked, answer)) is not None:
        screen.print(said)
    return answer


async def _ask_by_line(
    asked: ApprovalAsked, screen: Screen, keyboard: Keyboard, complaint: Complaint, may_accept_edits: bool
) -> Answer:
    """Only one of the offered letters is a yes; any other text is a no with that reason."""
    rule = asked.rule
    if may_accept_edits:
        screen.say("  f: yes, and accept edits from now on", "dim")
    while True:
        if rule:
            screen.say(f"  always: writes the rule {rule} for this workspace, everywhere: for all", "dim")
        try:
            typed = await ask_line(_choices(asked, rule), screen, keyboard)
            if may_accept_edits and typed.strip().lower() == "f":
                return Answer(ApprovalGiven(id=asked.id, allowed=True), accepts_edits=True)
            if typed.strip().lower() not in ("e", "edit") or asked.only_once or asked.walls in ("again", "restored"):
                return Answer(_read_answer(asked, typed, rule))
            rule = await _edit(asked, rule, screen, keyboard, complaint)
        except EOFError:
            return Answer(ApprovalGiven(id=asked.id, allowed=False))


async def _edit(asked: ApprovalAsked, rule: str, screen: Screen, keyboard: Keyboard, complaint: Complaint) -> str:
    """The rule as the person wants it; the one there was when nothing is typed or what is typed cannot be kept."""
    typed = (await ask_line("  rule › ", screen, keyboard, draft=rule)).strip()
    if not typed or typed == rule:
        return rule
    if wrong := complaint(asked, typed):
        screen.say(f"  {wrong}", "warning")
        return rule
    return typed


def _choices(asked: ApprovalAsked, rule: str) -> str:
    """Short enough for 80 columns."""
    if asked.walls == "again":
        return "  outside: [y]es, once  [s]ession  [N]o, or type why not › "
    if asked.only_once:
        return "  [y]es, run it  [N]o, or type why not › "
    always = "  [a]lways  every[w]here" if rule else ""
    return f"  [y]es  [s]ession{always}  [e]dit  [N]o, or type why not › "


def _read_answer(asked: ApprovalAsked, typed: str, rule: str) -> ApprovalGiven:
    edited = rule if rule != asked.rule else ""
    match typed.lower().strip(" \t"):
        case "y" | "yes":
            return ApprovalGiven(id=asked.id, allowed=True)
        case "s" | "session" if not asked.only_once:
            return ApprovalGiven(id=asked.id, allowed=True, scope="session", rule=edited)
        case "a" | "always" | "here" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="always", rule=edited)
        case "w" | "everywhere" if rule:
            return ApprovalGiven(id=asked.id, allowed=True, scope="everywhere", rule=edited)
        case "" | "n" | "no":
            return ApprovalGiven(id=asked.id, allowed=False)
        case _:
            return ApprovalGiven(id=asked.id, allowed=False, reason=typed.strip())
