"""What was printed in short and can be seen in full: outputs, changes of files, thoughts; the newest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rich.text import Text

MOST_KEPT = 20


class Folded:
    def __init__(self) -> None:
        self.hint = ""
        """How the rest can be seen, behind whatever is folded; empty where nobody hears keys."""
        self._kept: deque[Callable[[], Text]] = deque(maxlen=MOST_KEPT)

    def keep(self, whole: Callable[[], Text]) -> None:
        self._kept.append(whole)

    def unfold(self) -> Text | None:
        """The newest that was not shown in full yet; None when all was."""
        return self._kept.pop()() if self._kept else None
