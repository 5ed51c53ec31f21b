"""Sessions of OpenCode, wherever a version keeps them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.foreign.sources import HERE, PIXEL, calls, complaints, in_view, opencode_database, opencode_tree, sample
from wolo.errors import SessionError
from wolo.messages.message import Usage, UsageCost
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import opencode
from wolo.sessions.exchange.json_files import Imported

SAMPLE = sample("opencode")


def database(folder: Path) -> Path:
    opencode_database(folder / "opencode.db")
    return folder / "opencode.db" / "ses_01"


def database_after_a_crash(folder: Path) -> Path:
    opencode_database(folder / "opencode.db", crashed=True)
    return folder / "opencode.db" / "ses_01"


def database_at_rest(folder: Path) -> Path:
    """Closed in good order; whoever opens it to write puts files beside it."""
    opencode_database(folder / "opencode.db", wal=True)
    return folder / "opencode.db" / "ses_01"


def tree(folder: Path) -> Path:
    return opencode_tree(folder / "storage")


def said(imported: Imported) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.role, each.text, tuple(call.output for call in each.calls)) for each in imported.messages]


def files(folder: Path) -> dict[str, bytes | int]:
    """What is in them; of folders when something was last put there or taken away."""
    paths = [folder, *folder.rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else path.stat().st_mtime_ns for path in paths}


@pytest.mark.parametrize("keep", [database, database_at_rest, database_after_a_crash, tree])
def test_conversation_is_equal_anywhere_and_stays_untouched(keep: Callable[[Path], Path], tmp_path: Path) -> None:
    source = keep(tmp_path)
    before = files(tmp_path)
    imported = opencode.read(source)
    assert said(imported) == said(SAMPLE.read(SAMPLE.path()))
    assert (imported.title, imported.cwd, imported.created) == ("Repair the sum", "/home/ada/abacus", 1791200000.0)
    assert imported.notices == ("The session of a subagent was left out.",)
    assert complaints(imported.messages) == []
    assert files(tmp_path) == before


def test_open_opencode_database_is_read_beside_it(tmp_path: Path) -> None:
    source = database(tmp_path)
    connection = sqlite3.connect(tmp_path / "opencode.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("UPDATE session SET title = 'Named since' WHERE id = 'ses_01'")
    connection.commit()
    assert opencode.read(source).title == "Named since"
    connection.close()


def test_a_database_alone_means_its_newest_session(tmp_path: Path) -> None:
    database(tmp_path)
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.execute("UPDATE session SET time_updated = 9999999999999 WHERE id = 'ses_01'")
    connection.close()
    imported = opencode.read(tmp_path / "opencode.db")
    assert imported.title == "Repair the sum"
    assert imported.notices[0] == "The newest of 2 sessions was imported: ses_01."


def test_stepwise_answer_becomes_an_answer_per_step() -> None:
    first, second = (each for each in SAMPLE.read(SAMPLE.path()).messages if each.text in ("I try.", "Not found."))
    assert (first.finish_reason, second.finish_reason) == ("tool_calls", "stop")
    assert first.usage == Usage(
        input_tokens=700,
        output_tokens=80,
        cache_read_tokens=1500,
        cache_write_tokens=100,
        reasoning_tokens=20,
        cost=UsageCost(total=0.01),
    )


def test_call_outcomes_are_told_apart() -> None:
    ended = {call.call_id: call.outcome for call in calls(SAMPLE.read(SAMPLE.path()))}
    assert ended == {"toolu_x": "ok", "toolu_y": "denied_by_person", "toolu_z": "interrupted", "call_1": "error"}


def test_signatures_and_items_keep_their_maker() -> None:
    thoughts = [
        (message.producer and message.producer.format, part.item_id, [blob.kind for blob in part.blobs])
        for message in SAMPLE.read(SAMPLE.path()).messages
        for part in message.of(ThinkingPart)
    ]
    assert thoughts == [("anthropic", "", ["anthropic.signature"]), ("openai-responses", "rs_7", ["openai.encrypted"])]


def test_summary_keeps_what_follows_it() -> None:
    view = in_view(SAMPLE.read(SAMPLE.path()))
    assert [message.role for message in view] == ["compaction_summary", "user", "assistant", "assistant", "user", "assistant"]
    assert view[1].text == "Try once more."


def test_undone_part_is_left_out(tmp_path: Path) -> None:
    source = database(tmp_path)
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.execute("UPDATE session SET revert = ? WHERE id = 'ses_01'", (json.dumps({"messageID": "msg_04"}),))
    connection.close()
    imported = opencode.read(source)
    assert len(imported.messages) == 3
    assert "6 undone messages were left out." in imported.notices


@pytest.mark.parametrize("damage", ["{", "null", '"text"', "\x00", '{"role":'])
def test_rows_that_cannot_be_read_are_counted(tmp_path: Path, damage: str) -> None:
    source = database(tmp_path)
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.execute("UPDATE message SET data = ? WHERE id = 'msg_08'", (damage,))
        connection.execute("UPDATE part SET data = ? WHERE id = 'prt_01_2'", (damage,))
    connection.close()
    imported = opencode.read(source)
    assert imported.skipped == 2
    assert len(imported.messages) == len(SAMPLE.read(SAMPLE.path()).messages) - 1


@pytest.mark.parametrize("cut", [0, 16, 100, 4000, 20000])
def test_cut_database_imports_or_fails_clearly(tmp_path: Path, cut: int) -> None:
    source = database(tmp_path)
    path = tmp_path / "opencode.db"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SessionError) as raised:
        opencode.read(source)
    assert raised.value.message
    with pytest.raises(SessionError):
        opencode.read(path)


def test_a_session_that_is_not_there_is_named(tmp_path: Path) -> None:
    database(tmp_path)
    with pytest.raises(SessionError, match="no session ses_99"):
        opencode.read(tmp_path / "opencode.db" / "ses_99")


@pytest.mark.parametrize("cut", range(0, 10_000, 613))
def test_cut_export_is_refused_in_sentence(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "export.json"
    path.write_bytes((HERE / "opencode" / "export.json").read_bytes()[:cut])
    with pytest.raises(SessionError, match="no conversation of OpenCode"):
        opencode.read(path)


NEWER: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "user",
        {
            "text": "Why is the sum wrong?",
            "files": [{"uri": f"data:image/png;base64,{PIXEL}", "mime": "image/png", "name": "sum.png"}],
        },
    ),
    ("model-switched", {"model": {"id": "gpt-5.5", "providerID": "openai"}}),
    (
        "assistant",
        {
            "model": {"id": "claude-sonnet-5-5", "providerID": "anthropic"},
            "finish": "tool-calls",
            "cost": 0.02,
            "tokens": {"input": 700, "output": 60, "reasoning": 0, "cache": {"read": 1500, "write": 100}},
            "content": [
                {"type": "reasoning", "text": "Look first.", "native": {"anthropic": {"signature": "c2ln"}}},
                {"type": "text", "text": "I look."},
                {
                    "type": "tool",
                    "id": "toolu_1",
                    "name": "read",
                    "state": {
                        "status": "completed",
                        "input": {"path": "sum.py"},
                        "content": [{"type": "text", "text": "sum(xs[1:])"}],
                    },
                },
                {
                    "type": "tool",
                    "id": "toolu_2",
                    "name": "shell",
                    "state": {"status": "error", "input": {}, "error": {"message": "exit 1"}},
                },
                {"type": "tool", "id": "toolu_3", "name": "shell", "state": {"status": "streaming", "input": '{"comm'}},
            ],
        },
    ),
    ("compaction", {"status": "running", "summary": "half", "recent": ""}),
    ("compaction", {"status": "completed", "summary": "It skips the first.", "recent": "The person asked why."}),
    ("shell", {"command": "ls", "status": "exited", "output": {"output": "sum.py"}}),
    ("user", {"text": "Go on."}),
    ("assistant", {"model": {"id": "m", "providerID": "x"}, "content": [], "error": {"type": "aborted", "message": "stopped"}}),
    ("idle", {"outcome": "interrupted"}),
)


def test_newer_versions_keep_a_message_in_a_row(tmp_path: Path) -> None:
    source = database(tmp_path)
    with sqlite3.connect(tmp_path / "opencode.db") as connection:
        connection.executescript(
            "DELETE FROM message; DELETE FROM part;"
            "CREATE TABLE session_message (id TEXT, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER, data TEXT)"
        )
        for seq, (kind, data) in enumerate(NEWER):
            packed = json.dumps({**data, "time": {"created": 1791200000000 + seq}})
            connection.execute("INSERT INTO session_message VALUES (?, 'ses_01', ?, ?, 0, ?)", (f"msg_{seq}", kind, seq, packed))
        connection.execute("INSERT INTO session_message VALUES ('msg_x', 'ses_01', 'user', 99, 0, '{')")
    connection.close()
    imported = opencode.read(source)
    assert imported.skipped == 1
    assert [message.role for message in imported.messages] == ["user", "assistant", "compaction_summary", "user", "user"]
    assert in_view(imported)[0].text == "It skips the first.\n\nThe person asked why."
    question, answer = imported.messages[:2]
    assert [part.type for part in question.parts] == ["text", "image"]
    assert [(call.tool, call.outcome, call.output) for call in answer.calls] == [
        ("read", "ok", "sum(xs[1:])"),
        ("shell", "error", "exit 1"),
        ("shell", "interrupted", ""),
    ]
    assert answer.usage == Usage(
        input_tokens=700, output_tokens=60, cache_read_tokens=1500, cache_write_tokens=100, cost=UsageCost(total=0.02)
    )
    assert answer.of(ThinkingPart)[0].blobs[0].data == "c2ln"
    assert complaints(imported.messages) == []


@given(places=st.lists(st.tuples(st.integers(100, 65_535), st.integers(0, 255)), min_size=1, max_size=30))
def test_noisy_database_imports_or_fails_clearly(places: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("noise")
    source = database(folder)
    data = bytearray(source.parent.read_bytes())
    for place, value in places:
        data[place % len(data)] = value
    source.parent.write_bytes(data)
    for each in (source, source.parent):
        with suppress(SessionError):
            assert complaints(opencode.read(each).messages) == []
