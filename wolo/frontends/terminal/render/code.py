"""Lines of a code block in colour, without frame or margin: what is copied is the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.theme import ADDED, REMOVED

if TYPE_CHECKING:
    from rich.syntax import Syntax

_REMEMBERED_LINES = 150
"""How many earlier lines are read again to know whether a new one stands inside a string or comment."""
_LONGEST_LINE = 2000
"""Characters; nothing written by hand is longer, and lexers may take their time with what is not."""
_THEME = "ansi_dark"
_UNCOLOURED = frozenset({"", "text", "txt", "plain", "plaintext", "output"})
PLAIN_CODE = Style(color="cyan")


_CHANGES = frozenset({"diff", "patch", "udiff"})
_OF_CHANGES = {"+": f"green on {ADDED}", "-": f"red on {REMOVED}", "@": "cyan"}
"""By the first character of a line; the two lines that name the files are bold."""


class CodeBlock:
    def __init__(self, language: str) -> None:
        name = language.strip().partition(" ")[0].strip("{}.").lower()
        self._is_change = name in _CHANGES
        self._syntax = None if self._is_change else _find_syntax(name)
        self._seen: list[str] = []

    def lines(self, new: list[str]) -> Text:
        """The new lines, each with its newline."""
        if self._is_change:
            return Text().join(map(_changed, new))
        if self._syntax is None or max(map(len, new), default=0) > _LONGEST_LINE:
            return Text.assemble(("".join(f"{line}\n" for line in new), PLAIN_CODE))
        if len(self._seen) > _REMEMBERED_LINES:
            self._seen = []
        self._seen += new
        return _colour("".join(f"{line}\n" for line in self._seen), self._syntax, skip=len(self._seen) - len(new))


def _changed(line: str) -> Text:
    style = "bold" if line.startswith(("+++ ", "--- ")) else _OF_CHANGES.get(line[:1], "")
    return Text.assemble((line, style), "\n")


def coloured(lines: list[str], path: str) -> list[Text]:
    """Lines of a file, in the colours of the language that its name tells."""
    from rich.syntax import Syntax  # noqa: PLC0415  # as below

    plain = [Text(line) for line in lines]
    if not lines or max(map(len, lines)) > _LONGEST_LINE:
        return plain
    syntax = Syntax("", Syntax.guess_lexer(path), tab_size=0)
    if syntax.lexer is None:
        return plain
    drawn = list(_colour("".join(f"{line}\n" for line in lines), syntax, skip=0).split("\n", allow_blank=True))[: len(lines)]
    return drawn if [each.plain for each in drawn] == lines else plain


def _colour(code: str, syntax: Syntax, *, skip: int) -> Text:
    """All but the first lines, token by token: Rich's own way would turn tabs into blanks."""
    theme = syntax.get_theme(_THEME)
    text = Text()
    line = 0
    assert syntax.lexer is not None  # _find_syntax has seen to it
    for kind, value in syntax.lexer.get_tokens(code):
        for piece in value.splitlines(keepends=True):
            if line >= skip:
                text.append(piece, None if piece.isspace() else theme.get_style_for_token(kind))
            line += piece.endswith("\n")
    return text


def _find_syntax(name: str) -> Syntax | None:
    from rich.syntax import Syntax  # noqa: PLC0415  # brings Pygments, for the first block of code

    syntax = None if name in _UNCOLOURED else Syntax("", name, tab_size=0)
    return syntax if syntax and syntax.lexer else None
