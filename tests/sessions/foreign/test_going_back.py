"""A session goes out in another agent's own form, and comes in the same, with what was said there."""

from __future__ import annotations

import json
import re
from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.exchange.histories_kept import keep, said
from tests.sessions.exchange.test_shapes import NO_SECRETS, exported, messages_of, read
from wolo.errors import SessionError
from wolo.formats.encoding.wire_forms import arguments_text
from wolo.messages.message import Message, Producer, Usage, nudge, system, user
from wolo.messages.parts import Blob, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.sessions.exchange import importer
from wolo.sessions.exchange.format_table import AGENTS as AGENTS_HERE
from wolo.sessions.store import Store

AGENTS = ("claude-code", "codex", "opencode", "pi", "kimi")
CLAUDE = Producer(provider="anthropic", format="anthropic", model="claude-sonnet-5-5")
CALL = ToolPart(
    tool="read",
    input={"path": "sum.py"},
    raw_input='{ "path": "sum.py" }',
    call_id="toolu_1",
    kind="read",
    status="completed",
    outcome="ok",
    output="def total(): ...",
    start_time=10.0,
    end_time=11.5,
)
DENIED = ToolPart(tool="shell", input={"command": "rm -r ."}, call_id="toolu_2", status="failed", outcome="denied_by_person")
HISTORY = (
    user("Why is the sum wrong?", ImagePart(media_type="image/png", data=b"\x89PNG\r\n\x1a\n")),
    Message(
        role="assistant",
        parts=(
            ThinkingPart(text="hm", field="thinking", blobs=(Blob("anthropic.signature", "SIG"),)),
            TextPart(text="I look."),
            CALL,
            DENIED,
        ),
        usage=Usage(input_tokens=100, output_tokens=20, cache_read_tokens=50),
        producer=CLAUDE,
        finish_reason="tool_calls",
        finished=True,
    ),
    nudge("A job has ended.", "job_ended"),
    Message(role="custom", custom_type="note", parts=(TextPart(text="never sent"),)),
    Message(
        role="assistant", parts=(TextPart(text="It skips the first."),), producer=CLAUDE, finish_reason="stop", finished=True
    ),
    Message(role="custom", custom_type="note", parts=(TextPart(text="at the end"),)),
)


@pytest.mark.parametrize("agent", AGENTS)
def test_export_reimports_to_equal_messages(store: Store, tmp_path: Path, agent: str) -> None:
    session_id = keep(store, Path.cwd(), said(system("Be kind."), *HISTORY))
    store.rename(session_id, title="Repair the sum")
    found = read(tmp_path, exported(store, session_id, agent))
    assert found.format == agent
    assert found.imported is not None
    assert found.imported.messages == messages_of(store, session_id)
    assert (found.skipped, found.notices) == (0, ())
    assert found.facts.title == ("" if agent == "kimi" else "Repair the sum")
    assert found.cwd == ("" if agent == "kimi" else str(Path.cwd()))


@pytest.mark.parametrize("agent", AGENTS)
def test_messages_stand_where_the_agent_looks(store: Store, agent: str) -> None:
    """Without what wolo has put into it the file is a session of that agent."""
    session_id = keep(store, Path.cwd(), said(*HISTORY))
    content = exported(store, session_id, agent)
    bare = [json.loads(line) for line in content.splitlines()] if agent != "opencode" else json.loads(content)
    text = json.dumps(_without_own(bare))
    for words in ("Why is the sum wrong?", "I look.", "sum.py", "def total(): ...", "The user denied this call", "It skips"):
        assert words in text
    assert "never sent" not in text


def _without_own(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_own(each) for name, each in value.items() if name != "wolo_message"}
    return [_without_own(each) for each in value] if isinstance(value, list) else value


def test_later_messages_come_back_behind_it(store: Store, tmp_path: Path) -> None:
    session_id = keep(store, Path.cwd(), said(*HISTORY[:2]))
    lines = exported(store, session_id, "claude-code").splitlines()
    before = next(each for each in map(json.loads, reversed(lines)) if "uuid" in each)
    more = {
        **{name: before[name] for name in ("sessionId", "cwd", "version")},
        **{"parentUuid": before["uuid"], "uuid": "there-1", "isSidechain": False, "type": "user"},
        **{"timestamp": "2026-10-02T08:00:00.250Z", "message": {"role": "user", "content": "And now?"}},
    }
    found = read(tmp_path, b"\n".join([*lines, json.dumps(more).encode()])).imported
    assert found is not None
    assert found.messages[:-1] == messages_of(store, session_id)
    assert found.messages[-1].text == "And now?"


@pytest.mark.parametrize("agent", AGENTS)
def test_unacceptable_ids_are_renewed_and_come_back(store: Store, tmp_path: Path, agent: str) -> None:
    odd = tuple(ToolPart(tool="", call_id="a b|c", status="completed", outcome="ok") for _ in range(2))
    session_id = keep(store, Path.cwd(), said(user("go"), Message(role="assistant", parts=odd, finished=True)))
    content = exported(store, session_id, agent)
    found = read(tmp_path, content).imported
    assert found is not None
    assert found.messages == messages_of(store, session_id)


@pytest.mark.parametrize("agent", AGENTS)
def test_empty_session_is_refused(store: Store, agent: str) -> None:
    session_id = keep(store, Path.cwd(), said(HISTORY[3]))
    with pytest.raises(SessionError):
        exported(store, session_id, agent)
    assert NO_SECRETS


NUMBERS = (
    10**17 + 1,
    123456789012345678,
    10**18 + 1,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    10**30 + 1,
)


@pytest.mark.parametrize("format", [*AGENTS, "jsonl", "rows", "openai", "atif"])
def test_whole_numbers_keep_their_value(store: Store, tmp_path: Path, format: str) -> None:
    given = {"n": list(NUMBERS), **{f"n{at}": number for at, number in enumerate(NUMBERS)}, "half": 0.5, "float": 1e300}
    call = ToolPart(tool="f", input=given, call_id="c1", status="completed", outcome="ok", output="ok")
    session_id = keep(store, Path.cwd(), said(user("go"), Message(role="assistant", parts=(call,), finished=True)))
    content = exported(store, session_id, format)
    store.delete(session_id)
    report = importer.import_session(store, read(tmp_path, content), str(tmp_path))
    (again,) = messages_of(store, report.info.id)[1].calls
    assert again.input == given
    assert [type(number) for number in again.input["n"]] == [int] * len(NUMBERS)
    assert json.loads(arguments_text(again)) == given


def test_numbers_of_others_keep_their_value_too(store: Store, tmp_path: Path) -> None:
    """Written by another program, as text and as an object."""
    given = {"n": list(NUMBERS)}
    function = {"name": "f", "arguments": json.dumps(given)}
    asked = {"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    bare = {**asked, "tool_calls": [{"id": "c", "type": "function", "function": {**function, "arguments": given}}]}
    step = {"step_id": 1, "source": "agent", "message": "x", "tool_calls": [
        {"tool_call_id": "c", "function_name": "f", "arguments": given}
    ]}  # fmt: skip
    for content in ([asked], [bare], {"schema_version": "ATIF-v1.6", "session_id": "s", "steps": [step]}):
        report = importer.import_session(store, read(tmp_path, json.dumps(content).encode()), str(tmp_path))
        (call,) = messages_of(store, report.info.id)[0].calls
        assert call.input == given


def test_agent_sessions_lie_where_the_guide_says(store: Store, tmp_path: Path) -> None:
    cwd = tmp_path / "my work"
    cwd.mkdir()
    session_id = keep(store, cwd, said(*HISTORY))
    dashed = re.sub(r"[^a-zA-Z0-9]", "-", str(cwd))
    digest = md5(str(cwd).encode(), usedforsecurity=False).hexdigest()
    places = {
        "claude-code": ("CLAUDE_CONFIG_DIR", f"projects/{dashed}/0a.jsonl"),
        "codex": ("CODEX_HOME", "sessions/2026/03/01/rollout-2026-03-01T10-00-00-0a.jsonl"),
        "pi": ("PI_CODING_AGENT_DIR", f"sessions/--{str(cwd).lstrip('/').replace('/', '-')}--/0a.jsonl"),
        "kimi": ("KIMI_SHARE_DIR", f"sessions/{digest}/0a/context.jsonl"),
    }
    for agent, (variable, name) in places.items():
        home = tmp_path / agent
        (home / name).parent.mkdir(parents=True)
        (home / name).write_bytes(exported(store, session_id, agent))
        environ = {"HOME": str(tmp_path / "nobody"), variable: str(home)}
        (found,) = AGENTS_HERE[agent](cwd, environ)
        again = importer.read(found.source, agent).imported
        assert again is not None
        assert again.messages == messages_of(store, session_id), agent
