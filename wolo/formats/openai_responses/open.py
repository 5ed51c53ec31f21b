"""An output item of the Responses API while it streams: what of it was told already, and what it said in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from wolo.formats.decoding.loose_json import read_object, read_strictly
from wolo.formats.openai_responses.events import Event
from wolo.messages.deltas import Delta

Kind = Literal["message", "reasoning", "call", "custom", "wrapper", "other"]
Place = tuple[str, int]
"""Where in an item a text stands: the field, and its number there."""

WRAPPER = "multi_tool_use.parallel"
"""A name under which models write several calls as one; no server offers such a tool."""


class OpenItem:
    """`slot` numbers calls; `place` is where the text that is being told stands."""

    def __init__(self, kind: Kind, slot: int = -1) -> None:
        self.kind = kind
        self.slot = slot
        self.call_id = ""
        self.name = ""
        self.is_done = False
        self.place: Place = ("", -1)
        self._told: dict[Place, list[str]] = {}
        self.field = ""
        """The field of the thinking part that a reasoning item becomes."""

    @property
    def has_told(self) -> bool:
        return bool(self._told)

    def told_at(self, place: Place) -> str:
        return "".join(self._told.get(place, ()))

    def begins_anew(self, place: Place) -> bool:
        """A text of this place would be the first there, and not the first of the item."""
        return bool(self._told) and place not in self._told

    def fragments(self, place: Place) -> list[str]:
        """To be added to, as text of this place is told."""
        self.place = place
        return self._told.setdefault(place, [])

    def untold(self, place: Place, final: str) -> str:
        """What of the final text is still to be told; nothing where another text was begun behind it, or it says otherwise."""
        told = self.told_at(place)
        may_follow = place == self.place or place not in self._told
        return final[len(told) :] if may_follow and final.startswith(told) else ""


class Going:
    """A text that is being told: most events are one more fragment of the same, and are not looked at further."""

    __slots__ = ("_content", "_output", "_summary", "_type", "fragments", "tell")

    def __init__(self, event: Event, fragments: list[str], tell: Callable[[str], Delta]) -> None:
        self._type = event.type
        self._output, self._content, self._summary = event.output_index, event.content_index, event.summary_index
        self.fragments = fragments
        self.tell = tell

    def is_meant_by(self, event: Event) -> bool:
        return (
            event.type == self._type
            and event.output_index == self._output
            and event.content_index == self._content
            and event.summary_index == self._summary
        )


def kind_of(item: Mapping[str, Any]) -> Kind:
    match item.get("type"):
        case "message":
            return "message"
        case "reasoning":
            return "reasoning"
        case "function_call":
            return "wrapper" if item.get("name") == WRAPPER else "call"
        case "custom_tool_call":
            return "custom"
        case _:
            return "other"


def text_of(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def arguments_of(item: Mapping[str, Any]) -> str:
    """Text, as the rules have it; some servers give the object itself."""
    value = item.get("arguments")
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value if isinstance(value, str) else ""


def custom_arguments(item: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Free text for a tool: its one argument, where it has one. `schema` is that of its arguments."""
    required = schema.get("required")
    argument = required[0] if isinstance(required, list) and len(required) == 1 else "input"
    return json.dumps({str(argument): text_of(item, "input")}, ensure_ascii=False)


def unwrapped(arguments: str) -> list[tuple[str, str]]:
    """The calls inside a wrapper, each as name and argument text; none where it cannot be read."""
    document = read_strictly(arguments) or read_object(arguments.encode("utf-8", "replace"))
    uses = document.get("tool_uses") if isinstance(document, dict) else None
    if not isinstance(uses, list):
        return []
    calls = [(text_of(use, "recipient_name"), use.get("parameters")) for use in uses if isinstance(use, dict)]
    if len(calls) != len(uses) or not all(name for name, _ in calls):
        return []
    return [
        (name.removeprefix("functions."), json.dumps(parameters if parameters is not None else {}, ensure_ascii=False))
        for name, parameters in calls
    ]


def content_of(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pieces of a message that hold words, as they may go back."""
    content = given.get("content")
    pieces: list[dict[str, Any]] = []
    for piece in content if isinstance(content, list) else ():
        if isinstance(piece, dict) and isinstance(piece.get("text"), str):
            pieces.append({"type": "output_text", "text": piece["text"], "annotations": []})
        elif isinstance(piece, dict) and isinstance(piece.get("refusal"), str):
            pieces.append({"type": "refusal", "refusal": piece["refusal"]})
    return pieces


def phase_of(word: str) -> Literal["", "commentary", "final_answer"]:
    return word if word in ("commentary", "final_answer") else ""  # type: ignore[return-value]  # narrowed by the line itself
