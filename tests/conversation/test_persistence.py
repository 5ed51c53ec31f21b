"""A saved session: its entries are in the store, its words in the search index."""

from __future__ import annotations

from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import text
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.messages.message import user
from wolo.places import find_places
from wolo.sessions.index.index import Index


async def test_a_turn_is_in_the_search_index_as_soon_as_it_has_ended(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    given = {"base_url": provider.base_url, "api_key": KEY, "model": "custom/m", "api": "openai-chat"}
    conversation = await open_conversation(StartOptions(given=given, attended=False))
    async for _ in conversation.prompt(user("go")):
        pass
    with Index.open(find_places().data) as index:
        assert index.mark(conversation.info.session_id) is not None
    await conversation.close()
