"""One wording for each event: every front end and the subagents print it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from wolo.agent import events
from wolo.agent.events import Check, ErrorInfo, Event, WorkCheck
from wolo.conversation.phrasing import describe, describe_briefly, describe_work
from wolo.conversation.recorder import Recorder
from wolo.conversation.subagents.subagent_run import PausableTimer, SubagentRun
from wolo.frontends.acp.updates import Updates
from wolo.frontends.attach.line_printer import LinePrinter
from wolo.frontends.headless.headless_run import Headless, ProgressLine
from wolo.frontends.server.session_lines import lines_of
from wolo.frontends.stream_json import work_object
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal_state import TerminalState
from wolo.frontends.terminal.io.terminal_output import Stdout
from wolo.messages.message import Message, Usage, user
from wolo.messages.parts import TextPart, ToolPart
from wolo.tools.tool import CallContext
from wolo.tools.tool_values import Question

PART = ToolPart(id="part_1", tool="shell", input={"command": "make"}, status="completed", outcome="denied_by_rule")
ANSWER = Message(role="assistant", parts=(TextPart(text="Done."),), finished=True)
ERROR = ErrorInfo(kind="overloaded", message="The server is busy")
TASK = {"part_id": "part_2", "agent": "explore", "session_id": "session_2"}
SAMPLES: tuple[Event, ...] = (
    events.TurnStarted(prompt=user("go")),
    events.PromptRefused(prompt=ANSWER, reason="not on Sundays"),
    events.HookAwaited(hook="PreToolUse", commands=("./check.sh",)),
    events.RequestStarted(model="m", attempt=1, context_tokens=1200),
    events.ThinkingStreamed(text="hm"),
    events.TextStreamed(text="Done."),
    events.CallStreamed(id="part_1", slot=0, tool="shell", fragment="{", size_bytes=1),
    events.AttemptFailed(error=ERROR, attempt=1, tries=0, delay_s=2.0),
    events.ModelReplaced(error=ERROR, model="other"),
    events.CompactionStarted(reason="window", model="m", tokens=90000),
    events.Compacted(reason="window", tokens_before=9, tokens_after=4, outputs_shortened=1, messages_left_out=2),
    events.AnswerEnded(message=ANSWER),
    events.MessageAdded(message=ANSWER),
    events.CallStarted(message_id=ANSWER.id, part=PART),
    events.CallProgressed(part_id="part_1", text="line\n"),
    events.ApprovalAsked(id="asked_1", part=PART, intents=(), reason="no rule", rule="shell:make"),
    events.ApprovalGiven(id="asked_1", allowed=True),
    events.ModeChanged(mode="edit"),
    events.JobStarted(id=1, command="npm test", pid=7),
    events.JobEnded(id=1, command="npm test", cause="exited", exit_code=1, duration_s=12.0),
    events.QuestionsAsked(id="asked_2", call_id="part_1", questions=(Question(text="Which?", header=""),)),
    events.QuestionsAnswered(id="asked_2", replies=None),
    events.CallDenied(part=PART, reason="no rule allows it"),
    events.CallEnded(message_id=ANSWER.id, part=PART),
    events.TaskStarted(**TASK, model="m", prompt="look"),
    events.TaskEnded(**TASK, ended="done", answers=1, calls=2, usage=Usage(), duration_s=3.0, background=1),
    events.Noticed(text="The file is large.", level="warning"),
    events.VerifyStarted(command="pytest -q", when="after"),
    events.Verified(command="pytest -q", when="after", check=Check(exit_code=1, failures=("a",)), new_failures=("a",)),
    events.TurnEnded(
        cause="model_error", answer="", finish_reason="", usage=Usage(), num_answers=1, duration_s=1, provider_s=1, error=ERROR
    ),
)
DESCRIBED = {type(event) for event in SAMPLES if describe(event)}


def kinds(*names: str) -> set[type[Event]]:
    return {getattr(events, name) for name in names}


def test_there_is_a_sample_of_every_event() -> None:
    assert [type(event) for event in SAMPLES] == Event.__subclasses__()
    assert len(SAMPLES) == 30


def test_headless_prints_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    front, shown = Headless(cast(Any, None), format="text", verbose=True), set()
    for event in SAMPLES:
        front._show(event)
        if (printed := capsys.readouterr().err) and describe(event):
            assert printed == f"wolo: {describe(event)}\n"
            shown.add(type(event))
    assert shown == kinds("AttemptFailed", "ModelReplaced", "Compacted", "CallDenied", "Verified", "HookAwaited", "Noticed")


async def test_progress_line_names_the_work() -> None:
    line = ProgressLine()
    for event in SAMPLES:
        if isinstance(event, events.AttemptFailed):
            line.on_event(event)
            assert line._words == describe_work(event)


async def test_terminal_shows_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    shown = set()
    for event in SAMPLES:
        screen = Screen(Stdout(), TerminalState())
        screen.show(event)
        seen = capsys.readouterr().out + "".join(line.text for line in screen.status.lines(200))
        screen.status.stop()
        if describe(event) and describe(event) in seen:
            shown.add(type(event))
    assert shown == DESCRIBED - kinds("CallDenied")  # stands behind the headline of its call


def test_attach_prints_the_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    printer, shown = LinePrinter(is_terminal=False), set()
    for event in SAMPLES:
        for line in lines_of(event):
            printer.on_line(line)
        if describe(event) and describe(event) in capsys.readouterr().out:
            shown.add(type(event))
    assert shown == kinds("AttemptFailed", "ModelReplaced", "Compacted", "CallDenied", "Noticed", "ModeChanged")


def test_clients_get_the_short_wording() -> None:
    updates, in_editor, on_page = Updates(0), set(), set()
    for event in SAMPLES:
        thoughts = [each.content.text for each in updates.on_event(event) if each.session_update == "agent_thought_chunk"]
        if f"{describe_briefly(event)}\n" in thoughts:
            in_editor.add(type(event))
        if describe_briefly(event) and describe_briefly(event) in [line.get("text") for line in lines_of(event)]:
            on_page.add(type(event))
    shared = kinds("Noticed", "ModeChanged")
    assert in_editor == shared | kinds("AttemptFailed", "ModelReplaced", "Compacted", "Verified", "HookAwaited")
    assert on_page == shared | kinds("PromptRefused", "CompactionStarted", "VerifyStarted")


def test_attach_prints_the_last_line_of_a_turn(capsys: pytest.CaptureFixture[str]) -> None:
    work = work_object(WorkCheck(status="passed", line="3 files · pytest -q passed after the last edit"))
    for is_error in (False, True):
        LinePrinter(is_terminal=False).on_line(
            {"type": "result", "subtype": "error_max_turns", "is_error": is_error, "verification": work}
        )
        assert "(3 files · pytest -q passed after the last edit)\n" in capsys.readouterr().out


async def test_subagent_reports_its_work(tmp_path: Path) -> None:
    class NoSession:
        def append(self, session_id: str, entries: object) -> None:
            """Nothing here is read again."""

    async def emit(event: Event) -> None:
        """The parent prints it."""

    reports: list[str] = []
    recorder = Recorder(cast(Any, NoSession()), "session_2")
    call = CallContext(cast(Any, None), part_id="part_2", progress=reports.append)
    run = SubagentRun("explore", "look", "session_2", recorder, call, emit, PausableTimer(60, lambda: None))
    for event in SAMPLES:
        reports.clear()
        await run.on_event(event)
        if describe_work(event):
            assert reports == [f"{describe_work(event)} · {run.so_far}\n"]
    await recorder.close()


def test_no_other_module_words_an_event_anew() -> None:
    root = Path(__file__).parents[2] / "wolo"
    words = ("answers instead; a later", "Retrying ", "Trying again in", "waiting for the model", "summing up the")
    homes = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if any(each in path.read_text() for each in words)}
    assert homes == {"conversation/phrasing.py"}
