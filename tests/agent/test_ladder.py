"""The rungs of a compaction: outputs are shortened, then the model sums up, then the oldest messages go, until it fits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.agent.conftest import AgentHarness
from tests.fakes.provider_server import Asked
from tests.fakes.replies import Reply, call, calls, error, sse, text, usage
from wolo.agent.budget import Limits
from wolo.agent.compaction.compactor import OVERFLOWS, CompactionSettings, Compactor, Context, Fixed, SummaryRequest
from wolo.agent.compaction.history_cut import Cut
from wolo.agent.compaction.summary_text import MOST_PIECES, pieces, summary_in
from wolo.agent.compaction_run import MAX_ATTEMPTS, context_usage, preview
from wolo.agent.events import Compacted, CompactionStarted, Noticed
from wolo.formats.format import ToolSpec
from wolo.messages.message import Message, system, user
from wolo.messages.parts import ImagePart, TextPart, ToolPart
from wolo.models.tokens import estimate_text

WINDOW = 20_000
FIXED = Fixed("You are Wolo.", (), WINDOW)
SUMMARY = "## Goal\nGet it done.\n## NextStep steps\nGo on."


def answer(words: str, *parts: ToolPart) -> Message:
    return Message(role="assistant", parts=(TextPart(text=words), *parts), finished=True, finish_reason="stop")


def ran(tool: str, path: str, output: str = "fine") -> ToolPart:
    return ToolPart(tool=tool, input={"path": path}, status="completed", outcome="ok", output=output)


def prose(turns: int, size: int = 3_000, first: int = 0) -> list[Message]:
    """A conversation that has no outputs to shorten."""
    return [
        each
        for at in range(first, first + turns)
        for each in (user(f"prompt {at}"), answer(f"answer {at} " + "word " * (size // 5)))
    ]


class Model:
    """Sums up as it was told to, and remembers what it was asked."""

    def __init__(self, summary: str = SUMMARY) -> None:
        self.orders: list[SummaryRequest] = []
        self._summary = summary

    async def __call__(self, order: SummaryRequest) -> str:
        self.orders.append(order)
        return self._summary


async def fit(compactor: Compactor, history: list[Message], model: Model | None = None) -> tuple[Message, ...]:
    await compactor.fit(history, FIXED, model)
    return compactor.apply_cut(history)


# The first rung


async def test_while_shortening_is_enough_nobody_is_asked() -> None:
    model, compactor = Model(), Compactor()
    history = [each for at in range(12) for each in (user(f"{at}"), answer("", ran("read", "a.py", "x" * 8_000)))]
    shown = await fit(compactor, history, model)
    assert not model.orders
    assert len(shown) == len(history)
    assert compactor.cut.shortened
    assert not compactor.cut.left_out


async def test_protected_outputs_are_not_shortened_on_first_rung() -> None:
    outputs = [ran("skill" if at == 0 else "read", f"{at}", "x" * 8_000) for at in range(12)]
    history = [each for part in outputs for each in (user("on"), answer("", part))]
    shown = await fit(Compactor(), history)
    assert shown[1].calls[0].output == outputs[0].output
    assert shown[3].calls[0].output != outputs[1].output


async def test_own_old_outputs_of_long_turn_are_shortened() -> None:
    history = [user("the task"), *(answer("", ran("read", f"{at}", "x" * 8_000)) for at in range(14))]
    model, compactor = Model(), Compactor()
    shown = await fit(compactor, history, model)
    assert compactor.cut.shortened
    assert shown[-1] is history[-1]
    assert not model.orders


# The second rung


async def test_summary_stands_first_and_newest_messages_stay() -> None:
    history = [system("Be kind."), *prose(40), user("the task of now, word for word")]
    model = Model()
    shown = await fit(Compactor(), history, model)
    assert len(model.orders) == 1
    assert shown[0] is history[0]
    assert shown[1].role == "compaction_summary"
    assert SUMMARY in shown[1].text
    assert list(shown[2:]) == history[-len(shown[2:]) :]
    assert len(shown) > 4
    assert Compactor().window.size(shown, FIXED) <= WINDOW * 0.9 * 0.6


async def test_long_turn_keeps_its_prompt_and_sums_rest() -> None:
    history = [user("the task"), *(answer(f"step {at} " + "word " * 800, ran("read", f"{at}")) for at in range(40))]
    model, compactor = Model(), Compactor()
    shown = await fit(compactor, history, model)
    assert len(model.orders) == 1
    assert shown[1] is history[0]
    assert history[0].id not in compactor.cut.left_out
    assert list(shown[2:]) == history[-len(shown[2:]) :]


async def test_user_words_survive_any_summary() -> None:
    history = prose(40)
    history[4] = user("Always use tabs: SENTINEL-B.")
    shown = await fit(Compactor(), history, Model("I forgot everything."))
    assert "Always use tabs: SENTINEL-B." in shown[0].text
    cut_only = await fit(Compactor(settings=CompactionSettings(summary=False)), history)
    assert "Always use tabs: SENTINEL-B." in cut_only[0].text


async def test_files_and_todo_list_are_reported_by_code() -> None:
    todo = ToolPart(tool="todo", input={"items": [{"text": "ship it"}]}, status="completed", outcome="ok", output="ok")
    failed = replace(ran("write", "never.py"), status="failed", outcome="error")
    begin = answer("work", ran("read", "a.py"), ran("read", "b.py"), ran("edit", "b.py"), failed, todo)
    shown = await fit(Compactor(), [user("go"), begin, *prose(40)], Model())
    assert "Files changed: b.py" in shown[0].text
    assert "Files read: a.py" in shown[0].text
    assert "ship it" in shown[0].text
    assert "never.py" not in shown[0].text


async def test_cleared_todo_list_is_reported_no_more() -> None:
    made, cleared = (
        ToolPart(tool="todo", input={"todos": items}, status="completed", outcome="ok")
        for items in ([{"content": "ship it"}], [])
    )
    shown = await fit(Compactor(), [user("go"), answer("work", made), *prose(40)], Model())
    assert "The todo list:\n[ ] ship it" in shown[0].text
    shown = await fit(Compactor(), [user("go"), answer("work", made), answer("work", cleared), *prose(40)], Model())
    assert "todo list" not in shown[0].text


async def test_next_summary_continues_the_one_before() -> None:
    model, compactor, history = Model(), Compactor(), prose(40)
    await fit(compactor, history, model)
    history += prose(40, first=40)
    shown = await fit(compactor, history, model)
    assert [order.so_far for order in model.orders] == ["", SUMMARY]
    assert "prompt 0" in model.orders[0].pieces[0]
    assert "answer 0" not in model.orders[1].pieces[0]
    assert [message.role for message in shown].count("compaction_summary") == 1


async def test_unsummarized_remainder_enters_the_next_summary() -> None:
    model, compactor, history = Model(), Compactor(), prose(40)
    await fit(compactor, history, Model(""))
    assert not summary_in(compactor.cut.lead)[0]
    compactor.learn_usage((), FIXED, None)
    history += prose(40)
    await fit(compactor, history, model)
    assert "answer 0" in model.orders[0].pieces[0]


async def test_a_small_window_is_not_worth_a_summary() -> None:
    model, compactor = Model(), Compactor(Context(window=5_000))
    shown = await fit(compactor, prose(40), model)
    assert not model.orders
    assert "messages were left out" in shown[0].text


async def test_disabled_summary_is_not_requested() -> None:
    model = Model()
    await fit(Compactor(settings=CompactionSettings(summary=False)), prose(40), model)
    assert not model.orders


async def test_failed_summary_waits_for_a_good_answer() -> None:
    nothing, compactor, history = Model(""), Compactor(), prose(40)
    await fit(compactor, history, nothing)
    await compactor.fit_after_overflow(history, FIXED, None, nothing)
    assert len(nothing.orders) == 1
    compactor.learn_usage((), FIXED, None)
    await fit(compactor, [*history, *prose(40)], nothing)
    assert len(nothing.orders) == 2


@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=40), st.integers(200, 20_000))
def test_summary_of_much_fits_into_few_requests(sizes: list[int], most: int) -> None:
    told = pieces([answer("w" * size, ran("read", "a", "o" * size)) for size in sizes], most)
    assert 1 <= len(told) <= MOST_PIECES
    assert all(estimate_text(piece) <= most + 50 for piece in told)


# All of them


Kind = tuple[str, int]
histories = st.lists(
    st.tuples(st.sampled_from(["prompt", "answer", "call", "calls", "nudge", "image", "system"]), st.integers(0, 12_000)),
    min_size=1,
    max_size=40,
)


def told(kind: str, size: int) -> Message:
    match kind:
        case "prompt":
            return user("p" * (size + 1))
        case "nudge":
            return replace(user("go on"), metadata={"nudge": "x"})
        case "image":
            return user("look", ImagePart(media_type="image/png", data=b"x" * size))
        case "system":
            return system("s" * (size // 100 + 1))
        case "call":
            return answer("", ran("read", f"{size}", "o" * size))
        case "calls":
            return answer("", *(ran("shell", f"{at}", "o" * (size // 3)) for at in range(3)))
        case _:
            return answer("a" * (size + 1))


@given(histories, st.integers(3_000, 30_000), st.sampled_from(["", SUMMARY, "long " * 3_000]), st.integers(1, 3))
async def test_each_rung_shrinks_any_history_and_ends(kinds: list[Kind], window: int, summary: str, keep_turns: int) -> None:
    history = [user("first"), *(told(kind, size) for kind, size in kinds)]
    fixed, model = Fixed("You are Wolo.", (), window), Model(summary)
    compactor = Compactor(settings=CompactionSettings(keep_turns=keep_turns))
    current = [message for message in history if message.is_prompt][-1]
    for step in range(OVERFLOWS + 2):
        before = compactor.apply_cut(history)
        done = await (compactor.fit_after_overflow(history, fixed, None, model) if step else compactor.fit(history, fixed, model))
        shown = compactor.apply_cut(history)
        if done is None:
            assert shown == before
        else:
            assert compactor.window.size(shown, fixed) < compactor.window.size(before, fixed)
            assert done.tokens_after < done.tokens_before
        assert current in shown
        assert [m for m in history if m.role == "system"] == [m for m in shown if m.role == "system"]
        kept = [message for message in shown if message.role != "compaction_summary"]
        by_id = {message.id: message for message in history}
        assert [m.id for m in kept] == [m.id for m in history if m.id in {k.id for k in kept}]
        assert all([p.id for p in m.calls] == [p.id for p in by_id[m.id].calls] for m in kept)
        assert shown == Cut(compactor.cut.shortened, compactor.cut.left_out, compactor.cut.lead).apply(history)
        assert compactor.apply_cut([*history, user("more")])[:-1] == shown
    assert await compactor.fit_after_overflow(history, fixed, None, model) is None
    assert len(model.orders) <= OVERFLOWS + 1


@given(histories, st.integers(3_000, 30_000))
@example([*[("prompt", size) for size in (*[0] * 10, 79, 163, 283, 691, 2559)], ("image", 0), ("image", 0)], 3362)
async def test_taking_back_never_overfills_the_window(kinds: list[Kind], window: int) -> None:
    history = [user("first"), *(told(kind, size) for kind, size in kinds)]
    fixed, compactor = Fixed("You are Wolo.", (), window), Compactor()
    most = compactor.window.most(fixed)
    assert most is not None
    await compactor.compact(history, fixed, Model())
    before = len(compactor.cut.left_out), len(compactor.cut.shortened)
    back = compactor.restore(history, fixed)
    assert (len(compactor.cut.left_out), len(compactor.cut.shortened)) <= before
    if back is not None:
        assert compactor.window.size(compactor.apply_cut(history), fixed) <= most
    if compactor.window.size(history, fixed) <= most:
        assert compactor.cut.is_empty


async def test_empty_conversation_has_nothing_to_compact_or_preview() -> None:
    compactor = Compactor()
    assert preview(compactor, (), FIXED).num_requests == 0
    assert await compactor.compact((), FIXED, Model()) is None


async def test_a_preview_changes_nothing_and_asks_nobody() -> None:
    compactor, history = Compactor(), prose(20)
    seen = preview(compactor, history, FIXED)
    assert seen.after.total < seen.before.total
    assert seen.num_requests == 1
    assert compactor.cut.is_empty
    assert context_usage(compactor, history, FIXED) == seen.before
    assert abs(seen.before.total - compactor.window.size(history, FIXED)) < 20


def test_arguments_of_server_tools_are_told_apart() -> None:
    own, remote = (ToolSpec(name, "It does. " * 50, {"type": "object"}) for name in ("read", "mcp__notes__add"))
    counted = context_usage(Compactor(), [user("go")], Fixed("You are Wolo.", (own, remote), WINDOW)).tokens
    assert counted["tools"] > 100
    assert counted["MCP tools"] > 100
    assert list(counted) == ["system prompt", "tools", "MCP tools", "prompts"]
    without = context_usage(Compactor(), [user("go")], Fixed("You are Wolo.", (own,), WINDOW)).tokens
    assert without == {source: count for source, count in counted.items() if source != "MCP tools"}


# In a turn


LIMIT_BYTES = 61_600
MAX_LENGTH_FACTOR = error(400, {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window"}})


def narrow(
    harness: AgentHarness, summary: Reply | Callable[[Asked], Reply], work: Callable[[], Reply] = lambda: text("Done.")
) -> None:
    """A server that takes so many bytes and no more, and a word on how it sums up."""
    provider = harness.provider

    def reply(asked: Asked) -> Reply:
        if len(asked.body) <= LIMIT_BYTES:
            return work()
        provider.forget_prefix()
        return MAX_LENGTH_FACTOR

    def forget(event: object) -> None:
        if isinstance(event, Compacted):
            provider.forget_prefix()

    provider.otherwise, provider.summary, harness.on_event = reply, summary, forget
    harness.history = (*prose(40), user("SENTINEL-B: tabs, never blanks."), answer("Noted."))


SUMMARIES: dict[str, Reply] = {
    "refused": MAX_LENGTH_FACTOR,
    "stalled": sse(ending="stall", done=False),
    "stalled in the middle": sse({"choices": [{"index": 0, "delta": {"content": "## Goal"}}]}, ending="stall", done=False),
    "empty": text(""),
    "huge": text("word " * 100_000, size=20_000),
    "an error page": error(500, "<html>oops</html>"),
    "a call": call("say", {"text": "x"}),
    "cut": text(SUMMARY).cut_at(60),
    "filtered": text("", finish_reason="content_filter"),
}


@pytest.mark.parametrize("summary", SUMMARIES)
async def test_turn_continues_after_any_summary_result(harness: AgentHarness, summary: str) -> None:
    narrow(harness, SUMMARIES[summary])
    harness.compactor = Compactor(settings=CompactionSettings(timeout_s=1))
    said = harness.history
    turn = await harness.turn("finish it")
    assert (turn.ended.cause, turn.ended.answer) == ("done", "Done.")
    assert len(harness.provider.requests) <= 3 + MAX_ATTEMPTS
    assert turn.messages[: len(said)] == said
    assert any("could not summarize" in notice.text for notice in harness.told(Noticed))
    last = str(harness.provider.requests[-1].messages)
    assert "SENTINEL-B" in last
    assert "finish it" in last
    assert (await harness.turn("and more")).ended.answer == "Done."


async def test_summary_is_requested_without_tools_and_counts(harness: AgentHarness) -> None:
    narrow(harness, text(SUMMARY, usage=usage(5_000, 70)))
    turn = await harness.turn("finish it")
    (asked,) = [asked for asked in harness.provider.requests if asked.is_summary]
    assert "tools" not in asked.json
    assert len(asked.body) < LIMIT_BYTES
    assert [message["role"] for message in asked.messages] == ["system", "user"]
    assert "prompt 3" in asked.messages[1]["content"]
    assert "<task>\nfinish it\n</task>" in asked.messages[1]["content"]
    assert turn.ended.usage.output_tokens == 70 + 10
    assert turn.ended.num_answers == 1
    (done,) = harness.told(Compacted)
    assert done.is_summarised
    assert done.usage is not None
    assert done.usage.input_tokens == 5_000
    assert [started.reason for started in harness.told(CompactionStarted)] == ["overflow"]
    assert SUMMARY in str(harness.provider.requests[-1].messages[1]["content"])


async def test_summary_using_up_the_budget_ends_the_turn(harness: AgentHarness) -> None:
    narrow(harness, text(SUMMARY, usage=usage(5_000, 70)))
    harness.limits = Limits(max_tokens=5_000)
    turn = await harness.turn("finish it")
    assert (turn.ended.cause, turn.ended.exit_code, turn.ended.num_answers) == ("max_tokens", 5, 0)
    assert harness.told(Compacted)


async def test_way_back_is_offered_after_an_omission(harness: AgentHarness) -> None:
    narrow(harness, text(SUMMARY))
    await harness.turn("finish it")
    asked = [request for request in harness.provider.requests if not request.is_summary]
    offered = [[tool["function"]["name"] for tool in request.json["tools"]] for request in asked]
    assert "expand_message" not in offered[0]
    assert "expand_message" in offered[-1]


async def test_instructions_are_read_again_after_a_compaction(harness: AgentHarness) -> None:
    narrow(harness, text("Nothing happened."))
    harness.reread_system = "You are Wolo. SENTINEL-A"
    await harness.turn("finish it")
    assert "SENTINEL-A" not in harness.provider.requests[0].messages[0]["content"]
    assert "SENTINEL-A" in harness.provider.requests[-1].messages[0]["content"]
    assert "SENTINEL-B" in str(harness.provider.requests[-1].messages[1:])


async def test_interrupted_summary_leaves_everything_unchanged(harness: AgentHarness) -> None:
    narrow(harness, sse(ending="stall", done=False))
    turning = asyncio.ensure_future(harness.turn("finish it"))
    async with asyncio.timeout(20):
        while not any(asked.is_summary for asked in harness.provider.requests):
            await asyncio.sleep(0.01)
    harness.agent.interrupt()
    turn = await turning
    assert (turn.ended.cause, turn.ended.exit_code) == ("interrupted", 130)
    assert harness.compactor.cut.is_empty
    harness.provider.summary = text(SUMMARY)
    assert (await harness.turn("again")).ended.answer == "Done."


async def test_compaction_midway_splits_no_call_from_result(harness: AgentHarness) -> None:
    count = 0

    def work() -> Reply:
        nonlocal count
        count += 1
        if count == 12:
            return text("Done.")
        return calls(*(("say", {"text": f"{count} {'x' * 3000}"}) for _ in range(3)), content=f"step {count} " + "word " * 900)

    narrow(harness, text(SUMMARY), work)
    harness.history = ()
    turn = await harness.turn("the task: SENTINEL-B")
    assert turn.ended.answer == "Done."
    assert harness.told(Compacted)
    assert "SENTINEL-B" in str(harness.provider.requests[-1].messages)
    assert not harness.provider.problems


async def test_unfittable_prompt_does_not_stop_the_next(harness: AgentHarness) -> None:
    narrow(harness, text(SUMMARY))
    turn = await harness.turn("far too long " * 10_000)
    assert turn.ended.error is not None
    assert turn.ended.error.kind == "context_overflow"
    assert (await harness.turn("a short one")).ended.answer == "Done."


async def test_large_attachments_go_first_when_bytes_count(harness: AgentHarness) -> None:
    picture = ImagePart(media_type="image/png", data=b"x" * 300_000)
    looked = answer("I look.", replace(ran("read", "p.png"), output_parts=(picture,)))
    harness.history = (user("go"), *(answer(f"{at}", ran("read", "a.py", "x" * 3_000)) for at in range(3)), looked)
    too_large = error(413, "Request Entity Too Large")
    harness.provider.otherwise = lambda asked: too_large if len(asked.body) > 100_000 else text("Done.")
    harness.on_event = lambda event: harness.provider.forget_prefix() if isinstance(event, Compacted) else None
    assert (await harness.turn("and now?")).ended.answer == "Done."
    (done,) = harness.told(Compacted)
    assert (done.outputs_shortened, done.messages_left_out) == (1, 0)
    assert "x" * 3_000 in str(harness.provider.requests[-1].messages)


# Because a person asks


async def test_person_may_request_it_and_name_the_focus(harness: AgentHarness) -> None:
    harness.history = tuple(prose(20, size=8_000))
    harness.provider.script(text(SUMMARY))
    await harness.agent.compact(harness.history, "the tests")
    (asked,) = harness.provider.requests
    assert "the tests" in asked.messages[-1]["content"]
    (done,) = harness.told(Compacted)
    assert (done.reason, done.is_summarised) == ("manual", True)
    assert done.tokens_after < done.tokens_before / 2
    await harness.agent.uncompact(harness.history)
    assert harness.told(Compacted)[-1].reason == "restored"
    assert harness.compactor.cut.is_empty


async def test_failed_requested_summary_omits_nothing(harness: AgentHarness) -> None:
    harness.history = tuple(prose(20, size=8_000))
    harness.provider.script(MAX_LENGTH_FACTOR)
    await harness.agent.compact(harness.history)
    assert not harness.told(Compacted)
    assert harness.compactor.cut.is_empty
    (notice,) = harness.told(Noticed)
    assert "could not summarize" in notice.text


async def test_asking_works_where_compaction_is_switched_off(harness: AgentHarness) -> None:
    harness.compactor = Compactor(settings=CompactionSettings(auto=False))
    harness.history = tuple(prose(20, size=8_000))
    harness.provider.script(text(SUMMARY))
    await harness.agent.compact(harness.history)
    assert harness.told(Compacted)


async def test_there_may_be_nothing_to_compact(harness: AgentHarness) -> None:
    harness.history = (user("hi"), answer("Hello."))
    await harness.agent.compact(harness.history)
    await harness.agent.uncompact(harness.history)
    assert [notice.text.split()[0] for notice in harness.told(Noticed)] == ["Nothing", "Nothing"]
    assert not harness.provider.requests
