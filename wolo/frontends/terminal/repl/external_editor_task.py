"""What is being written, in the person's editor: the foot steps aside for it, and whatever runs goes on."""

from __future__ import annotations

from prompt_toolkit.document import Document

from wolo.frontends.terminal.composer.composer import Composer
from wolo.frontends.terminal.composer.input_area import Writing
from wolo.frontends.terminal.io.signals import Signals
from wolo.frontends.terminal.repl.external_editor import edit


class Editing:
    def __init__(self, composer: Composer, foot: Writing, signals: Signals) -> None:
        self.is_open = False
        self._composer = composer
        self._foot = foot
        self._signals = signals

    async def run(self) -> None:
        """Raises WoloError when there is no editor, or it fails; what was written stays then. One at a time."""
        if self.is_open:
            return
        pastes, buffer = self._composer.pastes, self._composer.buffer
        self.is_open = True
        try:
            with self._signals.aside():
                async with self._foot.aside():
                    text = await edit(pastes.unfold(buffer.text))
            buffer.set_document(Document(pastes.fold_again(text)), bypass_readonly=True)
        finally:
            self.is_open = False
