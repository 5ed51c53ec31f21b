"""What the REPL says of its own: who answers, what went wrong, what was thought before this process."""

from __future__ import annotations

from rich.text import Text

from wolo.conversation.conversation import Conversation
from wolo.errors import WoloError
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.repl.status_bar import how_held, where
from wolo.messages.terminal_text import clean_line
from wolo.workspace.git_branch import current_branch


def introduce(conversation: Conversation, screen: Screen) -> None:
    """Who answers, how much it may do, and where."""
    facts = conversation.facts
    branch = clean_line(current_branch(facts.cwd))
    place = f"{where(facts.cwd)} ({branch})" if branch else where(facts.cwd)
    held = how_held(facts.mode, facts.sandbox)
    screen.print(Text.assemble(("wolo", "bold"), (f" · {facts.model} · {held} · {place}", "dim")))


def complain(error: WoloError, screen: Screen) -> None:
    screen.say(error.message, "error")
    if error.hint:
        screen.say(error.hint, "dim")


def unfold(conversation: Conversation, screen: Screen) -> None:
    """What was printed in short last, or what was thought last before this process."""
    if screen.unfold():
        return
    said = (message.reasoning_content for message in reversed(conversation.history))
    thought = next((text for text in said if text.strip()), "").strip()
    screen.fresh()
    screen.say(thought or "Nothing is folded.", "dim")
