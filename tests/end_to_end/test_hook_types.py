"""Hooks that ask a server or a model, that run in the background, and those of rarer events."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from tests.end_to_end.test_hooks import hook, noting, script, told, write_settings
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from tests.fakes.search_server import search_server
from wolo.places import find_places

WRITE = {"path": "a.txt", "content": "one"}
DENIAL = {
    "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "Not now."}
}


def request(event: str, url: str, **more: object) -> list[str]:
    rows = {"type": "http", "url": url, **more}
    return [f"[[hooks.{event}]]", *(f"{name} = {json.dumps(value)}" for name, value in rows.items())]


def test_a_server_denies_a_call(provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc")
    monkeypatch.setenv("OTHER", "secret")
    with search_server() as server:
        server.answer = DENIAL
        headers = 'headers = {Authorization = "Bearer $MY_TOKEN", X-Other = "${OTHER}"}'
        write_settings(*request("PreToolUse", f"{server.url}/check", matcher="Write", allowed_env_vars=["MY_TOKEN"]), headers)
        provider.script(call("write", WRITE), text("I see."))
        ran = run_wolo("--json", *provider.flags, "write it")
    assert (ran.exit_code, Path("a.txt").exists()) == (4, False), ran.stderr
    assert ran.json["permission_denials"][0]["reason"] == "Not now."
    ((method, path, headers_sent, event),) = server.asked
    assert (method, path, headers_sent["authorization"], headers_sent["x-other"]) == ("POST", "/check", "Bearer abc", "")
    assert event["tool_input"]["content"] == "one"


@pytest.mark.parametrize("is_strict", [False, True])
def test_failing_hook_server_asks_and_strict_denies(provider: ProviderServer, *, is_strict: bool) -> None:
    with search_server() as server:
        server.status = 500
        write_settings(*request("PreToolUse", server.url, strict=is_strict))
        provider.script(call("write", WRITE), text("Done."))
        ran = run_wolo("-p", *provider.flags, "write it")
    assert "was answered with status 500" in ran.stderr
    assert ("It is strict" in provider.requests[-1].results[0]) is is_strict
    assert not Path("a.txt").exists()


@pytest.mark.parametrize(
    ("answer", "is_written", "said"),
    [
        ('```json\n{"ok": false, "reason": "Too early."}\n```', False, "Denied by a user hook, so it was not run: Too early."),
        ('{"ok": true}', True, ""),
        ("Perhaps.", False, "Denied"),
    ],
)
def test_model_hook_judges_a_call_and_costs_count(provider: ProviderServer, answer: str, said: str, *, is_written: bool) -> None:
    write_settings("[[hooks.PreToolUse]]", 'type = "prompt"', 'prompt = "May it write? $ARGUMENTS"', 'matcher = "Write"')
    provider.script(call("write", WRITE), text(answer), text("Done."))
    ran = run_wolo("--json", *provider.flags, "write it")
    assert Path("a.txt").exists() is is_written, ran.stderr
    _, question, last = provider.requests
    assert '"hook_event_name": "PreToolUse"' in question.messages[-1]["content"]
    assert "tools" not in question.json
    assert last.results[0].startswith(said)
    assert ("is not" in ran.stderr) is (answer == "Perhaps.")
    plain = sum(each.json is not None for each in provider.requests)
    assert plain == 3
    assert ran.json["usage"]["output_tokens"] == 3 * ran.json["usage"]["output_tokens"] // 3 > 0
    assert ran.json["num_turns"] == 2


@pytest.mark.parametrize(("answer", "is_written"), [('{"ok": false, "reason": "It says never."}', False), ('{"ok": true}', True)])
def test_agent_hook_looks_at_files_before_it_judges(provider: ProviderServer, answer: str, *, is_written: bool) -> None:
    Path("policy.txt").write_text("Never write a.txt.")
    write_settings(
        "[[hooks.PreToolUse]]", 'type = "agent"', 'prompt = "Does policy.txt allow it? $ARGUMENTS"', 'matcher = "Write"'
    )
    provider.linted = False  # two conversations
    provider.script(call("write", WRITE), call("read", {"path": "policy.txt"}), text(answer), text("Done."))
    ran = run_wolo("--json", *provider.flags, "write it")
    assert Path("a.txt").exists() is is_written, ran.stderr
    _, question, second, last = provider.requests
    assert '"hook_event_name": "PreToolUse"' in str(question.messages[-1]["content"])
    assert {tool["function"]["name"] for tool in question.json["tools"]} == {"read", "grep", "glob"}
    assert "Never write a.txt." in second.results[0]
    assert ("It says never." in last.results[0]) is not is_written
    assert ran.json["num_turns"] == 4  # as those of a subagent


def test_agent_hook_writes_and_runs_nothing(provider: ProviderServer) -> None:
    write_settings("[[hooks.PreToolUse]]", 'type = "agent"', 'prompt = "May it?"', 'matcher = "Read"', "strict = true")
    Path("b.txt").write_text("x")
    provider.linted = False
    provider.script(call("read", {"path": "b.txt"}), call("shell", {"command": "touch made"}), text("Perhaps."), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--yolo", "go")
    assert ran.json["result"] == "Done."
    assert not Path("made").exists()
    assert "It is strict" in provider.requests[-1].results[0]


def test_background_hook_blocks_nothing_and_reports_later(provider: ProviderServer) -> None:
    heard = {"role": "user", "content": "[User hook: The tests fail.]"}
    write_settings(
        *hook("PreToolUse", script("late", "sys.stderr.write('The tests fail.'); sys.exit(2)"), "Write", **{"async": True})
    )
    numbers = count()

    def until_heard(asked: Asked) -> Reply:
        return text("Done.") if heard in asked.messages else call("glob", {"pattern": f"*.{next(numbers)}"})

    provider.script(call("write", WRITE))
    provider.otherwise = until_heard
    ran = run_wolo("--json", *provider.flags, "--yolo", "write it")
    assert (ran.exit_code, Path("a.txt").exists()) == (0, True), ran.stderr
    assert ran.json["result"] == "Done."


def test_once_hook_runs_once_per_session_others_repeat(provider: ProviderServer) -> None:
    write_settings(*noting("PreToolUse"), "once = true", *noting("PostToolUse"))
    provider.script(call("write", WRITE), call("read", {"path": "a.txt"}), text("Done."))
    assert run_wolo("-p", *provider.flags, "write it").exit_code == 0
    assert [each["hook_event_name"] for each in told()] == ["PreToolUse", "PostToolUse", "PostToolUse"]


def test_rule_denial_is_reported_and_may_be_answered(provider: ProviderServer) -> None:
    retry = "print(json.dumps({'hookSpecificOutput': {'hookEventName': 'PermissionDenied', 'retry': True}}))"
    write_settings(*noting("PermissionDenied", "Bash"), *hook("PermissionDenied", script("retry", retry)))
    provider.script(call("shell", {"command": "make"}), text("I see."))
    assert run_wolo("-p", *provider.flags, "--deny", "shell:make", "run it").exit_code == 4
    (denied,) = told()
    assert (denied["tool_name"], denied["tool_input"]["command"]) == ("Bash", "make")
    assert "shell:make" in denied["reason"]
    assert provider.requests[-1].results[0].endswith("[User hook: You may try this call again.]")


def test_failed_turn_is_reported_with_its_error_kind(provider: ProviderServer) -> None:
    write_settings(*noting("StopFailure", "authentication_failed"), *noting("Stop"))
    provider.script(error(401, "no such key"))
    assert run_wolo("-p", *provider.flags, "hello").exit_code == 1
    (failed,) = told()
    assert (failed["hook_event_name"], failed["error"]) == ("StopFailure", "authentication_failed")
    assert "401" in failed["error_details"]


def test_changed_files_and_settings_are_told_between_requests(provider: ProviderServer) -> None:
    Path(".env").write_text("A=1")
    settings = str(find_places().config / "config.toml")
    body = "open(os.environ['CLAUDE_ENV_FILE'], 'a').write('export COLOR=blue')"
    write_settings(
        *noting("FileChanged", ".env|.envrc"),
        *noting("ConfigChange"),
        *hook("FileChanged", script("env", body), ".env|.envrc"),
        *hook("PostToolUse", script("edit", f"open({settings!r}, 'a').write('#')"), "Bash"),
        "once = true",
    )
    more = "echo A=2 > .env; echo > .envrc; echo >> other"
    provider.script(call("shell", {"command": more}), call("shell", {"command": "echo $COLOR"}), text("Done."))
    ran = run_wolo("-p", *provider.flags, "--yolo", "--sandbox", "off", "go")
    assert ran.exit_code == 0, ran.stderr
    changed = [(each.get("event"), Path(each["file_path"]).name, each.get("source")) for each in told()]
    assert sorted(changed, key=str) == [
        ("add", ".envrc", None),
        ("change", ".env", None),
        (None, "config.toml", "user_settings"),
    ]
    assert "blue" in provider.requests[-1].results[-1]


def test_instructions_and_first_session_are_reported(provider: ProviderServer) -> None:
    Path("AGENTS.md").write_text("Be brief.")
    Path("sub").mkdir()
    Path("sub/AGENTS.md").write_text("Be exact.")
    Path("sub/a.txt").write_text("a")
    write_settings(*(line for event in ("Setup", "SessionStart", "InstructionsLoaded") for line in noting(event)))
    provider.otherwise = text("Hello.")
    for _ in range(2):
        assert run_wolo("-p", *provider.flags, "hello").exit_code == 0
    loaded = {"file_path": str(Path("AGENTS.md").absolute()), "memory_type": "Project", "load_reason": "session_start"}
    assert [each["hook_event_name"] for each in told()] == ["Setup", *("SessionStart", "InstructionsLoaded") * 2]
    provider.script(call("read", {"path": "sub/a.txt"}), text("Read."))
    assert run_wolo("-p", *provider.flags, "read it").exit_code == 0
    nested = told()[-1]
    assert (nested["file_path"], nested["load_reason"]) == (str(Path("sub/AGENTS.md").absolute()), "nested_traversal")
    assert nested["trigger_file_path"] == str(Path("sub/a.txt").absolute())
    assert told()[0]["trigger"] == "init"
    assert told()[2].items() >= loaded.items()


def test_a_hook_may_name_its_model(provider: ProviderServer) -> None:
    asking = ["[[hooks.Stop]]", 'type = "prompt"', 'prompt = "Is it done?"']
    write_settings(*asking, 'model = "custom/another"', "once = true")
    provider.script(text("Done."), text('{"ok": false, "reason": "Test it."}'), text("Tested."))
    ran = run_wolo("-p", *provider.flags, "hello")
    assert (ran.exit_code, ran.stdout) == (0, "Tested.\n")
    assert [each.json["model"] for each in provider.requests] == ["test-model", "another", "test-model"]
    assert provider.requests[2].messages[-1]["content"] == "[User hook: Test it.]"
