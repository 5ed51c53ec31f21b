"""`wolo acp` and the official SDK's client: sessions, updates, permissions, errors, and the end."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from acp.exceptions import RequestError
from acp.schema import (
    AcceptElicitationResponse,
    AudioContentBlock,
    DeclineElicitationResponse,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
)

from tests.end_to_end.test_limits import limit
from tests.fakes import mcp_plain
from tests.fakes.acp_client import editor
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, finish, sse, text

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg=="


@pytest.fixture
def work(isolated: Path) -> Path:
    return isolated / "work"


async def test_prompt_runs_with_thoughts_calls_changes_and_plan(provider: ProviderServer, work: Path) -> None:
    todo = call("todo", {"items": [{"text": "write", "status": "completed"}]})
    provider.script(todo, call("write", {"path": "a.py", "content": "x = 1\n"}), text("Done.", reasoning="So…"))
    async with editor(*provider.flags, "--mode", "edit") as client:
        session = await client.new(work)
        assert session.modes is not None
        assert session.modes.current_mode_id == "edit"
        assert "yolo" not in [mode.id for mode in session.modes.available_modes]
        response = await client.say(session.session_id, "write a.py")
        assert response.stop_reason == "end_turn"
        assert client.text() == "Done."
        assert "".join(each.content.text for each in client.of("agent_thought_chunk")).endswith("So…\n1 file\n")
        (plan,) = client.of("plan")
        assert [(entry.content, entry.status) for entry in plan.entries] == [("write", "completed")]
        write = client.of("tool_call")[1]
        assert (write.title, write.kind, write.status) == ("write", "edit", "pending")
        changes = [each for each in client.of("tool_call_update") if each.tool_call_id == write.tool_call_id]
        assert [each.status for each in changes if each.status] == ["in_progress", "completed"]
        assert {each.kind for each in changes if each.kind} == {"edit"}
        (diff,) = changes[-1].content
        assert (diff.path, diff.old_text, diff.new_text) == (str(work / "a.py"), None, "x = 1\n")
        assert [place.path for place in changes[-1].locations] == [str(work / "a.py")]
        assert not client.of("usage_update"), "the window of this model is unknown"
        commands = await client.until(lambda each: each.session_update == "available_commands_update")
        assert {"init", "review"} <= {each.name for each in commands.available_commands}


@pytest.mark.parametrize(("chosen", "made"), [("once", True), ("session", True), ("reject", False), (None, False)])
async def test_the_client_decides_about_a_call(provider: ProviderServer, work: Path, chosen: str | None, made: bool) -> None:
    provider.script(call("write", {"path": "a.py", "content": "x = 1\n"}), text("Done."))
    async with editor(*provider.flags, "--mode", "ask") as client:
        client.choose = lambda call, options: chosen
        session = await client.new(work)
        await client.say(session.session_id, "write a.py")
        ((asked, options),) = client.asked
        assert [option.kind for option in options] == [
            "allow_once",
            "allow_always",
            "allow_always",
            "reject_once",
            "reject_always",
        ]
        assert asked.content[0].new_text == "x = 1\n"
        assert asked.tool_call_id == client.of("tool_call")[0].tool_call_id
    assert (work / "a.py").exists() == made


async def test_sessions_are_listed_loaded_forked_and_closed(provider: ProviderServer, work: Path) -> None:
    provider.script(call("read", {"path": "a.txt"}), text("one"), text("two"), text("three"))
    (work / "a.txt").write_text("hello\n")
    async with editor(*provider.flags) as client:
        first = (await client.new(work)).session_id
        await client.say(first, "first")
    async with editor(*provider.flags) as client:
        (listed,) = (await client.agent.list_sessions(cwd=str(work))).sessions
        assert (listed.session_id, listed.cwd) == (first, str(work))
        await client.agent.load_session(cwd=str(work), session_id=first, mcp_servers=[])
        assert [each.content.text for each in client.of("user_message_chunk")] == ["first"]
        assert client.text() == "one"
        assert client.of("tool_call_update")[-1].status == "completed"
        copy = (await client.agent.fork_session(cwd=str(work), session_id=first)).session_id
        await client.say(copy, "second")
        assert [message["role"] for message in provider.requests[-1].messages if message["role"] == "user"] == ["user"] * 2
        await client.agent.close_session(session_id=first)
        with pytest.raises(RequestError, match="is not open"):
            await client.say(first, "again")
        await client.agent.resume_session(cwd=str(work), session_id=first)
        assert (await client.say(first, "third")).stop_reason == "end_turn"


async def test_parallel_sessions_run_in_their_own_folders(provider: ProviderServer, work: Path) -> None:
    folders = [work / str(number) for number in range(3)]
    provider.script(*[_writes] * 6)
    for folder in folders:
        folder.mkdir()
    async with editor(*provider.flags, "--mode", "edit") as client:
        sessions = [(await client.new(folder)).session_id for folder in folders]
        await asyncio.gather(*(client.say(id, f"write {at}") for at, id in enumerate(sessions)))
    assert [(folder / "made.txt").read_text() for folder in folders] == ["write 0", "write 1", "write 2"]


def _writes(asked: Asked) -> Reply:
    if asked.results:
        return text("Done.")
    return call("write", {"path": "made.txt", "content": asked.messages[-1]["content"]})


async def test_cancel_ends_the_turn_and_next_prompt_runs(provider: ProviderServer, work: Path) -> None:
    hold = Hold()
    provider.script(sse(delta("a long answer"), hold, finish("stop")), text("Done."))
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        asking = asyncio.create_task(client.say(session, "go"))
        await client.until(lambda each: each.session_update == "agent_message_chunk")
        await client.agent.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"
        hold.release()
        assert (await client.say(session, "again")).stop_reason == "end_turn"


async def test_images_links_and_commands_become_one_prompt(provider: ProviderServer, work: Path) -> None:
    provider.script(text("Seen."), text("Filled."))
    linked = work / "linked file.txt"
    linked.write_text("from the link\n")
    (work / "named.txt").write_text("from the mention\n")
    (work / ".wolo" / "commands").mkdir(parents=True)
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        picture = ImageContentBlock(type="image", data=PNG, mime_type="image/png")
        link = ResourceContentBlock(type="resource_link", name="linked file.txt", uri=linked.as_uri())
        await client.say(session, "look at @named.txt and ", link, picture)
        sent = json.dumps(provider.requests[-1].messages[-1]["content"])
        assert "from the link" in sent
        assert "from the mention" in sent
        await client.say(session, "/review")
        assert "/review" not in provider.requests[-1].messages[-1]["content"]
        with pytest.raises(RequestError, match="Unknown command"):
            await client.say(session, "/nosuchcommand")


async def test_commands_without_terminal_run_in_the_editor(provider: ProviderServer, work: Path) -> None:
    write = call("write", {"path": "a.py", "content": "x = 1\n"})
    provider.script(write, text("Done."), text("Again."))
    provider.expect_problem("differs from the request before")  # /undo
    async with editor(*provider.flags, "--mode", "edit") as client:
        session = (await client.new(work)).session_id
        offered = (await client.until(lambda each: each.session_update == "available_commands_update")).available_commands
        assert {"compact", "cost", "status", "undo", "diff", "model", "init"} <= {each.name for each in offered}
        assert not {"exit", "resume", "export", "login", "trust"} & {each.name for each in offered}
        await client.say(session, "write a.py")
        for line, words in (
            ("/cost", "2 answers in this session"),
            ("/status", "session  "),
            ("/diff", "+x = 1"),
            ("/mode plan", "* plan"),
            ("/model", "custom/test-model"),
            ("/thinking", "provider default"),
            ("/compact", "Nothing to compact"),
            ("/undo", "a.py"),
        ):
            client.updates.clear()
            assert (await client.say(session, line)).stop_reason == "end_turn"
            assert words in client.text(), line
            if line == "/mode plan":
                assert client.of("current_mode_update")[-1].current_mode_id == "plan"
                assert client.of("config_option_update")[-1].config_options[0].current_value == "plan"
        assert not (work / "a.py").exists()
        assert (await client.say(session, "again")).stop_reason == "end_turn"
        for line, words in (
            ("/mode yolo", "command line"),
            ("/exit", "interactive session"),
            ("/undo --nothing", "no option"),
            ("/nosuch", "/nosuch. A blank"),
        ):
            with pytest.raises(RequestError, match=words):
                await client.say(session, line)
    assert len(provider.requests) == 3


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
async def test_cancel_ends_a_prompt_however_early_it_comes(provider: ProviderServer, work: Path, turns: int) -> None:
    provider.script(*[sse(Hold(), finish("stop"))] * 2)
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        asking = asyncio.create_task(client.say(session, "go"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.agent.cancel(session_id=session)
        if turns:
            assert (await asking).stop_reason == "cancelled"
        else:  # the cancellation went out first
            asking.cancel()


async def test_mode_model_and_thinking_are_chosen_within_bounds(provider: ProviderServer, work: Path) -> None:
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        await client.agent.set_session_mode(session_id=session, mode_id="plan")
        assert client.of("current_mode_update")[-1].current_mode_id == "plan"
        changed = await client.agent.set_config_option(session_id=session, config_id="mode", value="ask")
        assert changed is not None
        assert {each.id: each.current_value for each in changed.config_options}["mode"] == "ask"
        for mode, words in (("yolo", "command line"), ("nothing", "mode")):
            with pytest.raises(RequestError, match=words):
                await client.agent.set_session_mode(session_id=session, mode_id=mode)
        with pytest.raises(RequestError, match="no option"):
            await client.agent.set_config_option(session_id=session, config_id="colour", value="red")


QUESTIONS = [
    {"question": "Which colour?", "header": "Colour", "options": [{"label": "red"}, {"label": "blue"}]},
    {"question": "What is it called?", "header": "Name", "options": []},
]


async def test_questions_are_forms_where_the_client_shows_them(provider: ProviderServer, work: Path) -> None:
    provider.script(*[call("ask", {"questions": QUESTIONS}), text("Fine.")] * 2)
    async with editor(*provider.flags, forms=True) as client:
        session = (await client.new(work)).session_id
        client.fill_in = lambda message: AcceptElicitationResponse(
            action="accept", content={"answer_1": "blue", "answer_2": "Ada"}
        )
        await client.say(session, "ask me")
        ((message, schema),) = client.forms
        assert message == "Which colour?\nWhat is it called?"
        assert [each.const for each in schema.properties["answer_1"].one_of] == ["red", "blue"]
        assert all(word in provider.requests[1].results[0] for word in ("blue", "Ada"))
        client.fill_in = lambda message: DeclineElicitationResponse(action="decline")
        await client.say(session, "ask me")
        assert "did not answer" in provider.requests[3].results[-1]
        assert not client.asked


async def test_questions_without_options_need_a_form(provider: ProviderServer, work: Path) -> None:
    provider.script(call("ask", {"questions": QUESTIONS}), text("Fine."))
    async with editor(*provider.flags) as client:
        client.choose = lambda call, options: "0"
        session = (await client.new(work)).session_id
        await client.say(session, "ask me")
        ((asked, options),) = client.asked
        assert (asked.title, [option.name for option in options]) == ("Which colour?", ["red", "blue", "Skip"])
        assert all(words in provider.requests[1].results[0] for words in ("red", "Ask this in your answer"))


PLAN = call("present_plan", {"plan": "1. Measure\n2. Cache"})


@pytest.mark.parametrize(
    ("chosen", "result"), [("edit", "the mode is now `edit`"), ("keep", "does not say why"), (None, "without a decision")]
)
async def test_plan_is_a_permission_with_its_choices(
    provider: ProviderServer, work: Path, chosen: str | None, result: str
) -> None:
    provider.script(PLAN, text("Fine."))
    async with editor(*provider.flags, "--mode", "plan") as client:
        client.choose = lambda call, options: chosen
        session = (await client.new(work)).session_id
        assert (await client.say(session, "go")).stop_reason == "end_turn"
        ((asked, options),) = client.asked
        assert (asked.kind, asked.content[0].content.text) == ("switch_mode", "1. Measure\n2. Cache")
        assert [option.option_id for option in options] == ["auto", "edit", "keep"]
        assert result in provider.requests[1].results[0]
        modes = [each.current_mode_id for each in client.of("current_mode_update")]
        plans = [[entry.content for entry in each.entries] for each in client.of("plan")]
        assert (modes, plans) == ((["edit"], [["Measure", "Cache"]]) if chosen == "edit" else ([], []))
    if chosen == "edit":
        async with editor(*provider.flags) as client:
            await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
            assert len(client.of("plan")) == 1
            assert [each.content.text for each in client.of("user_message_chunk")] == ["go"]


async def test_plan_form_takes_words_and_an_edited_plan(provider: ProviderServer, work: Path) -> None:
    provider.script(PLAN, text("Fine."))
    answers = [{"answer_1": "revise", "answer_1_other": "1. Only this"}, {"answer_1": "keep", "answer_1_other": "smaller"}]
    async with editor(*provider.flags, "--mode", "plan", forms=True) as client:
        client.fill_in = lambda message: AcceptElicitationResponse(action="accept", content=answers.pop(0))
        session = (await client.new(work)).session_id
        await client.say(session, "go")
        assert [message for message, _ in client.forms] == ["1. Measure\n2. Cache", "1. Only this"]
        assert "says:\nsmaller" in provider.requests[1].results[0]


async def test_unsupported_media_are_refused(provider: ProviderServer, work: Path) -> None:
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        sound = AudioContentBlock(type="audio", data="AAAA", mime_type="audio/wav")
        with pytest.raises(RequestError, match="audio"):
            await client.say(session, "listen", sound)
    assert not provider.requests


async def test_errors_say_what_to_do(provider: ProviderServer, work: Path) -> None:
    async with editor(*provider.flags) as client:
        for folder, words in (("relative", "absolute"), (str(work / "gone"), "no directory")):
            with pytest.raises(RequestError, match=words):
                await client.agent.new_session(cwd=folder, mcp_servers=[])
        with pytest.raises(RequestError, match="absolute"):
            await client.agent.list_sessions(cwd="relative")
        with pytest.raises(RequestError, match="session"):
            await client.agent.load_session(cwd=str(work), session_id="session_nowhere", mcp_servers=[])
        provider.script(text("Fine."))
        session = (await client.new(work)).session_id
        await client.say(session, "a title")
        for method, given in (("session/delete", "title"), ("session/delete", session[:-1]), ("session/load", session[:-1])):
            params = {"sessionId": given, "cwd": str(work), "mcpServers": []}
            with pytest.raises(RequestError, match="no session"):
                await client.agent._conn.send_request(method, params)
        with pytest.raises(RequestError, match="sessionId is missing"):
            await client.agent._conn.send_request("session/delete", {})
        await client.agent._conn.send_request("session/delete", {"sessionId": session})
        with pytest.raises(RequestError, match="no session"):
            await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        with pytest.raises(RequestError, match="no authentication method"):
            await client.agent.authenticate(method_id="oauth")


def test_non_message_is_answered_and_only_messages_printed(provider: ProviderServer) -> None:
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    lines = ["not json", "[]", json.dumps({"jsonrpc": "2.0", "id": 2, "method": "no/such"}), json.dumps(initialize)]
    done = subprocess.run(
        [sys.executable, "-m", "wolo", "acp", *provider.flags],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["error"]["code"] for each in answers if "error" in each] == [-32700, -32600, -32601]
    (first,) = [each["result"] for each in answers if each.get("id") == 1]
    assert first["agentCapabilities"]["loadSession"] is True


async def test_dead_client_ends_wolo_with_session_saved(provider: ProviderServer, work: Path) -> None:
    hold = Hold()
    provider.script(sse(delta("half an answer"), hold, finish("stop")))
    async with editor(*provider.flags) as client:
        session = (await client.new(work)).session_id
        asking = asyncio.create_task(client.say(session, "go"))
        await client.until(lambda each: each.session_update == "agent_message_chunk")
    hold.release()
    assert (await asking).stop_reason == "cancelled"
    provider.script(text("Done."))
    async with editor(*provider.flags) as client:
        await client.agent.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert client.text() == "half an answer"


def test_options_without_effect_are_refused(provider: ProviderServer) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wolo", "acp", "--json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "no effect with wolo acp" in done.stderr


async def test_unsaved_text_is_read_and_edited(provider: ProviderServer, work: Path) -> None:
    path = work / "a.txt"
    path.write_text("old\nlast\n")
    edit = call("edit", {"path": "a.txt", "old": "unsaved", "new": "edited"})
    provider.script(call("read", {"path": "a.txt"}), edit, text("Done."))
    async with editor(*provider.flags, "--mode", "edit", files=True) as client:
        client.buffers[str(path)] = "unsaved\nlast\n"
        session = (await client.new(work)).session_id
        await client.say(session, "edit it")
        assert "unsaved" in provider.requests[1].results[0]
        assert path.read_text() == client.buffers[str(path)] == "edited\nlast\n"


async def test_silent_client_is_asked_once_and_reported(provider: ProviderServer, work: Path) -> None:
    for name in "abc":
        (work / f"{name}.txt").write_text(f"disk {name}\n")
    reads = [call("read", {"path": f"{name}.txt"}) for name in "abc"]
    provider.script(*reads, text("Done."), reads[0], text("Again."))
    async with editor(*provider.flags, "--mode", "edit", files=True) as client:
        client.answers_files.clear()
        session = (await client.new(work)).session_id
        await client.say(session, "read them")
        assert ["disk" in asked.results[-1] for asked in provider.requests[1:4]] == [True] * 3
        assert "The editor did not answer in time" in provider.requests[1].results[-1]
        assert client.asked_files == [str(work / "a.txt")]
        said = [each.content.text for each in client.of("agent_thought_chunk")]
        assert sum("does not answer" in each for each in said) == 1
        client.answers_files.set()
        client.buffers[str(work / "a.txt")] = "unsaved\n"
        await client.say(session, "once more")
        assert "unsaved" in provider.requests[-1].results[-1]
        assert "did not answer" not in provider.requests[-1].results[-1]


async def test_slow_client_is_asked_for_all_files_together(provider: ProviderServer, work: Path) -> None:
    for name in "abc":
        (work / f"{name}.txt").write_text("old\n")
    patch = "".join(f"*** Update File: {name}.txt\n@@\n-old\n+new\n" for name in "abc")
    provider.script(call("apply_patch", {"patch": f"*** Begin Patch\n{patch}*** End Patch"}), text("Done."))
    async with editor(*provider.flags, "--mode", "edit", "--tools", "apply_patch", files=True) as client:
        client.answers_files.clear()
        client.awaited_files = 3
        session = (await client.new(work)).session_id
        await client.say(session, "change them")
        assert sorted(client.asked_files) == [str(work / f"{name}.txt") for name in "abc"]
        assert not [each for each in client.of("agent_thought_chunk") if "does not answer" in each.content.text]
    assert (work / "c.txt").read_text() == "new\n"


async def test_chosen_model_ends_the_wait_for_a_limit(provider: ProviderServer, work: Path) -> None:
    provider.script(lambda _: limit(7180), text("Here again."))
    async with editor(*provider.flags, "--set", "retry.resume_windows=1") as client:
        session = (await client.new(work)).session_id
        turn = asyncio.create_task(client.say(session, "hello"))
        while not any("Limit until" in each.content.text for each in client.of("agent_thought_chunk")):
            await asyncio.sleep(0.05)
        assert "Choose another model" in client.of("agent_thought_chunk")[-1].content.text
        await client.agent.set_config_option(session_id=session, config_id="model", value="custom/test-model")
        await turn
    assert len(provider.requests) == 2


async def test_client_stays_within_the_project_limits(provider: ProviderServer, work: Path) -> None:
    (work / ".git").mkdir()
    (work / ".wolo").mkdir()
    (work / ".wolo" / "config.toml").write_text('mode = "ask"\n')
    async with editor(*provider.flags) as client:
        session = await client.new(work)
        assert session.modes is not None
        assert [mode.id for mode in session.modes.available_modes] == ["plan", "ask", "edit", "auto"]
    async with editor(*provider.flags, "--trust") as client:
        session = await client.new(work)
        assert session.modes is not None
        assert [mode.id for mode in session.modes.available_modes] == ["plan", "ask"]
        with pytest.raises(RequestError, match="This project or this machine allows no mode beyond ask"):
            await client.agent.set_session_mode(session_id=session.session_id, mode_id="auto")
        provider.script(PLAN, text("I wait."))
        await client.agent.set_session_mode(session_id=session.session_id, mode_id="plan")
        client.choose = lambda call, options: "auto"
        await client.say(session.session_id, "go")
        assert [option.option_id for option in client.asked[0][1]] == ["keep"]
        assert "without a decision" in provider.requests[1].results[0]


async def test_client_servers_work_and_prints_stay_away(provider: ProviderServer, work: Path) -> None:
    server = McpServerStdio(name="theirs", command=sys.executable, args=[str(Path(mcp_plain.__file__)), "good"], env=[])
    provider.script(call("shell", {"command": "echo to stdout"}), text("Done."))
    async with editor(*provider.flags, "--mode", "auto") as client:
        client.choose = lambda call, options: "once"
        session = (await client.new(work, mcp_servers=[server])).session_id
        assert (await client.say(session, "run it")).stop_reason == "end_turn"
        ended = [each for each in client.of("tool_call_update") if each.status == "completed"]
        assert ended[-1].content[0].content.text.strip() == "to stdout"
        assert ended[-1].raw_output["exitCode"] == 0
    assert any(tool["function"]["name"].startswith("mcp__theirs__") for tool in provider.requests[-1].json["tools"])


async def test_goal_holds_the_turn_in_the_editor(provider: ProviderServer, work: Path) -> None:
    provider.script(text("Done."), call("write", {"path": "made.txt", "content": "1\n"}), text("There."))
    async with editor(*provider.flags, "--mode", "edit") as client:
        session = (await client.new(work)).session_id
        response = await client.say(session, "/goal made.txt exists --until 'test -e made.txt'")
        assert response.stop_reason == "end_turn"
        thoughts = "".join(each.content.text for each in client.of("agent_thought_chunk"))
        assert "Goal not reached (round 1): `test -e made.txt` ended with exit 1." in thoughts
        assert "Goal reached (after round 2)" in thoughts
        await client.say(session, "/goal")
        assert "Status: met" in "".join(each.content.text for each in client.of("agent_thought_chunk"))
    assert len(provider.requests) == 3
