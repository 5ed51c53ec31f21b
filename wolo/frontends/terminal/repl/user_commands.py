"""What a person does by their own word in the middle of a conversation: run a command, keep a note, change the mode."""

from __future__ import annotations

from wolo.agent.events import CallEnded
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.frontends.terminal.display.line_prompt import Dismissed, PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.frontends.terminal.repl import notes

CYCLE = ("plan", "ask", "edit", "auto")
"""Modes, as a key goes through them; `yolo` is no key's business."""


async def run_command(line: str, conversation: Conversation, terminal: Terminal) -> str:
    """`!command`, or `!!command`: what the next prompt tells the model of it; empty when that is nothing."""
    command = line.lstrip("!").strip()
    if not command:
        raise UsageError("There is no command behind the !.", hint="!ls runs ls; a blank before the ! sends it as text.")
    printed = ""
    with terminal.signals.during(conversation.interrupt):
        async for event in conversation.run_user_command(command):
            terminal.screen.show(event)
            if isinstance(event, CallEnded):
                printed = event.part.output
    return "" if line.startswith("!!") else f"$ {command}\n{printed}"


async def keep_note(line: str, conversation: Conversation, terminal: Terminal) -> bool:
    """Asks where a note belongs and puts it there. True: it is no note, it shall be sent."""
    question = notes.QUESTION.format(file=notes.FILE)
    try:
        answer = await ask_line(question, terminal.screen, terminal.keyboard, may_pass=True)
    except (Dismissed, PassedOver, EOFError):
        answer = ""
    if answer.strip().lower().startswith("s"):
        return True
    path = notes.place(answer, conversation.facts.root)
    if path is None:
        terminal.screen.say("Nothing was kept.", "dim")
    else:
        notes.keep(line, path)
        terminal.screen.say(f"Kept in {path}; conversations that begin from now on know it.", "dim")
    return False


def next_mode(conversation: Conversation) -> None:
    """Around the cycle; a mode that cannot be had here is passed over."""
    before = conversation.mode
    at = CYCLE.index(before) if before in CYCLE else -1
    for step in range(1, len(CYCLE)):
        conversation.set_mode(CYCLE[(at + step) % len(CYCLE)])
        if conversation.mode != before:
            return
