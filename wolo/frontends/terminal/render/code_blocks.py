"""Highlights code below the name of its language, two blanks from the indent of its list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from wolo.frontends.terminal.io.theme import STYLES, token_style

if TYPE_CHECKING:
    from rich.syntax import Syntax

_REMEMBERED_LINES = 150
"""Earlier lines that are lexed again to know whether a new one is inside a string or comment."""
_LONGEST_LINE = 2000
"""Characters; lexers are slow on longer lines, and nobody writes them by hand."""
_NO_LANGUAGE = frozenset({"", "text", "txt", "plain", "plaintext", "output"})
_LONGEST_LABEL = 30
MARGIN = "  "
PLAIN_CODE = STYLES["code"]
_DIFFS = frozenset({"diff", "patch", "udiff"})
_DIFF_STYLES = {"+": "added line", "-": "removed line", "@": "accent"}
"""By the first character of a line; the two lines that name the files are bold."""


class CodeBlock:
    def __init__(self, language: str, indent: str = "") -> None:
        name = language.strip().partition(" ")[0].strip("{}.").lower()
        self.margin = f"{indent}{MARGIN}"
        self.label = "" if name in _NO_LANGUAGE else name[:_LONGEST_LABEL]
        self._is_diff = name in _DIFFS
        self._syntax: Syntax | None = None
        if not self._is_diff and name not in _NO_LANGUAGE:
            from rich.syntax import Syntax  # noqa: PLC0415  # loads Pygments, for the first block of code

            syntax = Syntax("", name, tab_size=0)
            self._syntax = syntax if syntax.lexer else None
        self._seen: list[str] = []

    def lines(self, new: list[str]) -> Text:
        """The new lines, each with its margin and its newline."""
        if self._is_diff:
            text = Text()
            for line in new:
                style = "bold" if line.startswith(("+++ ", "--- ")) else _DIFF_STYLES.get(line[:1], "")
                text.append(self.margin).append(line, style).append("\n")
            return text
        if self._syntax is None or max(map(len, new), default=0) > _LONGEST_LINE:
            return Text("".join(f"{self.margin}{line}\n" if line else "\n" for line in new))
        if len(self._seen) > _REMEMBERED_LINES:
            self._seen = []
        self._seen += new
        return _colour("".join(f"{line}\n" for line in self._seen), self._syntax, len(self._seen) - len(new), self.margin)


def highlight(lines: list[str], path: str) -> list[Text]:
    from rich.syntax import Syntax  # noqa: PLC0415  # as below

    plain = [Text(line) for line in lines]
    if not lines or max(map(len, lines)) > _LONGEST_LINE:
        return plain
    syntax = Syntax("", Syntax.guess_lexer(path), tab_size=0)
    if syntax.lexer is None:
        return plain
    drawn = list(_colour("".join(f"{line}\n" for line in lines), syntax).split("\n", allow_blank=True))[: len(lines)]
    return drawn if [each.plain for each in drawn] == lines else plain


def _colour(code: str, syntax: Syntax, skip: int = 0, margin: str = "") -> Text:
    """Highlights all but the first lines, token by token: Rich would turn tabs into blanks."""
    text = Text()
    line, is_at_margin = 0, True
    assert syntax.lexer is not None  # checked where it was made
    for kind, value in syntax.lexer.get_tokens(code):
        for piece in value.splitlines(keepends=True):
            if line >= skip:
                text.append(margin if is_at_margin and piece != "\n" else "")
                text.append(piece, "" if piece.isspace() else token_style(kind))
            is_at_margin = piece.endswith("\n")
            line += is_at_margin
    return text
