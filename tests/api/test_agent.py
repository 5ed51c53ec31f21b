"""Programs run agents: results, streams, history, typed answers, approvals, hooks and cancellation."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict

import anyio
import pytest
from pydantic import BaseModel

from wolo import (
    Agent,
    AgentMessage,
    AssistantMessage,
    AudioPart,
    ImagePart,
    Message,
    TextPart,
    ToolContext,
    ToolResult,
    UserMessage,
    tool,
)
from wolo.api.run_events import Notice, Result, RunError
from wolo.conversation.structured_output import OutputError
from wolo.errors import BadRequest, SessionError, UsageError
from wolo.places import find_places
from wolo.testing import ScriptedTransport

WRITES = [{"tool": "write", "input": {"path": "made.py", "content": "print(1)\n"}}]


def agent(*script: Any, **more: Any) -> Agent:
    return Agent("test/m", transport=ScriptedTransport(script), **{"mode": "edit", **more})


def sent(each: Agent) -> list[dict[str, Any]]:
    transport = each._transport
    assert isinstance(transport, ScriptedTransport)
    return transport.requests


def roles(request: Mapping[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


async def test_a_run_returns_its_new_messages_only() -> None:
    async with agent("Hi!", "4") as ours:
        first = await ours.run("Hello")
        second = await ours.run("2+2?")
    assert (first.output, first.stop_reason, first.cost_usd) == ("Hi!", "stop", None)
    assert [message.role for message in first.messages] == ["user", "assistant"]
    assert [message.text for message in second.messages] == ["2+2?", "4"]
    assert ours.history == first.messages + second.messages
    assert roles(sent(ours)[1]) == ["system", "user", "assistant", "user"]


async def test_history_can_be_carried_by_the_caller() -> None:
    first = await agent("Hi!").run("Hello")
    async with agent("4", "six", session="memory") as other:
        await other.run("2+2?", history=first.messages)
        assert roles(sent(other)[0]) == ["system", "user", "assistant", "user"]
        await other.run("3+3?", history=[])
    assert roles(sent(other)[1]) == ["system", "user"]


async def test_joined_events_equal_the_result() -> None:
    async with agent(["I write it.", *WRITES], "Done.") as ours:
        events = [event async for event in ours.run_stream("create it")]
    last = events[-1]
    assert isinstance(last, Result)
    result = last.result
    assert "".join(event.output for event in events) == result.output == "I write it.Done."
    assert tuple(message for event in events for message in event.messages) == result.messages == ours.history
    assert [event.type for event in events if event.type in ("tool_use", "tool_result")] == ["tool_use", "tool_result"]
    assert [(change.path, change.created) for change in result.changes] == [("made.py", True)]
    assert "+print(1)" in result.changes[0].diff


async def test_a_session_is_saved_resumed_and_forked(tmp_path: Path) -> None:
    async with agent("one") as ours:
        await ours.run("first")
    async with agent("two", session=ours.session_id) as again:
        await again.run("second")
        copy = again.fork()
        copy._transport = ScriptedTransport(["three"])
        async with copy:
            await copy.run("third")
    assert roles(sent(again)[0]) == ["system", "user", "assistant", "user"]
    assert again.session_id == ours.session_id != copy.session_id
    assert [message.text for message in copy.history] == ["first", "one", "second", "two", "third", "three"]
    assert len(again.history) == 4


def test_a_script_without_a_loop_keeps_its_conversation() -> None:
    ours = agent("one", "two")
    assert [ours.run_sync("first").output, ours.run_sync("second").output] == ["one", "two"]
    assert len(ours.history) == 4


async def test_no_tools_make_a_plain_client() -> None:
    async with agent("fine", tools=[], session="memory") as ours:
        result = await ours.run("hello")
    assert "tools" not in sent(ours)[0]
    assert result.session_id == ""


async def test_settings_are_values_of_any_kind() -> None:
    settings = {
        "limits.max_turns": 1,
        "lsp.enabled": False,
        "tools.hide": ["shell"],
        "model_aliases.sonnet": "test/m",
        "permissions.allow": [{"rule": "shell:git *", "match": ['git commit -m "a"']}],
    }
    async with agent([*WRITES], "never sent", settings=settings) as ours:
        result = await ours.run("go")
    assert result.stop_reason == "max_turns"
    assert "shell" not in [tool["function"]["name"] for tool in sent(ours)[0]["tools"]]


class Place(BaseModel):
    name: str
    height: int = 0


async def climb(place: Place, context: ToolContext) -> dict[str, Any]:
    """Climb a mountain.

    Args:
        place: where it is
    """
    context.progress("climbing\n")
    if place.height > 8000:
        raise ValueError("too high")
    return {"at": place.name, "cwd": str(context.cwd)}


async def test_functions_are_tools(isolated: Path) -> None:
    calls = [
        {"tool": "climb", "input": {"place": {"name": "K2", "height": 8611}}},
        {"tool": "climb", "input": {"place": {"height": 3}}},
        {"tool": "climb", "input": {"place": {"name": "Hill"}}},
    ]
    async with agent(calls, "Done.", tools=["read", climb, tool(lambda: 7, name="seven", description="Give 7.")]) as ours:
        await ours.run("climb")
    offered = {each["function"]["name"]: each["function"]["parameters"] for each in sent(ours)[0]["tools"]}
    assert [*offered] == ["read", "climb", "seven"]
    assert offered["climb"]["required"] == ["place"]
    assert "context" not in offered["climb"]["properties"]
    high, wrong, right = (each["content"] for each in sent(ours)[1]["messages"][-3:])
    assert "too high" in high
    assert "name" in wrong
    assert str(isolated / "work") in right


def test_unusable_function_is_refused_as_a_tool() -> None:
    with pytest.raises(UsageError, match="no docstring"):
        agent("one", tools=[lambda: 7]).run_sync("go")
    with pytest.raises(UsageError, match="no tool"):
        agent("one", tools=[7]).run_sync("go")
    with pytest.raises(UsageError, match="'two words' cannot be the name"):
        tool(climb, name="two words")


async def test_a_function_that_exits_is_a_failed_call() -> None:
    def parse(line: str) -> None:
        """Parse a command line."""
        raise SystemExit(2)

    async with agent([{"tool": "parse", "input": {"line": "-x"}}], "Done.", tools=[parse]) as ours:
        result = await ours.run("go")
    assert result.output == "Done."
    assert result.messages[1].calls[0].is_error
    assert "SystemExit: 2" in result.messages[1].calls[0].output


class Line(BaseModel):
    name: str
    parts: list[Line] = []


@dataclass
class Point:
    x: int
    y: int | None = None


class Person(TypedDict):
    name: str


@pytest.mark.parametrize(
    ("wanted", "answer", "value"),
    [
        (Line, 'Here:\n```json\n{"name": "a", "parts": [{"name": "b"}]}\n```', Line(name="a", parts=[Line(name="b")])),
        (Point, '{"x": 1}', Point(1)),
        (Person, '{"name": "Ada"}', {"name": "Ada"}),
        (list[int], "The list is [1, 2].", [1, 2]),
        (str, '"quoted"', "quoted"),
        (str, "Not quoted: [1].", "Not quoted: [1]."),
        (Literal["red", "blue"], "blue", "blue"),
        ({"type": "object", "required": ["a"]}, '{"a": null}', {"a": None}),
    ],
)
async def test_typed_answers(wanted: Any, answer: str, value: Any) -> None:
    async with agent(answer) as ours:
        assert (await ours.run_for("what?", wanted)).output == value


async def test_unfitting_answer_is_repaired_once() -> None:
    async with agent('{"x": "one"}', '{"x": 1}') as ours:
        typed = await ours.run_for("where?", Point)
    assert typed.output == Point(1)
    assert len(typed.messages) == 4
    assert "x: Input should be a valid integer" in sent(ours)[1]["messages"][-1]["content"]
    async with agent("no", "never") as ours:
        with pytest.raises(OutputError) as caught:
            await ours.run_for("where?", Point)
    assert caught.value.raw == "never"


@pytest.mark.parametrize(("decision", "is_written"), [(True, True), ("session", True), (False, False), (None, False)])
async def test_approvals_are_answered_by_a_function(isolated: Path, decision: Any, is_written: bool) -> None:
    asked = []

    async def approve(request: Any) -> Any:
        asked.append(request.part.tool)
        return decision

    async with agent(WRITES, "Done.", mode="ask", on_approval=approve) as ours:
        result = await ours.run("create it")
    assert asked == ["write"]
    assert (isolated / "work" / "made.py").exists() == is_written
    assert bool(result.denials) != is_written


async def test_without_a_function_ask_means_deny(isolated: Path) -> None:
    async with agent(WRITES, "Done.", mode="ask") as ours:
        result = await ours.run("create it")
    assert [denied.tool for denied in result.denials] == ["write"]
    assert not (isolated / "work" / "made.py").exists()


async def test_exception_in_a_function_ends_and_denies_run(isolated: Path) -> None:
    def broken(request: Any) -> Any:
        raise KeyError("oops")

    async with agent(WRITES, "Done.", mode="ask", on_approval=broken) as ours:
        with pytest.raises(KeyError, match="oops"):
            await ours.run("create it")
    assert not (isolated / "work" / "made.py").exists()


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
async def test_a_run_is_cancelled_while_a_function_decides(isolated: Path, library: str) -> None:
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def approve(request: Any) -> bool:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return True

    async with agent(WRITES, "Done.", mode="ask", on_approval=approve) as ours:
        if library == "asyncio":
            running = asyncio.create_task(ours.run("create it"))
            await asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(ours.run, "create it")
                await asked.wait()
                group.cancel_scope.cancel()
        assert cancelled.is_set()
        assert not (isolated / "work" / "made.py").exists()
        assert (await ours.run("go on")).output == "Done."


async def test_hooks_are_functions(isolated: Path) -> None:
    seen = []

    def before(fields: dict[str, Any]) -> dict[str, Any]:
        seen.append(fields["tool_name"])
        return {"decision": "block", "reason": "Not today."}

    async with agent(WRITES, "Done.", hooks={"PreToolUse": before}) as ours:
        await ours.run("create it")
    assert seen == ["write"]
    assert "Not today." in str(sent(ours)[1]["messages"][-1])
    assert not (isolated / "work" / "made.py").exists()


async def test_a_failed_model_raises_with_what_was_done() -> None:
    async with agent(WRITES, BadRequest("No such thing.")) as ours:
        with pytest.raises(RunError, match="No such thing") as caught:
            await ours.run("create it")
    assert [change.path for change in caught.value.result.changes] == ["made.py"]


async def test_mistakes_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="empty"):
        await agent().run(" ")
    with pytest.raises(UsageError, match="mode"):
        await agent(mode="wild").run("go")
    async with agent("one", "two") as ours:
        stream = ours.run_stream("first")
        await anext(stream)
        with pytest.raises(UsageError, match="running"):
            await ours.run("second")
        await stream.aclose()


class Silent(ScriptedTransport):
    """Never answers; `asked` is set once it was asked."""

    def __init__(self) -> None:
        super().__init__(())
        self.asked = asyncio.Event()

    async def send(self, call: Any) -> Any:
        self.asked.set()
        await asyncio.Event().wait()
        yield


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
async def test_cancelled_run_is_saved_and_can_continue(library: str) -> None:
    silent = Silent()
    async with Agent("test/m", transport=silent) as ours:
        if library == "asyncio":
            running = asyncio.create_task(ours.run("first"))
            await silent.asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(ours.run, "first")
                await silent.asked.wait()
                group.cancel_scope.cancel()
    async with agent("fine", session=ours.session_id) as again:
        await again.run("second")
    assert [message.text for message in again.history if message.role == "user"] == ["first", "second"]


async def test_eight_parallel_agents_keep_to_their_folders(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(8)]

    async def work(folder: Path) -> str:
        folder.mkdir()
        script = [[{"tool": "shell", "input": {"command": "pwd > here"}}], [{"tool": "read", "input": {"path": "here"}}], "Done."]
        async with agent(*script, cwd=folder, mode="yolo") as ours:
            await ours.run("where are you?")
        return str(sent(ours)[2]["messages"][-1]["content"])

    said = await asyncio.gather(*map(work, folders))
    assert all(str(folder) in text for folder, text in zip(folders, said, strict=True))


async def test_a_slash_command_of_a_program_is_text(isolated: Path) -> None:
    commands = isolated / "wolo" / "config" / "commands"
    commands.mkdir(parents=True)
    (commands / "greet.md").write_text("Greet $ARGUMENTS politely.")
    async with agent("Hello.") as ours:
        result = await ours.run("/greet Ada")
    assert result.messages[0].text == "/greet Ada"


@pytest.mark.parametrize("typed", [False, True])
async def test_mention_attaches_a_readable_file(isolated: Path, tmp_path: Path, typed: bool) -> None:
    (isolated / "work" / "a.py").write_text("x = 1\n")
    far = tmp_path / "far.txt"
    far.write_text("far away\n")
    async with agent("5") as ours:
        prompt = f"read @a.py and @{far}, for me@a.py"
        result = await (ours.run_for(prompt, int) if typed else ours.run(prompt))
    prompt_sent = str(sent(ours)[0]["messages"][-1]["content"])
    assert prompt_sent.startswith(prompt)
    assert prompt_sent.count("x = 1") == 1
    assert "far away" not in prompt_sent
    assert result.messages[0].text.startswith(prompt)


async def test_unattached_mention_is_a_notice(tmp_path: Path) -> None:
    far = tmp_path / "far.txt"
    far.write_text("far away\n")
    async with agent("fine") as ours:
        notices = [event.text async for event in ours.run_stream(f"read @{far}") if isinstance(event, Notice)]
    assert notices == [f"Not attached, because it is outside the workspace: {far}"]


@pytest.mark.parametrize("prompt", ["read @a.py", "/init", "/nosuch"])
async def test_a_plain_client_sends_texts_as_they_are(isolated: Path, prompt: str) -> None:
    (isolated / "work" / "a.py").write_text("x = 1\n")
    async with agent("fine", tools=[]) as ours, agent("fine") as parts:
        await ours.run(prompt)
        await parts.run([prompt])
    assert [request["messages"][-1]["content"] for request in (*sent(ours), *sent(parts))] == [prompt] * 2


async def test_abandoned_stream_does_not_block_next_run() -> None:
    async with agent("one\ntwo\nthree", "fine") as ours:
        async for event in ours.run_stream("count"):
            if event.output:
                break
        assert (await ours.run("again")).output == "fine"
    assert [message.role for message in ours.history] == ["user", "assistant", "user", "assistant"]


async def test_a_prompt_may_be_a_message_or_parts() -> None:
    picture = ImagePart(media_type="image/png", data=b"\x89PNG\r\n\x1a\n")
    prompts: list[Any] = [
        ["look", picture],
        Message(role="user", parts=(TextPart(text="look"), picture)),
        UserMessage.with_images("look", [b"\x89PNG\r\n\x1a\n"]),
    ]
    for prompt in prompts:
        async with agent("fine", session="memory") as ours:
            await ours.run(prompt)
        assert [each["type"] for each in sent(ours)[0]["messages"][-1]["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(("kind", "data"), [("image/png", b"hello"), ("text/plain", b"hello"), ("image/jpeg", b"")])
async def test_image_that_is_none_is_refused(kind: str, data: bytes) -> None:
    async with agent("never sent") as ours:
        with pytest.raises(UsageError, match=r"Image 1 \(a\) is no image"):
            await ours.run(["look", ImagePart(media_type=kind, data=data, name="a")])
    assert not sent(ours)


async def test_unsupported_media_are_refused() -> None:
    async with agent("never sent") as ours:
        with pytest.raises(UsageError, match="does not take audio"):
            await ours.run(["listen", AudioPart(media_type="audio/wav", data=b"RIFF")])
    assert not sent(ours)


async def test_history_may_be_messages_by_role() -> None:
    before: list[AgentMessage] = [
        UserMessage(contents=(TextPart(text="Hi"),)),
        AssistantMessage(contents=(TextPart(text="Hello."),)),
    ]
    async with agent("fine", session="memory") as ours:
        await ours.run("again", history=before)
    assert roles(sent(ours)[0]) == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cwd": "missing"}, "no directory"),
        ({"tools": "read"}, "is a list"),
        ({"tools": [climb, climb]}, "Two tools are named climb"),
        ({"hooks": {"PreTool": print}}, "no hook event"),
        ({"hooks": {"PreToolUse": 5}}, "no function"),
        ({"on_approval": True}, "no function"),
        ({"api": "gemini"}, "own endpoint"),
        ({"system": "@file"}, "begin with @"),
    ],
)
async def test_wrong_arguments_are_usage_errors(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        await agent("never sent", **given).run("go")


WRONG_PROMPTS: list[Any] = [
    *(5, None, b"hi", ["look", 5], [], ""),
    Message(role="user"),
    Message(role="assistant", parts=(TextPart(text="I am"),)),
    UserMessage.text(" "),
    UserMessage(contents=(ToolResult(id="call_1", content="an answer to nothing"),)),
    AssistantMessage(contents=(TextPart(text="I am"),)),
]


@pytest.mark.parametrize("prompt", WRONG_PROMPTS)
async def test_invalid_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(UsageError, match="prompt"):
        await agent("never sent").run(prompt)


@pytest.mark.parametrize("history", ["hi", [{"role": "user", "content": "hi"}], [5]])
async def test_invalid_history_is_refused(history: Any) -> None:
    with pytest.raises(UsageError, match="history"):
        await agent("never sent").run("go", history=history)


def test_agent_belongs_to_one_loop_at_a_time() -> None:
    async def synchronously() -> None:
        agent("never sent").run_sync("go")

    with pytest.raises(UsageError, match="running event loop"):
        asyncio.run(synchronously())
    ours = agent("one", "two")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(ours.run("first"))
    with pytest.raises(UsageError, match="another event loop"):
        ours.run_sync("second")
    loop.run_until_complete(ours.close())
    loop.close()


def test_agent_goes_on_after_its_loop_was_closed() -> None:
    ours = agent("one", "two", "three")
    asyncio.run(ours.run("first"))
    assert asyncio.run(ours.run("second")).output == "two"
    asyncio.run(ours.close())
    assert [message.text for message in ours.history] == ["first", "one", "second", "two"]
    assert ours.run_sync("third").output == "three"


JOB = [{"tool": "shell", "input": {"command": "echo $$ > pid; sleep 300", "background": True}}]


@pytest.mark.parametrize("loop_is_open", [True, False])
def test_dropped_agent_gives_its_session_and_processes_back(isolated: Path, loop_is_open: bool) -> None:
    runner = asyncio.Runner()

    def drop() -> str:
        """Only here is the agent known."""
        session = runner.run(agent(JOB, "Started.", mode="yolo").run("go")).session_id
        if not loop_is_open:
            runner.close()
        gc.collect()
        return session

    session = drop()
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)
    assert not list((find_places().data / "locks").iterdir())
    assert agent("Going on.", session=session).run_sync("again").output == "Going on."
    runner.close()


async def test_session_of_this_process_is_said_to_be(isolated: Path) -> None:
    async with agent("one") as ours:
        await ours.run("go")
        with pytest.raises(SessionError, match=f"in use by this process \\({os.getpid()}\\)"):
            await agent("never sent", session=ours.session_id).run("again")


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        ("blue", "blue"),
        (["blue"], "blue"),
        ({"Which?": ["blue"]}, "blue"),
        (["a", "b"], None),
        (7, None),
        ({}, None),
        ([7], None),
    ],
)
async def test_questions_are_answered_by_a_function(answers: Any, heard: str | None) -> None:
    asks = [{"tool": "ask", "input": {"questions": [{"question": "Which?", "options": ["red", "blue"]}]}}]
    async with agent(asks, "Done.", on_question=lambda questions: answers) as ours:
        if heard is None:
            with pytest.raises(UsageError, match="on_question"):
                await ours.run("go")
        else:
            await ours.run("go")
            assert heard in sent(ours)[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("answer", "part"),
    [("edit", "the mode is now `edit`"), (["keep", "smaller"], "says:\nsmaller"), (["revise", "1. b"], "does not say why")],
)
async def test_plan_is_answered_by_a_function(answer: Any, part: str) -> None:
    plans = []

    def answered(questions: Any) -> Any:
        plans.append(questions[0].text)
        return [answer]

    present = [{"tool": "present_plan", "input": {"plan": "1. a"}}]
    async with agent(present, "Done.", on_question=answered, mode="plan") as ours:
        events = [event async for event in ours.run_stream("go")]
        assert part in sent(ours)[1]["messages"][-1]["content"]
    assert [event.mode for event in events if event.type == "mode"] == (["edit"] if answer == "edit" else [])
    assert plans == (["1. a", "1. b"] if answer[0] == "revise" else ["1. a"])


async def test_budget_ended_run_is_not_repaired() -> None:
    async with agent(WRITES, "5", max_turns=1) as ours:
        with pytest.raises(OutputError, match="max_turns"):
            await ours.run_for("count", int)
    assert len(sent(ours)) == 1


async def test_errors_pass_between_processes() -> None:
    with pytest.raises(RunError) as failed:
        await agent(BadRequest("No.")).run("go")
    again = pickle.loads(pickle.dumps(failed.value))
    assert (str(again), again.result) == ("No.", failed.value.result)
    wrong = pickle.loads(pickle.dumps(OutputError("it is no JSON.", "raw")))
    assert (wrong.problem, wrong.raw) == ("it is no JSON.", "raw")


class Dog(BaseModel):
    kind: Literal["dog"]


class Cat(BaseModel):
    kind: Literal["cat"]


class Pets(TypedDict):
    pet: Dog


@pytest.mark.parametrize(
    ("wanted", "answer", "value"),
    [
        (Dog | Cat, 'Not {"kind": "dog"}, but {"kind": "cat"} [sic].', Cat(kind="cat")),
        (Pets, '{"pet": {"kind": "dog"}}', {"pet": Dog(kind="dog")}),
        (list[Pets], '[{"pet": {"kind": "dog"}}]', [{"pet": Dog(kind="dog")}]),
        (Pets | None, "null", None),
        ({"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}, "[1]", [1]),
    ],
)
async def test_typed_answers_of_compound_types(wanted: Any, answer: str, value: Any) -> None:
    async with agent(answer) as ours:
        assert (await ours.run_for("what?", wanted)).output == value


@pytest.mark.parametrize(
    "wanted",
    ['{"type": "object"}', Point(1), print.__class__, {"$ref": "#/$defs/none"}, {"items": {"$ref": "http://127.0.0.1:9/s"}}],
)
async def test_type_without_schema_is_refused_before_anything_sent(wanted: Any) -> None:
    ours = agent("never sent")
    with pytest.raises(UsageError):
        await ours.run_for("what?", wanted)
    assert sent(ours) == []


async def test_numbers_that_json_lacks_are_no_answer() -> None:
    async with agent("NaN", "[Infinity]") as ours:
        with pytest.raises(OutputError):
            await ours.run_for("how many?", float)


class Greeter:
    """Greet somebody."""

    def __call__(self, name: str) -> str:
        return f"Hello {name}."


def greet(name: str, greeting: str, context: ToolContext | None = None) -> str:
    """Greet somebody."""
    assert context is not None
    return f"{greeting} {name}."


def draw() -> list[Any]:
    """Draw a picture."""
    return ["A cat:", ImagePart(media_type="image/png", data=b"\x89PNG")]


def fetch_bytes() -> bytes:
    """Fetch bytes."""
    return b"plain"


@pytest.mark.parametrize(
    ("function", "given", "returned"),
    [
        (Greeter(), {"name": "Ada"}, "Hello Ada."),
        (partial(greet, greeting="Good day"), {"name": "Ada"}, "Good day Ada."),
        (draw, {}, "A cat:\n[image/png, 4 bytes]"),
        (fetch_bytes, {}, "plain"),
    ],
)
async def test_any_callable_is_a_tool(function: Any, given: dict[str, Any], returned: str) -> None:
    name = getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", "Greeter")
    async with agent([{"tool": name, "input": given}], "Done.", tools=[function]) as ours:
        result = await ours.run("go")
    assert [*sent(ours)[0]["tools"][-1]["function"]["parameters"]["properties"]] == [*given]
    assert result.messages[1].calls[0].output == returned
    assert ("image_url" in str(sent(ours)[1])) == (function is draw)


async def test_a_function_is_called_when_the_session_ends() -> None:
    seen = []

    async def on_end(fields: dict[str, Any]) -> None:
        seen.append((fields["hook_event_name"], fields["session_id"]))

    async with agent("one", hooks={"SessionEnd": on_end}) as ours:
        await ours.run("first")
        assert seen == []
    assert seen == [("SessionEnd", ours.session_id)]
