"""Highlights code without a frame or margin, so that copying it copies the code alone."""

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
_UNCOLOURED = frozenset({"", "text", "txt", "plain", "plaintext", "output"})
PLAIN_CODE = STYLES["code"]
_DIFFS = frozenset({"diff", "patch", "udiff"})
_DIFF_STYLES = {"+": "added line", "-": "removed line", "@": "accent"}
"""By the first character of a line; the two lines that name the files are bold."""


class CodeBlock:
    def __init__(self, language: str) -> None:
        name = language.strip().partition(" ")[0].strip("{}.").lower()
        self._is_diff = name in _DIFFS
        self._syntax: Syntax | None = None
        if not self._is_diff and name not in _UNCOLOURED:
            from rich.syntax import Syntax  # noqa: PLC0415  # loads Pygments, for the first block of code

            syntax = Syntax("", name, tab_size=0)
            self._syntax = syntax if syntax.lexer else None
        self._seen: list[str] = []

    def lines(self, new: list[str]) -> Text:
        """The new lines, each with its newline."""
        if self._is_diff:
            text = Text()
            for line in new:
                style = "bold" if line.startswith(("+++ ", "--- ")) else _DIFF_STYLES.get(line[:1], "")
                text.append(line, style).append("\n")
            return text
        if self._syntax is None or max(map(len, new), default=0) > _LONGEST_LINE:
            return Text.assemble(("".join(f"{line}\n" for line in new), PLAIN_CODE))
        if len(self._seen) > _REMEMBERED_LINES:
            self._seen = []
        self._seen += new
        return _colour("".join(f"{line}\n" for line in self._seen), self._syntax, skip=len(self._seen) - len(new))


def highlight(lines: list[str], path: str) -> list[Text]:
    """Highlights lines of a file in the language of its name."""
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
    """Highlights all but the first lines, token by token: Rich would turn tabs into blanks."""
    text = Text()
    line = 0
    assert syntax.lexer is not None  # checked where it was made
    for kind, value in syntax.lexer.get_tokens(code):
        for piece in value.splitlines(keepends=True):
            if line >= skip:
                text.append(piece, "" if piece.isspace() else token_style(kind))
            line += piece.endswith("\n")
    return text
