"""/status: model, session, mode, context and cost of this conversation in one view."""

from __future__ import annotations

from functools import reduce

from wolo import __version__
from wolo.agent.budget import NOTHING, add
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.commands.cost import in_words
from wolo.conversation.conversation import Conversation
from wolo.messages.terminal_text import clean_line
from wolo.models.address import shown
from wolo.places import find_places


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    facts, choice = conversation.facts, conversation.choice
    rows = {
        "wolo": __version__,
        "model": f"{choice.label}{_thinking(conversation)}",
        "address": shown(choice.base_url),
        "session": f"{facts.session_id}{'' if facts.keeps_session else ' (not saved)'}",
        "directory": clean_line(str(facts.cwd)),
        "added": ", ".join(clean_line(str(path)) for path in conversation.bench.workspace.extra),
        "mode": f"{facts.mode}, {f'sandbox: {facts.sandbox}' if facts.sandbox else 'no sandbox'}",
        "context": _context(conversation),
        "used": _used(conversation),
        "mcp": ", ".join(f"{clean_line(each.name)} ({each.state})" for each in conversation.servers.standings()),
        "settings": str(find_places().config / "config.toml"),
    }
    told = {name: value for name, value in rows.items() if value}
    width = max(map(len, told))
    return ShowText("\n".join(f"{name:<{width}}  {value}" for name, value in told.items()))


def _thinking(conversation: Conversation) -> str:
    return f", thinking {conversation.thinking_used}" if conversation.thinking else ""


def _context(conversation: Conversation) -> str:
    filling = conversation.filling()
    count = "1 message" if filling.messages == 1 else f"{filling.messages:,} messages"
    of = f" of {filling.most:,} ({filling.total / filling.most:.0%})" if filling.most else "; the context window is not known"
    return f"~{filling.total:,} tokens{of}, {count}"


def _used(conversation: Conversation) -> str:
    used = [message.usage for message in conversation.history if message.usage is not None]
    return in_words(reduce(add, used, NOTHING)) if used else ""
