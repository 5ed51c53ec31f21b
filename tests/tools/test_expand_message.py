"""Expands messages left out of a conversation: by id, range or query, within the limit of a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.errors import ToolError
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.tools.expand_message import MOST_CHARS, ExpandMessage, ExpandMessageArgs
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.toolbox import Toolbox
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.root import Workspace

LINES = "".join(f"line {number} of the log\n" for number in range(1, 3001))
CALL = ToolPart(id="part_log", call_id="call_7", tool="shell", input={"command": "make"}, outcome="ok", output=LINES)
LONG_LINE = ToolPart(
    id="part_min", tool="read", input={"path": "x.min.js"}, outcome="ok", output="a" * 50_000 + "NEEDLE" + "b" * 9
)
LEAD = Message(id="msg_lead", role="compaction_summary", parts=(TextPart(text="What happened."),), metadata={"compressed": True})
SAID = (
    user("Use tabs, never blanks."),
    Message(id="msg_work", role="assistant", parts=(TextPart(text="I run it."), CALL)),
    Message(id="msg_min", role="assistant", parts=(LONG_LINE,)),
)


async def expand(tmp_path: Path, **arguments: object) -> str:
    services = ToolServices(
        workspace=Workspace(tmp_path),
        ledger=FileLedger(tmp_path / "locks"),
        save_output=lambda name, data: tmp_path / name,
        shell=ShellState(tmp_path),
        recall=lambda: (LEAD, *SAID),
    )
    tool, args = Toolbox().decode("expand_message", arguments)
    assert isinstance(args, ExpandMessageArgs)
    assert not tool.intents(args, services)
    result = await tool.run(args, CallContext(services))
    assert len(result.text) <= MOST_CHARS * 1.5
    return result.text


async def test_result_returns_by_id_page_by_page(tmp_path: Path) -> None:
    pages, offset = "", 1
    while True:
        shown = await expand(tmp_path, id="part_log", offset=offset)
        body, _, foot = shown.rpartition("\n[lines ")
        pages += body + "\n"
        if "continues" not in foot:
            break
        offset = int(foot.partition("offset ")[2].split()[0])
    assert pages == LINES


async def test_range_of_lines_or_characters_shows_alone(tmp_path: Path) -> None:
    assert (await expand(tmp_path, id="call_7", offset=7, limit=2)).startswith("line 7 of the log\nline 8 of the log\n[lines 7–8")
    shown = await expand(tmp_path, id="part_min", unit="characters", offset=50_001, limit=6)
    assert shown.startswith("NEEDLE\n[characters 50,001–50,006 of 50,015")


async def test_overlong_line_says_how_to_see_it(tmp_path: Path) -> None:
    assert "unit characters, from offset 1" in await expand(tmp_path, id="part_min")


async def test_a_message_comes_with_its_calls(tmp_path: Path) -> None:
    shown = await expand(tmp_path, message_id="msg_work", limit=4)
    assert shown.startswith("I run it.\n\n[called shell, id part_log:")


async def test_query_finds_passages_anywhere_or_in_one_result(tmp_path: Path) -> None:
    everywhere = await expand(tmp_path, query="TABS never")
    assert "Use tabs, never blanks." in everywhere
    inside = await expand(tmp_path, id="part_log", query="line 1234")
    assert "[part_log, line 1234]" in inside
    assert "line 1233 of the log" in inside
    assert "[1 of 1 passages" in inside
    long = await expand(tmp_path, query="needle")
    assert "NEEDLE" in long
    assert len(long) < 2_000


async def test_many_passages_come_in_pages(tmp_path: Path) -> None:
    assert "of 3,000 passages, newest first; offset 21 continues]" in await expand(tmp_path, query="the log")
    assert "offset 41 continues" in await expand(tmp_path, query="the log", offset=21)
    assert "only 3,000" in await expand(tmp_path, query="the log", offset=4_000)


async def test_without_arguments_all_messages_are_listed(tmp_path: Path) -> None:
    listed = (await expand(tmp_path)).split("\n")
    assert listed[0] == f"{SAID[0].id} user: Use tabs, never blanks."
    assert listed[1].startswith("msg_work assistant: I run it. · shell (part_log, ")
    assert listed[-1] == "[messages 1–3 of 3]"
    assert (await expand(tmp_path, id="msg_lead")).split("\n") == listed


async def test_missing_message_is_reported(tmp_path: Path) -> None:
    assert "No line has all of these words" in await expand(tmp_path, query="nowhere to be found")
    for wrong, word in (({"id": "msg_nope"}, "msg_nope"), ({"id": "part_log", "offset": 9_999}, "3,000 lines")):
        with pytest.raises(ToolError, match=word):
            await expand(tmp_path, **wrong)
    assert ExpandMessage.reads_only
