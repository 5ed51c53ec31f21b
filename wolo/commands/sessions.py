"""/new, /resume, /sessions, /title, /fork: start, open, list, name and copy sessions."""

from __future__ import annotations

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError

MOST = 20
TITLE_CHARS = 80


async def _new(context: CommandContext, rest: str) -> Outcome:
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=None)), draft=rest)


async def _resume(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        return await _list(context, rest)
    return SwitchConversation(await context.conversation.reopen(ConversationChange(session=rest)))


def _resume_arguments(context: CommandContext) -> list[tuple[str, str]]:
    here = context.conversation.info.session_id
    return [(info.id, info.name or info.title) for info in context.conversation.session.list_here() if info.id != here]


async def _list(context: CommandContext, rest: str) -> Outcome:
    if not (sessions := context.conversation.session.list_here()):
        return ShowText("No saved sessions of this directory yet.")
    here = context.conversation.info.session_id
    lines = [
        f"{'*' if info.id == here else ' '} {info.id}  {(info.name or info.title or '-')[:TITLE_CHARS]}"
        for info in sessions[:MOST]
    ]
    if len(sessions) > MOST:
        lines.append(f"  and {len(sessions) - MOST} older ones: `wolo sessions list`")
    return ShowText("\n".join([*lines, "", "/resume ID opens one; * is the current session."]))


async def _title(context: CommandContext, rest: str) -> Outcome:
    if not rest:
        raise UsageError("/title needs a title.", hint="/title NAME")
    context.conversation.session.set_title(rest)
    return ShowText(f"Title: {rest}")


async def _fork(context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    if not conversation.info.saves_session or not conversation.history:
        raise UsageError("There is nothing to copy yet.", hint="Send a prompt first; --no-session saves nothing.")
    original = conversation.info.session_id
    opened = await conversation.reopen(ConversationChange(session=original, fork=True))
    if rest:
        opened.session.set_title(rest)
    return SwitchConversation(
        opened, text=f"Continuing in a copy, {opened.info.session_id}. /resume {original} goes back to the original."
    )


COMMANDS = (
    Command(
        "new",
        "start a new session; this one is saved",
        _new,
        aliases=("clear",),
        usage="[WORDS]",
        more="WORDS are put into the input of the new session.",
        doing="starting a new session",
        group="Sessions",
    ),
    Command(
        "resume",
        "continue another session",
        _resume,
        doing="opening the session",
        usage="[ID]",
        more="By id, prefix of an id, name, or words of the title.",
        group="Sessions",
        arguments=_resume_arguments,
    ),
    Command(
        "sessions", "list the sessions of this directory", _list, doing="listing sessions", group="Sessions", while_working=True
    ),
    Command("title", "set the title of this session", _title, usage="NAME", group="Sessions", while_working=True),
    Command(
        "fork",
        "continue in a copy of this session",
        _fork,
        doing="copying the session",
        usage="[TITLE]",
        more="The original does not change; /resume goes back to it.",
        group="Sessions",
    ),
)
