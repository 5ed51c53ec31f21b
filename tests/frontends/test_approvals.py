"""Every front end shows each character of each argument that an approval is about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from rich.text import Text

from tests.frontends.shown_arguments import CHANGES, FOREIGN_CALLS, change, foreign_call, is_drawn, read
from tests.tools.harness import ToolHarness
from wolo.agent.events import ApprovalAsked
from wolo.conversation.phrasing import argument_lines
from wolo.frontends.acp.session import call_to_approve
from wolo.frontends.attach.line_printer import LinePrinter
from wolo.frontends.mcp_server.tasks import Form, approval_form, decision_of
from wolo.frontends.server.session_lines import approval_line
from wolo.frontends.terminal.panels.approval_preview import proposal
from wolo.messages.call_arguments import named_arguments
from wolo.messages.parts import ToolPart


def attached(asked: ApprovalAsked, capture: pytest.CaptureFixture[str]) -> str:
    LinePrinter(is_terminal=False).approval(approval_line(asked))
    return "\n".join(line.removeprefix("    ") for line in capture.readouterr().out.split("\n"))


def in_an_editor(asked: ApprovalAsked, capture: pytest.CaptureFixture[str]) -> str:
    blocks = call_to_approve(asked).model_dump()["content"]
    changes = [each for each in blocks if each["type"] == "diff"]
    drawn = [f" {line}" for each in changes for line in (each["path"], *each["new_text"].split("\n"))]
    return "\n".join([*drawn, *(each["content"]["text"] for each in blocks if each["type"] == "content")])


def in_a_form(asked: ApprovalAsked, capture: pytest.CaptureFixture[str]) -> str:
    return asyncio.run(form_of(asked)).message


async def form_of(asked: ApprovalAsked) -> Form:
    return approval_form("form", asked)


def on_the_api(asked: ApprovalAsked, capture: pytest.CaptureFixture[str]) -> str:
    return argument_lines(asked.arguments)


SURFACES = (attached, in_an_editor, in_a_form, on_the_api)
Surface = Callable[[ApprovalAsked, pytest.CaptureFixture[str]], str]
EACH_CALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
@EACH_CALL
@given(asked=FOREIGN_CALLS)
def test_every_argument_can_be_read(surface: Surface, asked: ApprovalAsked, capsys: pytest.CaptureFixture[str]) -> None:
    shown = surface(asked, capsys)
    everything = read(shown)
    for argument, (_, value) in zip(asked.arguments, named_arguments(asked.part), strict=True):
        assert f"{read(argument.name)}: {value}" in everything


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
@EACH_CALL
@given(given=CHANGES)
def test_a_diff_hides_no_argument(
    surface: Surface, given: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = change(ToolHarness(tmp_path), given)
    if asked is None:
        return
    shown = surface(asked, capsys)
    for argument, (_, value) in zip(asked.arguments, named_arguments(asked.part), strict=True):
        is_read = value in read(shown)
        assert is_read or (argument.is_in_view and is_drawn(argument, shown, asked))


def spelled(line: Text) -> str:
    """Without the mark; what is escaped stands between ‹ and ›."""
    marks = [span for span in line.spans if span.style == "dim" and span.start == 0]
    begin = marks[0].end if marks else 0
    escapes = [span for span in line.spans if "reverse" in str(span.style)]
    text = line.plain
    for span in sorted(escapes, key=lambda each: -each.start):
        text = f"{text[: span.start]}{unescaped(text[span.start : span.end])}{text[span.end :]}"
    return text[begin:]


def unescaped(written: str) -> str:
    named = {"\\t": "\t", "\\r": "\r"}
    return named.get(written) or chr(int(written.strip("\\xu{}"), 16))


@EACH_CALL
@given(asked=FOREIGN_CALLS)
def test_a_terminal_shows_every_argument(asked: ApprovalAsked) -> None:
    everything = "\n".join(map(spelled, proposal(asked)))
    for name, value in named_arguments(asked.part):
        assert f"{name}: {value}" in everything


async def test_incomplete_form_can_only_be_denied() -> None:
    form = await form_of(foreign_call("deploy", {"script": "x" * 1_000_001}))
    assert [each["const"] for each in form.schema["properties"]["decision"]["oneOf"]] == ["no"]
    assert "too long for a form" in form.message
    assert decision_of(form, {"decision": "once"}) == "no"


def test_edit_with_long_line_is_listed_beside_diff(tmp_path: Path) -> None:
    asked = change(ToolHarness(tmp_path), {"old_string": "long", "new_string": "short", "replace_all": True})
    assert asked is not None
    assert asked.in_view == ()


def test_patch_moving_a_file_is_listed_beside_diff() -> None:
    from wolo.tools.editing.apply_patch import ApplyPatchArgs
    from wolo.tools.editing.drawn_arguments import arguments_in_view
    from wolo.tools.tool_values import Diff

    view = Diff(path="a", text="@@ -1 +1 @@\n-x\n+y", added=1, removed=1)
    moves = "*** Begin Patch\n*** Update File: a\n*** Move to: .bashrc\n@@\n-x\n+y\n*** End Patch"
    stays = moves.replace("*** Move to: .bashrc\n", "")
    assert not list(arguments_in_view({"patch": moves}, ApplyPatchArgs(patch=moves), view))
    assert list(arguments_in_view({"patch": stays}, ApplyPatchArgs(patch=stays), view)) == ["patch"]


def test_unread_argument_beside_a_change_shows_in_terminal(tmp_path: Path) -> None:
    part = ToolPart(tool="write", input={"path": "a.txt", "content": "x\u2028y\n", "purpose": "hidden \u202e"})
    asked = change(ToolHarness(tmp_path), part.input)
    assert asked is not None
    lines = [line.plain for line in proposal(asked)]
    assert "  1 + x\\u{2028}y" in [line[2:] if line.startswith("    ") else line for line in lines]
    assert "  purpose: hidden \\u{202e}" in lines
