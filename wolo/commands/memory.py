"""/memory: lists and edits instruction files, and decides about proposed notes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wolo.commands.command import Command, CommandContext, EditFile, Outcome, ShowText
from wolo.errors import UsageError
from wolo.messages.message import INSTRUCTIONS
from wolo.messages.terminal_text import escaped_line, quantity
from wolo.places import find_places

if TYPE_CHECKING:
    from wolo.conversation.resources.learned_notes import LearnedNotes

_USAGE = "[edit [N] | inbox [accept|reject N…|all] | inbox edit N TEXT]"
_RELOADED = "Loaded when a conversation starts and after /compact; changed files are sent again with your next prompt."


async def _run(context: CommandContext, rest: str) -> Outcome:
    word, *more = rest.split() or [""]
    match word:
        case "":
            return ShowText(await asyncio.to_thread(_listing, context))
        case "edit":
            return await asyncio.to_thread(_edit, context, more)
        case "inbox":
            return ShowText(await asyncio.to_thread(_inbox, context, rest.removeprefix("inbox").strip()))
    raise UsageError(f"/memory {word} is unknown.", hint=f"/memory {_USAGE}")


def _notes(context: CommandContext) -> LearnedNotes:
    from wolo.conversation.resources.learned_notes import LearnedNotes  # noqa: PLC0415  # for /memory only

    return LearnedNotes(find_places(), context.conversation.info.root)


def _listing(context: CommandContext) -> str:
    instructions, waiting = context.conversation.instructions.read(), _notes(context).waiting()
    lines = [
        f"{number}  {escaped_line(str(each.path))}  ({_size(len(each.text.encode()))}"
        f"{f', imported by {each.imported_by}' if each.imported_by else ''})"
        for number, each in enumerate(instructions.loaded, start=1)
    ]
    calls = [call for message in context.conversation.history for call in message.calls]
    with_results = dict.fromkeys(name for call in calls for name in call.metadata.get(INSTRUCTIONS, ()))
    nested = [f"-  {escaped_line(name)}  (given with a file below it)" for name in with_results]
    if not lines:
        lines = ["No AGENTS.md applies here. /init lets the model write one for this directory."]
    total = sum(len(each.text.encode()) for each in instructions.loaded)
    size = (
        [f"{quantity(len(instructions.loaded), 'file')}, {_size(total)}. /memory edit N opens one."]
        if instructions.loaded
        else []
    )
    inbox = [f"{quantity(len(waiting), 'note waits', 'notes wait')} for your decision: /memory inbox"] if waiting else []
    return "\n".join([*lines, *nested, *instructions.notices, *instructions.remarks, "", *size, _RELOADED, *inbox])


def _size(num_bytes: int) -> str:
    return quantity(num_bytes, "byte") if num_bytes < 1000 else f"{num_bytes / 1000:.1f} kB"


def _edit(context: CommandContext, numbers: Sequence[str]) -> EditFile:
    if not (files := context.conversation.instructions.read().loaded):
        raise UsageError("No instruction file applies here.", hint="/init lets the model write one.")
    if not numbers and len(files) > 1:
        raise UsageError(f"There are {len(files)} instruction files.", hint="/memory lists them; /memory edit N opens one.")
    return EditFile(files[_number(numbers[0], len(files)) - 1].path if numbers else files[0].path)


def _inbox(context: CommandContext, rest: str) -> str:
    notes = _notes(context)
    action, _, rest = rest.partition(" ")
    words = rest.split()
    if not action or action == "list":
        return _waiting(notes)
    if action == "edit" and len(words) > 1:
        notes.rewrite(_number(words[0], len(notes.waiting())), rest.strip().removeprefix(words[0]))
        return _waiting(notes)
    if action not in ("accept", "reject") or not words:
        raise UsageError(f"/memory inbox {action} is incomplete or unknown.", hint=f"/memory {_USAGE}")
    count = len(notes.waiting())
    numbers = list(range(1, count + 1)) if words == ["all"] else [_number(each, count) for each in words]
    if not numbers:
        return "No note waits for your decision."
    if action == "reject":
        return f"Rejected {quantity(len(notes.reject(numbers)), 'note')}."
    accepted = notes.accept(numbers)
    files = dict.fromkeys(notes.here if each.root else notes.everywhere for each in accepted)
    saved = f"Accepted {quantity(len(accepted), 'note')}; saved in {' and '.join(map(str, files))}."
    return "\n".join([saved, *(f"- {escaped_line(each.text)}" for each in accepted)])


def _waiting(notes: LearnedNotes) -> str:
    rows = [
        f"{number}  {escaped_line(note.text)}  ({'this project' if note.root else 'all projects'})"
        for number, note in enumerate(notes.waiting(), start=1)
    ]
    if not rows:
        return "No note waits for your decision."
    return "\n".join([*rows, "", "/memory inbox accept N, reject N, or edit N TEXT. Only accepted notes are instructions."])


def _number(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise UsageError(f"{text} is not a number from 1 to {most}." if most else "There is nothing to choose from.")
    return int(text)


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [("edit", "open an instruction file in your editor"), ("inbox", "decide about notes that the model proposed")]


COMMANDS = (
    Command(
        "memory",
        "loaded AGENTS.md files, and notes that the model proposed",
        _run,
        group="Extensions",
        usage=_USAGE,
        arguments=_arguments,
        while_working=True,
    ),
)
