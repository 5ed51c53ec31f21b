"""A saved session: its entries are in the store, its words in the search index."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.prompts import typed
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import text
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.persistence import SavedSession, SessionProperties
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import SessionError
from wolo.messages.message import user
from wolo.places import find_places
from wolo.sessions.entries import MessageEntry
from wolo.sessions.index import Index
from wolo.sessions.store import Store


@pytest.mark.parametrize("is_attended", [True, False])
async def test_attended_turn_is_in_the_search_index(provider: ProviderServer, is_attended: bool) -> None:
    provider.script(text("Done."))
    given = {"base_url": provider.base_url, "api_key": KEY, "model": "custom/m", "api": "openai-chat"}
    conversation = await open_conversation(StartOptions(flags=given, attended=is_attended))
    async for _ in conversation.prompt(typed("go")):
        pass
    with Index.open(find_places().data) as index:
        assert (index.mark(conversation.info.session_id) is not None) is is_attended
    await conversation.close()


def test_unbegun_session_begins_with_the_next_entry(tmp_path: Path) -> None:
    with Store.open(tmp_path / "data") as store:
        taken = store.create("/", name="mine")
        session = SavedSession(store, None, SessionProperties(cwd=tmp_path, model="m", mode="auto", name="mine"), 0.0)
        with pytest.raises(SessionError, match="already a session named mine"):
            session.append(session.session_id, [MessageEntry(message=user("first"))])
        assert not session.is_started
        store.delete(taken.id)
        session.append(session.session_id, [MessageEntry(message=user("second"))])
        assert session.is_started
        assert [entry.message.text for entry in store.load(session.session_id).entries if isinstance(entry, MessageEntry)] == [
            "second"
        ]


def test_session_that_fails_to_load_is_unlocked(tmp_path: Path) -> None:
    origin = SessionProperties(cwd=tmp_path, model="m", mode="build")
    with Store.open(tmp_path / "data") as store:
        session = store.create(tmp_path)
        store.delete(session.id)
        with pytest.raises(SessionError, match="no session"):
            SavedSession(store, session, origin, 1.0)
        assert not store.is_live(session.id)
