"""One line in answer to a question, asked in a panel."""

from __future__ import annotations

from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import Dismissed, PassedOver
from wolo.frontends.terminal.panels.panel import Panel
from wolo.messages.terminal_text import clean


class LinePanel(Panel[str]):
    """Raises Dismissed for Ctrl-C, PassedOver for Esc if one `may_pass`, EOFError for Ctrl-D on an empty line."""

    def __init__(self, question: str, *, draft: str = "", may_pass: bool = False) -> None:
        super().__init__()
        self._question, self._draft, self._may_pass = question, draft, may_pass

    def open(self) -> None:
        super().open()
        if not self.is_writing:
            self.write(clean(self._question), self._draft)

    def content(self) -> list[Text]:
        return []

    def choices(self, columns: int) -> list[Text]:
        return []

    def press(self, key: str) -> None:
        """All keys are written."""

    def submit(self, written: str) -> None:
        self.settle(written)

    def leave_field(self) -> None:
        self.dismiss(PassedOver if self._may_pass else Dismissed)

    def end(self) -> None:
        self.dismiss(EOFError)


class RequestedLine(LinePanel):
    """Part of something that the user has just begun, so keys count from the beginning."""

    @property
    def is_deaf(self) -> bool:
        return False
