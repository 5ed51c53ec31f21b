"""How what is written looks: the label of a folded paste stands for its one character, a stand-in for what is seen as one,
blanks for a tab, and an escape for what would not be seen or would turn the line around.
"""

from __future__ import annotations

from bisect import bisect_right

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from wcwidth import iter_graphemes

from wolo.frontends.terminal.io.graphemes import stand_in
from wolo.frontends.terminal.io.pastes import Pastes
from wolo.messages.terminal_text import show_hidden

TAB_STOP = 4


class Chips(Processor):
    def __init__(self, pastes: Pastes) -> None:
        self._pastes = pastes

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        if all(fragment[1].isascii() and "\t" not in fragment[1] for fragment in fragments):
            return Transformation(fragments)
        shown: StyleAndTextTuples = []
        begins = [0]
        """Where each character of the line stands on the screen; inside of what is seen as one, where that begins."""
        for style, text, *_ in fragments:
            for grapheme in iter_graphemes(text):
                label = self._pastes.label(grapheme)
                piece = label or stand_in(show_hidden(grapheme)) if grapheme != "\t" else " " * (TAB_STOP - begins[-1] % TAB_STOP)
                shown.append((f"{style} class:chip" if label else style, piece))
                begins += _places(begins[-1], grapheme, piece)
        return Transformation(
            shown,
            source_to_display=lambda at: begins[min(at, len(begins) - 1)] + max(0, at - len(begins) + 1),
            display_to_source=lambda at: min(max(bisect_right(begins, at) - 1, 0), len(begins) - 1),
        )


def _places(begin: int, grapheme: str, piece: str) -> list[int]:
    """Of the characters that follow those of this one."""
    if piece == grapheme:
        return [begin + step for step in range(1, len(grapheme) + 1)]
    return [*([begin] * (len(grapheme) - 1)), begin + len(piece)]
