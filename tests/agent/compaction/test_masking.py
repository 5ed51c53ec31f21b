"""Old outputs are masked before the window is full: what tasks of many shapes cost with it and without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from wolo.agent.compaction.compactor import CompactionSettings, Compactor, Fixed
from wolo.agent.compaction.history_cut import SHORTENED, cut_of
from wolo.agent.events import Compacted
from wolo.messages.message import Message, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.provider import Price
from wolo.models.tokens import BYTES_PER_TOKEN, estimate_message
from wolo.sessions.entries import CompactionEntry

ALWAYS_SENT = Fixed("You are Wolo. " * 700, (), 1_000_000)
"""About 2,600 tokens before the messages."""
CHEAP = Price(input=1.0, output=0.0, cache_read=0.1)
WRITES = Price(input=1.0, output=0.0, cache_read=0.1, cache_write=1.25)
QUARTER = Price(input=1.0, output=0.0, cache_read=0.25)
UNCACHED = Price(input=1.0, output=0.0)
PRICES = {"a tenth": CHEAP, "written dearer": WRITES, "a quarter": QUARTER, "no cached price": UNCACHED}
SHAPES: dict[str, list[int]] = {
    # name: tokens of the output of each call
    "short": [1_500] * 8,
    "medium": [2_000] * 25,
    "sixty reads": [2_500] * 60,
    "few big": [12_000] * 6,
    "many small": [60] * 100,
    "one huge": [60_000, *[300] * 40],
    "big and small in turn": [200, 4_000] * 30,
    "big first": [9_000] * 8 + [300] * 40,
    "big last": [300] * 40 + [9_000] * 8,
    "long": [1_200] * 120,
}
PAUSES = frozenset(range(9, 200, 9))
"""Requests after the end of the provider's cache."""


def history(outputs: Sequence[int]) -> list[Message]:
    messages = [user("do it")]
    for at, tokens in enumerate(outputs):
        output = f"line {at} of the output\n" * (tokens * BYTES_PER_TOKEN // 22)
        part = ToolPart(tool="read", input={"path": f"{at}.py"}, status="completed", outcome="ok", output=output)
        messages.append(Message(role="assistant", parts=(TextPart(text="Reading on, because there is more. " * 8), part)))
    return messages


def compact(compactor: Compactor, messages: Sequence[Message], fixed: Fixed) -> Compacted | None:
    return None if compactor.fits(messages, fixed) else asyncio.run(compactor.fit(messages, fixed))


def cost(
    outputs: Sequence[int], price: Price, *, at_tokens: int | None, pauses: frozenset[int] = frozenset()
) -> tuple[float, int]:
    """Dollars of all input, as a provider bills it that caches each prefix, and the number of maskings."""
    assert price.input is not None
    read = price.input if price.cache_read is None else price.cache_read
    write = price.input if price.cache_write is None else price.cache_write
    fixed = Fixed(ALWAYS_SENT.system, (), ALWAYS_SENT.window, price)
    compactor = Compactor(settings=CompactionSettings(at_tokens=at_tokens))
    messages, total, num_maskings = history(outputs), 0.0, 0
    before: list[tuple[object, int]] = []
    for end in range(1, len(messages) + 1):
        num_maskings += compact(compactor, messages[:end], fixed) is not None
        shown = compactor.apply_cut(messages[:end])
        # One more tool is offered after the first masking, in front of all messages.
        pieces: list[tuple[object, int]] = [(compactor.cut.is_empty, 2_600)]
        pieces += [(id(message), estimate_message(message)) for message in shown]
        same = next((at for at, (one, other) in enumerate(zip(before, pieces, strict=False)) if one[0] != other[0]), len(before))
        cached = 0 if end in pauses else sum(tokens for _, tokens in pieces[:same])
        total += cached * read + (sum(tokens for _, tokens in pieces) - cached) * write
        before = pieces
    return total, num_maskings


@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_masking_never_makes_a_task_dearer(shape: str, price: str) -> None:
    masked, num_maskings = cost(SHAPES[shape], PRICES[price], at_tokens=None)
    plain, _ = cost(SHAPES[shape], PRICES[price], at_tokens=0)
    print(f"{shape}, {price}: {masked / plain:.3f} with {num_maskings} maskings")
    assert masked <= plain


@pytest.mark.parametrize("price", PRICES)
def test_pauses_beyond_the_cache_make_nothing_dearer(price: str) -> None:
    outputs = [2_000] * 45
    assert (
        cost(outputs, PRICES[price], at_tokens=None, pauses=PAUSES)[0]
        < cost(outputs, PRICES[price], at_tokens=0, pauses=PAUSES)[0]
    )


def test_sixty_calls_cost_a_fifth_less() -> None:
    masked, num_maskings = cost(SHAPES["sixty reads"], CHEAP, at_tokens=None)
    plain, _ = cost(SHAPES["sixty reads"], CHEAP, at_tokens=0)
    assert masked / plain <= 0.72
    assert num_maskings <= 3
    dearer = cost(SHAPES["sixty reads"], WRITES, at_tokens=None)[0] / cost(SHAPES["sixty reads"], WRITES, at_tokens=0)[0]
    assert dearer <= 0.78


def test_unlucky_end_costs_a_tenth_at_most() -> None:
    """A task that ends right after a masking does not get the broken prefix paid back."""
    ratios = [cost([2_000] * n, CHEAP, at_tokens=None)[0] / cost([2_000] * n, CHEAP, at_tokens=0)[0] for n in range(20, 100, 2)]
    assert max(ratios) < 1.1
    assert sum(ratio > 1 for ratio in ratios) <= len(ratios) // 8
    assert sum(ratios) / len(ratios) < 0.8


@pytest.mark.sweep(every=4)
@pytest.mark.parametrize("seed", range(24))
def test_random_tasks_cost_little_more_at_worst(seed: int) -> None:
    random = Random(seed)
    median, spread = random.choice((80, 300, 1_000, 2_500)), random.uniform(0.2, 1.6)
    outputs = [min(int(random.lognormvariate(0, spread) * median), 40_000) for _ in range(random.randint(8, 90))]
    price = list(PRICES.values())[seed % len(PRICES)]
    assert cost(outputs, price, at_tokens=None)[0] <= 1.1 * cost(outputs, price, at_tokens=0)[0]


def test_newest_outputs_and_protected_tools_stay_whole() -> None:
    messages = history([3_000] * 50)
    messages[3] = Message(role="assistant", parts=(ToolPart(tool="skill", outcome="ok", output="x" * 9_000),))
    compactor = Compactor()
    event = compact(compactor, messages, Fixed("", (), None, CHEAP))
    assert event is not None
    assert (event.reason, event.messages_left_out, event.outputs_shortened) == ("masked", 0, 43)
    shown = compactor.apply_cut(messages)
    assert shown[-6:] == tuple(messages[-6:])
    assert shown[3] is messages[3]
    assert SHORTENED[:3] in shown[4].calls[0].output
    assert messages[4].calls[0].id in shown[4].calls[0].output


def test_resumed_conversation_sends_the_same() -> None:
    messages, fixed = history([3_000] * 50), Fixed("", (), None, CHEAP)
    compactor = Compactor()
    event = compact(compactor, messages[:42], fixed)
    assert event is not None
    resumed = Compactor(cut=cut_of(CompactionEntry(shortened=event.shortened, reason=event.reason)))
    assert resumed.apply_cut(messages[:42]) == compactor.apply_cut(messages[:42])
    for end in range(42, 51):
        assert (compact(resumed, messages[:end], fixed) is None) == (compact(compactor, messages[:end], fixed) is None)
        assert resumed.apply_cut(messages[:end]) == compactor.apply_cut(messages[:end])


@pytest.mark.parametrize(
    ("settings", "price"),
    [
        (CompactionSettings(), None),
        (CompactionSettings(), Price(output=1.0)),
        (CompactionSettings(), Price(input=0.0, output=0.0)),
        (CompactionSettings(at_tokens=0), CHEAP),
        (CompactionSettings(auto=False), CHEAP),
        (CompactionSettings(at_tokens=500_000), CHEAP),
    ],
    ids=["unknown price", "unknown input price", "free", "off", "compaction off", "below the limit"],
)
def test_unpriced_or_disabled_masking_does_nothing(settings: CompactionSettings, price: Price | None) -> None:
    compactor = Compactor(settings=settings)
    assert compactor.fits(history([3_000] * 60), Fixed("", (), None, price))


def test_limit_masks_without_a_price_in_batches() -> None:
    messages, fixed, num_maskings = history([1_000] * 60), Fixed("", (), None, None), 0
    compactor = Compactor(settings=CompactionSettings(at_tokens=20_000))
    for end in range(1, len(messages) + 1):
        num_maskings += compact(compactor, messages[:end], fixed) is not None
    assert 3 <= num_maskings <= 8
    assert compactor.window.size(compactor.apply_cut(messages), fixed) < 30_000


def test_restored_outputs_are_not_masked_again() -> None:
    messages, fixed = history([3_000] * 50), Fixed("", (), 1_000_000, CHEAP)
    compactor = Compactor()
    assert compact(compactor, messages, fixed) is not None
    event = compactor.restore(messages, fixed)
    assert event is not None
    assert compactor.fits(messages, fixed)
    assert Compactor(cut=cut_of(CompactionEntry(reason=event.reason))).fits(messages, fixed)
