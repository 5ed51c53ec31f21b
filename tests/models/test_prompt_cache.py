"""Remembers the start of each request, in little space, to tell later what changed."""

from __future__ import annotations

import hashlib

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from wolo.formats.format import Block, Blocks
from wolo.messages.message import MESSAGES, Message, Producer, Usage, user
from wolo.models.prompt_cache import METADATA, PrefixWatch, all_blocks, cache_use_by_request, digests_of, find_miss, prefix_of
from wolo.models.provider import Price

GLM = Producer(provider="zai", format="openai-chat", model="glm-5.2")
PRICE = Price(input=1.0, output=4.0, cache_read=0.2)


def blocks(*texts: str) -> Blocks:
    found = [Block(text.rstrip("!"), hashlib.blake2b(text.encode(), digest_size=8).digest(), 4_000) for text in texts]
    return Blocks((), found, len(found))


def answer(text: str = "", *, read: int = 0, fresh: int = 8_000, producer: Producer = GLM, at: float = 0.0) -> Message:
    usage = Usage(input_tokens=fresh, cache_read_tokens=read, output_tokens=10)
    return Message(role="assistant", usage=usage, producer=producer, timestamp=at, finished=True)


class Talk:
    """A conversation of which only the requests' blocks count."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.watch = PrefixWatch()

    def ask(self, *texts: str, answer: Message) -> Message:
        answered = self.watch.remember(answer, self.messages, blocks(*texts))
        self.messages += [user("…"), answered]
        return answered

    def resume(self) -> None:
        """As another process would: all that is known is what was stored."""
        self.messages = [MESSAGES.decode(MESSAGES.encode(each)) for each in self.messages]
        self.watch = PrefixWatch()


def test_a_conversation_that_only_grows_has_no_miss() -> None:
    talk = Talk()
    talk.ask("tools", "system", "user message 1", answer=answer())
    second = talk.ask("tools", "system", "user message 1", "assistant message 2", answer=answer(read=8_000, fresh=100))
    assert find_miss(second, talk.messages, PRICE) is None
    assert prefix_of(second).differs == ""  # type: ignore[union-attr]  # it was just made


def test_a_changed_system_prompt_is_named_and_priced() -> None:
    talk = Talk()
    talk.ask("tools", "system", "user message 1", "assistant message 2", answer=answer())
    talk.resume()
    changed = talk.ask("tools", "system!", "user message 1", "assistant message 2", answer=answer())
    miss = find_miss(changed, talk.messages, PRICE)
    assert miss is not None
    assert (miss.kind, miss.block, miss.tokens) == ("prefix", "system", 6_000)
    assert miss.cost is not None
    assert abs(miss.cost - 6_000 * 0.8e-6) < 1e-12
    assert "the system prompt changed" in miss.sentence


def test_later_system_text_is_not_the_prompt() -> None:
    talk = Talk()
    talk.ask("tools", "system", "user message 1", "system message 2", answer=answer())
    changed = talk.ask("tools", "system", "user message 1", "system message 2!", answer=answer())
    miss = find_miss(changed, talk.messages, PRICE)
    assert miss is not None
    assert "the history changed, first in system message 2" in miss.sentence


def test_process_after_a_cut_blames_nothing_unknown() -> None:
    """What was sent first is not told by the answers that are left."""
    talk = Talk()
    talk.ask("tools", "system", "user message 1", answer=answer())
    talk.ask("tools", "system", "compaction_summary message 1", "user message 2", answer=answer())
    talk.messages = talk.messages[-2:]
    talk.resume()
    same = talk.ask("tools", "system", "compaction_summary message 1", "user message 2", "user message 3", answer=answer())
    assert find_miss(same, talk.messages, PRICE) is None
    talk.resume()
    grown = ("tools!", "system", "compaction_summary message 1", "user message 2", "user message 3", "user message 4")
    changed = find_miss(talk.ask(*grown, answer=answer()), talk.messages, PRICE)
    assert changed is not None
    assert changed.block == "tools", "from then on all is known again"


def test_process_after_a_deeper_cut_names_it() -> None:
    talk = Talk()
    talk.ask("tools", "system", "user message 1", answer=answer())
    talk.ask("tools", "system", "compaction_summary message 1", "user message 2", answer=answer())
    talk.messages = talk.messages[-2:]
    talk.resume()
    deeper = find_miss(
        talk.ask("tools", "system", "compaction_summary message 1!", "user message 3", answer=answer()), talk.messages, PRICE
    )
    assert deeper is not None
    assert deeper.block == "compaction_summary message 1"


def test_an_unknown_price_leaves_the_tokens() -> None:
    talk = Talk()
    talk.ask("tools", "system", answer=answer())
    changed = talk.ask("tools!", "system", answer=answer())
    miss = find_miss(changed, talk.messages, None)
    assert miss is not None
    assert (miss.block, miss.tokens, miss.cost) == ("tools", 8_000, None)
    assert "$" not in miss.sentence


def test_shorter_history_is_a_miss_at_its_end() -> None:
    talk = Talk()
    talk.ask("tools", "system", "user message 1", "assistant message 2", answer=answer())
    miss = find_miss(talk.ask("tools", "system", answer=answer(fresh=4_000)), talk.messages, PRICE)
    assert miss is not None
    assert "shorter" in miss.reason


def test_another_model_starts_without_a_cache() -> None:
    talk = Talk()
    talk.ask("tools", "system", answer=answer())
    other = Producer(provider="openai", format="openai-chat", model="gpt")
    miss = find_miss(talk.ask("tools", "system", "user message 1", answer=answer(producer=other)), talk.messages, None)
    assert miss is not None
    assert (miss.kind, miss.tokens) == ("model", 8_000)
    assert "from zai/glm-5.2 to openai/gpt" in miss.reason


def test_expired_cache_is_the_provider_miss() -> None:
    talk = Talk()
    talk.ask("tools", "system", answer=answer(at=0.0))
    miss = find_miss(talk.ask("tools", "system", "user message 1", answer=answer(at=900.0)), talk.messages, PRICE)
    assert miss is not None
    assert (miss.kind, miss.block, miss.tokens) == ("provider", "", 8_000)
    assert "15 minutes" in miss.reason


def test_a_provider_that_never_caches_misses_nothing() -> None:
    talk = Talk()
    talk.ask("tools", "system", answer=answer())
    again = talk.ask("tools", "system", "user message 1", answer=answer())
    assert find_miss(again, talk.messages, None) is None


def test_formerly_caching_provider_is_expected_to_cache() -> None:
    talk = Talk()
    talk.ask("tools", answer=answer(read=1_000, fresh=500))
    again = talk.ask("tools", "user message 1", answer=answer(fresh=1_600))
    miss = find_miss(again, talk.messages, None)
    assert miss is not None
    assert miss.kind == "provider"


def test_unkept_answer_is_passed_over() -> None:
    talk = Talk()
    talk.ask("tools", "system", answer=answer())
    talk.ask("tools", "system", "user message 1", answer=answer())
    del talk.messages[-2:]
    third = talk.ask("tools", "system", "user message 1", "user message 2", answer=answer(read=8_000))
    assert prefix_of(third).after == talk.messages[1].id  # type: ignore[union-attr]  # it was just made
    talk.resume()
    assert digests_of(third.id, talk.messages) == [
        block.digest for block in all_blocks(blocks("tools", "system", "user message 1", "user message 2"))
    ]


def test_all_answers_are_looked_through_in_order() -> None:
    talk = Talk()
    talk.ask("tools", answer=answer())
    talk.ask("tools!", answer=answer())
    looked = cache_use_by_request(talk.messages, {GLM: PRICE})
    assert [(each.number, each.miss is None) for each in looked] == [(1, True), (2, False)]


def test_unrequested_answer_is_no_request() -> None:
    looked = cache_use_by_request([answer(), Message(role="assistant", usage=Usage(), producer=GLM), answer()], {})
    assert [each.number for each in looked] == [1, 2]


def test_metadata_that_nobody_understands_is_no_prefix() -> None:
    assert prefix_of(Message(role="assistant", metadata={METADATA: {"same": "many"}})) is None
    assert digests_of("x", [Message(role="assistant", id="x", metadata={METADATA: {"after": "x"}})]) == []


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8), min_size=1, max_size=6))
def test_every_changed_request_can_be_reassembled(requests: list[list[str]]) -> None:
    talk = Talk()
    for at, request in enumerate(requests):
        if at % 2:
            talk.resume()
        kept = talk.ask(*request, answer=answer())
        assert digests_of(kept.id, talk.messages) == [block.digest for block in all_blocks(blocks(*request))]


def test_kept_size_grows_linearly_with_the_conversation() -> None:
    talk, texts = Talk(), ["tools", "system at 0"]
    for number in range(300):
        texts[1] = f"system at {number}"  # the worst habit: a clock in the prompt
        texts.append(f"message {number}")
        talk.ask(*texts, answer=answer())
    sizes = [len(msgspec.json.encode(each.metadata)) for each in talk.messages if each.role == "assistant"]
    assert max(sizes[1:]) < 300
