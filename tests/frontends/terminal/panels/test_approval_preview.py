"""The preview that an approval shows."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wolo.agent.events import ApprovalAsked, ApprovalGiven, SandboxState
from wolo.frontends.terminal.panels.approval_preview import PreviewAnswer, outcome, proposal
from wolo.frontends.terminal.panels.region_styles import as_rows
from wolo.frontends.terminal.render.file_diffs import replacement
from wolo.guard.intents import FetchIntent, Intent, ReadIntent, RunIntent, WriteIntent
from wolo.messages.parts import ToolPart
from wolo.tools.editing.matching import with_line_endings_of


def asked(part: ToolPart, *intents: Intent, walls: SandboxState = "") -> ApprovalAsked:
    return ApprovalAsked(id="ask_1", part=part, intents=intents, reason="It needs an approval.", rule="", walls=walls)


def plain(question: ApprovalAsked, *waiting: ToolPart) -> list[str]:
    return [line.plain for line in proposal(question, waiting)]


def test_command_shows_reason_and_sandbox_side() -> None:
    part = ToolPart(tool="shell", input={"command": "make\nx\ty"})
    lines = plain(asked(part, RunIntent("make\nx\ty", Path("/w")), walls="inside"))
    assert lines == [
        "? Run this command?",
        "  $ make",
        "  > x\\ty",
        "  sandboxed",
        "  It needs an approval.",
    ]


def test_every_argument_shows_except_repeated_content() -> None:
    part = ToolPart(tool="shell", input={"command": "make", "background": True, "note": "\x1b]0;hidden\x07"})
    lines = plain(asked(part, RunIntent("make", Path("/w")), walls="inside"))
    assert lines[1:4] == ["  $ make", "  background: true", "  note: \\x1b]0;hidden\\x07"]
    part = ToolPart(tool="read", input={"path": "/etc/passwd", "offset": 3})
    assert plain(asked(part, ReadIntent(Path("/etc/passwd"), inside=False)))[1:3] == [
        "  /etc/passwd   outside the workspace",
        "  offset: 3",
    ]


def test_sandbox_refusal_looks_different() -> None:
    part = ToolPart(tool="shell", input={"command": "make"})
    lines = plain(asked(part, RunIntent("make", Path("/w")), walls="again"))
    assert lines[0] == "! The sandbox stopped this command. Run it outside?"
    assert lines[2] == "  all your rights"


def test_host_of_a_running_command_is_the_question() -> None:
    part = ToolPart(tool="shell", input={"command": "pip install x"})
    intents = (RunIntent("pip install x", Path("/w")), FetchIntent("https://packages.example.com:8443/"))
    lines = plain(asked(part, *intents, walls="host"))
    assert lines[0] == "! Let this command connect to packages.example.com:8443?"
    assert lines[1:] == ["  $ pip install x", "  sandboxed", "  It needs an approval."]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ({"allowed": True}, "✓ allowed for this command: packages.example.com"),
        ({"allowed": True, "scope": "session"}, "✓ allowed for this session: packages.example.com"),
        ({"allowed": False, "reason": "use the mirror"}, "✗ no connection: packages.example.com · use the mirror"),
    ],
)
def test_answer_about_a_host_names_the_host(answer: dict[str, Any], line: str) -> None:
    part = ToolPart(tool="shell", input={"command": "pip install x"})
    question = asked(part, FetchIntent("https://packages.example.com/"), walls="host")
    recorded = outcome(question, PreviewAnswer(ApprovalGiven(id=question.id, **answer)))
    assert recorded is not None
    assert recorded.plain == line


def test_changes_are_whole_under_any_model_name() -> None:
    content = "".join(f"{number}\n" for number in range(500))
    write = ToolPart(tool="write", input={"file_path": "a", "file_content": content})
    assert "  500 + 499" in plain(asked(write, WriteIntent(Path("/w/a"))))
    edit = ToolPart(tool="edit", input={"path": "a", "old_string": "x\nsame", "new_string": "y\x1b[2J\nz\nsame"})
    assert plain(asked(edit, WriteIntent(Path("/w/a"))))[2:-1] == ["  - x", "  + y\\x1b[2J", "  + z", "    same"]
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\x1b[2J\n+y\n*** End Patch\n"
    shown = plain(asked(ToolPart(tool="apply_patch", input={"input": patch}), WriteIntent(Path("/w/a.py"))))
    assert "  - x\\x1b[2J" in shown
    assert "  + y" in shown


def written_over(before: str, content: str) -> list[str]:
    part = ToolPart(tool="write", input={"path": "a", "content": content})
    lines = proposal(asked(part, WriteIntent(Path("/w/a"))), before=before)
    return [line.plain for line in lines][2:-1]


def test_rewritten_file_shows_differences_and_places() -> None:
    before = [f"line {number}\n" for number in range(40)]
    after = [*before[:20], "line twenty\n", *before[21:]]
    assert written_over("".join(before), "".join(after)) == [
        "     … 17 unchanged lines",
        *(f"  {number + 1}   line {number}" for number in (17, 18, 19)),
        "  21 - line 20",
        "  21 + line twenty",
        *(f"  {number + 1}   line {number}" for number in (21, 22, 23)),
        "     … 16 unchanged lines",
    ]


def test_line_end_changes_of_rewritten_files_are_visible() -> None:
    assert written_over("a\r\nb\r\n", "a\nc\n") == ["  1   a", "  2 - b", "  2 + c"]  # the tool keeps its line ends
    assert written_over("a\r\nb\n", "a\nb\n") == ["  1 - a\\r", "  1 + a", "  2   b"]
    assert written_over("a\nb\n", "a\nb") == ["  1   a", "  2 - b", "  2 + b", "    \\ no newline at end of file"]
    assert written_over("a\x0cb\n", "a\nb\n") == ["  1 - a\\x0cb", "  1 + a", "  2 + b"]


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_any_overwriting_shows_all_new_text(before: str, content: str) -> None:
    shown = written_over(before or "x", content)
    gone = sum(re.match(r"[ \d]+ - ", line) is not None for line in shown)
    come = sum(re.match(r"[ \d]+ \+ ", line) is not None for line in shown)
    assert (gone or come) or with_line_endings_of(before or "x", content.removeprefix("\ufeff")) == (before or "x")


def test_waiting_calls_are_counted_and_named() -> None:
    part = ToolPart(tool="shell", input={"command": "make"})
    waiting = [ToolPart(tool="write", input={"path": f"{number}.txt"}) for number in range(6)]
    assert plain(asked(part), *waiting)[-6:] == [
        "  6 more approvals pending:",
        *(f"    · write {number}.txt" for number in range(4)),
        "    and 2 more",
    ]


def test_only_the_words_that_differ_are_marked() -> None:
    gone, come = replacement("    return one + two", "    return one - two")
    assert (gone.plain, come.plain) == ("-     return one + two", "+     return one - two")
    assert [gone.plain[span.start : span.end] for span in gone.spans if span.style == "removed word"] == ["+"]
    assert [come.plain[span.start : span.end] for span in come.spans if span.style == "added word"] == ["-"]


def test_edit_has_file_line_numbers_when_known() -> None:
    part = ToolPart(tool="edit", input={"path": "a", "old": "two\nthree", "new": "two\n3"})
    question = asked(part, WriteIntent(Path("/w/a")))
    assert [line.plain for line in proposal(question, before="one\ntwo\nthree\n")][2:-1] == [
        "  2   two",
        "  3 - three",
        "  3 + 3",
    ]
    assert [line.plain for line in proposal(question, before="two\nthree\ntwo\nthree\n")][2:-1] == [
        "    two",
        "  - three",
        "  + 3",
    ]


SEEN_FORMATS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Signs that enclose or underline numbers: of the category of invisible ones, but one sees them."""


@given(st.text(), st.text(), st.integers(2, 40))
@example("", "\u0600", 10)
def test_change_is_whole_at_any_width(old: str, new: str, columns: int) -> None:
    lines = replacement(old, new)
    rows = as_rows(lines, columns)
    written = "".join(piece[1] for row in rows for piece in row)
    assert written == "".join(line.plain for line in lines)
    unseen = (letter for letter in written if letter not in SEEN_FORMATS)
    assert not [letter for letter in unseen if unicodedata.category(letter) in ("Cc", "Cf", "Cs")]
