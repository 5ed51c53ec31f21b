"""Wraps coloured text at spaces for display; /copy and the session keep the original lines."""

from __future__ import annotations

from rich.text import Text

from wolo.frontends.terminal.render.code_blocks import PLAIN_CODE
from wolo.frontends.terminal.render.scroll_insert import COLOURS, LINKS, last_rows, rows_taken
from wolo.frontends.wrapping import breaks, cells, lead_of

MOST_LEAD = 200
"""Characters, colours included, in which the mark of an item or quotation is looked for."""


class Wrapper:
    """Wraps text that arrives in pieces. Text with `no_wrap` is left to the terminal."""

    def __init__(self) -> None:
        self._column = 0
        self._lead = ""

    def wrap(self, text: Text, columns: int) -> Text:
        plain = text.plain
        is_whole = not text.no_wrap and "\t" not in plain
        if is_whole and plain.endswith("\n") and plain.count("\n") == 1 and self._column + cells(plain) <= columns:
            self._column = 0
            return text
        offsets: list[int] = []
        leads: list[str] = []
        at = 0
        for number, line in enumerate((_with_whole_code(text, columns) if is_whole else plain).split("\n")):
            if number or not self._column:
                self._column, self._lead = 0, lead_of(line, columns)
            if is_whole:
                found, self._column = breaks(line, columns, column=self._column, lead=self._lead)
                for each in found:
                    offsets += [at + each.start, at + each.end]
                    leads.append(each.lead)
            else:
                self._column += cells(line)
            at += len(line) + 1
        if not offsets:
            return text
        # Replaces the blanks between two offsets by a line break
        pieces = text.divide(offsets)
        result = Text()
        for number, piece in enumerate(pieces):
            if number % 2:
                result.append(f"\n{leads[number // 2]}")
            else:
                result.append_text(piece)
        return result


def wrap(text: Text, columns: int) -> Text:
    return Wrapper().wrap(text, columns)


def wrap_coloured(line: str, columns: int) -> str:
    places: list[int] = []
    """Index of each visible character."""
    at = 0
    for mark in COLOURS.finditer(line):
        places += range(at, mark.start())
        at = mark.end()
    places += [*range(at, len(line)), len(line)]
    rows: list[str] = []
    at = 0
    for start, end, lead in breaks("".join(line[place] for place in places[:-1]), columns)[0]:
        gap = line[places[start] : places[end]]
        rows.append(f"{line[at : places[start]]}{''.join(COLOURS.findall(gap))}\n{lead}")
        at = places[end]
    return "".join(rows) + line[at:]


def newest_rows(line: str, columns: int, most: int) -> str:
    """Returns the last rows of a coloured line, at most `most`; only items and quotations are wrapped at spaces."""
    if not lead_of(COLOURS.sub("", line[:MOST_LEAD]), columns):
        return last_rows(LINKS.sub("", line), columns, most)
    *rows, last = wrap_coloured(LINKS.sub("", line), columns).split("\n")
    shown = last_rows(last, columns, most)
    room = most - (rows_taken(f"{shown}\n", columns) or most)
    while rows and (taken := rows_taken(f"{rows[-1]}\n", columns) or most) <= room:
        room -= taken
        shown = f"{rows.pop()}\n{shown}"
    return "".join(COLOURS.findall("".join(rows))) + shown


def _with_whole_code(text: Text, columns: int) -> str:
    """Replaces spaces in inline code that fits a row, so that it counts as one word."""
    plain = text.plain
    for span in text.spans:
        if span.style == PLAIN_CODE and " " in plain[span.start : span.end] and span.end - span.start <= columns:
            plain = f"{plain[: span.start]}{plain[span.start : span.end].replace(' ', '_')}{plain[span.end :]}"
    return plain
