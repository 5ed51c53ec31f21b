"""Tasks given to other agents: what they may, what they share with the conversation, how they end, and what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.prompts import typed
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, calls, delta, error, finish, sse, text, usage
from wolo.agent.events import (
    AnswerEnded,
    ApprovalAsked,
    CallDenied,
    CallEnded,
    CallProgressed,
    Event,
    Noticed,
    TaskEnded,
    TaskStarted,
    TurnEnded,
)
from wolo.config import consents
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.history.turn_undo import Undoing
from wolo.conversation.resources.startup import StartOptions
from wolo.conversation.subagents.subagent_run import PausableTimer
from wolo.places import find_places
from wolo.sessions.listing import SessionInfo
from wolo.sessions.replay_entries import messages
from wolo.sessions.store import Store
from wolo.workspace.root import find_root

PRICED = 'providers.custom.models=[{id="test-model", price={input=1.0, output=2.0}}]'


@asynccontextmanager
async def begun(provider: ProviderServer, *set: str, attended: bool = False, **given: Any) -> AsyncIterator[Conversation]:
    options = {"base_url": provider.base_url, "model": "test-model", "api_key": "key", "mode": "yolo", "sandbox": "off"}
    conversation = await open_conversation(StartOptions(flags={**options, "set": list(set), **given}, attended=attended))
    try:
        yield conversation
    finally:
        await conversation.close()


async def events_of(
    conversation: Conversation, prompt: str = "go", on: Callable[[Event], None] = lambda event: None
) -> list[Event]:
    events = []
    async with asyncio.timeout(30):
        async for event in conversation.prompt(typed(prompt)):
            events.append(event)
            on(event)
    return events


def of(kind: type[Event], events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def is_child(asked: Asked) -> bool:
    return "Another agent has given you the task" in asked.messages[0]["content"]


def tools_of(asked: Asked) -> list[str]:
    return [tool["function"]["name"] for tool in asked.json.get("tools", ())]


def sessions(*, with_tasks: bool = True) -> list[SessionInfo]:
    with Store.open(find_places().data) as store:
        return store.list(with_tasks=with_tasks)


def own_provider(name: str, provider: ProviderServer, *models: str) -> list[str]:
    """Settings for a provider of one's own."""
    listed = ", ".join(f'{{id="{model}"}}' for model in models)
    place = f"providers.{name}"
    return [f"{place}.base_url={provider.base_url}", f"{place}.api_key=k", f"{place}.models=[{listed}]"]


def agent_file(name: str, text: str) -> None:
    path = find_places().config / f"agents/{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_child_starts_afresh_and_returns_only_its_answer(provider: ProviderServer) -> None:
    Path("a.txt").write_text("the needle\n")
    provider.script(
        call("task", {"prompt": "find the needle", "agent": "explore"}), call("grep", {"pattern": "needle"}), text("In a.txt.")
    )
    provider.script(text("Found."))
    async with begun(provider) as conversation:
        events = await events_of(conversation, "where is it?")
    parent, first, second, last = provider.requests
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert first.messages[1]["content"] == "find the needle"
    assert tools_of(first) == ["read", "grep", "glob", "fetch"]
    assert "a.txt" in second.results[0]
    assert last.results[0].startswith("In a.txt.\n[explore: 2 answers · 1 call · ")
    assert len(last.messages) == len(parent.messages) + 2
    (started,), (ended,) = of(TaskStarted, events), of(TaskEnded, events)
    assert (started.agent, started.session_id) == ("explore", ended.session_id)
    assert (ended.ended, ended.answers, ended.calls) == ("done", 2, 1)
    assert [event.message.text for event in of(AnswerEnded, events)] == ["", "Found."]


async def test_activity_is_reported_while_it_happens(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), call("glob", {"pattern": "*.py"}), text("Nothing."), text("Done."))
    async with begun(provider) as conversation:
        heard = "".join(event.text for event in of(CallProgressed, await events_of(conversation)))
    assert "waiting for the model · 0 calls · 0 tokens\n" in heard
    assert "glob *.py · 1 call · " in heard


async def test_changes_belong_to_parent_and_its_turn_undo(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "make it"}), call("write", {"path": "new.txt", "content": "x"}))
    provider.script(call("shell", {"command": "echo y > other.txt"}), text("Made."), text("Done."))
    async with begun(provider) as conversation:
        events = await events_of(conversation)
        (ended,) = of(CallEnded, events)
        files = {str(Path.cwd() / name) for name in ("new.txt", "other.txt")}
        assert {*ended.files_changed} == {*of(TaskEnded, events)[0].files_changed} == files
        assert conversation.files.tracker is not None
        assert conversation.files.tracker.store is not None
        noted = conversation.files.tracker.store.of_turns((conversation.history[0].id,))
        assert {each.call.partition("/")[0] for each in noted} == {ended.part.wire_id}
        undoing = Undoing.of(conversation)
        undo = undoing.undo()
        assert sorted(undo.report.removed) == ["new.txt", "other.txt"]
        undoing.carry_out(undo)
    assert not list(Path.cwd().iterdir())


async def test_one_budget_is_for_all_of_them(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}))
    provider.otherwise = lambda asked: call("glob", {"pattern": f"{len(provider.requests)}*"})
    async with begun(provider, "limits.max_turns=4") as conversation:
        events = await events_of(conversation)
    assert len(provider.requests) == 4
    (ended,) = of(TurnEnded, events)
    assert (ended.cause, ended.num_answers, ended.exit_code) == ("max_turns", 4, 5)
    assert of(TaskEnded, events)[0].ended == "max turns"


async def test_parallel_spending_is_one_sum(provider: ProviderServer) -> None:
    two = calls(("task", {"prompt": "a", "agent": "explore"}), ("task", {"prompt": "b", "agent": "explore"}))
    provider.script(two)
    provider.otherwise = lambda asked: call("glob", {"pattern": f"{len(provider.requests)}*"})
    async with begun(provider, PRICED, "limits.max_cost=0.0006") as conversation:
        events = await events_of(conversation)
    (ended,) = of(TurnEnded, events)
    assert ended.cause == "max_cost"
    # 100 tokens in and 10 out are $0.00012. A stream that is stopped by the other's answer costs as much as wolo estimates.
    assert len(provider.requests) <= 6
    spent = [task.usage.cost.total for task in of(TaskEnded, events)]
    assert len(spent) == 2
    assert ended.usage.cost.total == pytest.approx(0.00012 + sum(spent))
    assert ended.usage.cost.total > 0.0006 - 1e-9
    assert ended.usage.estimated or ended.usage.cost.total == pytest.approx(0.00012 * len(provider.requests))


async def test_child_turns_are_bounded_and_parent_continues(provider: ProviderServer) -> None:
    agent_file("brief", "---\ndescription: x\nmax_turns: 2\n---\n")
    provider.script(call("task", {"prompt": "look", "agent": "brief"}))
    provider.script(call("glob", {"pattern": "a"}), call("glob", {"pattern": "b"}), text("Then I do it."))
    async with begun(provider) as conversation:
        events = await events_of(conversation)
    assert of(TurnEnded, events)[0].cause == "done"
    result = provider.requests[-1].results[0]
    assert "[max turns after" in result
    assert "glob a\nglob b" in result


async def test_project_agent_turns_stay_within_settings(provider: ProviderServer) -> None:
    Path(".wolo/agents").mkdir(parents=True)
    Path(".wolo/agents/eager.md").write_text("---\ndescription: x\nmax_turns: 900\n---\n")
    consents.save_trust(find_places(), find_root(Path.cwd()), "trusted")
    provider.script(call("task", {"prompt": "look", "agent": "eager"}), call("glob", {"pattern": "a"}), text("Done."))
    async with begun(provider, "tasks.max_turns=1") as conversation:
        await events_of(conversation)
    assert "[max turns after" in provider.requests[-1].results[0]


async def test_tokens_and_cost_are_rolled_up(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), text("Nothing."), text("Done."))
    async with begun(provider, PRICED) as conversation:
        (ended,) = of(TurnEnded, await events_of(conversation))
        assert (ended.num_answers, ended.usage.input_tokens, ended.usage.output_tokens) == (3, 300, 30)
        assert ended.usage.cost.total == pytest.approx(0.00036)
    parent, child = sessions(with_tasks=False)[0], next(info for info in sessions() if info.agent)
    assert (parent.tokens, child.tokens) == (330, 110)
    assert parent.cost_usd == pytest.approx(0.00036)


async def test_stalled_child_times_out_and_parent_continues(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), sse(delta("I have seen"), done=False, ending="stall"), text("I go on."))
    async with begun(provider, "tasks.timeout_s=0.5") as conversation:
        events = await events_of(conversation)
    assert of(TurnEnded, events)[0].cause == "done"
    (ended,) = of(CallEnded, events)
    assert ended.part.outcome == "error"
    result = provider.requests[-1].results[0]
    assert result.startswith("I have seen\n[timed out after ")
    assert of(TaskEnded, events)[0].ended == "timed out"


async def test_command_of_timed_out_child_is_ended(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "wait"}), call("shell", {"command": "echo begun; sleep 300; touch after"}))
    provider.script(text("I go on."))
    async with begun(provider, "tasks.timeout_s=1.5") as conversation:
        await events_of(conversation)
    result = provider.requests[-1].results[0]
    assert "[timed out after" in result
    assert "shell echo begun; sleep 300; touch after · interrupted" in result
    assert not Path("after").exists()


async def test_the_clock_stands_still_while_a_person_thinks(provider: ProviderServer) -> None:
    provider.script(
        call("task", {"prompt": "run it"}), call("shell", {"command": "echo hello > made"}), text("Ran."), text("Done.")
    )

    async with begun(provider, "tasks.timeout_s=2", attended=True, mode="ask") as conversation:
        loop = asyncio.get_running_loop()

        def answer(event: Event) -> None:
            if isinstance(event, ApprovalAsked):
                assert event.agent == "general"
                loop.call_later(2.5, lambda: conversation.answer(event.id, allowed=True))

        events = await events_of(conversation, on=answer)
    assert of(TaskEnded, events)[0].ended == "done"
    assert Path("made").exists()


async def test_unattended_child_calls_are_denied_and_reported(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "run it"}), call("shell", {"command": "make"}), text("I could not."), text("Done."))
    async with begun(provider, mode="ask") as conversation:
        events = await events_of(conversation)
    (denied,) = of(CallDenied, events)
    assert (denied.agent, denied.part.tool) == ("general", "shell")
    assert "1 denied" in provider.requests[-1].results[0]
    assert "ask" not in tools_of(provider.requests[1])


async def test_a_rule_of_the_parents_holds_for_it(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "run it"}), call("shell", {"command": "git push"}), text("No."), text("Done."))
    async with begun(provider, deny=["shell:git push *"]) as conversation:
        events = await events_of(conversation)
    assert "denied by the rule" in of(CallDenied, events)[0].reason


@pytest.mark.parametrize(("agent", "may"), [("general", False), ("explore", True)])
async def test_mode_plan_lets_only_readers_work(provider: ProviderServer, agent: str, may: bool) -> None:
    provider.script(call("task", {"prompt": "look", "agent": agent}), *([text("Seen.")] if may else []), text("Done."))
    async with begun(provider, mode="plan") as conversation:
        events = await events_of(conversation)
    assert bool(of(TaskStarted, events)) == may
    if not may:
        assert "not possible in mode plan" in of(CallEnded, events)[0].part.output
        assert of(CallDenied, events) == []


async def test_agent_rights_are_its_maximum(provider: ProviderServer) -> None:
    agent_file("careful", "---\ndescription: x\npermission:\n  bash:\n    '*': deny\n    echo *: allow\n  edit: ask\n---\n")
    provider.script(call("task", {"prompt": "work", "agent": "careful"}), call("shell", {"command": "echo hi"}))
    provider.script(
        *(call("shell", {"command": "touch other"}), call("write", {"path": "a", "content": "x"})),
        *(text("No."), text("Done.")),
    )
    async with begun(provider) as conversation:
        events = await events_of(conversation)
    assert [denied.part.tool for denied in of(CallDenied, events)] == ["shell", "write"]
    assert not list(Path.cwd().iterdir())


async def test_main_agent_rights_hold_for_the_conversation(provider: ProviderServer) -> None:
    agent_file("planner", "---\ndescription: x\nmode: primary\npermissionMode: plan\n---\n")
    provider.script(call("write", {"path": "a", "content": "x"}), text("No."))
    async with begun(provider, agent="planner") as conversation:
        events = await events_of(conversation)
    assert of(CallDenied, events) == []
    assert provider.requests[-1].results[0].startswith("Denied by plan mode")
    assert not Path("a").exists()


@pytest.mark.parametrize(("rule", "agent"), [("task:*", "explore"), ("task:explore", "explore")])
async def test_a_rule_says_who_may_be_given_tasks(provider: ProviderServer, rule: str, agent: str) -> None:
    provider.script(call("task", {"prompt": "look", "agent": agent}), text("Then I do it."))
    async with begun(provider, deny=[rule]) as conversation:
        events = await events_of(conversation)
    assert not of(TaskStarted, events)
    assert "denied by the rule" in of(CallDenied, events)[0].reason


async def test_newly_entered_mode_holds_for_child_at_once(provider: ProviderServer) -> None:
    hold, write = Hold(), call("write", {"path": "new.txt", "content": "x"})
    held = replace(write, pieces=(hold, *write.pieces))
    provider.script(
        call("task", {"prompt": "write"}), call("glob", {"pattern": "*"}), held, text("I was not let."), text("Done.")
    )
    async with begun(provider, mode="yolo") as conversation:

        def plan(event: Event) -> None:
            if isinstance(event, CallProgressed) and "glob" in event.text:
                conversation.set_mode("plan")
                hold.release()

        events = await events_of(conversation, on=plan)
    assert not Path("new.txt").exists()
    assert "Plan mode is read-only" in provider.requests[3].results[-1]
    assert of(CallDenied, events) == []


async def test_four_readers_at_most_run_in_parallel(provider: ProviderServer) -> None:
    hold, asking, most = Hold(), 0, 0
    tasks = [("task", {"prompt": f"look {number}", "agent": "explore"}) for number in range(6)]
    provider.script(calls(*tasks))

    def answer(asked: Asked) -> Any:
        nonlocal asking, most
        if not is_child(asked):
            return text("Done.")
        asking += 1
        most = max(most, asking)
        return sse(hold, delta("Seen."), finish("stop", usage()))

    provider.otherwise = answer

    async def let_go() -> None:
        await asyncio.to_thread(provider.wait_for_requests, 5)
        hold.release()

    async with begun(provider) as conversation:
        letting = asyncio.ensure_future(let_go())
        running = []
        assert conversation.subagents is not None
        subagents = conversation.subagents
        events = await events_of(conversation, on=lambda event: running.append(len(subagents.running)))
        await letting
    assert max(running) == 4
    assert [ended.part.input["prompt"] for ended in of(CallEnded, events)] == [f"look {number}" for number in range(6)]
    assert [result.partition("\n")[0] for result in provider.requests[-1].results] == ["Seen."] * 6


async def test_possibly_changing_children_run_one_by_one(provider: ProviderServer) -> None:
    provider.script(calls(("task", {"prompt": "a"}), ("task", {"prompt": "b"})))
    provider.otherwise = lambda asked: text("Made.") if is_child(asked) else text("Done.")
    async with begun(provider) as conversation:
        told = [type(event) for event in await events_of(conversation) if isinstance(event, TaskStarted | TaskEnded)]
    assert told == [TaskStarted, TaskEnded, TaskStarted, TaskEnded]


async def test_interrupted_child_returns_its_partial_work(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), sse(delta("Half of"), done=False, ending="stall"))
    async with begun(provider) as conversation:

        def stop(event: Event) -> None:
            if isinstance(event, CallProgressed) and "writing" in event.text:
                conversation.interrupt()

        events = await events_of(conversation, on=stop)
        (ended,) = of(CallEnded, events)
        assert ended.part.outcome == "interrupted"
        assert ended.part.output.startswith("Half of\n[interrupted after ")
        assert of(TurnEnded, events)[0].cause == "interrupted"
        assert conversation.history[-1].calls[0].outcome == "interrupted"


async def test_child_session_names_parent_and_stays_hidden(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look around", "agent": "explore"}), text("Seen."), text("Done."))
    async with begun(provider) as conversation:
        await events_of(conversation)
        part = conversation.history[1].calls[0]
        here = conversation.info.session_id
    assert [info.id for info in sessions(with_tasks=False)] == [here]
    child = next(info for info in sessions() if info.agent)
    assert (child.agent, child.parent, child.title) == ("explore", f"{here}/explore", "look around")
    assert part.metadata["task"]["session"] == child.id
    with Store.open(find_places().data) as store:
        said = messages(store.load(child.id).entries)
        kept = messages(store.load(here).entries)
        assert store.latest(Path.cwd()).id == here  # type: ignore[union-attr]  # there is one
        assert store.find(child.id).id == child.id
        assert [message.text for message in said] == ["look around", "Seen."]
        assert said[0].metadata["task"] == {"agent": "explore", "session": here, "call": part.id}
        assert kept[1].calls[0].metadata["task"]["session"] == child.id
        store.delete(here)
    assert not sessions()


async def test_unkept_session_keeps_no_task_either(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), call("shell", {"command": "seq 100000"}), text("Seen."), text("Done."))
    async with begun(provider, no_session=True) as conversation:
        events = await events_of(conversation)
    assert of(TurnEnded, events)[0].cause == "done"
    assert not (find_places().data / "wolo.db").exists()


async def test_file_agent_has_its_own_text_and_tools(provider: ProviderServer) -> None:
    agent_file("strict", "---\ndescription: finds mistakes\ntools: read, bash, nothing\n---\nBe strict, be brief.")
    provider.script(call("task", {"prompt": "look", "agent": "Strict"}), call("write", {"path": "x", "content": "x"}))
    provider.script(text("I may not."), text("Done."))
    async with begun(provider) as conversation:
        await events_of(conversation)
    parent, child, refused, _ = provider.requests
    spec = next(tool["function"] for tool in parent.json["tools"] if tool["function"]["name"] == "task")
    assert "\n- strict: finds mistakes" in spec["description"]
    assert child.messages[0]["content"].endswith("Be strict, be brief.")
    assert tools_of(child) == ["read", "shell", "jobs"]
    assert "There is no tool `write`" in refused.results[0]
    assert not Path("x").exists()


async def test_only_agents_loading_skills_are_told_of_them(provider: ProviderServer) -> None:
    skill = find_places().config / "skills/tidy/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: Tidies a folder.\n---\nSort the files.")
    provider.script(call("task", {"prompt": "look", "agent": "explore"}), text("Seen."))
    provider.script(call("task", {"prompt": "tidy up"}), call("skill", {"name": "tidy"}), text("Tidied."), text("Done."))
    async with begun(provider) as conversation:
        await events_of(conversation)
    parent, explores, _, works, loaded, _ = provider.requests
    assert ["Tidies a folder." in asked.messages[0]["content"] for asked in (parent, explores, works)] == [True, False, True]
    assert "# Skills" not in explores.messages[0]["content"]
    assert "Sort the files." in loaded.results[0]


async def test_own_model_is_asked_and_missing_one_reported(provider: ProviderServer) -> None:
    settings = own_provider("here", provider, "a", "b")
    agent_file("other", "---\ndescription: x\nmodel: here/b\n---\n")
    agent_file("gone", "---\ndescription: x\nmodel: nobody/knows-it\n---\n")
    agent_file("foreign", "---\ndescription: x\nmodel: sonnet\n---\n")
    for name in ("other", "gone", "gone", "foreign"):
        provider.script(call("task", {"prompt": f"look {name} {len(provider._script)}", "agent": name}), text("Seen."))
    provider.script(text("Done."))
    given = {"base_url": None, "api_key": None, "model": "here/a"}
    async with begun(provider, *settings, **given) as conversation:
        events = await events_of(conversation)
    assert [asked.json["model"] for asked in provider.requests if is_child(asked)] == ["b", "a", "a", "a"]
    notices = [event.text for event in of(Noticed, events) if "the agent" in event.text]
    assert notices[0].endswith("So the agent gone uses here/a.")
    said = [event.text for event in of(Noticed, events) if "foreign" in event.text]
    assert (len(notices), len(said)) == (1, 1)
    assert 'model_aliases.sonnet = "provider/model"' in said[0]


async def test_aliases_and_small_model_select_agent_models(provider: ProviderServer) -> None:
    settings = [*own_provider("here", provider, "a", "b", "tiny"), "model_aliases.sonnet=here/b", "small_model=here/tiny"]
    for name in ("sonnet", "haiku", "fast"):
        agent_file(name, f"---\ndescription: x\nmodel: {name}\ntemperature: 0.5\n---\n")
    for name in ("sonnet", "haiku", "fast", "explore", "general"):
        provider.script(call("task", {"prompt": f"look {name}", "agent": name}), text("Seen."))
    provider.script(text("Done."))
    async with begun(provider, *settings, base_url=None, api_key=None, model="here/a") as conversation:
        events = await events_of(conversation)
    children = [asked.json for asked in provider.requests if is_child(asked)]
    assert [each["model"] for each in children] == ["b", "tiny", "tiny", "tiny", "a"]
    assert [each.get("temperature") for each in children] == [0.5, 0.5, 0.5, None, None]
    assert not of(Noticed, events)


async def test_small_model_error_is_reported_main_one_answers(provider: ProviderServer) -> None:
    settings = [*own_provider("here", provider, "a", "tiny"), "small_model=here/tiny"]
    provider.script(
        call("task", {"prompt": "look", "agent": "explore"}), error(404, "no such model"), text("Seen."), text("Done.")
    )
    async with begun(provider, *settings, base_url=None, api_key=None, model="here/a") as conversation:
        events = await events_of(conversation)
    assert [asked.json["model"] for asked in provider.requests] == ["a", "tiny", "a", "a"]
    (notice,) = of(Noticed, events)
    assert notice.text.startswith("explore: ")
    assert notice.text.endswith("here/a answers instead.")


async def test_project_agent_may_use_a_user_alias(provider: ProviderServer) -> None:
    settings = [*own_provider("here", provider, "a"), *own_provider("there", provider, "c"), "model_aliases.opus=there/c"]
    path = Path(".claude/agents/lead.md")
    path.parent.mkdir(parents=True)
    path.write_text("---\ndescription: x\nmodel: opus\n---\n")
    consents.save_trust(find_places(), find_root(Path.cwd()), "trusted")
    provider.script(call("task", {"prompt": "look", "agent": "lead"}), text("Seen."), text("Done."))
    async with begun(provider, *settings, base_url=None, api_key=None, model="here/a") as conversation:
        await events_of(conversation)
    assert [asked.json["model"] for asked in provider.requests] == ["a", "c", "a"]


async def test_a_projects_agent_leads_to_no_other_provider(provider: ProviderServer) -> None:
    settings = [*own_provider("here", provider, "a"), *own_provider("there", provider, "c")]
    path = Path(".wolo/agents/lead.md")
    path.parent.mkdir(parents=True)
    path.write_text("---\ndescription: x\nmodel: there/c\n---\n")
    consents.save_trust(find_places(), find_root(Path.cwd()), "trusted")
    provider.script(call("task", {"prompt": "look", "agent": "lead"}), text("Seen."), text("Done."))
    async with begun(provider, *settings, base_url=None, api_key=None, model="here/a") as conversation:
        events = await events_of(conversation)
    assert [asked.json["model"] for asked in provider.requests] == ["a"] * 3
    assert any("cannot select another provider" in event.text for event in of(Noticed, events))


async def test_failed_provider_is_a_result_and_parent_continues(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "look"}), error(400, {"error": {"message": "no such thing"}}), text("I do it."))
    async with begun(provider) as conversation:
        events = await events_of(conversation)
    assert of(TurnEnded, events)[0].cause == "done"
    assert "no such thing" in provider.requests[-1].results[0]
    assert of(CallEnded, events)[0].part.is_error


async def test_its_background_jobs_end_with_it(provider: ProviderServer) -> None:
    provider.script(
        call("task", {"prompt": "serve"}), call("shell", {"command": "sleep 300", "background": True}), text("On."), text("Done.")
    )
    async with begun(provider) as conversation:
        await events_of(conversation)
        assert conversation.jobs is not None
        assert not conversation.jobs.all


async def test_hooks_hold_for_child_and_report_its_life(provider: ProviderServer) -> None:
    log = Path.cwd() / "heard"
    tell = f"cat >> {log}; echo >> {log}"
    deny = 'if grep -q forbidden; then echo "not that" >&2; exit 2; fi'
    hooks = {
        "PreToolUse": [{"matcher": "shell", "hooks": [{"type": "command", "command": deny}]}],
        **{name: [{"hooks": [{"type": "command", "command": tell}]}] for name in ("SubagentStart", "SubagentStop", "Stop")},
    }
    path = find_places().config / "hooks.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": hooks}))
    path.chmod(0o600)
    provider.script(call("task", {"prompt": "run it"}), call("shell", {"command": "echo forbidden > made"}))
    provider.script(text("I was not let."), text("Done."))
    async with begun(provider) as conversation:
        await events_of(conversation)
    assert not Path("made").exists()
    assert "not that" in provider.requests[2].results[0]
    heard = [json.loads(line) for line in log.read_text().splitlines() if line]
    assert [(each["hook_event_name"], each.get("agent_type")) for each in heard] == [
        ("SubagentStart", "general"),
        ("SubagentStop", "general"),
        ("Stop", None),
    ]


async def test_hook_stopping_everything_in_task_ends_turn(provider: ProviderServer) -> None:
    path = find_places().config / "hooks.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    stop = 'echo \'{"continue": false, "stopReason": "Not on Friday."}\''
    path.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": stop}]}]}}))
    path.chmod(0o600)
    provider.script(calls(("task", {"prompt": "run it"}), ("write", {"path": "later", "content": ""})))
    provider.script(call("shell", {"command": "touch made"}))
    async with begun(provider) as conversation:
        ended = (await events_of(conversation))[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.cause, ended.error and ended.error.message) == ("blocked", "A hook ended the turn: Not on Friday.")
    assert not Path("made").exists()
    assert not Path("later").exists()


async def test_alarm_rings_once_and_never_while_held() -> None:
    rung: list[None] = []
    alarm = PausableTimer(0.05, lambda: rung.append(None))
    alarm.start()
    with alarm.pause():
        with alarm.pause():
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.02)
        assert not rung
    while not rung:
        await asyncio.sleep(0.01)
    assert alarm.rang
    alarm.stop()
    assert len(rung) == 1


async def test_task_secret_stays_a_placeholder_for_everyone(provider: ProviderServer) -> None:
    secret = "sk-very-secret-0123456789"

    def hand_on(asked: Asked) -> Reply:
        placeholder = str(asked.messages[1]["content"]).removeprefix("use ")
        assert placeholder.startswith("SECRET_")
        return call("task", {"prompt": f"try {placeholder}"})

    provider.script(hand_on, text("Tried."), text("Done."))
    async with begun(provider, api_key=secret) as conversation:
        events = await events_of(conversation, f"use {secret}")
    assert not of(CallDenied, events)
    assert of(TaskStarted, events)[0].prompt.startswith("try SECRET_")
    assert not any(secret.encode() in asked.body for asked in provider.requests)
    assert secret not in repr(events)


async def test_tried_call_is_judged_as_for_the_agent(provider: ProviderServer) -> None:
    agent_file("reader", "---\ndescription: x\ntools: read\n---\n")
    async with begun(provider, mode="plan") as conversation:
        verdicts = {name: conversation.permissions.verdict(f"task:{name}").decision for name in ("explore", "reader", "general")}
    assert verdicts == {"explore": "allow", "reader": "allow", "general": "deny"}


async def test_exported_and_imported_child_is_visible_there(provider: ProviderServer, tmp_path: Path) -> None:
    provider.script(call("task", {"prompt": "look around", "agent": "explore"}), text("Seen."), text("Done."))
    async with begun(provider) as conversation:
        await events_of(conversation)
    child = next(info for info in sessions() if info.agent)
    file = tmp_path / "child.jsonl"
    assert run_wolo("sessions", "export", child.id, "-o", str(file)).exit_code == 0
    with Store.open(find_places().data) as store:
        store.delete(child.task_of)
    assert not sessions()
    assert run_wolo("sessions", "import", str(file)).exit_code == 0
    assert [info.title for info in sessions(with_tasks=False)] == ["look around"]
