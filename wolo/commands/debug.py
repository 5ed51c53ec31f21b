"""/debug: the state of this conversation, for a report about wolo; nothing secret, and nothing that was said."""

from __future__ import annotations

import os
import platform
import sys

from wolo import __version__
from wolo.commands.command import CommandContext, Outcome, ShowText
from wolo.messages.message import Message
from wolo.messages.terminal_text import counted
from wolo.places import find_places


async def run(desk: CommandContext, rest: str) -> Outcome:
    conversation = desk.conversation
    facts, filling, places = conversation.facts, conversation.filling(), find_places()
    said = conversation.history
    last = next((message for message in reversed(said) if message.usage is not None), None)
    jobs = conversation.jobs
    calls = sum(len(message.calls) for message in said)
    rows = {
        "wolo": f"{__version__}, Python {platform.python_version()} on {platform.system()} {platform.release()}",
        "terminal": f"TERM={os.environ.get('TERM', '')} {sys.stdout.encoding} {_size()}",
        "session": f"{facts.session_id}{'' if facts.keeps_session else ' (not kept)'}",
        "model": f"{facts.model}, thinking {conversation.thinking or 'as it likes'}",
        "mode": f"{facts.mode}, sandbox {facts.sandbox or 'none'}",
        "said": f"{counted(len(said), 'message')}, {counted(calls, 'call')}; {filling.left_out} left out, "
        f"{filling.shortened} shortened",
        "next request": f"~{filling.total:,} tokens{f' of {filling.most:,}' if filling.most else ''}",
        "last request": _last(last),
        "jobs": str(len(jobs.running)) if jobs is not None else "none",
        "tools": ", ".join(facts.tool_names),
        "directory": str(facts.cwd),
        "settings": str(places.config),
        "sessions": str(places.data),
        "logs": str(places.state),
    }
    width = max(map(len, rows))
    bundle = "`wolo doctor --bundle FILE --session ID` packs all of it, without secrets."
    return ShowText("\n".join([*(f"{name:<{width}}  {value}" for name, value in rows.items()), "", bundle]))


def _last(answer: Message | None) -> str:
    if answer is None or answer.usage is None:
        return "none yet"
    usage = answer.usage
    into = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    counts = f"{into:,} tokens in ({usage.cache_read_tokens:,} cached), {usage.output_tokens:,} out"
    return f"{counts}, ended with {answer.finish_reason or '?'}"


def _size() -> str:
    try:
        size = os.get_terminal_size()
    except OSError:
        return "no terminal"
    return f"{size.lines}x{size.columns}"
