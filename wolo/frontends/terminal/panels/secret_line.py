"""One line that must not be seen: an API key. Dots say that something has been written."""

from __future__ import annotations

from prompt_toolkit.layout.processors import PasswordProcessor, Processor
from rich.text import Text

from wolo.frontends.terminal.panels.panel import Panel
from wolo.messages.terminal_text import clean_line

LABEL = "key › "


class UnseenPanel(Panel[str]):
    """Empty for Esc and for nothing. Raises Dismissed for Ctrl-C, EOFError for Ctrl-D on an empty line."""

    processors: tuple[Processor, ...] = (PasswordProcessor("•"),)

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def open(self) -> None:
        super().open()
        if not self.is_writing:
            self.write(LABEL)

    def content(self) -> list[Text]:
        return [Text(clean_line(self._question))]

    def choices(self, columns: int) -> list[Text]:
        return [Text("Enter goes on, Esc goes back", "dim")]

    def press(self, key: str) -> None:
        """All keys are written."""

    def submit(self, written: str) -> None:
        """A paste may bring a line end along."""
        self.settle(next((line.strip() for line in written.splitlines() if line.strip()), ""))

    def leave_field(self) -> None:
        self.settle("")

    def end(self) -> None:
        self.dismiss(EOFError)
