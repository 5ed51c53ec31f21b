"""Claude Code's protocol, as a program sees it that was written for it."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, calls, delta, error, finish, sse, text, usage
from tests.frontends.claude_protocol.protocol_client import FORMS, Line, ProtocolClient, allow, blocks
from wolo.places import find_places

ASKS = ("--permission-prompt-tool", "stdio")
HOOK = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}}


def test_turn_is_told_in_the_protocols_messages(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("one\n")
    provider.script(call("read", {"path": "notes.txt"}), text("It says one.", reasoning="Let me look."))
    with ProtocolClient(provider) as client:
        lines = client.turn("What do the notes say?")
        assert client.end() == 0
    assert [line["type"] for line in lines] == ["system", "assistant", "user", "assistant", "assistant", "result"]
    init, result = lines[0], lines[-1]
    assert init["subtype"] == "init"
    assert init["permissionMode"] == "default"
    assert {"Read", "Bash", "Edit"} <= {*init["tools"]}
    [used], [read] = blocks(lines, "tool_use"), blocks(lines, "tool_result")
    assert (used["name"], used["input"]) == ("Read", {"file_path": str(Path("notes.txt").resolve())})
    assert read["tool_use_id"] == used["id"]
    assert "one" in read["content"]
    assert not read["is_error"]
    assert blocks(lines, "thinking") == [{"type": "thinking", "thinking": "Let me look.", "signature": ""}]
    assert result["subtype"] == "success"
    assert result["result"] == "It says one."
    assert result["num_turns"] == 2
    assert result["modelUsage"]["custom/test-model"]["inputTokens"] == 200
    assert result["modelUsage"]["custom/test-model"]["costBasis"] == "unknown"
    assert {line["session_id"] for line in lines} == {init["session_id"]}
    assert len({uuid.UUID(line["uuid"]) for line in lines}) == len(lines)


def test_deltas_build_the_messages(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "true"}), content="I run it."), text("Done."))
    with ProtocolClient(provider, "--include-partial-messages", "--allowedTools", "Bash") as client:
        lines = client.turn()
    events = [line["event"] for line in lines if line["type"] == "stream_event"]
    first = events[: [event["type"] for event in events].index("message_stop") + 1]
    assert first[0]["type"] == "message_start"
    built: list[Line] = []
    for event in first:
        if event["type"] == "content_block_start":
            assert event["index"] == len(built)
            built.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            delta, block = event["delta"], built[event["index"]]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                block["json"] += delta["partial_json"]
    assert [block["type"] for block in built] == ["text", "tool_use"]
    assert built[0]["text"] == "I run it."
    [used] = blocks(lines, "tool_use")
    assert json.loads(built[1]["json"]) == used["input"]
    assert built[1]["id"] == used["id"]
    assistant = next(line for line in lines if line["type"] == "assistant")
    assert assistant["message"]["id"] == first[0]["message"]["id"]


def test_program_decides_about_calls(provider: ProviderServer) -> None:
    script = calls(("write", {"path": "a.txt", "content": "a"}), ("shell", {"command": "touch b.txt"}))
    provider.script(script, text("Done."))

    def answer(request: Line) -> Line:
        if request["tool_name"] == "Bash":
            return {"behavior": "deny", "message": "no commands today"}
        return {"behavior": "allow", "updatedInput": {**request["input"], "content": "from the program"}}

    with ProtocolClient(provider, *ASKS, answer=answer) as client:
        lines = client.turn()
        assert client.end() == 0
    assert [each["tool_name"] for each in client.asked] == ["Write", "Bash"]
    assert Path("a.txt").read_text() == "from the program"
    assert not Path("b.txt").exists()
    assert "no commands today" in provider.requests[1].results[1]
    assert "from the program" in provider.requests[1].results[0], "the model learns of the change"
    [denial] = lines[-1]["permission_denials"]
    assert denial["tool_name"] == "Bash"
    assert denial["tool_input"]["command"] == "touch b.txt"
    assert lines[-1]["subtype"] == "success"
    assert not lines[-1]["is_error"]


def test_edited_replacements_are_applied(provider: ProviderServer) -> None:
    Path("a.txt").write_text("one two")
    edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2"}]
    provider.script(call("edit", {"path": "a.txt", "edits": edits}), text("Done."))

    def answer(request: Line) -> Line:
        assert request["tool_name"] == "MultiEdit"
        changed = [{**each, "new_string": each["new_string"] * 2} for each in request["input"]["edits"]]
        return {"behavior": "allow", "updatedInput": {**request["input"], "edits": changed}}

    with ProtocolClient(provider, *ASKS, answer=answer) as client:
        client.turn()
    assert Path("a.txt").read_text() == "11 22"


def test_change_that_cannot_be_translated_denies(provider: ProviderServer) -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch"
    provider.script(call("apply_patch", {"patch": patch}), text("Done."))
    answer = {"behavior": "allow", "updatedInput": {"patch": "other"}}
    with ProtocolClient(provider, *ASKS, "--set", 'tools.offer=["apply_patch"]', answer=lambda request: answer) as client:
        lines = client.turn()
    assert not Path("a.txt").exists()
    assert blocks(lines, "tool_result")[0]["is_error"]


@pytest.mark.parametrize("answer", [{}, {"behavior": "perhaps"}, {"behavior": "allow", "updatedInput": "all"}])
def test_answer_that_makes_no_sense_denies(provider: ProviderServer, answer: Line) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, *ASKS, answer=lambda request: answer) as client:
        client.turn()
    assert not Path("made").exists()


def test_denial_can_end_the_turn(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}))
    answer = {"behavior": "deny", "message": "stop", "interrupt": True}
    with ProtocolClient(provider, *ASKS, answer=lambda request: answer) as client:
        result = client.turn()[-1]
    assert result["subtype"] == "error_during_execution"
    assert result["errors"]
    assert not Path("made").exists()


def test_calls_without_permission_prompt_are_denied(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider) as client:
        lines = client.turn()
        assert client.end() == 0, "a denial is no failure in this protocol"
    assert not Path("made").exists()
    assert lines[-1]["permission_denials"]
    assert [line["subtype"] for line in lines if line["type"] == "system"] == ["init", "permission_denied"]


def test_hook_of_the_program_denies(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "touch made"}), ("write", {"path": "a.txt", "content": "a"})), text("Done."))

    def answer(request: Line) -> Line:
        if request["subtype"] == "hook_callback":
            assert request["callback_id"] == "hook_0"
            assert request["input"]["tool_input"]["command"] == "touch made"
            denial = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not that"}
            return {"hookSpecificOutput": denial}
        return allow(request)

    with ProtocolClient(provider, *ASKS, answer=answer) as client:
        assert client.request("initialize", **HOOK)["response"]["hooks_applied"] is True
        client.turn()
    assert not Path("made").exists()
    assert Path("a.txt").exists()
    assert "not that" in provider.requests[1].results[0]


@pytest.mark.parametrize("answer", [[], ["deny"], "deny", False])
def test_hook_answer_that_is_no_object_denies(provider: ProviderServer, answer: Any) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, "--permission-mode", "bypassPermissions", answer=lambda request: answer) as client:
        client.request("initialize", **HOOK)
        client.turn()
    assert not Path("made").exists()
    assert "its answer is no object" in provider.requests[1].results[0]


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_hook_that_fails_denies(provider: ProviderServer, mode: str) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, *ASKS, "--permission-mode", mode, "--allowedTools", "Bash", answer=allow) as client:
        client.request("initialize", **HOOK)
        client.prompt("go")
        while (line := client.read()) is not None and line["type"] != "control_request":
            pass
        assert line is not None
        refusal = {"subtype": "error", "request_id": line["request_id"], "error": "the callback raised"}
        client.send({"type": "control_response", "response": refusal})
        client.read_until(lambda line: line["type"] == "result")
    assert not client.asked, "can_use_tool cannot stand in for the hook"
    assert not Path("made").exists()


def test_hang_up_while_a_hook_is_asked_denies(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, "--permission-mode", "bypassPermissions") as client:
        client.request("initialize", **HOOK)
        client.prompt("go")
        while (line := client.read()) is not None and line["type"] != "control_request":
            pass
        assert client.end() == 0
    assert not Path("made").exists()
    assert len(provider.requests) == 2


def test_unknown_hook_event_ends_the_session(provider: ProviderServer) -> None:
    with ProtocolClient(provider) as client:
        response = client.request("initialize", hooks={"WorktreeCreate": [{"hookCallbackIds": ["h"]}]})
        assert response["subtype"] == "error"
        assert "WorktreeCreate" in response["error"]
        assert client.end() == 2
    assert not provider.requests


@pytest.mark.parametrize(
    ("field", "value"),
    [("toolAliases", {"Bash": "Read"}), ("plugins", [{"path": "x"}]), ("managedSettings", {}), ("skills", ["a"]), ("new", 1)],
)
def test_unknown_field_of_initialize_ends_the_session(provider: ProviderServer, field: str, value: object) -> None:
    with ProtocolClient(provider) as client:
        response = client.request("initialize", **{field: value or {"x": 1}})
        assert response["subtype"] == "error"
        assert field in response["error"]
        assert client.end() == 2


def test_server_of_the_program_is_used(provider: ProviderServer) -> None:
    provider.script(call("mcp__calc__add", {"a": 1, "b": 2}), text("It is 3."))
    tool = {"name": "add", "description": "Adds", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}}

    def answer(request: Line) -> Line:
        message = request["message"]
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc"}},
            "tools/list": {"tools": [tool]},
            "tools/call": {"content": [{"type": "text", "text": "the sum is 3"}]},
        }
        return {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id"), "result": results.get(message["method"], {})}}

    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    with ProtocolClient(provider, "--mcp-config", config, "--allowedTools", "mcp__calc__add", answer=answer) as client:
        client.request("initialize")
        assert client.request("mcp_status")["response"]["mcpServers"][0]["status"] == "connected"
        lines = client.turn()
    assert "mcp__calc__add" in lines[0]["tools"]
    assert provider.requests[1].results == ["the sum is 3"]
    assert client.asked[-1]["message"]["params"] == {"name": "add", "arguments": {"a": 1, "b": 2}}


@pytest.mark.parametrize("reply", [None, "text", {"jsonrpc": "2.0"}, {"error": {"message": "broken"}}, {"result": [1]}])
def test_nonsense_of_a_server_costs_only_itself(provider: ProviderServer, reply: object) -> None:
    provider.script(text("Done."))
    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    with ProtocolClient(provider, "--mcp-config", config, answer=lambda request: {"mcp_response": reply}) as client:
        client.request("initialize")
        assert client.request("mcp_status")["response"]["mcpServers"][0]["status"] == "failed"
        assert client.turn()[-1]["subtype"] == "success"


def test_forbidden_server_of_the_program_is_not_used(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "managed-settings"
    folder.mkdir()
    (folder / "managed.toml").write_text('managed.mcp.allow = ["other"]\n')
    monkeypatch.setenv("WOLO_MANAGED_DIR", str(folder))
    provider.script(text("Done."))
    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    with ProtocolClient(provider, "--mcp-config", config) as client:
        client.request("initialize")
        assert client.request("mcp_status")["response"]["mcpServers"] == []
        assert client.turn()[-1]["subtype"] == "success"
    assert "mcp_message" not in [each["subtype"] for each in client.asked]


def test_call_of_a_server_ends_at_its_timeout(provider: ProviderServer) -> None:
    provider.script(call("mcp__calc__add", {}), text("It did not answer."))

    def answer(request: Line) -> Line | None:
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "calc"}},
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
        }
        method = request["message"]["method"]
        return None if method == "tools/call" else {"mcp_response": {"result": results.get(method, {})}}

    with ProtocolClient(provider, "--allowedTools", "mcp__calc__add", answer=answer) as client:
        client.request("initialize", sdkMcpServers=["calc"], sdkMcpServerConfigs={"calc": {"timeout": 50}})
        lines = client.turn()
    assert "did not answer within 0.05 s" in blocks(lines, "tool_result")[0]["content"]


def test_policy_of_a_server_is_refused(provider: ProviderServer) -> None:
    with ProtocolClient(provider) as client:
        policy = {"tools": [{"name": "add", "policy": "always_deny"}]}
        response = client.request("initialize", sdkMcpServers=["calc"], sdkMcpServerConfigs={"calc": policy})
        assert "sdkMcpServerConfigs.calc.tools" in response["error"]
        assert client.end() == 2


def test_mode_dont_ask_asks_nobody(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, *ASKS, "--permission-mode", "dontAsk", answer=allow) as client:
        client.request("initialize")
        assert client.request("set_permission_mode", mode="dontAsk")["subtype"] == "success"
        client.turn()
    assert not client.asked
    assert not Path("made").exists()


def test_changed_call_replays_as_it_ran(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "a"}), text("Done."))

    def answer(request: Line) -> Line:
        return {"behavior": "allow", "updatedInput": {**request["input"], "content": "from the program"}}

    with ProtocolClient(provider, *ASKS, answer=answer) as client:
        id = client.turn()[-1]["session_id"]
    run = run_wolo("replay", id)
    assert run.exit_code == 0, run.stdout + run.stderr


@pytest.mark.parametrize("with_text", [False, True])
def test_calls_of_a_subagent_name_their_parent(provider: ProviderServer, with_text: bool) -> None:
    Path("notes.txt").write_text("one")
    provider.script(
        call("task", {"prompt": "look", "agent": "explore"}),
        call("read", {"path": "notes.txt"}),
        text("It says one."),
        text("Done."),
    )
    with ProtocolClient(provider) as client:
        client.request("initialize", forwardSubagentText=with_text)
        lines = client.turn()
    task = blocks(lines, "tool_use")[0]
    assert task["name"] == "Task"
    inner = [line for line in lines if line.get("parent_tool_use_id") == task["id"]]
    assert [block["name"] for block in blocks(inner, "tool_use")] == ["Read"]
    assert [block["tool_use_id"] for block in blocks(inner, "tool_result")] == [blocks(inner, "tool_use")[0]["id"]]
    assert [block["text"] for block in blocks(inner, "text")] == (["It says one."] if with_text else [])
    subtypes = [line["subtype"] for line in lines if line["type"] == "system"]
    assert subtypes == ["init", "task_started", "task_notification"]
    [usage] = lines[-1]["modelUsage"].values()
    assert usage["inputTokens"] == 400, "those of the subagent count once"


def test_output_style_of_the_settings_is_named(provider: ProviderServer) -> None:
    config = find_places().config
    (config / "output-styles").mkdir(parents=True)
    (config / "output-styles/terse.md").write_text("Be terse.")
    (config / "config.toml").write_text('output_style = "terse"\n')
    provider.script(text("Done."))
    with ProtocolClient(provider) as client:
        response = client.request("initialize")["response"]
        assert (response["output_style"], response["available_output_styles"]) == ("terse", ["default", "terse"])
        assert client.turn()[0]["output_style"] == "terse"


def test_agents_and_prompts_of_initialize_are_used(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    reviewer = {"description": "reviews code", "prompt": "You review.", "tools": ["Read", "Grep"]}
    with ProtocolClient(provider) as client:
        response = client.request("initialize", agents={"reviewer": reviewer}, systemPrompt=["Be brief."], appendSystemPrompt="!")
        assert {"name": "reviewer", "description": "reviews code"} in response["response"]["agents"]
        assert response["response"]["models"][0]["value"] == "custom/test-model"
        assert response["response"]["commands"] == []
        client.turn()
    assert provider.requests[0].messages[0]["content"].startswith("Be brief.")
    assert "reviewer" in json.dumps(provider.requests[0].json["tools"])


def write(path: str, content: str) -> Reply:
    return call("write", {"path": path, "content": content})


def test_files_are_rewound_to_a_prompt(provider: ProviderServer) -> None:
    provider.script(write("a.txt", "one"), text("First."), write("a.txt", "two"), write("b.txt", "new"), text("Second."))
    provider.script(text("Third."))
    with ProtocolClient(provider, "--permission-mode", "acceptEdits") as client:
        client.turn("first")
        client.turn("second", uuid="5d0b1bb5-2f5c-4b7d-8b1c-6f3a4a0f6a11")
        paths = [str(Path(name).absolute()) for name in ("a.txt", "b.txt")]
        for dry in (True, 1, "true"):  # nothing is changed where a preview may be meant
            preview = client.request("rewind_files", user_message_id="5d0b1bb5-2f5c-4b7d-8b1c-6f3a4a0f6a11", dry_run=dry)
            assert preview["response"] == {"canRewind": True, "filesChanged": paths}
        assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("two", "new")
        unknown = client.request("rewind_files", user_message_id="9", dry_run=True)["response"]
        assert unknown == {"canRewind": False, "error": "There is no prompt 9 in this session."}
        assert "There is no prompt 9" in client.request("rewind_files", user_message_id="9")["error"]
        rewound = client.request("rewind_files", user_message_id="5d0b1bb5-2f5c-4b7d-8b1c-6f3a4a0f6a11")
        assert rewound["response"]["filesChanged"] == paths
        assert (Path("a.txt").read_text(), Path("b.txt").exists()) == ("one", False)
        assert client.turn("third")[-1]["result"] == "Third."
        assert client.end() == 0
    last = json.dumps(provider.requests[-1].json["messages"])
    assert "second" in last
    assert "The user undid what the last turn changed in some files" in last


def test_replayed_prompt_is_rewound_after_a_resume(provider: ProviderServer) -> None:
    provider.script(write("a.txt", "one"), text("First."), text("Second."))
    options = ("--permission-mode", "acceptEdits", "--replay-user-messages")
    with ProtocolClient(provider, *options) as client:
        lines = client.turn("first")
        [replayed] = [line for line in lines if line.get("isReplay")]
        assert replayed["message"] == {"role": "user", "content": "first"}
    Path("a.txt").write_text("mine")
    with ProtocolClient(provider, *options, "--resume", lines[0]["session_id"]) as client:
        response = client.request("rewind_files", user_message_id=replayed["uuid"])["response"]
        assert (response["filesChanged"], "changed since: a.txt" in response["error"]) == ([], True)
        assert Path("a.txt").read_text() == "mine"
        Path("a.txt").write_text("one")
        response = client.request("rewind_files", user_message_id=replayed["uuid"])["response"]
        assert (response["canRewind"], Path("a.txt").exists()) == (True, False)


def test_rewind_during_a_turn_is_refused(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("So"), hold, delta("."), finish("stop", usage())))
    with ProtocolClient(provider) as client:
        client.prompt("go", uuid="1")
        hold.wait_until_reached(30)
        assert "A turn runs" in client.request("rewind_files", user_message_id="1")["error"]
        hold.release()
        assert client.read_until(lambda line: line["type"] == "result")[-1]["result"] == "So."


def test_stopped_task_ends_alone(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "wait"}), call("shell", {"command": "sleep 60"}), text("Done."))
    with ProtocolClient(provider, "--allowedTools", "Bash") as client:
        client.prompt("go")
        started = client.read_until(lambda line: line.get("subtype") == "task_started")[-1]
        client.read_until(lambda line: line["type"] == "assistant" and line["parent_tool_use_id"])
        assert "No task none is running" in client.request("stop_task", task_id="none")["error"]
        id = client.start_request("stop_task", task_id=started["task_id"])
        lines = client.read_until(lambda line: line["type"] == "result")
    [response] = [line["response"] for line in lines if line["type"] == "control_response"]
    assert (response["request_id"], response["subtype"]) == (id, "success")
    [ended] = [line for line in lines if line.get("subtype") == "task_notification"]
    assert (ended["task_id"], ended["status"]) == (started["task_id"], "stopped")
    assert lines[-1]["result"] == "Done."


def test_interrupt_ends_one_turn(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "sleep 60"}), text("Here I am."))
    with ProtocolClient(provider, "--allowedTools", "Bash") as client:
        client.prompt("go")
        client.read_until(lambda line: line["type"] == "assistant")
        assert client.request("interrupt")["subtype"] == "success"
        result = client.read_until(lambda line: line["type"] == "result")[-1]
        assert result["is_error"]
        assert result["errors"] == ["Interrupted."]
        assert client.turn("still there?")[-1]["result"] == "Here I am."
        assert client.end() == 0


def test_mode_and_model_can_be_changed(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "a"}), text("Done."))
    with ProtocolClient(provider) as client:
        client.request("initialize")
        assert client.request("set_permission_mode", mode="acceptEdits")["response"] == {"mode": "acceptEdits"}
        assert "bypassPermissions" in client.request("set_permission_mode", mode="bypassPermissions")["error"]
        assert client.request("set_permission_mode", mode="sideways")["subtype"] == "error"
        assert client.request("set_model", model="custom/other-model")["subtype"] == "success"
        lines = client.turn()
    assert Path("a.txt").exists()
    assert lines[0]["permissionMode"] == "acceptEdits"
    assert provider.requests[0].json["model"] == "other-model"
    assert lines[0]["model"] == "custom/other-model"


def test_unknown_control_request_is_refused(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    with ProtocolClient(provider) as client:
        response = client.request("mcp_toggle", serverName="x", enabled=False)
        assert response["subtype"] == "error"
        assert "mcp_toggle" in response["error"]
        assert client.turn()[-1]["result"] == "Done."


def test_second_answer_is_ignored(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    with ProtocolClient(provider, *ASKS) as client:
        client.prompt("go")
        while (line := client.read()) is not None and line["type"] != "control_request":
            pass
        assert line is not None
        client.respond(line["request_id"], {"behavior": "deny", "message": "no"})
        client.respond(line["request_id"], {"behavior": "allow", "updatedInput": line["request"]["input"]})
        client.respond("never-asked", {"behavior": "allow"})
        assert client.read_until(lambda line: line["type"] == "result")[-1]["subtype"] == "success"
    assert not Path("made").exists()


@pytest.mark.parametrize("bad", ['{"type": "user", "mess', "no json", '{"type": "sideways"}', '{"type": "user"}', "[]"])
def test_bad_line_ends_the_session_only(provider: ProviderServer, bad: str) -> None:
    provider.script(text("Done."))
    with ProtocolClient(provider) as client:
        assert client.turn()[-1]["result"] == "Done."
        client.write(bad)
        assert client.process.stdin is not None
        client.process.stdin.close()
        last = client.read()
        assert last is not None
        assert last["subtype"] == "error_during_execution"
        assert last["errors"]
        assert client.process.wait(30) == 2
    listed = run_wolo("sessions", "list", "--json").json
    assert [each["turns"] for each in listed] == [1], "the session is saved"


def test_hang_up_ends_everything(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "sleep 60"}))
    with ProtocolClient(provider, "--allowedTools", "Bash") as client:
        client.prompt("go")
        client.read_until(lambda line: line["type"] == "assistant")
        assert client.process.stdout is not None
        client.process.stdout.close()
        assert client.end() != 0, "it does not wait for the command"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--permission-prompt-tool", "mcp__auth__ask"), "mcp__auth__ask"),
        (("--sdk-url", "wss://host"), "--sdk-url"),
        (("--plugin-dir", "x"), "--plugin-dir"),
        (("--betas=a",), "--betas"),
        (("--include-hook-events",), "--include-hook-events"),
        (("--resume-session-at", "x"), "--resume-session-at"),
        (("--session-id", "not-a-uuid"), "--session-id"),
        (("--settings", '{"hooks": {}}'), "hooks"),
        (("--settings", '{"permissions": {"deny": ["Frobnicate(x)"]}}'), "Frobnicate"),
        (("--disallowedTools", "Read(!x)"), "Read(!x)"),
        (("--permission-mode", "sideways"), "sideways"),
        (("--max-turns",), "--max-turns"),
    ],
)
def test_option_not_spoken_ends_with_its_name(options: tuple[str, ...], name: str) -> None:
    run = run_wolo(*FORMS, *options, stdin='{"type":"user","message":{"role":"user","content":"go"}}\n')
    assert run.exit_code == 2
    assert name in run.stderr
    assert run.lines[-1]["type"] == "result"
    assert name in run.lines[-1]["errors"][0]


@pytest.mark.parametrize(
    ("options", "env"),
    [(ASKS, {}), ((), {"CLAUDE_AGENT_SDK_VERSION": "0.2.0"}), (("--permission-prompt-tool=stdio",), {})],
)
def test_marks_of_the_sdk_choose_the_protocol(provider: ProviderServer, options: tuple[str, ...], env: dict[str, str]) -> None:
    provider.script(call("shell", {"command": "env"}), text("Done."))
    forms = ("--output-format", "stream-json", "--input-format", "stream-json")
    with ProtocolClient(provider, *options, "--allowedTools", "Bash", forms=forms, env=env) as client:
        lines = client.turn()
    assert lines[0]["claude_code_version"]
    assert "CLAUDE_AGENT_SDK" not in provider.requests[1].results[0], "a wolo that a command starts is its own"


def test_own_stream_json_keeps_its_form(provider: ProviderServer) -> None:
    provider.script(text("Done."))
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "go"}})
    forms = ("--output-format", "stream-json", "--input-format", "stream-json")
    run = run_wolo(*forms, *provider.flags, stdin=f"{line}\n")
    assert "mode" in run.lines[0]
    assert "uuid" not in run.lines[0]


def test_session_ids_of_the_program_are_kept(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."), text("Three."))
    id = str(uuid.uuid4())
    with ProtocolClient(provider, f"--session-id={id}") as client:
        assert client.turn("first")[-1]["session_id"] == id
    with ProtocolClient(provider, f"--resume={id}") as client:
        assert client.turn("second")[-1]["session_id"] == id
    with ProtocolClient(provider, "--continue", "--fork-session") as client:
        assert client.turn("third")[-1]["session_id"] != id
    prompts = [message["content"] for message in provider.requests[2].messages if message["role"] == "user"]
    assert prompts == ["first", "second", "third"]


def test_limits_are_results_of_the_protocol(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "true"}))
    with ProtocolClient(provider, "--max-turns", "1", "--allowedTools", "Bash") as client:
        result = client.turn()[-1]
        assert result["subtype"] == "error_max_turns"
        assert result["is_error"]
        assert result["errors"]
        assert client.end() == 5


def test_failure_of_the_model_has_its_reason(provider: ProviderServer) -> None:
    provider.script(error(401, {"error": {"message": "bad key"}}))
    with ProtocolClient(provider) as client:
        result = client.turn()[-1]
        assert client.end() == 1
    assert result["subtype"] == "error_during_execution"
    assert "bad key" in result["errors"][0]


def test_answer_fits_the_schema_of_the_program(provider: ProviderServer) -> None:
    provider.script(text('{"x": "no"}'), text('{"x": 3}'), text("no"), text("still no"))
    schema = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    with ProtocolClient(provider) as client:
        client.request("initialize", jsonSchema=schema)
        assert client.turn()[-1]["structured_output"] == {"x": 3}
        assert client.turn()[-1]["subtype"] == "error_max_structured_output_retries"


def test_tools_are_limited_as_the_program_says(provider: ProviderServer) -> None:
    provider.script(text("Done."), text("Done."))
    with ProtocolClient(provider, "--tools", "Read,Bash,Task", "--disallowedTools", "Bash,WebFetch") as client:
        assert client.turn()[0]["tools"] == ["Read", "Task"]
    with ProtocolClient(provider, "--tools", "") as client:
        assert client.turn()[0]["tools"] == []


@pytest.mark.parametrize("rule", ["mcp__calc__*", "mcp__calc", "mcp__calc__add", "*"])
def test_denied_servers_offer_nothing(provider: ProviderServer, rule: str) -> None:
    provider.script(call("mcp__calc__add", {}), text("Done."))
    tool = {"name": "add", "inputSchema": {"type": "object"}}
    replies = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}, "tools/list": {"tools": [tool]}}

    def answer(request: Line) -> Line:
        return {"mcp_response": {"result": replies.get(request["message"]["method"], {"content": []})}}

    config = json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})
    options = ("--permission-mode", "bypassPermissions", "--mcp-config", config, "--disallowedTools", rule)
    with ProtocolClient(provider, *options, answer=answer) as client:
        client.request("initialize")
        client.turn()
    assert "tools/call" not in [each["message"]["method"] for each in client.asked]


def test_rules_of_settings_hold(provider: ProviderServer) -> None:
    Path(".env.local").write_text("hidden")
    script = calls(("read", {"path": ".env.local"}), ("shell", {"command": "touch made"}))
    provider.script(script, text("Done."))
    settings = {"permissions": {"deny": ["Read(.env.local)"], "allow": ["Bash(touch *)"]}}
    with ProtocolClient(provider, "--settings", json.dumps(settings)) as client:
        client.turn()
    assert "hidden" not in provider.requests[1].results[0]
    assert Path("made").exists()


def test_questions_reach_the_program(provider: ProviderServer) -> None:
    options = [{"label": "Red"}, {"label": "Blue"}]
    provider.script(call("ask", {"questions": [{"question": "Which colour?", "options": options}]}), text("Blue it is."))

    def answer(request: Line) -> Line:
        assert request["tool_name"] == "AskUserQuestion"
        return {"behavior": "allow", "updatedInput": {**request["input"], "answers": {"Which colour?": "Blue"}}}

    with ProtocolClient(provider, *ASKS, answer=answer) as client:
        client.turn()
    assert "Blue" in provider.requests[1].results[0]


def test_program_approves_the_plan(provider: ProviderServer) -> None:
    provider.script(call("present_plan", {"plan": "1. Do it"}), call("write", {"path": "a.txt", "content": "a"}), text("Done."))
    with ProtocolClient(provider, *ASKS, "--permission-mode", "plan", answer=allow) as client:
        lines = client.turn()
    assert [each["tool_name"] for each in client.asked] == ["ExitPlanMode", "Write"], "edits are asked about again"
    [status] = [line for line in lines if line.get("subtype") == "status"]
    assert status["permissionMode"] == "default"
    assert Path("a.txt").exists()


def test_prompts_wait_for_their_turn(provider: ProviderServer) -> None:
    provider.script(text("One."), text("Two."))
    env = {"CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
    with ProtocolClient(provider, env=env) as client:
        client.prompt("first")
        client.prompt("second")
        lines = client.read_until(lambda line: line.get("state") == "idle")
    assert [line["result"] for line in lines if line["type"] == "result"] == ["One.", "Two."]
    assert [line["state"] for line in lines if "state" in line] == ["running", "running", "idle"]
