"""Moves a conversation to before a prompt or to another branch; the session only grows."""

from __future__ import annotations

from collections.abc import Sequence

from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.messages.call_arguments import patched_files
from wolo.messages.message import Message
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import MessageEntry, ResultsEntry
from wolo.sessions.loading import EntryNode
from wolo.sessions.session_text import OutlineItem, last_under, outline, path_to

EDITING = frozenset({"write", "edit", "apply_patch"})
COMMANDING = "shell"
SUMMARY = (
    "[The user went back to this point. The messages after it are on another branch and not part of this "
    "conversation. Their effects were not undone: {effects}.]"
)
MOST_FILES = 20


def before_prompt(nodes: Sequence[EntryNode], head: int, number: int) -> tuple[ConversationChange, str]:
    """Returns the text of the prompt too. Raises UsageError for one that is not on the current branch."""
    place = _place(outline(nodes, head), number)
    if place.kind != "prompt":
        raise UsageError(f"{number} is not the number of a prompt.", hint="/rewind lists them.")
    return ConversationChange(after_entry=place.before, summary=_summary(nodes, head, place.before)), place.text


def to_branch(nodes: Sequence[EntryNode], head: int, number: int) -> ConversationChange:
    """To the end of the branch of this prompt."""
    places = outline(nodes, head)
    end = last_under(places, _place(places, number).number)
    if end.is_here:
        raise UsageError("The conversation is there already.", hint="/tree shows the branches.")
    return ConversationChange(after_entry=end.end, summary=_summary(nodes, head, end.end))


def prompt_of(nodes: Sequence[EntryNode], head: int, number: int | None) -> Message:
    """None: the last prompt of the current branch. Raises UsageError."""
    places = outline(nodes, head)
    here = [place for place in places if place.is_on_way and place.kind == "prompt"]
    if number is None and not here:
        raise UsageError("No prompts yet.")
    place = here[-1] if number is None else _place(places, number)
    entry = next(node.entry for node in nodes if node.seq == place.seq)
    if not isinstance(entry, MessageEntry):
        raise UsageError(f"{number} is not the number of a prompt.", hint="/tree shows them.")
    return entry.message


def _place(places: Sequence[OutlineItem], number: int) -> OutlineItem:
    if not 1 <= number <= len(places):
        raise UsageError(f"No prompt {number}; the last is {len(places)}.", hint="/tree shows them.")
    return places[number - 1]


def _summary(nodes: Sequence[EntryNode], head: int, behind: int) -> Message | None:
    """Tells the model that files and commands were not reverted. None: there were none."""
    calls = done_between(nodes, head, behind)
    edits = [part for part in calls if part.tool in EDITING and part.outcome != "error"]
    files: dict[str, None] = {}
    for part in edits:
        patch = part.input.get("patch")
        names = patched_files(patch) if isinstance(patch, str) else [str(part.input["path"])] if "path" in part.input else []
        files |= dict.fromkeys(names)
    commands = sum(part.tool == COMMANDING for part in calls)
    effects = []
    if files:
        more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
        effects.append(f"{', '.join(list(files)[:MOST_FILES])}{more} changed")
    if commands:
        effects.append(f"{commands} command{'s' if commands > 1 else ''} ran")
    if not effects:
        return None
    text = SUMMARY.format(effects=", and ".join(effects))
    return Message(role="branch_summary", parts=(TextPart(text=text),), finished=True)


def done_between(nodes: Sequence[EntryNode], head: int, behind: int) -> list[ToolPart]:
    """Calls of the abandoned path that had or may have had effects."""
    left_places = path_to(nodes, head) - path_to(nodes, behind)
    left = [node for node in nodes if node.seq in left_places]
    calls = {part.id: part for node in left for part in _calls(node)}
    return [part for part in calls.values() if part.outcome in ("ok", "error", "interrupted")]


def _calls(node: EntryNode) -> tuple[ToolPart, ...]:
    match node.entry:
        case MessageEntry(message=message):
            return message.calls
        case ResultsEntry(parts=parts):
            return parts
    return ()
