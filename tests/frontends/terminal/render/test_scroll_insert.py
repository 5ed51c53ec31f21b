"""Lines get above the foot while it stands, on a screen of any size, wherever on it the foot is."""

from __future__ import annotations

import pyte
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wolo.frontends.terminal.render.scroll_insert import (
    COLOURS,
    Shown,
    grow,
    last_rows,
    move_down,
    print_above,
    rows_taken,
)

COLUMNS = 20
words = st.text("abc ä-", min_size=1, max_size=50).map(lambda text: f"x{text.strip()}x")


class KeepsWhatIsDeleted(pyte.HistoryScreen):
    """GNU screen keeps a copy of rows that are deleted at its top."""

    def delete_lines(self, count: int | None = None) -> None:
        assert self.cursor.y > 0
        super().delete_lines(count)


class Window:
    """A screen on which lines were printed, and below them a foot of so many rows, of which the first are its tail."""

    def __init__(self, rows: int, above: list[str], foot: list[str], row: int) -> None:
        self.screen = KeepsWhatIsDeleted(COLUMNS, rows, history=1000, ratio=0.5)
        self.stream = pyte.Stream(self.screen)
        self.feed("".join(f"{line}\n" for line in above) + "\n".join(foot))
        self.feed(f"\r\x1b[{len(foot) - 1 - row}A" if row < len(foot) - 1 else "\r")

    def feed(self, sequence: str) -> None:
        self.stream.feed(sequence.replace("\n", "\r\n"))

    @property
    def rows(self) -> list[str]:
        """All that was ever shown, row by row, to the last one that is not empty."""
        gone = ["".join(row[column].data for column in range(COLUMNS)) for row in self.screen.history.top]
        return [row.rstrip() for row in "\n".join([*gone, *self.screen.display]).rstrip().split("\n")]


def wrapped(lines: list[str]) -> list[str]:
    """The rows that a terminal makes of them."""
    rows = []
    for line in lines:
        row = ""
        for char in line:
            if len(row) == COLUMNS:
                rows.append(row.rstrip())
                row = ""
            row += char
        rows.append(row.rstrip())
    return rows


@given(
    above=st.lists(words, max_size=20),
    lines=st.lists(words, min_size=1, max_size=6),
    tail=st.integers(0, 3),
    then=st.integers(0, 3),
    row=st.integers(0, 2),
    rows=st.integers(24, 30),
)
def test_lines_get_above_it(above: list[str], lines: list[str], tail: int, then: int, row: int, rows: int) -> None:
    foot = [*(f"tail {number}" for number in range(tail)), "working", "> typed", "facts"]
    window = Window(rows, above, foot, tail + row)
    text = "".join(f"{line}\n" for line in lines)
    taken = rows_taken(text, COLUMNS)
    assert taken == len(wrapped(lines))
    window.feed(print_above(text, taken, Shown(len(foot), tail + row, tail, ""), then))
    assert window.rows == [*wrapped([*above, *lines]), *[""] * then, *foot[tail:]]
    window.feed("HERE")
    assert "HERE" in window.rows[len(wrapped([*above, *lines]))]


@given(above=st.lists(words, max_size=20), line=st.text("abc -", min_size=2, max_size=60), more=st.lists(words, max_size=3))
@example(above=[], line="a" * (2 * COLUMNS - 2), more=[])
def test_beginning_of_a_line_is_not_rewritten(above: list[str], line: str, more: list[str]) -> None:
    line = f"y{line}x"
    begun = line[: min(len(line) // 2, COLUMNS)].rstrip()
    foot = [begun, "working", "> typed", "facts"]
    window, text = Window(24, above, foot, 2), "".join(f"{each}\n" for each in (line, *more))
    taken = rows_taken(text, COLUMNS)
    assert taken is not None
    sequence = print_above(text, taken, Shown(4, 2, 1, begun), 1)
    assert begun == "y" or "y" not in sequence
    window.feed(sequence)
    assert window.rows == [*wrapped([*above, line, *more]), "", *foot[1:]]


@given(above=st.lists(words, max_size=20), lines=st.lists(words, min_size=1, max_size=3), tail=st.integers(0, 3))
def test_all_of_it_can_stay(above: list[str], lines: list[str], tail: int) -> None:
    foot = [*(f"tail {number}" for number in range(tail)), "working", "> typed", "facts"]
    window, text = Window(24, above, foot, tail + 1), "".join(f"{line}\n" for line in lines)
    window.feed(move_down(text, len(wrapped(lines)), Shown(len(foot), tail + 1, tail, "")))
    assert window.rows == [*wrapped([*above, *lines]), *foot]


@given(above=st.lists(words, max_size=20), tail=st.integers(0, 3), then=st.integers(1, 3))
def test_the_tail_alone_grows_and_shrinks(above: list[str], tail: int, then: int) -> None:
    foot = [*(f"tail {number}" for number in range(tail)), "working", "> typed", "facts"]
    window = Window(24, above, foot, tail + 1)
    window.feed(grow(Shown(len(foot), tail + 1, tail, ""), then - tail))
    assert window.rows == [*wrapped(above), *foot[: min(tail, then)], *[""] * (then - tail), *foot[tail:]]
    window.feed("HERE")
    assert "HERE" in window.rows[len(wrapped(above)) + min(tail, then)]


@pytest.mark.parametrize(
    "text",
    [
        "no end",
        "a\ttab\n",
        "\x1b]52;c;aGk=\x07\n",
        "back\rwards\n",
        "ab\x1b[1A\n",
        "–" * COLUMNS + "\n",
        "👩\u200d🔬\n",
        "x" * 19 + "👍🏽\n",
    ],
)
def test_ambiguous_rows_are_left_alone(text: str) -> None:
    assert rows_taken(text, COLUMNS) is None


@pytest.mark.parametrize(
    ("text", "rows"),
    [("", 0), ("\n", 1), ("\x1b[1;31mred\x1b[0m\n\n", 2), ("• – “so”\n", 1), ("ä" * 41 + "\n", 3), ("x" + "漢" * 19 + "y\n", 3)],
)
def test_rows_shown_alike_are_counted(text: str, rows: int) -> None:
    assert rows_taken(text, COLUMNS) == rows


@given(letters=st.integers(1, 4 * COLUMNS), colours=st.sets(st.integers(0, 4 * COLUMNS)), most=st.integers(1, 3))
def test_newest_rows_of_a_line_are_last(letters: int, colours: set[int], most: int) -> None:
    plain = [chr(ord("a") + at % 26) for at in range(letters)]
    line = "".join(f"\x1b[1m{letter}\x1b[0m" if at in colours else letter for at, letter in enumerate(plain))
    shown = COLOURS.sub("", last_rows(line, COLUMNS, most))
    assert wrapped([shown]) == wrapped(["".join(plain)])[-most:]
