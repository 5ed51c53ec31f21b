"""Renders streamed Markdown; a line is printed once, when later text cannot change it.

Code and paragraphs have `no_wrap`: only the terminal wraps them, so that they are copied whole. List items and quotations may be
wrapped when they are drawn, below their mark. Only tables are laid out. `plain` prints the source.
"""

from __future__ import annotations

import re

from rich.style import Style
from rich.text import Text

from wolo.frontends.terminal.io.theme import STYLES
from wolo.frontends.terminal.render import markdown_syntax
from wolo.frontends.terminal.render.code_blocks import CodeBlock
from wolo.frontends.terminal.render.markdown_tables import LONGEST_ROW, Grid, GrowingTable
from wolo.messages.terminal_text import Cleaner

Drawn = Text | Grid
"""Text includes its newlines."""

LONG_LINE = 400
"""Characters after which a line is printed in pieces."""
NEXT_PIECE = 80
"""Characters of each further piece."""
LONGEST_WAIT = 2000
"""Characters after which a piece is printed although an emphasis in it is still open."""
RULE_COLUMNS = 20
"""A horizontal rule fits the narrowest window."""
MOST_HELD = 6
"""Lines after which an unclosed emphasis mark is printed literally."""

_HEADINGS = (STYLES["bold accent"], Style(bold=True), Style(bold=True, italic=True))
_MARK = STYLES["accent"]
_DIM = STYLES["dim"]
_QUOTED = Style(italic=True)


class MarkdownStream:
    """Takes the text of one answer in pieces and returns what can be printed."""

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._cleaner = Cleaner()
        self.unfinished = ""
        """Unprinted part of the current line."""
        self.is_mid_line = False
        """The latest piece was printed without the end of its line."""
        self._begun = False
        self._blank = False
        """A blank line precedes the next block."""
        self._held: list[str] = []
        """Lines of a paragraph with an unclosed emphasis."""
        self._prefix = Text()
        self._fence = ""
        self._fence_indent = 0
        self._code: CodeBlock | None = None
        self._header = ""
        """A line that is a table header if a delimiter row follows."""
        self._table: GrowingTable | None = None
        self._in_list = False
        self._quotes_code = False
        self._wraps = False
        """The line that is printed in pieces may be wrapped at spaces."""
        self._drawn: list[Drawn] = []

    @property
    def is_blank_due(self) -> bool:
        """The next output begins with an empty row."""
        return self._blank and self._begun and not self.is_mid_line

    @property
    def preview(self) -> str:
        """The unprinted part of the current line, code with its margin."""
        if self._code is None or self.is_mid_line or self._closes_fence(self.unfinished):
            return self.unfinished
        return f"{self._code.margin}{markdown_syntax.unindent(self.unfinished, self._fence_indent)}"

    def feed(self, text: str) -> list[Drawn]:
        self.unfinished += self._cleaner.feed(text)
        if "\n" in self.unfinished:
            *lines, self.unfinished = self.unfinished.split("\n")
            self._take_lines(lines)
        if len(self.unfinished) > (NEXT_PIECE if self.is_mid_line else LONG_LINE):
            self._print_ahead()
        return self._give()

    def close(self) -> list[Drawn]:
        """Ends the answer and returns the remaining output."""
        self.unfinished += self._cleaner.close()
        if self.unfinished or self.is_mid_line:
            last, self.unfinished = self.unfinished, ""
            self._take_lines([last])
        self._flush()
        return self._give()

    def _give(self) -> list[Drawn]:
        drawn, self._drawn = self._drawn, []
        return drawn

    # Lines

    def _take_lines(self, lines: list[str]) -> None:
        code: list[str] = []
        for line in lines:
            if self._fence and not self.is_mid_line and not self._closes_fence(line):
                code.append(markdown_syntax.unindent(line, self._fence_indent))
                continue
            self._put_code(code)
            code = []
            self._take(line)
        self._put_code(code)

    def _take(self, line: str) -> None:
        if self.is_mid_line:
            text = Text(line) if self._plain or self._fence else markdown_syntax.inline(line)
            text.no_wrap = not self._wraps
            self._put(text, "\n")
            self.is_mid_line = False
        elif self._plain:
            if line.strip() or self._fence:
                self._put(Text(line, no_wrap=bool(self._fence)), "\n")
            else:
                self._blank = True
            if opened := markdown_syntax.FENCE.match(line):
                self._fence = "" if self._fence and self._closes_fence(line) else self._fence or opened[1]
        elif self._fence:
            self._fence, self._code, self._blank = "", None, True
        elif not line.strip():
            self._flush()
            self._blank = True
        elif not self._joins_table(line):
            if self._blank and not line[0].isspace():
                self._in_list = False
            if opened := markdown_syntax.FENCE.match(line):
                self._flush()
                self._open_fence(opened)
            elif heading := markdown_syntax.read_heading(line):
                self._flush()
                level, title = heading
                text = markdown_syntax.inline(title)
                text.stylize(_HEADINGS[min(level, len(_HEADINGS)) - 1])
                self._blank = True
                self._put(text, "\n")
                self._blank = True
            elif markdown_syntax.RULE.match(line):
                self._flush()
                self._put(Text.assemble(("─" * RULE_COLUMNS, _DIM)), "\n")
            elif item := markdown_syntax.ITEM.match(line):
                self._flush()
                self._take_item(item, line)
            elif line.startswith(("    ", "\t")) and not self._in_list and not self._held and (self._blank or not self._begun):
                self._put(Text(line, no_wrap=True), "\n")
            elif "|" in line and not self._held and len(line) <= LONGEST_ROW:
                self._header = line
            else:
                self._take_text(line)

    # Blocks

    def _take_item(self, item: re.Match[str], line: str) -> None:
        rest = line[item.end() :]
        self._in_list = True
        self._prefix = Text.assemble(item[1], (markdown_syntax.bullet(item), _MARK), " " * max(len(item[3].expandtabs(4)), 1))
        if opened := markdown_syntax.FENCE.match(rest):
            self._put(self._take_prefix(), "\n")
            self._open_fence(opened, item.end())
        else:
            self._hold(markdown_syntax.with_box(rest))

    def _take_text(self, line: str) -> None:
        if self._held:
            self._hold(line)
            return
        if quote := markdown_syntax.QUOTE.match(line):
            mark, quoted = quote[0], line[quote.end() :]
            if markdown_syntax.FENCE.match(quoted):
                self._quotes_code = not self._quotes_code
            elif self._quotes_code:
                self._put(Text.assemble((mark, _DIM), quoted), "\n")
            else:
                self._prefix = Text.assemble((mark, _DIM))
                self._hold(quoted)
            return
        indent = len(line) - len(line.lstrip())
        self._in_list = self._in_list and (indent > 0 or not self._blank)
        self._prefix = Text(line[:indent] if self._in_list else "")
        self._hold(line[indent:])

    def _hold(self, line: str) -> None:
        self._held.append(line.rstrip())
        if len(self._held) >= MOST_HELD or not markdown_syntax.is_unfinished("\n".join(self._held)):
            self._flush_text()

    def _flush(self) -> None:
        """Prints waiting lines, which later text can no longer change."""
        if self._table is not None:
            self._put_table(self._table.draw())
            self._table = None
            self._blank = True
        if self._header:
            header, self._header = self._header, ""
            self._take_text(header)
        self._flush_text()

    def _flush_text(self) -> None:
        if self._held:
            text = markdown_syntax.inline("\n".join(self._held))
            self._held = []
            prefix = self._take_prefix()
            if prefix.plain.startswith(">"):
                text.stylize(_QUOTED)
            is_paragraph = not prefix
            text = prefix.append_text(text)
            text.no_wrap = is_paragraph
            self._put(text, "\n")

    def _take_prefix(self) -> Text:
        prefix, self._prefix = self._prefix, Text()
        return prefix

    # Fences

    def _open_fence(self, opened: re.Match[str], indent: int = 0) -> None:
        self._fence = opened[1]
        self._fence_indent = indent + opened.start(1)
        self._code = CodeBlock(opened[2], " " * self._fence_indent if self._in_list else "")
        self._blank = True
        if self._code.label:
            self._put(Text.assemble((f"{self._code.margin}{self._code.label}", _DIM), no_wrap=True), "\n")

    def _closes_fence(self, line: str) -> bool:
        mark = line.strip()
        return len(mark) >= len(self._fence) and not mark.strip(self._fence[0])

    def _put_code(self, lines: list[str]) -> None:
        if lines:
            code = self._code.lines(lines) if self._code else Text("".join(f"{line}\n" for line in lines))
            code.no_wrap = True
            self._put(code)

    # Tables

    def _joins_table(self, line: str) -> bool:
        """Returns True when the line is a row or the delimiter row below a header."""
        if self._table is not None and "|" in line and len(line) <= LONGEST_ROW:
            self._put_table(self._table.add(line))
            return True
        if self._header and markdown_syntax.is_below_header(line, self._header):
            self._table = GrowingTable(self._header, line)
            self._header = ""
            self._blank = self._begun
            return True
        if self._header or self._table is not None:
            self._flush()
        return False

    def _put_table(self, table: Grid | None) -> None:
        if table is not None:
            self._put(Text())
            self._drawn.append(table)

    # Long lines

    def _print_ahead(self) -> None:
        """Prints an unfinished long line up to the last gap with no open emphasis before it."""
        if self._table is not None or self.unfinished.lstrip().startswith("|"):
            return
        if not self.is_mid_line:
            self._flush()
        raw = self._plain or bool(self._fence)
        cut = markdown_syntax.last_gap(self.unfinished, LONG_LINE)
        if len(self.unfinished) >= LONGEST_WAIT:
            cut = cut or len(self.unfinished) - 1
        elif not raw and markdown_syntax.is_unfinished(self.unfinished[:cut]):
            return
        piece, self.unfinished = self.unfinished[:cut], self.unfinished[cut:]
        if piece:
            prefix = Text()
            if not self.is_mid_line:
                self._wraps = not raw and (piece[0].isspace() or markdown_syntax.QUOTE.match(piece) is not None)
                if self._code is not None:
                    prefix, piece = Text(self._code.margin), markdown_syntax.unindent(piece, self._fence_indent)
                elif not raw and (item := markdown_syntax.ITEM.match(piece)):
                    self._in_list = self._wraps = True
                    prefix, piece = Text.assemble(item[1], (markdown_syntax.bullet(item), _MARK), " "), piece[item.end() :]
            prefix.append_text(Text(piece) if raw else markdown_syntax.inline(piece)).no_wrap = not self._wraps
            self._put(prefix)
            self.is_mid_line = True

    def _put(self, text: Text, end: str = "") -> None:
        if self.is_blank_due:
            text = Text("\n", no_wrap=text.no_wrap).append_text(text)
        if not self.is_mid_line:
            self._blank = False
        self._begun = True
        self._drawn.append(text.append(end) if end else text)
