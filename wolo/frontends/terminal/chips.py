"""How a folded paste looks where a person writes: its label stands for the one character that it is."""

from __future__ import annotations

from bisect import bisect_right

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from wolo.frontends.terminal.pastes import Pastes


class Chips(Processor):
    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if not any(
            self._pastes.label(character) for fragment in fragments for character in set(fragment[1]) if ord(character) > 0xFFFF
        ):
            return Transformation(fragments)
        shown: StyleAndTextTuples = []
        begins = [0]
        """Where each character of the line stands on the screen."""
        for fragment in explode_text_fragments(fragments):
            label = self._pastes.label(fragment[1])
            shown.append(("class:chip", label) if label else fragment)
            begins.append(begins[-1] + len(label or fragment[1]))
        return Transformation(
            shown,
            source_to_display=lambda at: begins[min(at, len(begins) - 1)] + max(0, at - len(begins) + 1),
            display_to_source=lambda at: min(max(bisect_right(begins, at) - 1, 0), len(begins) - 1),
        )
