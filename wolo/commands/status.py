"""/status, /debug, /doctor: the state of the conversation and of this installation."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Mapping
from functools import reduce

from wolo import __version__
from wolo.agent.budget import add
from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.conversation.phrasing import in_words
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean_line, quantity
from wolo.models.address import display_url
from wolo.places import find_places


async def _status(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    facts, choice = conversation.info, conversation.choice
    usages = [message.usage for message in conversation.history if message.usage is not None]
    filling = conversation.context_usage()
    of = f" of {filling.most:,} ({filling.total / filling.most:.0%})" if filling.most else "; context window unknown"
    rows = {
        "wolo": __version__,
        "model": f"{choice.label}{f', thinking {conversation.thinking_used}' if choice.thinking else ''}",
        "address": display_url(choice.base_url),
        "session": f"{facts.session_id}{'' if facts.saves_session else ' (not saved)'}",
        "directory": clean_line(str(facts.cwd)),
        "added": ", ".join(clean_line(str(path)) for path in conversation.permissions.workspace.extra),
        "mode": f"{facts.mode}, {f'sandbox: {facts.sandbox}' if facts.sandbox else 'no sandbox'}",
        "context": f"~{filling.total:,} tokens{of}, {quantity(filling.num_messages, 'message')}",
        "used": in_words(reduce(add, usages, conversation.session.stored.unread_usage)) if usages else "",
        "mcp": ", ".join(f"{clean_line(each.name)} ({each.state})" for each in conversation.servers.statuses()),
        "settings": str(find_places().config / "config.toml"),
    }
    return ShowText("\n".join(_table({name: value for name, value in rows.items() if value})))


def _table(rows: Mapping[str, str]) -> list[str]:
    width = max(map(len, rows))
    return [f"{name:<{width}}  {value}" for name, value in rows.items()]


async def _debug(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    facts, filling, places = conversation.info, conversation.context_usage(), find_places()
    history = conversation.history
    last = next((message for message in reversed(history) if message.usage is not None), None)
    jobs = conversation.jobs
    calls = sum(len(message.calls) for message in history)
    rows = {
        "wolo": f"{__version__}, Python {platform.python_version()} on {platform.system()} {platform.release()}",
        "terminal": f"TERM={os.environ.get('TERM', '')} {sys.stdout.encoding} {_terminal_size()}",
        "session": f"{facts.session_id}{'' if facts.saves_session else ' (not saved)'}",
        "model": f"{facts.model}, thinking {conversation.choice.thinking or 'provider default'}",
        "mode": f"{facts.mode}, sandbox {facts.sandbox or 'none'}",
        "history": f"{quantity(len(history), 'message')}, {quantity(calls, 'call')}; {filling.left_out} omitted, "
        f"{filling.shortened} shortened",
        "next request": f"~{filling.total:,} tokens{f' of {filling.most:,}' if filling.most else ''}",
        "last request": _last_request(last),
        "jobs": str(len(jobs.running)) if jobs is not None else "none",
        "tools": ", ".join(facts.tool_names),
        "directory": str(facts.cwd),
        "settings": str(places.config),
        "sessions": str(places.data),
        "logs": str(places.state),
    }
    bundle = "`wolo doctor --report FILE --session ID` packs it all, without secrets."
    return ShowText("\n".join([*_table(rows), "", bundle]))


def _last_request(answer: Message | None) -> str:
    if answer is None or answer.usage is None:
        return "none yet"
    usage = answer.usage
    counts = f"{usage.prompt_tokens:,} tokens in ({usage.cache_read_tokens:,} cached), {usage.output_tokens:,} out"
    return f"{counts}, ended with {answer.finish_reason or '?'}"


def _terminal_size() -> str:
    try:
        size = os.get_terminal_size()
    except OSError:
        return "no terminal"
    return f"{size.lines}x{size.columns}"


async def _doctor(context: CommandContext, rest: str) -> Outcome:
    from wolo.diagnostics.health_check import examine, lines  # noqa: PLC0415  # 15 ms, an HTTP client with it

    report = await asyncio.to_thread(examine, model=context.conversation.choice.label)
    return ShowText("\n".join(lines(report)))


COMMANDS = (
    Command("status", "model, session, mode, context and cost", _status, while_working=True),
    Command("debug", "state of this conversation, for a bug report", _debug, doing="collecting the state", while_working=True),
    Command("doctor", "check this installation", _doctor, doing="checking the installation", while_working=True),
)
