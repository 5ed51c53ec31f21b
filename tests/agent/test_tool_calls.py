"""The calls of one answer: judged, approved, run, and answered exactly once each, in order."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.agent.conftest import AgentHarness
from tests.fakes.replies import call, calls, text
from wolo.agent.events import (
    AnswerEnded,
    ApprovalAsked,
    ApprovalGiven,
    CallDenied,
    CallEnded,
    CallProgressed,
    CallStarted,
    CallStreamed,
    Event,
    TurnEnded,
)
from wolo.agent.tool_calls import MAX_PARALLEL
from wolo.guard.intents import WriteIntent
from wolo.guard.rules import parse_rule
from wolo.messages.parts import ToolPart


def ended(harness: AgentHarness) -> list[ToolPart]:
    return [event.part for event in harness.told(CallEnded)]


async def test_reads_run_in_parallel_and_answer_in_order(harness: AgentHarness) -> None:
    harness.look.together = 4
    harness.provider.script(calls(*[("look", {"text": str(number)}) for number in range(4)]), text("done"))
    await harness.turn()
    assert harness.look.most_running == 4
    assert harness.results() == [f"saw {number}" for number in range(4)]
    assert [part.output for part in ended(harness)] == harness.results()


async def test_changing_calls_run_one_after_the_other(harness: AgentHarness) -> None:
    harness.provider.script(
        calls(
            ("write", {"path": "a.txt", "content": "one"}),
            ("read", {"path": "a.txt"}),
            ("edit", {"path": "a.txt", "old": "one", "new": "two"}),
            ("read", {"path": "a.txt"}),
        ),
        text("done"),
    )
    await harness.turn()
    results = harness.results()
    assert "one" in results[1]
    assert "two" in results[3]


async def test_five_hundred_calls_are_answered_in_batches(harness: AgentHarness) -> None:
    harness.look.together = MAX_PARALLEL
    harness.provider.script(calls(*[("look", {"text": str(number)}) for number in range(500)], size=1000), text("done"))
    turn = await harness.turn()
    assert harness.results() == [f"saw {number}" for number in range(500)]
    assert harness.look.most_running == MAX_PARALLEL
    assert turn.ended.cause == "done"


async def test_unknown_tool_is_only_an_error_for_model(harness: AgentHarness) -> None:
    harness.provider.script(call("reed", {"path": "a"}), text("I see."))
    turn = await harness.turn()
    assert "reed" in harness.results()[0]
    assert "read" in harness.results()[0]
    assert turn.ended.cause == "done"
    assert not harness.told(CallStarted)


async def test_arguments_that_do_not_fit_are_explained(harness: AgentHarness) -> None:
    harness.provider.script(call("read", {"pth": "a"}), call("read", {"path": ["a"]}), text("I see."))
    await harness.turn()
    assert "pth" in harness.results()[0]
    assert "path" in harness.results()[1]


async def test_unreadable_call_is_answered_and_its_sibling_runs(harness: AgentHarness) -> None:
    broken = '{"command":"touch X", description":"y"}'
    harness.provider.script(calls(("shell", broken), ("say", {"text": "hello"})), text("sorry"))
    await harness.turn()
    first, second = harness.results()
    assert "JSON" in first
    assert "shell" in first
    assert second == "said hello"
    assert not Path("X").exists()
    assert [part.outcome for part in ended(harness)] == ["invalid", "ok"]


async def test_model_repeating_unreadable_calls_is_stopped(harness: AgentHarness) -> None:
    harness.provider.script(*[call("say", f'{{"text": {number}') for number in range(6)])
    turn = await harness.turn()
    assert len(harness.provider.requests) == 3
    assert turn.ended.exit_code == 1


async def test_crashing_or_failing_tool_becomes_a_result(harness: AgentHarness) -> None:
    harness.provider.script(calls(("crash", {}), ("fail", {"text": "file"}), ("say", {"text": "on"})), text("done"))
    await harness.turn()
    crashed, failed, on = harness.results()
    assert "division by zero" in crashed
    assert failed == "there is no file"
    assert on == "said on"
    assert [part.outcome for part in ended(harness)] == ["error", "error", "ok"]


async def test_call_with_unknown_effects_does_not_run(harness: AgentHarness) -> None:
    harness.provider.script(calls(("unpredictable", {}), ("say", {"text": "on"})), text("done"))
    turn = await harness.turn()
    unpredictable, on = harness.results()
    assert "Invalid argument" in unpredictable
    assert on == "said on"
    assert turn.ended.exit_code == 0


async def test_file_that_becomes_a_link_is_not_printed(harness: AgentHarness, tmp_path: Path) -> None:
    Path("notes").write_text("mine")
    (tmp_path / "outside").write_text("not mine")

    def replace_notes(event: Event) -> None:
        if isinstance(event, AnswerEnded):  # as the check before the first change of a turn may, or a job
            Path("notes").unlink(missing_ok=True)
            Path("notes").symlink_to(tmp_path / "outside")

    harness.on_event = replace_notes
    harness.provider.script(call("command", {"text": "cat notes"}), text("Then not."))
    await harness.turn()
    assert harness.command.ran == []
    assert [part.outcome for part in ended(harness)] == ["denied_by_rule"]


async def test_a_rule_denies_and_says_why(harness: AgentHarness) -> None:
    harness.rules = [parse_rule("shell:git push *", "deny", "--deny")]
    harness.provider.script(call("command", {"text": "git push origin"}), text("Then not."))
    turn = await harness.turn()
    assert harness.command.ran == []
    assert "enied" in harness.results()[0]
    assert ended(harness)[0].outcome == "denied_by_rule"
    assert [event.part.tool for event in harness.told(CallDenied)] == ["command"]
    assert turn.ended.exit_code == 0


async def test_with_nobody_there_what_would_ask_is_denied(harness: AgentHarness) -> None:
    harness.provider.script(call("command", {"text": "make"}), text("Then not."))
    await harness.turn()
    assert harness.command.ran == []
    assert "No one" in harness.results()[0]
    assert not harness.told(ApprovalAsked)
    assert len(harness.told(CallDenied)) == 1


async def test_a_person_may_say_yes(harness: AgentHarness) -> None:
    async def yes(asked: ApprovalAsked) -> ApprovalGiven:
        assert (asked.part.tool, asked.part.status) == ("command", "pending")
        return ApprovalGiven(id=asked.id, allowed=True)

    harness.person = yes
    harness.provider.script(call("command", {"text": "make"}), text("Done."))
    await harness.turn()
    assert harness.command.ran == ["make"]
    assert harness.told(CallStarted)[0].part.metadata["decided_by"] == "person"
    kinds = [type(event) for event in harness.events]
    assert kinds.index(ApprovalGiven) < kinds.index(CallStarted) < kinds.index(CallEnded)


async def test_streamed_call_has_final_id_from_first_piece(harness: AgentHarness) -> None:
    harness.provider.script(calls(("say", {"text": "a"}), ("say", {"text": "b"})), text("Done."))
    await harness.turn()
    streamed = dict.fromkeys(event.id for event in harness.told(CallStreamed))
    assert list(streamed) == [event.part.id for event in harness.told(CallStarted)]


async def test_an_approval_carries_the_change_it_is_about(harness: AgentHarness) -> None:
    views: list[object] = []

    async def yes(asked: ApprovalAsked) -> ApprovalGiven:
        views.append((asked.view, asked.locations))
        return ApprovalGiven(id=asked.id, allowed=True)

    harness.person = yes
    harness.mode = "ask"
    harness.provider.script(call("write", {"path": "a.txt", "content": "new\n"}), text("Done."))
    await harness.turn()
    (end,) = harness.told(CallEnded)
    assert end.view is not None
    assert views == [(end.view, end.locations)]


async def test_person_denies_and_the_model_reads_why(harness: AgentHarness) -> None:
    async def no(asked: ApprovalAsked) -> ApprovalGiven:
        return ApprovalGiven(id=asked.id, allowed=False, reason="use the staging server")

    harness.person = no
    harness.provider.script(call("command", {"text": "make deploy"}), text("Then not."))
    await harness.turn()
    assert harness.command.ran == []
    assert "use the staging server" in harness.results()[0]
    assert ended(harness)[0].outcome == "denied_by_person"


async def test_session_consent_is_asked_for_once(harness: AgentHarness) -> None:
    asked_for: list[str] = []

    async def yes(asked: ApprovalAsked) -> ApprovalGiven:
        asked_for.append(asked.part.input["text"])
        return ApprovalGiven(id=asked.id, allowed=True, scope="session")

    harness.person = yes
    make, other = call("command", {"text": "make"}), call("command", {"text": "make clean"})
    harness.provider.script(make, other, call("command", {"text": "make"}), text("Done."))
    await harness.turn()
    assert asked_for == ["make", "make clean"]
    assert harness.command.ran == ["make", "make clean", "make"]


async def test_verdict_is_renewed_when_the_call_begins(harness: AgentHarness, tmp_path: Path) -> None:
    """Between the answer and the call the ground may have moved: here the path has become a way out."""
    outside = tmp_path / "outside"
    outside.mkdir()

    async def yes_and_move(asked: ApprovalAsked) -> ApprovalGiven:
        if asked.part.tool == "command":
            Path("inside").symlink_to(outside)
            return ApprovalGiven(id=asked.id, allowed=True)
        return ApprovalGiven(id=asked.id, allowed=False, reason="that leaves the project")

    harness.person = yes_and_move
    harness.provider.script(
        calls(("command", {"text": "make"}), ("write", {"path": "inside/new.txt", "content": "x"})), text("Then not.")
    )
    await harness.turn()
    assert not (outside / "new.txt").exists()
    assert "that leaves the project" in harness.results()[1]


async def test_yes_covers_only_the_shown_call(harness: AgentHarness, tmp_path: Path) -> None:
    asked_for: list[Path] = []

    async def yes_while_it_moves(asked: ApprovalAsked) -> ApprovalGiven:
        (intent,) = asked.intents
        assert isinstance(intent, WriteIntent)
        asked_for.append(intent.path)
        if len(asked_for) == 1:
            Path("folder").symlink_to(tmp_path)
        return ApprovalGiven(id=asked.id, allowed=len(asked_for) == 1)

    harness.mode = "ask"
    harness.person = yes_while_it_moves
    harness.provider.script(call("write", {"path": "folder/new.txt", "content": "x"}), text("Then not."))
    await harness.turn()
    assert asked_for == [Path.cwd() / "folder/new.txt", tmp_path / "new.txt"]
    assert not (tmp_path / "new.txt").exists()


async def test_live_output_is_told_while_the_call_runs(harness: AgentHarness) -> None:
    harness.provider.script(call("hang", {"text": "x"}))
    harness.on_event = lambda event: harness.agent.interrupt() if isinstance(event, CallProgressed) else None
    await harness.turn()
    assert [event.text for event in harness.told(CallProgressed)] == ["half a line"]


async def test_three_calls_interrupted_midway_answer_differently(harness: AgentHarness) -> None:
    harness.provider.script(calls(("say", {"text": "fast"}), ("hang", {"text": "slow"}), ("say", {"text": "late"})))
    harness.on_event = lambda event: harness.agent.interrupt() if isinstance(event, CallProgressed) else None
    turn = await harness.turn()
    assert (turn.ended.cause, turn.ended.exit_code) == ("interrupted", 130)
    assert [part.outcome for part in turn.new[-1].calls] == ["ok", "interrupted", "never_started"]
    assert [part.outcome for part in ended(harness)] == ["ok", "interrupted", "never_started"]
    harness.on_event = lambda event: None
    harness.provider.script(text("I go on."))
    await harness.turn("go on")
    fast, slow, late = harness.results()
    assert fast == "said fast"
    assert "nterrupted" in slow
    assert "may have had effects" in slow
    assert "ever started" in late
    assert harness.say.ran == ["fast"]


async def test_interrupted_real_command_reports_its_output(harness: AgentHarness) -> None:
    harness.mode = "yolo"
    harness.provider.script(call("shell", {"command": "echo part; touch F; sleep 30"}))
    harness.on_event = lambda event: harness.agent.interrupt() if isinstance(event, CallProgressed) else None
    turn = await harness.turn()
    assert turn.ended.cause == "interrupted"
    harness.on_event = lambda event: None
    harness.provider.script(text("I go on."))
    await harness.turn("go on")
    (result,) = harness.results()
    assert "part" in result
    assert "interrupted" in result.lower()
    assert "denied" not in result.lower()
    assert Path("F").exists()


async def test_cancelling_the_task_that_waits_is_an_interrupt(harness: AgentHarness) -> None:
    harness.provider.script(call("hang", {"text": "x"}))
    waiting = asyncio.create_task(harness.turn())
    async with asyncio.timeout(60):
        await harness.hang.begun.wait()
    waiting.cancel()
    waiting.cancel()
    turn = await waiting
    assert turn.ended.cause == "interrupted"
    assert isinstance(harness.events[-1], TurnEnded)


async def test_interrupt_during_approval_starts_nothing(harness: AgentHarness) -> None:
    async def stop(asked: ApprovalAsked) -> ApprovalGiven:
        harness.agent.interrupt()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    harness.person = stop
    harness.provider.script(call("command", {"text": "make"}))
    turn = await harness.turn()
    assert turn.ended.cause == "interrupted"
    assert turn.new[-1].calls[0].outcome == "never_started"
    assert harness.command.ran == []


async def test_an_interrupt_between_turns_does_nothing(harness: AgentHarness) -> None:
    harness.agent.interrupt()
    harness.provider.script(text("fine"))
    assert (await harness.turn()).ended.cause == "done"
    harness.agent.interrupt()
    harness.provider.script(text("fine"))
    assert (await harness.turn()).ended.cause == "done"


async def test_results_of_foreign_calls_carry_their_ids(harness: AgentHarness) -> None:
    Path("a.txt").write_text("one\n")
    harness.provider.script(
        calls(("Bash", {"command": "echo hi"}), ("str_replace_editor", {"command": "view", "path": "a.txt"})), text("Done.")
    )
    await harness.turn()
    answer, *results = harness.provider.requests[1].messages[-3:]
    assert [(made["id"], made["function"]["name"]) for made in answer["tool_calls"]] == [
        (result["tool_call_id"], name) for result, name in zip(results, ("shell", "read"), strict=True)
    ]
    assert [made["function"]["arguments"] for made in answer["tool_calls"]] == ['{"command": "echo hi"}', '{"path": "a.txt"}']
    assert "hi" in results[0]["content"]
    assert "one" in results[1]["content"]


async def test_rule_of_own_name_binds_foreign_call(harness: AgentHarness) -> None:
    harness.rules = [parse_rule("shell:echo *", "deny", "--deny")]
    harness.provider.script(call("Bash", {"command": "echo hi"}), text("Denied."))
    await harness.turn()
    assert "shell:echo *" in harness.results()[0]
