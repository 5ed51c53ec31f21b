"""Sessions of Mistral Vibe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.foreign.sources import calls, sample
from wolo.errors import SessionError
from wolo.messages.parts import ThinkingPart
from wolo.sessions.exchange.foreign import vibe

SAMPLE = sample("vibe")


def test_call_outcomes_are_told_apart() -> None:
    assert [call.outcome for call in calls(SAMPLE.read(SAMPLE.path()))] == ["ok", "error", "interrupted"]


def test_reasoning_comes_before_what_it_led_to() -> None:
    answer = SAMPLE.read(SAMPLE.path()).messages[1]
    assert [part.type for part in answer.parts] == ["thinking", "text", "tool", "tool"]
    assert answer.of(ThinkingPart)[0].text == "Look first."


@pytest.mark.parametrize("name", ["messages.jsonl", "meta.json", ""])
def test_session_is_named_by_folder_or_file(name: str) -> None:
    folder = SAMPLE.path().parent
    assert len(vibe.read(folder / name if name else folder).messages) == 5


def test_folder_without_conversation_is_refused_in_sentence(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="Cannot read"):
        vibe.read(tmp_path)
    (tmp_path / "messages.jsonl").write_text("")
    with pytest.raises(SessionError, match="no conversation of Mistral Vibe"):
        vibe.read(tmp_path)
