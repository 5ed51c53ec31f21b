"""Usage of all sessions, counted from the index."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from tests.sessions.samples import said, tool_turn
from wolo.messages.message import Message, Producer, Usage, UsageCost
from wolo.messages.parts import TextPart, ToolPart
from wolo.sessions.entries import CompactionEntry, MessageEntry, ResultsEntry
from wolo.sessions.search import index_update
from wolo.sessions.search.usage_stats import Stats, count
from wolo.sessions.store import Store


def counted(store: Store, since: float = 0.0) -> Stats:
    return index_update.ask(store, lambda index: count(index, store.list(), since))


def answer(cost: float | None, model: str = "glm-5.2", **tokens: int) -> MessageEntry:
    usage = Usage(**tokens, cost=None if cost is None else UsageCost(total=cost))  # type: ignore[arg-type]  # counts only
    wrote = Producer("zai", "openai-chat", model)
    return MessageEntry(message=Message(role="assistant", parts=(TextPart(text="ok"),), usage=usage, producer=wrote))


def test_tokens_cache_and_money_are_summed(store: Store) -> None:
    session = store.create("/work").id
    store.append(
        session, [said("go"), answer(0.5, input_tokens=100, cache_read_tokens=300, output_tokens=10, reasoning_tokens=4)]
    )
    store.append(session, [said("on"), answer(0.25, input_tokens=50, cache_write_tokens=50, output_tokens=5)])
    stats = counted(store)
    total = stats.total
    assert (stats.sessions, total.turns, total.answers) == (1, 2, 2)
    assert (total.input, total.cache_read, total.cache_write, total.output, total.reasoning) == (150, 300, 50, 15, 4)
    assert total.cache_share == 0.6
    assert total.cost == 0.75


def test_an_unknown_price_is_never_nothing(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("go"), answer(0.5, input_tokens=1), answer(None, input_tokens=1)])
    total = counted(store).total
    assert (total.cost, total.known_cost, total.unpriced) == (None, 0.5, 1)


def test_shared_fork_content_counts_once_without_original_too(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("go"), *tool_turn(1), answer(1.0, input_tokens=10)])
    fork = store.fork(session).id
    store.append(fork, [said("another way"), answer(1.0, input_tokens=10)])
    both = counted(store)
    assert (both.total.turns, both.total.answers, both.tools[0].calls) == (2, 3, 1)
    store.delete(session)
    alone = counted(store)
    assert (alone.total.turns, alone.total.answers, alone.tools[0].calls) == (2, 3, 1)


def test_models_projects_and_tools_list_busiest_first(store: Store) -> None:
    for number, (cwd, model) in enumerate((("/a", "small"), ("/b", "large"))):
        session = store.create(cwd).id
        store.append(session, [said("go"), answer(0.0, model, input_tokens=10 ** (number + 1))])
        call = ToolPart(tool="shell", input={"command": "x"})
        message = Message(role="assistant", parts=(call,))
        failed = replace(call, status="failed", outcome="error")
        store.append(session, [MessageEntry(message=message), ResultsEntry(message_id=message.id, parts=(failed,))])
        store.append(session, tool_turn(number))
    stats = counted(store)
    assert [each.name for each in stats.models][:3] == ["unknown", "zai/large", "zai/small"]
    assert [each.name for each in stats.projects] == ["/b", "/a"]
    assert [(each.name, each.calls, each.failed) for each in stats.tools] == [("read", 2, 0), ("shell", 2, 2)]
    assert [each.turns for each in stats.days] == [2]


def test_a_summary_is_paid_for_too(store: Store) -> None:
    session = store.create("/").id
    usage = Usage(input_tokens=7, cost=UsageCost(total=0.1))
    store.append(session, [said("go"), answer(0.2, input_tokens=1), CompactionEntry(left_out=("msg_1",), usage=usage)])
    stats = counted(store)
    assert (stats.total.answers, stats.total.input, stats.models[0].name) == (2, 8, "zai/glm-5.2")
    assert stats.total.cost == pytest.approx(0.3)


def test_older_content_does_not_count(store: Store) -> None:
    session = store.create("/").id
    store.append(session, [said("go"), answer(1.0, input_tokens=1)])
    stats = counted(store, time.time() + 60)
    assert (stats.sessions, stats.total.turns, stats.total.answers, stats.tools) == (0, 0, 0, ())
