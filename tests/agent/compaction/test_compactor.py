"""A conversation that outgrows the model's window: less of it is sent, nothing of it is lost, and it comes to an end."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.agent.conftest import AgentHarness
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, delta, error, finish, sse, text
from wolo.agent.compaction.compactor import CompactionSettings, Compactor, Context, Fixed, stated_limit
from wolo.agent.compaction.history_cut import Cut, shorten
from wolo.agent.events import AnswerEnded, Compacted
from wolo.errors import ContextOverflow
from wolo.formats.encoding.wire_forms import arguments_text
from wolo.messages.message import Message, Usage, system, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.models.tokens import estimate_message

WORDS = "many words of a long output, "


def round_of(number: int, size: int = 4000, tool: str = "read") -> Message:
    part = ToolPart(
        tool=tool, input={"path": f"{number}.txt"}, status="completed", outcome="ok", output=f"{number} " + "x" * size
    )
    return Message(role="assistant", parts=(TextPart(text=f"I read {number}."), part), finished=True)


def turns(count: int, rounds: int = 2, size: int = 4000) -> list[Message]:
    said: list[Message] = []
    for turn in range(count):
        said.append(user(f"prompt {turn}"))
        said += [round_of(turn * rounds + at, size) for at in range(rounds)]
    return said


def fixed(window: int | None) -> Fixed:
    return Fixed("You are Wolo.", (), window)


def refuse_over(
    provider: ProviderServer, size_bytes: int, refusal: Reply, answer: Callable[[], Reply]
) -> Callable[[Asked], Reply]:
    """A server whose window is so many bytes."""

    def reply(asked: Asked) -> Reply:
        if len(asked.body) <= size_bytes:
            return answer()
        provider.forget_prefix()
        return refusal

    return reply


def may_cut(harness: AgentHarness) -> None:
    """After a cut, and only then, a request begins differently."""
    harness.on_event = lambda event: harness.provider.forget_prefix() if isinstance(event, Compacted) else None


# What is sent


def test_fitting_history_is_sent_unchanged() -> None:
    history = turns(3)
    shown, cut = Compactor().view(history, fixed(100_000))
    assert cut is None
    assert all(a is b for a, b in zip(shown, history, strict=True))


def test_old_outputs_are_shortened_first_and_say_so() -> None:
    history = turns(6)
    shown, cut = Compactor().view(history, fixed(12_000))
    assert cut is not None
    assert (cut.reason, cut.messages_left_out) == ("window", 0)
    assert cut.outputs_shortened == 7
    assert cut.tokens_after <= 12_000 * 0.6 < cut.tokens_before
    assert len(shown) == len(history)
    old = shown[1].calls[0].output
    assert old.startswith("0 xxx")
    assert "3,602 characters" in old
    assert old.endswith(f'\n\nmessage_id "{history[1].calls[0].id}"\nUse expand_message to see the full content')
    assert shown[-5].calls == history[-5].calls  # the newest two turns keep theirs


def test_oldest_messages_go_but_prompts_of_now_stay() -> None:
    history = [system("Be kind."), *turns(30, size=600), user("the task of now, word for word")]
    shown, cut = Compactor().view(history, fixed(3_000))
    assert cut is not None
    assert cut.messages_left_out > 0
    assert shown[0] is history[0]
    assert shown[-1] is history[-1]
    assert "messages were left out" in shown[1].text
    kept = [message.id for message in shown[2:]]
    assert kept == [message.id for message in history[-len(kept) :]]


def test_newest_answers_stay_whole_in_one_long_turn() -> None:
    history = [user("the task"), *(round_of(number) for number in range(20))]
    shown, cut = Compactor().view(history, fixed(8_000))
    assert cut is not None
    assert history[0] in shown
    assert shown[-2:] == tuple(history[-2:])
    assert cut.tokens_after <= 8_000 * 0.6


def test_a_cut_stays_until_it_overflows_again() -> None:
    """So the requests in between begin with the bytes of the one before."""
    compactor, history = Compactor(), turns(6)
    first, cut = compactor.view(history, fixed(12_000))
    assert cut is not None
    cuts = 0
    for number in range(100, 112):
        history = [*history, user("go on"), round_of(number, 1000)]
        shown, cut = compactor.view(history, fixed(12_000))
        if cut is None:
            assert all(a is b for a, b in zip(shown, first, strict=False))
        else:
            cuts += 1
        first = shown
    assert cuts <= 1


def test_smaller_of_declared_and_known_window_counts() -> None:
    history = turns(6)
    assert Compactor(Context(window=5_000)).view(history, fixed(1_000_000))[1] is not None
    assert Compactor(Context(window=1_000_000)).view(history, fixed(5_000))[1] is not None
    assert Compactor(Context(window=20_000, reserve=9_000)).view(history, fixed(None))[1] is not None
    assert Compactor(Context(window=20_000, reserve=1_000)).view(history, fixed(None))[1] is None


def test_the_providers_count_corrects_the_estimate() -> None:
    history, compactor = turns(6), Compactor()
    assert compactor.view(history, fixed(24_000))[1] is None
    shown, _ = compactor.view(history, fixed(24_000))
    compactor.learn_usage(shown, fixed(24_000), Usage(input_tokens=40_000))
    assert compactor.view(history, fixed(24_000))[1] is not None


async def test_nothing_is_cut_where_a_person_forbids_it() -> None:
    compactor = Compactor(settings=CompactionSettings(auto=False))
    assert compactor.view(turns(6), fixed(1_000))[1] is None
    assert await compactor.fit_after_overflow(turns(6), fixed(1_000), None) is None
    assert "compaction.auto" in compactor.hint()


@given(
    st.lists(st.tuples(st.sampled_from(["prompt", "answer", "call", "nudge"]), st.integers(0, 9000)), max_size=30),
    st.integers(500, 20_000),
    st.integers(1, 4),
)
def test_no_cut_loses_a_prompt_or_grows_anything(said: list[tuple[str, int]], excess: int, keep_turns: int) -> None:
    history = [user("first")]
    for kind, size in said:
        match kind:
            case "prompt":
                history.append(user("p" * (size + 1)))
            case "nudge":
                history.append(Message(role="user", parts=(TextPart(text="go on"),), metadata={"nudge": "x"}))
            case "answer":
                history.append(Message(role="assistant", parts=(TextPart(text="a" * (size + 1)),)))
            case _:
                history.append(round_of(1, size))
    cut = Cut().deeper(history, excess, keep_turns)
    shown = cut.apply(history)
    assert [m for m in history if m.is_prompt][-1] in shown
    kept = [m for m in shown if m.role != "compaction_summary"]
    assert [m.id for m in kept] == [m.id for m in history if m.id in {k.id for k in kept}]
    assert sum(map(estimate_message, kept)) <= sum(map(estimate_message, history))
    assert all(len(m.calls) == len(next(h for h in history if h.id == m.id).calls) for m in kept)
    assert shown == cut.apply(history)
    assert cut.apply([*history, user("more")])[:-1] == shown


HUGE = "x" * 400_000


@pytest.mark.parametrize(
    "part",
    [
        ToolPart(tool="write", input={"path": "a.txt", "content": HUGE}),
        ToolPart(tool="todo", input={"todos": [{"content": f"step {number}"} for number in range(20_000)]}),
        ToolPart(tool="mcp__x__y", input={f"name {number}": number for number in range(40_000)}),
        ToolPart(tool="write", raw_input=f'{{"content": "{HUGE}', outcome="invalid"),
    ],
    ids=["one text", "many items", "many names", "not JSON"],
)
def test_huge_arguments_are_bounded(part: ToolPart) -> None:
    raw = part.raw_input or json.dumps(part.input)
    huge = Message(role="assistant", parts=(replace(part, raw_input=raw, status="completed", outcome=part.outcome or "ok"),))
    history = [*turns(3), user("now"), huge]
    compactor = Compactor()
    shown, cut = compactor.view(history, fixed(60_000))
    assert cut is not None
    assert shown[:-1] == tuple(history[:-1])  # nothing else is lost for it
    (sent,) = shown[-1].calls
    assert estimate_message(shown[-1]) < 3_000
    assert sent.input.get("path") == part.input.get("path")
    assert huge.id in arguments_text(sent) or not part.input
    longer = [*history, user("go on")]
    assert compactor.apply_cut(longer)[: len(shown)] == shown
    assert Cut(shortened=cut.shortened).apply(longer)[: len(shown)] == shown  # resumed


def test_a_short_output_is_not_made_longer() -> None:
    message = round_of(1, 300)
    assert shorten(message) is message


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        (
            "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (2000 in the completion)",
            32_768,
        ),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072),
        ("prompt token count of 203524 exceeds the limit of 128000", 128_000),
        ("the request exceeds the available context size (4,096 tokens), try increasing it", 4_096),
        ("Your input exceeds the context window of this model", None),
        ("", None),
    ],
)
def test_refusal_may_state_the_window_size(message: str, limit: int | None) -> None:
    assert stated_limit(message) == limit


# In a turn


OVERFLOWS: dict[str, Reply] = {
    "OpenAI": error(400, {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}}),
    "Anthropic": error(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}}),
    "vLLM": error(400, {"object": "error", "message": "This model's maximum context length is 9000 tokens."}),
    "llama.cpp": error(500, {"error": {"message": "the request exceeds the available context size, try increasing it"}}),
    "too large": error(413, "Request Entity Too Large"),
    "GLM's reason": sse(delta("I was just about"), finish("model_context_window_exceeded")),
    "in the stream": sse({"error": {"message": "prompt is too long: 20000 tokens > 9000 maximum"}}),
}


@pytest.mark.parametrize("wording", OVERFLOWS)
async def test_an_overflow_is_cured_by_sending_less(harness: AgentHarness, wording: str) -> None:
    harness.history = tuple(turns(8))
    harness.provider.otherwise = refuse_over(harness.provider, 30_000, OVERFLOWS[wording], lambda: text("Done."))
    turn = await harness.turn("finish it")
    assert (turn.ended.cause, turn.ended.answer) == ("done", "Done.")
    assert 2 <= len(harness.provider.requests) <= 4
    assert {cut.reason for cut in harness.told(Compacted)} == {"overflow"}
    assert turn.messages[: len(turns(8))] == harness.history[: len(turns(8))]
    assert [answer.message.text for answer in harness.told(AnswerEnded)] == ["Done."]
    assert "finish it" in harness.provider.requests[-1].messages[-1]["content"]


@pytest.mark.parametrize("wording", OVERFLOWS)
async def test_window_fitting_nothing_ends_in_few_requests(harness: AgentHarness, wording: str) -> None:
    harness.history = tuple(turns(8))
    harness.provider.otherwise = refuse_over(harness.provider, 0, OVERFLOWS[wording], lambda: text("never"))
    turn = await harness.turn("finish it")
    assert turn.ended.exit_code == 1
    assert turn.ended.error is not None
    assert turn.ended.error.kind == "context_overflow"
    assert turn.ended.error.hint
    assert len(harness.provider.requests) <= 4


async def test_the_smallest_size_that_was_refused_is_remembered() -> None:
    compactor, history = Compactor(), turns(8)
    size = compactor.window.size(history, fixed(None))
    for refused, most in ((size, size), (size * 2, size), (size / 2, size / 2), (size, size / 2)):
        compactor.window.learn_refusal(refused)
        assert compactor.window.most(fixed(None)) == most
        assert compactor.window.most(fixed(1_000_000)) == most


@pytest.mark.parametrize(
    ("messages", "share"),
    [
        (("too long", "too long", "too long"), (0.6, 0.3, 0.1)),
        (("maximum context length is 9000 tokens", "too long", "too long"), (0.3, 0.3, 0.1)),
        (("too long", "maximum context length is 100 tokens", "too long"), (0.6, 0.3, 0.1)),
        (("maximum context length is 900000 tokens", "too long", "too long"), (0.6, 0.3, 0.1)),
    ],
)
async def test_refusals_with_or_without_number_cut_deeper(messages: tuple[str, ...], share: tuple[float, ...]) -> None:
    compactor, history = Compactor(), turns(60)
    first = compactor.window.size(history, fixed(None))
    for said, most in zip(messages, share, strict=True):
        assert await compactor.fit_after_overflow(history, fixed(None), ContextOverflow(said)) is not None
        assert compactor.window.size(compactor.apply_cut(history), fixed(None)) <= first * most + 1
    assert await compactor.fit_after_overflow(history, fixed(None), ContextOverflow("too long")) is None, "the third was the last"


@pytest.mark.parametrize(
    "mixed", [("OpenAI", "GLM's reason"), ("GLM's reason", "in the stream"), ("too large", "GLM's reason", "vLLM")]
)
async def test_refusals_of_different_kinds_count_together(harness: AgentHarness, mixed: tuple[str, ...]) -> None:
    """One by its status, one by its words, one by how the answer ended."""
    may_cut(harness)
    harness.history = tuple(turns(60))
    kinds = itertools.cycle(mixed)
    harness.compactor = Compactor(settings=CompactionSettings(summary=False, keep_turns=1))
    harness.provider.otherwise = lambda asked: OVERFLOWS[next(kinds)]
    turn = await harness.turn("finish it")
    assert (turn.ended.exit_code, turn.ended.error.kind if turn.ended.error else "") == (1, "context_overflow")
    assert len(harness.provider.requests) == 4


async def test_refusals_of_different_kinds_are_cured_together(harness: AgentHarness) -> None:
    may_cut(harness)
    harness.history = tuple(turns(8))
    first = iter([OVERFLOWS["GLM's reason"], OVERFLOWS["OpenAI"]])
    harness.provider.otherwise = lambda asked: next(first, text("Done."))
    turn = await harness.turn("finish it")
    assert (turn.ended.cause, turn.ended.answer) == ("done", "Done.")
    sizes = [len(asked.body) for asked in harness.provider.requests]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3, "each time less is sent"
    assert [answer.message.text for answer in harness.told(AnswerEnded)] == ["Done."]


async def test_long_loop_in_a_small_window_never_stops(harness: AgentHarness) -> None:
    """Every third answer overflows; each is cured for itself, however often that happens."""
    count = 0

    def answer() -> Reply:
        nonlocal count
        count += 1
        return text("All done.") if count == 25 else call("say", {"text": f"{count} {WORDS * 60}"})

    may_cut(harness)
    refusal = OVERFLOWS["OpenAI"]
    harness.provider.otherwise = refuse_over(harness.provider, 24_000, refusal, answer)
    turn = await harness.turn("work for long")
    assert turn.ended.answer == "All done."
    refused = len(harness.provider.requests) - 25
    assert 1 <= refused <= 12
    assert sum(len(message.calls) for message in turn.new) == 24
    assert "work for long" in str(harness.provider.requests[-1].messages)


async def test_declared_window_is_never_exceeded_in_a_turn(harness: AgentHarness) -> None:
    harness.compactor = Compactor(Context(window=8_000))
    calls = [call("say", {"text": f"{number} {'x' * 4000}"}) for number in range(10)]
    harness.provider.summary = text("## Goal\nRead ten files.")
    may_cut(harness)
    harness.provider.script(*calls, text("Done."))
    turn = await harness.turn("read ten files")
    assert turn.ended.cause == "done"
    assert harness.told(Compacted)
    assert max(len(asked.body) for asked in harness.provider.requests) < 8_000 * 4


async def test_disabled_compaction_is_an_error_with_hint(harness: AgentHarness) -> None:
    harness.compactor = Compactor(settings=CompactionSettings(auto=False))
    harness.history = tuple(turns(8))
    harness.provider.script(OVERFLOWS["OpenAI"])
    turn = await harness.turn("finish it")
    assert turn.ended.error is not None
    assert "compaction.auto" in turn.ended.error.hint
    assert len(harness.provider.requests) == 1
