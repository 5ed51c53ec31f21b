"""Characters that a server tore in two: an emoji written as two escaped halves, in two payloads."""

from __future__ import annotations

from collections.abc import Hashable

from wolo.messages.unicode import whole


class Halves:
    """Keeps each first half until its second comes."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, str] = {}
        """By the place it came in. While there are any, payloads must be read with halves in them."""

    def mend(self, place: Hashable, text: str) -> str:
        """The next piece of the text that is being written at this place, in whole characters."""
        text = self.kept.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.kept[place], text = text[-1], text[:-1]
        return whole(text)
