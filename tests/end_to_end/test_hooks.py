"""Hooks: commands of the person's own that hear what happens and may say no, as real programs around a real run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.components import require
from tests.end_to_end.test_compaction import SUMMARY, fill
from tests.end_to_end.test_repl import leave, prompts, repl, shown, wait_for_prompt
from tests.end_to_end.test_stopping import is_alive
from tests.fakes.command import Completed, run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, calls, delta, finish, sse, text, usage
from tests.fakes.screen import PROMPT, Terminal, pty_wolo
from wolo.config import consents
from wolo.conversation.resources import conversation_hooks
from wolo.places import find_places
from wolo.workspace.root import find_site

WRITE = {"path": "a.txt", "content": "one"}


def write_settings(*lines: str) -> None:
    config = find_places().config
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("\n".join(lines) + "\n")


def script(name: str, body: str) -> str:
    """A hook of the person's own, outside of the project; the command that runs it."""
    path = Path.home() / f"{name}.py"
    path.write_text("import json, os, sys\ntold = json.load(sys.stdin)\n" + body)
    return f"{shlex.quote(sys.executable)} -IS {shlex.quote(str(path))}"  # without the site packages: started often


def hook(event: str, command: str, matcher: str = "", **more: object) -> list[str]:
    rows = {"matcher": matcher, "command": command, **more}
    return [f"[[hooks.{event}]]", *(f"{name} = {json.dumps(value)}" for name, value in rows.items())]


def noting(event: str, matcher: str = "") -> list[str]:
    """A hook that writes down what it was told."""
    body = f"open({str(Path.home() / 'told.jsonl')!r}, 'a').write(json.dumps(told) + chr(10))"
    return hook(event, script(f"note_{event}", body), matcher)


def told() -> list[dict[str, Any]]:
    path = Path.home() / "told.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def saying(**output: object) -> str:
    return f"print(json.dumps({output!r}))"


def specific(event: str, **output: object) -> str:
    return saying(hookSpecificOutput={"hookEventName": event, **output})


def test_hook_stops_a_call_and_gives_the_reason(provider: ProviderServer) -> None:
    write_settings(
        *hook(
            "PreToolUse",
            script("no", "sys.stderr.write('Use the store.'); sys.exit(2 * ('content' in told['tool_input']))"),
            "Write|Edit",
        )
    )
    provider.script(call("Write", {"file_path": "a.txt", "contents": "one"}), text("I see."))
    ran = run_wolo("--json", *provider.flags, "write it")
    assert ran.exit_code == 4, ran.stderr
    assert not Path("a.txt").exists()
    assert provider.requests[-1].results[0].startswith("Denied by a user hook, so it was not run: Use the store.")
    assert ran.json["permission_denials"][0]["reason"] == "Use the store."


def test_without_that_hook_the_same_call_runs(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", script("no", "sys.exit(2)"), "Bash"))
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("-p", *provider.flags, "write it").exit_code == 0
    assert Path("a.txt").read_text() == "one"


def test_run_events_are_reported_in_their_order(provider: ProviderServer) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")
    write_settings(*(line for event in events for line in noting(event)))
    provider.script(calls(("write", WRITE), ("read", {"path": "none.txt"})), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert ran.exit_code == 0, ran.stderr
    heard = told()
    assert [each["hook_event_name"] for each in heard] == [
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreToolUse", "PostToolUseFailure"),
        *("Stop", "SessionEnd"),
    ]
    assert {each["session_id"] for each in heard} == {ran.json["session_id"]}
    assert {(each["cwd"], each["permission_mode"], each["wolo_mode"]) for each in heard} == {
        (str(Path.cwd()), "acceptEdits", "edit")
    }
    start, prompt, before, after, _, failed, stop, _ = heard
    assert start["source"] == "startup"
    assert prompt["prompt"] == "write it"
    path = str(Path("a.txt").absolute())
    assert (before["tool_name"], before["tool_input"]) == ("Write", {"file_path": path, "content": "one"})
    assert (before["wolo_tool_name"], before["wolo_tool_input"]) == ("write", WRITE)
    assert before["tool_use_id"] == after["tool_use_id"]
    assert (after["tool_response"]["type"], after["tool_response"]["filePath"]) == ("create", path)
    assert after["wolo_tool_response"]["files_changed"] == [path]
    assert after["duration_ms"] >= 0
    assert (failed["tool_name"], failed["wolo_tool_response"]["is_error"]) == ("Read", True)
    assert "none.txt" in failed["error"]
    assert (stop["stop_hook_active"], stop["last_assistant_message"]) == (False, "Done.")


# What a hook says of a call


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="Not on Friday."), "Not on Friday."),
        (saying(decision="block", reason="Not on Friday."), "Not on Friday."),
        ("sys.exit(2)", "No reason given."),
    ],
)
def test_each_form_of_a_no_is_one(provider: ProviderServer, output: str, reason: str) -> None:
    write_settings(*hook("PreToolUse", script("no", output)))
    provider.script(call("write", WRITE), text("I see."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert (ran.exit_code, ran.json["permission_denials"][0]["reason"]) == (4, reason)
    assert not Path("a.txt").exists()


def test_the_hint_names_hooks_where_no_rule_helps(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", script("no", "sys.exit(2)"), matcher="Write"))
    provider.script(call("write", WRITE), text("I see."))
    ran = run_wolo(*provider.flags, "--mode", "edit", "write it")
    assert (ran.exit_code, ran.stdout) == (4, "I see.\n")
    assert "denied by hooks" in ran.stderr
    assert "wolo hooks list" in ran.stderr
    assert "--allow" not in ran.stderr


def test_deny_beats_ask_and_ask_beats_allow(provider: ProviderServer) -> None:
    def deciding(word: str) -> list[str]:
        return hook("PreToolUse", script(word, specific("PreToolUse", permissionDecision=word, permissionDecisionReason=word)))

    for words, reason in (
        (("allow", "deny", "ask"), "deny"),
        (("allow", "ask"), "ask Writing a.txt needs an approval in mode ask. No one could approve it"),
        (("allow",), ""),
    ):
        Path("a.txt").unlink(missing_ok=True)
        write_settings(*(line for word in words for line in deciding(word)))
        provider.forget_prefix()
        provider.script(call("write", WRITE), text("I see."))
        ran = run_wolo("--json", *provider.flags, "--mode", "ask", "write it")
        assert ran.json["result"] == "I see.", ran.stderr
        denials = ran.json["permission_denials"]
        assert (denials[0]["reason"] if denials else "").startswith(reason)
        assert Path("a.txt").exists() == (not reason)


def allowing() -> list[str]:
    return hook("PreToolUse", script("yes", specific("PreToolUse", permissionDecision="allow")))


@pytest.mark.parametrize(
    ("tool", "arguments", "options"),
    [
        ("write", WRITE, ("--mode", "plan")),
        ("write", WRITE, ("--mode", "edit", "--deny", "write:a.txt")),
        ("write", WRITE, ("--mode", "edit", "--set", 'permissions.ask=["write:a.txt"]')),
        ("write", {"path": ".git/config", "content": "[core]"}, ("--mode", "edit")),
        ("write", {"path": ".env", "content": "A=1"}, ("--mode", "ask")),
        ("read", {"path": "id_rsa"}, ("--mode", "edit")),
        ("shell", {"command": "touch M; rm -rf work"}, ("--mode", "edit")),
        ("shell", {"command": "touch .git/hooks/pre-commit"}, ("--mode", "edit")),
    ],
)
def test_an_allow_loosens_nothing_but_an_ordinary_question(
    provider: ProviderServer, tool: str, arguments: Mapping[str, Any], options: tuple[str, ...]
) -> None:
    Path("work").mkdir()
    Path("work/kept.txt").write_text("mine")
    Path("id_rsa").write_text("CANARY")
    write_settings(*allowing())
    provider.script(call(tool, arguments), text("I see."))
    ran = run_wolo("--json", *provider.flags, *options, "do it")
    denied = "plan" not in options  # plan mode refuses without a denial
    assert (ran.exit_code, len(ran.json["permission_denials"])) == (4 * denied, denied), ran.stderr
    assert Path("work/kept.txt").read_text() == "mine"
    assert not Path("a.txt").exists()
    assert not Path("M").exists()
    assert "CANARY" not in provider.requests[-1].results[0]


def test_an_allow_spares_an_ordinary_question(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("I see."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "do it").exit_code == 4
    assert not Path("made").exists()
    write_settings(*allowing())
    provider.forget_prefix()
    provider.script(call("shell", {"command": "touch made"}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "do it").exit_code == 0
    assert Path("made").exists()


def test_permission_request_is_answered_without_a_person(provider: ProviderServer) -> None:
    for behavior, exit_code in (("allow", 0), ("deny", 4)):
        decision = {"behavior": behavior, "message": "I said so."}
        write_settings(*hook("PermissionRequest", script("answer", specific("PermissionRequest", decision=decision)), "Bash"))
        provider.forget_prefix()
        provider.script(call("shell", {"command": f"touch {behavior}"}), text("Done."))
        ran = run_wolo("--json", *provider.flags, "--mode", "edit", "do it")
        assert ran.exit_code == exit_code, ran.stderr
        assert Path(behavior).exists() == (behavior == "allow")
        assert [each["reason"] for each in ran.json["permission_denials"]] == (["I said so."] if exit_code else [])


def changing(arguments: str) -> list[str]:
    body = f"changed = told['tool_input']\n{arguments}\nprint(json.dumps({{'hookSpecificOutput': {{'updatedInput': changed}}}}))"
    return hook("PreToolUse", script("change", body))


def test_changed_arguments_are_run_and_judged(provider: ProviderServer) -> None:
    write_settings(*changing("changed['path'] = 'b.txt'"))
    provider.script(call("write", WRITE), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert (ran.exit_code, ran.json["files_changed"]) == (0, ["b.txt"]), ran.stderr
    assert "it ran with" in provider.requests[-1].results[0]
    assert '"b.txt"' in provider.requests[-1].results[0]
    write_settings(*changing("changed['path'] = '.git/config'"))
    provider.forget_prefix()
    provider.script(call("write", WRITE), text("I see."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it").exit_code == 4
    assert not Path(".git").exists()


def test_a_change_under_another_agents_name_counts(provider: ProviderServer) -> None:
    write_settings(*changing("changed['file_path'] = 'b.txt'"))
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("--json", *provider.flags, "--mode", "edit", "write it").json["files_changed"] == ["b.txt"]


def test_a_change_that_makes_no_sense_runs_nothing(provider: ProviderServer) -> None:
    write_settings(*changing("changed = {'pth': 1}"))
    provider.script(call("write", WRITE), text("I see."))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert ran.json["files_changed"] == []
    assert "to invalid ones" in provider.requests[-1].results[0]


def test_a_patch_is_matched_by_who_guards_writes(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", script("no", "sys.exit(2)"), "Write"))
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch"
    provider.script(call("apply_patch", {"patch": patch}), text("I see."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it").exit_code == 4
    assert not Path("a.txt").exists()


def test_added_context_stands_below_the_result(provider: ProviderServer) -> None:
    write_settings(
        *hook("PostToolUse", script("context", specific("PostToolUse", additionalContext="Format it."))),
        *hook("PostToolUse", script("block", saying(decision="block", reason="The linter complains."))),
    )
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it").exit_code == 0
    result = provider.requests[-1].results[0]
    assert result.endswith("[User hook: The linter complains.\n\nFormat it.]")
    assert Path("a.txt").read_text() == "one"


def test_hook_effects_after_a_call_are_undone_together(provider: ProviderServer) -> None:
    Path("a.txt").write_text("old")
    write_settings(*hook("PostToolUse", script("format", "open('a.txt', 'a').write(' formatted')"), "Write|Edit"))
    provider.script(
        call("read", {"path": "a.txt"}),
        call("edit", {"path": "a.txt", "old": "old", "new": "new"}),
        call("edit", {"path": "a.txt", "old": "new", "new": "newer"}),
        text("Done."),
    )
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it").exit_code == 0
    assert Path("a.txt").read_text() == "newer formatted formatted"
    undone = run_wolo("undo", "--json")
    assert (undone.exit_code, undone.json["conflicts"]) == (0, [])
    assert Path("a.txt").read_text() == "old"


BEHIND = "import os; os.rename('scripts', 'o'); os.mkdir('scripts'); open('scripts/' + 'check' + '.sh', 'w').write('exit 0')"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write", {"path": "scripts/check.sh", "content": "exit 0"}),
        ("edit", {"path": "scripts/check.sh", "old": "2", "new": "0"}),
        ("shell", {"command": "echo exit 0 > scripts/check.sh"}),
        ("shell", {"command": "mv scripts other"}),
        ("shell", {"command": f'python3 -c "{BEHIND}"'}),
    ],
)
def test_model_cannot_run_its_own_program_as_hook(provider: ProviderServer, tool: str, arguments: Mapping[str, Any]) -> None:
    """Not even in the mode that asks least: in the sandbox such a file cannot be changed, outside of it a person is asked."""
    require("bwrap")
    Path("scripts").mkdir()
    Path("scripts/check.sh").write_text("exit 2\n")
    write_settings(*hook("PreToolUse", "sh ./scripts/check.sh", "Glob"))
    provider.script(calls((tool, arguments), ("shell", {"command": "touch here"})), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "auto", "go").exit_code in (0, 4)
    assert Path("scripts/check.sh").read_text() == "exit 2\n"
    assert Path("here").exists()


PUT = "mkdir -p later && cp evil.sh later/check.sh"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize(
    ("command", "behind"),
    [
        ("cd scripts && sh check.sh", "cp evil.sh scripts/check.sh"),
        ("sh ./folder/check.sh", "rm folder; mkdir folder; cp evil.sh folder/check.sh"),
        ("./scripts/link", "rm -f scripts/link; cp evil.sh scripts/link"),
        ("./link", "rm -f link; cp evil.sh link"),
        ("sh ./later/check.sh", PUT),
    ],
)
def test_sandbox_protects_every_path_to_hook_programs(provider: ProviderServer, command: str, behind: str) -> None:
    """Be it a link, a folder that is entered first, or a file that is not there yet."""
    require("bwrap")
    Path("scripts").mkdir()
    for name, content in (("scripts/check.sh", "exit 0"), ("evil.sh", "touch ~/ran")):
        Path(name).write_text(f"#!/bin/sh\n{content}\n")
        Path(name).chmod(0o755)
    Path("folder").symlink_to("scripts")
    Path("link").symlink_to("scripts/check.sh")
    Path("scripts/link").symlink_to("check.sh")
    Path("go.py").write_text(f"import os; os.system({behind!r})")
    write_settings(*hook("PreToolUse", command, "Glob"))
    provider.script(call("shell", {"command": "python3 go.py"}), call("glob", {"pattern": "*"}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "auto", "go").exit_code in (0, 4)
    assert not (Path.home() / "ran").exists()


# Prompts, and the end of a turn


def test_blocked_prompt_is_never_sent(provider: ProviderServer) -> None:
    write_settings(
        *hook("UserPromptSubmit", script("no", "sys.stderr.write('No names.'); sys.exit('Anna' in told['prompt'] and 2)"))
    )
    ran = run_wolo("--json", *provider.flags, "write to Anna")
    assert (ran.exit_code, ran.json["subtype"], ran.json["num_turns"]) == (1, "error_blocked", 0)
    assert "No names." in ran.json["error"]["message"]
    assert (provider.requests, provider.num_connections) == ([], 0)
    assert json.loads(run_wolo("sessions", "list", "--json").stdout) == []
    provider.script(text("Dear colleague"))
    assert run_wolo("-p", *provider.flags, "write to a colleague").exit_code == 0


def test_context_joins_a_prompt_and_requests_keep_beginning(provider: ProviderServer) -> None:
    count = "n = open(os.path.expanduser('~/n'), 'a+'); n.write('x'); n.seek(0); print('prompt', len(n.read()))"
    write_settings(
        *hook("SessionStart", script("start", "print('The branch is frozen.')")),
        *hook("UserPromptSubmit", script("count", count)),
    )
    provider.script(call("read", {"path": "none"}), text("One."), text("Two."))
    run_wolo("-p", *provider.flags, "-s", "talk", "first")
    run_wolo("-p", *provider.flags, "-c", "second")
    first, second = (asked.messages for asked in (provider.requests[0], provider.requests[2]))
    assert first[-1]["content"] == "first\n\n<hook_context>\nThe branch is frozen.\n\nprompt 1\n</hook_context>"
    assert second[1] == first[1]
    assert second[-1]["content"] == "second\n\n<hook_context>\nThe branch is frozen.\n\nprompt 2\n</hook_context>"


def test_stop_hook_continues_the_model_three_times_most(provider: ProviderServer) -> None:
    write_settings(
        *hook("Stop", script("again", saying(decision="block", reason="Run the tests."))),
        *noting("Stop"),
    )
    provider.script(*(text(f"Done {number}.") for number in range(4)))
    ran = run_wolo("--json", *provider.flags, "go")
    assert (ran.exit_code, ran.json["result"], ran.json["num_turns"]) == (0, "Done 3.", 4)
    assert "Run the tests." in provider.requests[1].messages[-1]["content"]
    assert [each["stop_hook_active"] for each in told()] == [False, True, True]


def test_session_with_hooks_replays_without_them(provider: ProviderServer) -> None:
    once = "p = os.path.expanduser('~/once')\nif not os.path.exists(p): open(p, 'w'); " + saying(
        decision="block", reason="Test it."
    )
    write_settings(
        *hook("UserPromptSubmit", script("context", "print('Mind it.')")),
        *changing("changed['path'] = 'b.txt'"),
        *hook("PreToolUse", script("no", "sys.exit(2)"), "Glob"),
        *hook("PermissionRequest", script("yes", specific("PermissionRequest", decision={"behavior": "allow"})), "Bash"),
        *hook("PostToolUse", script("format", specific("PostToolUse", additionalContext="Format it.")), "Write"),
        *hook("Stop", script("again", once)),
    )
    text_of = (
        (Path.home() / "change.py")
        .read_text()
        .replace("changed = told", "if 'path' not in told['tool_input']: sys.exit()\nchanged = told")
    )
    (Path.home() / "change.py").write_text(text_of)
    provider.script(
        calls(("write", WRITE), ("glob", {"pattern": "*"}), ("shell", {"command": "touch x"})), text("Done."), text("Now.")
    )
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert ran.json["result"] == "Now.", ran.stderr
    write_settings()
    played = run_wolo("replay", ran.json["session_id"], "--json")
    assert (played.exit_code, played.json["same"]) == (0, True), played.stdout


# A hook that fails


FAILURES = {
    "another status": ("sys.exit('oops')", "ended with status 1: oops"),
    "JSON that is none": ("print('{\"decision\": ')", "printed JSON that cannot be understood"),
    "a word nobody knows": (saying(decision="perhaps"), 'answered decision: "perhaps", which wolo does not understand'),
    "a missing program": ("sys.exit(127)", "ended with status 127"),
    "a signal": ("os.kill(os.getpid(), 9)", "signal 9"),
    "its time": ("import time; time.sleep(60)", "took longer than 1 s and was ended"),
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("how", FAILURES)
def test_failing_guard_asks_and_strict_denies(provider: ProviderServer, how: str) -> None:
    """A status of its own is an answer: by the contract of hooks it blocks nothing."""
    body, said = FAILURES[how]
    for is_strict in (False, True):
        Path("a.txt").unlink(missing_ok=True)
        write_settings(*hook("PreToolUse", script("fail", body), timeout_s=1, strict=is_strict))
        provider.forget_prefix()
        provider.script(call("write", WRITE), text("Done."))
        ran = run_wolo("-p", *provider.flags, "--mode", "edit", "write it")
        is_denied = is_strict or how != "another status"
        assert ran.exit_code == (4 if is_denied else 0), ran.stderr
        assert said in ran.stderr
        assert Path("a.txt").exists() != is_denied


def test_missing_program_is_a_failure(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", "/nowhere/check", strict=True))
    provider.script(call("write", WRITE), text("I see."))
    ran = run_wolo("-p", *provider.flags, "--mode", "edit", "write it")
    assert ran.exit_code == 4
    assert "status 127" in ran.stderr


@pytest.mark.parametrize("command", ["/nowhere/check", "no-such-check --now", '"$CLAUDE_PROJECT_DIR"/check.sh'])
def test_missing_guard_program_is_named_first(provider: ProviderServer, command: str) -> None:
    write_settings(*hook("PreToolUse", command))
    provider.script(text("Done."))
    ran = run_wolo("-p", *provider.flags, "go")
    assert "which a PreToolUse hook runs, is not" in ran.stderr
    assert "so calls that it would check are asked about" in ran.stderr


def test_timeout_ends_everything_the_hook_started(provider: ProviderServer) -> None:
    body = "import subprocess; p = subprocess.Popen(['sleep', '600']); open('pid', 'w').write(str(p.pid)); p.wait()"
    write_settings(*hook("PreToolUse", script("slow", body), timeout_s=1))
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it").exit_code == 4
    assert not is_alive(int(Path("pid").read_text()))


def test_a_hook_need_not_read_and_may_flood(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", "yes | head -c 5000000; yes >&2 | head -c 100 >/dev/null; exit 0", timeout_s=1))
    provider.script(call("write", {"path": "a.txt", "content": "\n".join(map(str, range(60_000)))}), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write it", timeout=60).exit_code == 4


# Secrets, and what reaches a terminal


def test_hook_gets_tool_values_and_model_no_secret(provider: ProviderServer) -> None:
    Path(".env").write_text("DB_PASSWORD=hunter2-hunter2\n")
    body = "sys.stderr.write('seen ' + told['tool_input']['command'] + ' \\x1b]0;evil\\x07'); sys.exit(2)"
    write_settings(*hook("PreToolUse", script("seen", body), "Bash"))
    provider.script(call("shell", {"command": "echo hunter2-hunter2"}), text("I see."))
    ran = run_wolo("-p", *provider.flags, "--yolo", "do it")
    assert "hunter2-hunter2" not in provider.requests[-1].results[0]
    assert "SECRET_DB_PASSWORD_" in provider.requests[-1].results[0]
    assert "hunter2" not in ran.stderr
    assert "\x1b" not in ran.stderr


def test_a_hook_runs_as_the_person_does(provider: ProviderServer) -> None:
    body = "json.dump([dict(os.environ), os.getcwd(), sys.stdin.read()], open(os.path.expanduser('~/seen'), 'w'))"
    write_settings(*hook("PreToolUse", script("seen", body)))
    provider.script(call("write", WRITE), text("Done."))
    run_wolo("-p", *provider.flags, "--mode", "edit", "do it", env={"MY_TOKEN": "abc"})
    environ, cwd, rest = json.loads((Path.home() / "seen").read_text())
    assert (environ["MY_TOKEN"], environ["CLAUDE_PROJECT_DIR"], cwd, rest) == ("abc", str(Path.cwd()), str(Path.cwd()), "")


# What is written wrongly


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["[[hooks.PreToolUsed]]", 'command = "x"'], "Did you mean hooks.PreToolUse?"),
        (["[[hooks.Stop]]", 'comand = "x"'], "Did you mean command?"),
        (["[[hooks.Stop]]", 'command = "x"', "timeut_s = 1"], "Did you mean timeout_s?"),
        (["[[hooks.Stop]]", 'command = ""'], "hooks.Stop"),
        (["[[hooks.PreToolUse]]", 'command = "x"', 'matcher = "("'], "is no regular expression"),
        (["[hooks]", 'Stop = "x"'], "a list"),
    ],
)
def test_settings_mistake_ends_wolo_before_anything_is_sent(provider: ProviderServer, lines: list[str], said: str) -> None:
    write_settings(*lines)
    ran = run_wolo("-p", *provider.flags, "hi")
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert provider.requests == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no JSON"),
        ('{"hooks": {"PreToolUse": [{"matcher": "(", "hooks": []}]}}', "is no regular expression"),
        ('{"hooks": {"PreToolUse": {"hooks": []}}}', "PreToolUse is not used"),
    ],
)
def test_unreadable_guard_ends_wolo_with_its_name(provider: ProviderServer, content: str, said: str) -> None:
    write_settings()
    (find_places().config / "hooks.json").write_text(content)
    ran = run_wolo("-p", *provider.flags, "hi")
    assert ran.exit_code == 2, ran.stderr
    assert said in ran.stderr
    assert "does not start while a PreToolUse hook, which guards tool calls, is unreadable." in ran.stderr
    assert provider.requests == []


def test_unusable_own_entry_is_named_and_others_work(provider: ProviderServer) -> None:
    write_settings()
    guard = {"matcher": "Write", "hooks": [{"type": "command", "command": "echo no >&2; exit 2", "color": "red"}]}
    events = {
        "PreToolUse": [guard],
        "PostToolUse": [{"hooks": [{"type": "mcp_tool", "server": "x"}]}],
        "PreToolUses": [],
        "WorktreeCreate": [],
        "Stop": "x",
    }
    (find_places().config / "hooks.json").write_text(json.dumps({"hooks": events, "theme": "dark"}))
    ran = write_once(provider)
    assert ran.exit_code == 4, ran.stderr
    for said in (
        *("there is no event PreToolUses", "wolo has no event WorktreeCreate", "Stop is not used"),
        *("a hook of type mcp_tool is not used", "color of `echo no", "theme is unknown and ignored"),
    ):
        assert said in ran.stderr


def test_relative_program_lies_beside_the_settings(provider: ProviderServer) -> None:
    write_settings(*hook("PreToolUse", "./guard.sh"))
    Path("guard.sh").write_text("#!/bin/sh\ntouch ran-here\n")
    Path("guard.sh").chmod(0o755)
    own = find_places().config / "guard.sh"
    own.write_text("#!/bin/sh\necho from the settings >&2; exit 2\n")
    own.chmod(0o755)
    ran = write_once(provider)
    assert (ran.exit_code, ran.json["permission_denials"][0]["reason"]) == (4, "from the settings")
    assert not Path("ran-here").exists()


def test_hook_sets_command_variables_and_reads_the_answer(provider: ProviderServer) -> None:
    setting = "open(os.environ['CLAUDE_ENV_FILE'], 'a').write('export GREETING=\"hello $USER_OF_IT\"\\nexport MY_TOKEN=x\\n')"
    reading = "lines = [json.loads(line) for line in open(told['transcript_path'])]\n" + specific("Stop").replace(
        "}))", ", 'systemMessage': ' '.join(str(each['message']['content']) for each in lines)}))", 1
    )
    write_settings(*hook("SessionStart", script("set", setting)), *hook("Stop", script("read", reading)))
    provider.script(call("shell", {"command": "echo $GREETING:$MY_TOKEN:$CLAUDE_ENV_FILE"}), text("Done."))
    ran = run_wolo("--json", *provider.flags, "greet")
    assert ran.exit_code == 0, ran.stderr
    assert provider.requests[-1].results[0].startswith("hello :")
    assert "A SessionStart hook sets MY_TOKEN; commands do not get variables that look like a secret or load code." in ran.stderr
    assert "greet" in ran.stderr
    assert "'name': 'Bash'" in ran.stderr
    assert "'type': 'tool_result'" in ran.stderr
    assert not list(find_places().state.glob("hooks-*"))


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "UserPromptSubmit"])
def test_a_hook_that_stops_everything_ends_the_turn(provider: ProviderServer, event: str) -> None:
    stopping = 'print(json.dumps({"continue": False, "stopReason": "Not on Friday.", "systemMessage": "Go home."}))'
    write_settings(*hook(event, script("no", stopping)))
    if event != "UserPromptSubmit":
        provider.script(calls(("write", WRITE), ("write", {"path": "b.txt", "content": "two"})))
    ran = run_wolo("--json", *provider.flags, "--mode", "edit", "write it")
    assert (ran.exit_code, ran.json["subtype"]) == (1, "error_blocked")
    assert "Not on Friday." in ran.json["error"]["message"]
    assert "Go home." in ran.stderr
    assert (Path("a.txt").exists(), Path("b.txt").exists()) == (event == "PostToolUse", False)


def test_hook_replaces_a_result(provider: ProviderServer) -> None:
    Path("a.txt").write_text("password: 1234\n")
    output = specific("PostToolUse", updatedToolOutput={"type": "text", "file": {"content": "password: (hidden)"}})
    write_settings(*hook("PostToolUse", script("put", output), "Read"))
    provider.script(call("read", {"path": "a.txt"}), text("Done."))
    assert run_wolo("-p", *provider.flags, "read it").exit_code == 0
    assert provider.requests[-1].results == ["password: (hidden)"]


def test_a_permission_request_is_answered_with_other_arguments(provider: ProviderServer) -> None:
    changed = {"behavior": "allow", "updatedInput": {"file_path": str(Path("b.txt").absolute()), "content": "two"}}
    write_settings(*hook("PermissionRequest", script("yes", specific("PermissionRequest", decision=changed)), "Write"))
    provider.script(call("write", WRITE), text("Done."))
    assert run_wolo("-p", *provider.flags, "--mode", "ask", "write it").exit_code == 0
    assert Path("b.txt").read_text() == "two"
    assert not Path("a.txt").exists()
    assert "changed the arguments" in provider.requests[-1].results[0]


# Hooks that come with a project


def project_hooks(body: str, event: str = "PreToolUse", place: str = ".claude/settings.json") -> Path:
    """A script of the project's and the file that wants it to run; what is returned is the script."""
    path = Path(place)
    path.parent.mkdir(exist_ok=True)
    checking = path.parent / "check.py"
    checking.write_text("import json, os, sys\nopen('ran', 'a').write('x')\ntold = json.load(sys.stdin)\n" + body)
    command = f'{shlex.quote(sys.executable)} "$CLAUDE_PROJECT_DIR"/{checking}'
    rows = [{"matcher": "Write", "hooks": [{"type": "command", "command": command}]}]
    path.write_text(json.dumps({"model": "opus", "hooks": {event: rows}}))
    return checking


def agree() -> None:
    """What a yes at the keyboard keeps."""
    places, root = find_places(), Path.cwd()
    consents.save_trust(places, root, "trusted")
    for found in conversation_hooks.project_hooks(find_site(root)):
        conversation_hooks.save_consent(places, root, found, "yes")


def write_once(provider: ProviderServer, *options: str) -> Completed:
    Path("a.txt").unlink(missing_ok=True)
    provider.forget_prefix()
    provider.script(call("write", WRITE), text("Done."))
    return run_wolo("--json", *provider.flags, "--mode", "edit", *options, "write it")


PLACES = (".wolo/hooks.json", ".claude/hooks.json", ".claude/settings.json", ".claude/settings.local.json")


@pytest.mark.parametrize("place", PLACES)
def test_hooks_run_only_after_consent(provider: ProviderServer, place: str) -> None:
    project_hooks("sys.exit(2)", place=place)
    assert write_once(provider).exit_code == 0
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    ran = write_once(provider)
    assert ran.exit_code == 0
    assert ran.stderr.count(f"Project hooks are not run: {place}.") == 1
    assert not Path("ran").exists()
    agree()
    ran = write_once(provider)
    assert (ran.exit_code, Path("ran").read_text()) == (4, "x"), ran.stderr


def test_trust_for_one_run_is_no_hook_consent(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    ran = write_once(provider, "--trust")
    assert (ran.exit_code, Path("ran").exists()) == (0, False)
    assert "They are new or changed and need your consent" in ran.stderr
    agree()
    assert write_once(provider, "--trust").exit_code == 4


def test_hooks_are_allowed_without_a_terminal(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    assert write_once(provider, "--trust").exit_code == 0
    assert run_wolo("hooks", "allow").exit_code == 0
    assert write_once(provider, "--trust").exit_code == 4
    assert write_once(provider).exit_code == 0


def test_untrusted_folder_contributes_no_hook(provider: ProviderServer) -> None:
    Path(".claude").mkdir()
    Path(".claude/settings.json").write_text("{ broken")
    assert "is no JSON" not in write_once(provider).stderr
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    ran = write_once(provider)
    assert (ran.exit_code, "is no JSON" in ran.stderr) == (0, True)


@pytest.mark.parametrize("changed", ["the script", "the command"])
def test_changed_hook_waits_for_a_new_consent(provider: ProviderServer, changed: str) -> None:
    checking = project_hooks("sys.exit(2)")
    agree()
    assert write_once(provider).exit_code == 4
    if changed == "the script":
        checking.write_text(checking.read_text() + "# more\n")
    else:
        settings = Path(".claude/settings.json")
        settings.write_text(settings.read_text().replace("check.py", "check.py --more"))
    Path("ran").unlink()
    ran = write_once(provider)
    assert (ran.exit_code, Path("ran").exists()) == (0, False)
    assert "new or changed" in ran.stderr
    agree()
    assert write_once(provider).exit_code == 4


def test_script_changed_during_the_run_is_not_run(provider: ProviderServer) -> None:
    checking = project_hooks("")
    agree()
    change = {"command": f"echo '# more' >> {checking}"}
    provider.script(calls(("shell", change), ("write", WRITE)), text("Done."))
    ran = run_wolo("--json", *provider.flags, "--yolo", "go")
    assert ran.exit_code == 4, ran.stderr
    assert not Path("ran").exists()
    assert "has changed since you allowed it" in ran.stderr


def test_they_can_only_make_wolo_stricter(provider: ProviderServer) -> None:
    loosening = {
        "permissionDecision": "allow",
        "updatedInput": {"path": "b.txt", "content": "two"},
        "additionalContext": "Mind it.",
    }
    project_hooks(specific("PreToolUse", **loosening))
    agree()
    assert write_once(provider, "--mode", "ask").exit_code == 4
    ran = write_once(provider)
    assert (ran.exit_code, ran.json["files_changed"]) == (0, ["a.txt"])
    assert "Mind it." in provider.requests[-1].results[0]
    assert Path("ran").exists()
    project_hooks(specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="Sure?"))
    agree()
    assert write_once(provider).json["permission_denials"][0]["reason"].startswith("Sure?")


def test_forgetting_the_trust_forgets_what_may_run(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    agree()
    assert run_wolo("trust", "forget").exit_code == 0
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    assert write_once(provider).exit_code == 0
    assert not Path("ran").exists()


def test_doctor_reports_present_and_broken_hooks() -> None:
    project_hooks("sys.exit(2)")
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    write_settings(*hook("Stop", "./gone.sh --now"), *hook("Stop", "true"))
    Path(".wolo").mkdir()
    Path(".wolo/hooks.json").write_text("{ broken")
    ran = run_wolo("doctor", "--json", timeout=60)
    assert ran.exit_code == 1
    assert [(each["source"], each["hooks"], each["standing"]) for each in ran.json["hooks"]] == [
        ("the settings", 2, "yours"),
        (".wolo/hooks.json", 0, "needs consent"),
        (".claude/settings.json", 1, "needs consent"),
    ]
    problems = "\n".join(ran.json["problems"])
    assert "gone.sh, which a Stop hook runs, is not there" in problems
    assert "hooks.json is no JSON" in problems


def test_an_event_nobody_knows_costs_no_other_hook(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    path = Path(".claude/settings.json")
    content = json.loads(path.read_text())
    content["hooks"] |= {"WorktreeCreate": [], "PreTool": [{"hooks": []}]}
    path.write_text(json.dumps(content))
    agree()
    ran = write_once(provider)
    assert ran.exit_code == 4
    assert "wolo has no event WorktreeCreate" in ran.stderr
    assert "Did you mean PreToolUse?" in ran.stderr


# At the keyboard


@contextmanager
def at_the_keyboard(provider: ProviderServer) -> Iterator[Terminal]:
    with repl(provider, "--mode", "edit") as terminal:
        yield terminal
        assert leave(terminal) == 0


def test_blocked_prompt_is_given_back_with_the_reason(provider: ProviderServer) -> None:
    write_settings(
        *hook("SessionStart", script("start", "print('The branch is frozen.')")),
        *hook("UserPromptSubmit", script("no", "sys.stderr.write('No names.'); sys.exit('Anna' in told['prompt'] and 2)")),
    )
    provider.script(text("Dear colleague."))
    with at_the_keyboard(provider) as terminal:
        terminal.enter("write to Anna")
        terminal.wait_for("A hook blocked this prompt: No names.")
        terminal.wait_until(lambda: shown(terminal)[-2].rstrip() == f"{PROMPT} write to Anna", complaint="the text was lost")
        terminal.press(*["backspace"] * 4)
        terminal.enter("all")
        terminal.wait_for("Dear colleague.")
        wait_for_prompt(terminal)
    assert prompts(provider) == ["write to all\n\n<hook_context>\nThe branch is frozen.\n</hook_context>"]


def test_text_said_during_work_passes_the_same_hooks(provider: ProviderServer) -> None:
    body = "sys.stderr.write('No names.'); sys.exit('Anna' in told['prompt'] and 2)"
    write_settings(*hook("UserPromptSubmit", script("no", body)))
    hold = Hold()
    provider.script(sse(delta("Working"), hold, delta("."), finish("stop", usage())))
    with at_the_keyboard(provider) as terminal:
        terminal.enter("write")
        hold.wait_until_reached()
        terminal.enter("to Anna")
        terminal.wait_for("↪ to Anna")
        hold.release()
        terminal.wait_for("A hook keeps this back: No names.")
        terminal.wait_until(lambda: shown(terminal)[-2].rstrip() == f"{PROMPT} to Anna", complaint="the text was lost")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)
    assert "Anna" not in provider.requests[-1].body.decode()


def test_slow_hook_is_named_and_esc_ends_it(provider: ProviderServer) -> None:
    body = "import time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    write_settings(*hook("UserPromptSubmit", script("slow", body), timeout_s=600))
    with at_the_keyboard(provider) as terminal:
        terminal.enter("hello")
        terminal.wait_for("waiting for" if terminal.is_narrow else "waiting for the UserPromptSubmit hook")
        terminal.press("escape")
        terminal.wait_for("Interrupted.")
        terminal.wait_until(lambda: shown(terminal)[-2].rstrip() == f"{PROMPT} hello", complaint="the text was lost")
        terminal.wait_until(lambda: not is_alive(int(Path("pid").read_text())), complaint="the hook went on")
        terminal.press("ctrl-c")
        wait_for_prompt(terminal)
    assert provider.requests == []


def test_project_hooks_need_one_consent_and_are_listed(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    write_settings(*noting("Stop"))
    provider.script(call("write", WRITE), text("I see."))
    with pty_wolo("go", *provider.flags, "--mode", "edit") as terminal:
        terminal.wait_for("Run them? [y]es  [N]ot now  [never]")
        assert "check.py" in terminal.text.replace("\n", "")
        terminal.enter("y")
        terminal.wait_for("I see.")
        assert terminal.wait_for_exit() == 4
    with at_the_keyboard(provider) as terminal:
        assert "Run them?" not in terminal.text
        terminal.enter("/hooks")
        terminal.wait_for("project, allowed")
        terminal.wait_for("Stop")
        wait_for_prompt(terminal)


def test_whoever_never_wants_them_is_not_asked_again(provider: ProviderServer) -> None:
    project_hooks("sys.exit(2)")
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    for is_asked in (True, False):
        provider.forget_prefix()
        provider.script(call("write", WRITE), text("Done."))
        with pty_wolo("go", *provider.flags, "--mode", "edit") as terminal:
            if is_asked:
                terminal.wait_for("Run them?")
                terminal.wait_for("[never]")
                terminal.enter("never")
            terminal.wait_for("Done.")
            assert terminal.wait_for_exit() == 0
        assert ("Run them?" in terminal.text) == is_asked
    assert not Path("ran").exists()


def test_compaction_is_reported_and_its_context_summarized(provider: ProviderServer) -> None:
    write_settings(
        *noting("PreCompact", "manual"),
        *noting("PreCompact", "auto"),
        *noting("PostCompact"),
        *hook("PreCompact", script("mind", specific("PreCompact", additionalContext="The deadline is Friday."))),
    )
    fill(provider)
    provider.summary = text(SUMMARY, usage=usage(20_000, 50))
    with repl(provider, "-s", "long", rows=50, columns=140) as terminal:
        terminal.enter("/compact")
        terminal.wait_for("Compacted: ")
        wait_for_prompt(terminal)
        assert leave(terminal) == 0
    (asked,) = [asked for asked in provider.requests if asked.is_summary]
    assert "The deadline is Friday." in asked.messages[-1]["content"]
    assert [(each["hook_event_name"], each["trigger"]) for each in told()] == [
        ("PreCompact", "manual"),
        ("PostCompact", "manual"),
    ]


def test_somebody_is_called_when_an_approval_waits(provider: ProviderServer) -> None:
    write_settings(*noting("Notification"))
    provider.script(call("shell", {"command": "touch made"}), text("I see."))
    with at_the_keyboard(provider) as terminal:
        terminal.enter("go")
        terminal.wait_for("Run this command?")
        terminal.wait_until(lambda: bool(told()), complaint="nobody was called")
        terminal.wait_until(lambda: "[n]" in terminal.text or "No" in terminal.text)
        terminal.press("escape")
        wait_for_prompt(terminal)
    assert told()[0]["notification_type"] == "permission_prompt"
