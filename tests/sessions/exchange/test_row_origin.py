"""Thread rows of other programs: what came in goes out the same, and what is said behind them joins it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.exchange.test_shapes import CALL, conversation, exported, read
from wolo.messages.message import user
from wolo.sessions import replay_entries
from wolo.sessions.entries import MessageEntry
from wolo.sessions.exchange import importer
from wolo.sessions.store import Store

AGENT = "5b5e6d1a-0000-4000-8000-000000000001"


def row(id: str, type: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "message_id": id,
        "thread_id": "thread-1",
        "type": type,
        "content": content,
        "is_llm_message": type not in ("status", "llm_response_end"),
        "metadata": {},
        "agent_id": AGENT,
        "agent_version_id": None,
        "created_at": f"2026-03-01T10:00:{len(id):02}.5Z",
        "updated_at": "2026-03-02T00:00:00+02:00",
        **more,
    }


SHORT = 'long... (truncated)\n\nmessage_id "m4"\nUse expand-message tool to see full content'
CALLS = [CALL, {**CALL, "id": "tooluse_2"}, {**CALL, "id": "tooluse_3"}]
ROWS = [
    row("s0", "status", {"status_type": "thread_run_start"}),
    row("m0", "system", json.dumps({"role": "system", "content": [{"type": "text", "text": "Be kind."}]})),
    row("m1", "user", '{"role":"user",  "content":"research é \\u00e9"}', metadata={"mine": {"a": [1, 2.5, None]}}),
    row("m2", "user", [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://x/y.png"}}]),
    row("m3", "assistant", {"role": "assistant", "content": "I will.", "tool_calls": CALLS}, agent_version_id="v2"),
    row("s1", "status", {"status_type": "tool_started"}),
    row("t2", "tool", {"role": "tool", "tool_call_id": "tooluse_2", "name": "web_search", "content": "two"}),
    row("s2", "status", '{"status_type": "tool_completed"}', extra_column=7),
    row(
        *("t1", "tool", json.dumps({"role": "tool", "tool_call_id": "tooluse_1", "name": "web_search", "content": "one"})),
        metadata={"tool_call_id": "tooluse_1"},
    ),
    row("b1", "browser_state", {"url": "https://x/"}, is_llm_message=False),
    row("e1", "llm_response_end", {"usage": {"prompt_tokens": 10}}),
    row("m4", "user", SHORT, metadata={"compressed": True, "compressed_content": SHORT}),
    row("m5", "assistant", "Plain words.", metadata=None, updated_at=None),
]


def kept(store: Store, folder: Path, rows: list[Any]) -> str:
    return importer.import_session(store, read(folder, rows), str(folder)).info.id


def rows_out(store: Store, session_id: str) -> list[Any]:
    return [json.loads(line) for line in exported(store, session_id, "rows").splitlines()]


def test_rows_go_out_as_they_came(store: Store, tmp_path: Path) -> None:
    session_id = kept(store, tmp_path, ROWS)
    assert rows_out(store, session_id) == ROWS


def test_later_messages_join_the_rows(store: Store, tmp_path: Path) -> None:
    session_id = kept(store, tmp_path, ROWS)
    store.append(session_id, [MessageEntry(message=user("and now?"))])
    *before, last = rows_out(store, session_id)
    assert before == ROWS
    assert (last["type"], json.loads(last["content"])["content"], last["thread_id"]) == ("user", "and now?", "thread-1")


def test_row_messages_come_in_unchanged_again(store: Store, tmp_path: Path) -> None:
    session_id = kept(store, tmp_path, ROWS)
    before = replay_entries.messages(store.load(session_id).entries)
    again = conversation(tmp_path, exported(store, session_id, "rows")).messages
    assert [message.role for message in again] == [message.role for message in before]
    assert [message.id for message in again] == [message.id for message in before]
    assert [message.text for message in again] == [message.text for message in before]
    assert [[call.output for call in message.calls] for message in again] == [
        [call.output for call in message.calls] for message in before
    ]


TEXTS = st.text(max_size=12)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), TEXTS), lambda inner: st.lists(inner), max_leaves=4
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant", "system", "status"]),
            st.one_of(TEXTS.map(lambda text: text + "."), TEXTS.map(lambda text: json.dumps({"content": text + "."}))),
            st.dictionaries(TEXTS, JSON, max_size=2),
            st.one_of(st.none(), TEXTS),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_rows_go_out_as_they_came(tmp_path_factory: Any, given: list[tuple[str, str, dict[str, Any], str | None]]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [row(f"m{at}", kind, text, metadata=more, agent_id=agent) for at, (kind, text, more, agent) in enumerate(given)]
    with Store.open(folder / "data") as opened:
        assert rows_out(opened, kept(opened, folder, [*rows, row("end", "user", "end")]))[:-1] == rows
