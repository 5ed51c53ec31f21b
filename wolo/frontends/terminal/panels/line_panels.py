"""Panels that ask for one line, shown or hidden."""

from __future__ import annotations

from prompt_toolkit.layout.processors import PasswordProcessor, Processor
from rich.text import Text

from wolo.frontends.terminal.display.line_prompt import Dismissed, PassedOver
from wolo.frontends.terminal.panels.panel import Panel, key_hints
from wolo.messages.terminal_text import clean, clean_line

SECRET_LABEL = "key › "


class LinePanel(Panel[str]):
    """Raises Dismissed for Ctrl-C, PassedOver for Esc if one `may_pass`, EOFError for Ctrl-D on an empty line."""

    def __init__(self, question: str, *, draft: str = "", may_pass: bool = False) -> None:
        super().__init__()
        self._question, self._draft, self._may_pass = question, draft, may_pass

    def open(self) -> None:
        super().open()
        if not self.is_writing:
            self.write(clean(self._question), self._draft)

    def submit(self, written: str) -> None:
        self.resolve(written)

    def leave_field(self) -> None:
        self.dismiss(PassedOver if self._may_pass else Dismissed)

    def end(self) -> None:
        self.dismiss(EOFError)


class RequestedLine(LinePanel):
    """Belongs to an action that the user has just begun, so keys count at once."""

    @property
    def ignores_keys(self) -> bool:
        return False


class SecretPanel(LinePanel):
    """Asks for an API key and shows dots. Empty for Esc. Raises Dismissed for Ctrl-C, EOFError for Ctrl-D on an empty line."""

    processors: tuple[Processor, ...] = (PasswordProcessor("•"),)

    def __init__(self, question: str) -> None:
        super().__init__(SECRET_LABEL)
        self._title = clean_line(question)

    def title(self) -> Text:
        return Text(self._title)

    def choices(self, columns: int) -> list[Text]:
        return [key_hints(("Enter", "continue"), ("Esc", "back"))]

    def submit(self, written: str) -> None:
        """Takes the first line: a paste may end with a line break."""
        self.resolve(next((line.strip() for line in written.splitlines() if line.strip()), ""))

    def leave_field(self) -> None:
        self.resolve("")
