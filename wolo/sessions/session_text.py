"""Shows a session as text: the tree of its prompts, and entries as they are added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from wolo.messages.call_arguments import SOME, call_line
from wolo.messages.parts import ToolPart
from wolo.sessions.entries import AnyEntry, BranchEntry, CompactionEntry, LabelEntry, MessageEntry, PartialEntry, ResultsEntry
from wolo.sessions.loading import EntryNode

TEXT_CHARS = 64


class OutlineItem(Struct, frozen=True, kw_only=True):
    """A prompt or a compaction, with what followed it up to the next one."""

    number: int
    """Shown to the user; 1 is the oldest."""
    seq: int
    before: int
    """`seq` of the preceding entry, to continue from when this prompt is undone; 0 for none."""
    parent: int
    """Number of the preceding item; 0 for none."""
    kind: Literal["prompt", "compaction"]
    text: str
    said: tuple[str, ...] = ()
    """Messages the user added while the turn ran."""
    at: float
    """Unix seconds."""
    label: str = ""
    is_on_way: bool = False
    """On the path from the first entry to the head."""
    is_here: bool = False
    """The head follows this item."""
    end: int = 0
    """Last entry before the next item, on the newest branch."""


def outline(nodes: Sequence[EntryNode], head: int) -> list[OutlineItem]:
    """Returns the prompts and compactions in the order they were added."""
    way = path_to(nodes, head)
    places: dict[int, OutlineItem] = {}
    anchors: dict[int, int] = {0: 0}
    by_message: dict[str, int] = {}
    labels: dict[str, str] = {}
    for node in nodes:
        anchor = anchors.get(node.parent, 0)
        if (text := _text(node)) is not None:
            anchor = len(places) + 1
            places[anchor] = OutlineItem(
                number=anchor,
                seq=node.seq,
                before=node.parent,
                parent=anchors.get(node.parent, 0),
                kind="prompt" if isinstance(node.entry, MessageEntry) else "compaction",
                text=text,
                at=node.time_utc,
                is_on_way=node.seq in way,
            )
        anchors[node.seq] = anchor
        if anchor:
            added = list[str]()
            if isinstance(node.entry, MessageEntry) and node.entry.message.is_from_user and not node.entry.message.is_prompt:
                added.append(node.entry.message.text.strip() or "(an attachment)")
            places[anchor] = replace(places[anchor], end=node.seq, said=(*places[anchor].said, *added))
        if isinstance(node.entry, MessageEntry):
            by_message[node.entry.message.id] = anchor
        elif isinstance(node.entry, LabelEntry):
            labels[node.entry.message_id] = node.entry.label
    for message_id, label in labels.items():
        if anchor := by_message.get(message_id, 0):
            places[anchor] = replace(places[anchor], label=label)
    if here := anchors.get(head, 0):
        places[here] = replace(places[here], is_here=True)
    return list(places.values())


def last_under(places: Sequence[OutlineItem], number: int) -> OutlineItem:
    """Returns the last item after `number` on the newest branch."""
    below = {number}
    last = places[number - 1]
    for place in places[number:]:
        if place.parent in below:
            below.add(place.number)
            last = place
    return last


def draw(places: Sequence[OutlineItem]) -> list[str]:
    """Draws a line per item and per message added to its turn. Branches are indented."""
    children: dict[int, list[OutlineItem]] = {}
    for place in places:
        children.setdefault(place.parent, []).append(place)
    lines: list[str] = []
    waiting = [(place, *_set_in("", at, len(children[0]))) for at, place in reversed(list(enumerate(children.get(0, ()))))]
    while waiting:
        place, lead, below = waiting.pop()
        mark, label = "●" if place.is_on_way else "○", f"  [{place.label}]" if place.label else ""
        lines.append(f"{lead}{place.number:>3} {mark} {_short(place.text)}{label}{'  ← here' if place.is_here else ''}")
        lines += [f"{below}      ↪ {_short(added)}" for added in place.said]
        following = children.get(place.number, [])
        waiting += [(each, *_set_in(below, at, len(following))) for at, each in reversed(list(enumerate(following)))]
    return lines


def _set_in(lead: str, at: int, num_lines: int) -> tuple[str, str]:
    """Returns the prefix of an item and of what follows it."""
    if num_lines == 1:
        return lead, lead
    return (f"{lead}├─ ", f"{lead}│  ") if at < num_lines - 1 else (f"{lead}└─ ", f"{lead}   ")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[: TEXT_CHARS - 1]}…" if len(line) > TEXT_CHARS else line


def _text(node: EntryNode) -> str | None:
    match node.entry:
        case MessageEntry(message=message) if message.is_prompt:
            return message.text.strip() or "(an attachment)"
        case CompactionEntry(summary=summary) if summary is not None:
            return "(earlier messages were compacted)"
    return None


def path_to(nodes: Iterable[EntryNode], seq: int) -> set[int]:
    """Returns `seq` of the entries from the first to this one."""
    parents = {node.seq: node.parent for node in nodes}
    way = set()
    while seq > 0:
        way.add(seq)
        seq = parents.get(seq, seq - 1)
    return way


Kind = Literal["prompt", "text", "more", "thinking", "call", "result", "note"]


class EntryLine(Struct, frozen=True):
    """`more` continues the preceding text."""

    kind: Kind
    text: str


class EntryFollower:
    """Turns entries into lines. Streamed text is not repeated when it is complete."""

    def __init__(self) -> None:
        self._streamed = ""
        """Text of the current answer shown so far."""
        self._calls: dict[str, str] = {}
        """Outcomes shown so far, by call."""

    def lines(self, entries: Iterable[AnyEntry]) -> Iterator[EntryLine]:
        for entry in entries:
            match entry:
                case PartialEntry(text=""):
                    if self._streamed:
                        self._streamed = ""
                        yield EntryLine("note", "The answer was interrupted and is retried.")
                case PartialEntry(text=text):
                    yield EntryLine("more" if self._streamed else "text", text)
                    self._streamed += text
                case MessageEntry(message=message) if message.role != "assistant":
                    yield EntryLine("prompt" if message.is_from_user else "note", message.text.strip())
                case MessageEntry(message=message):
                    if message.reasoning_content.strip():
                        yield EntryLine("thinking", message.reasoning_content.strip())
                    streamed, self._streamed = self._streamed, ""
                    if streamed and message.text.startswith(streamed):
                        if rest := message.text[len(streamed) :]:
                            yield EntryLine("more", rest)
                    elif message.text.strip():
                        yield EntryLine("text", message.text.strip())
                    for call in message.calls:
                        yield EntryLine("call", call_line(call, most_of_change=SOME))
                    yield from self._results(message.calls)
                case ResultsEntry(parts=parts):
                    yield from self._results(parts)
                case BranchEntry():
                    yield EntryLine("note", "The conversation continues from an earlier entry.")
                case CompactionEntry():
                    yield EntryLine("note", "The conversation was compacted.")

    def _results(self, parts: Iterable[ToolPart]) -> Iterator[EntryLine]:
        for part in parts:
            if part.outcome is not None and self._calls.get(part.id) != part.outcome:
                self._calls[part.id] = part.outcome
                yield EntryLine("result", part.output if part.outcome == "ok" else f"{part.outcome}: {part.output}".rstrip(": "))
