"""A project that was set up for other agents: what lies there is read, offered or named once."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.config import consents
from wolo.config.project import MCP_SERVERS
from wolo.foreign_places import TABLE
from wolo.places import find_home, find_places

PROGRAM = {"command": "true", "args": ["x"]}
FORMS: dict[str, Any] = {
    ".vscode/mcp.json": {"servers": {"docs": PROGRAM}},
    ".zed/settings.json": {"context_servers": {"docs": {"source": "custom", **PROGRAM}}},
    ".amp/settings.json": {"amp.mcpServers": {"docs": PROGRAM}},
    ".gemini/settings.json": {"mcp": {"excluded": ["other"]}, "mcpServers": {"docs": PROGRAM, "other": PROGRAM}},
}


def put(name: str, content: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(content)


@pytest.fixture
def trusted() -> None:
    consents.save_trust(find_places(), Path.cwd(), "trusted")


def test_setup_for_three_editors_reaches_the_model(provider: ProviderServer) -> None:
    put(".github/copilot-instructions.md", "Write British English.")
    put(".cursorrules", "Use tabs.")
    put(".cursor/rules/py.mdc", "---\ndescription: Python\nglobs: *.py\nalwaysApply: false\n---\nType everything.")
    put(".windsurf/rules/release.md", "---\ntrigger: model_decision\ndescription: How to release\n---\nTag first.")
    put("a.py", "x = 1")
    provider.script(call("read", {"path": "a.py"}), text("Read."))
    done = run_wolo("-p", *provider.flags, "look at a.py")
    assert done.stderr == ""
    first, second = provider.requests
    system = first.messages[0]["content"]
    for words in ("Write British English.", "Use tabs.", "- .windsurf/rules/release.md: How to release"):
        assert words in system
    assert "Type everything." not in system
    assert "Type everything." in second.results[0]
    assert second.messages[0]["content"] == system


def test_file_that_nothing_reads_is_named_once(provider: ProviderServer) -> None:
    put(".gemini/policies/a.toml", "")
    put(".rooignore", "secret.txt")
    for name in (".cursor/hooks.json", ".copilot/hooks/a.json", ".qwen/settings.json", ".config/opencode/plugins/guard.js"):
        put(str(find_home() / name), "{}")
    provider.script(text("One."), text("Two."))
    provider.linted = False
    first, second = (run_wolo("-p", *provider.flags, "go") for _ in range(2))
    assert ".gemini/policies (policies of Gemini CLI) is not read: calls that they forbid are NOT denied" in first.stderr
    assert "~/.cursor/hooks.json (hooks of Cursor) is not read: these guards are NOT run" in first.stderr
    assert "~/.copilot/hooks (hooks of GitHub Copilot) is not read: these guards are NOT run" in first.stderr
    assert ".rooignore (hidden files of several agents) is not read: files that it lists are NOT hidden" in first.stderr
    assert "~/.qwen/settings.json (settings of Qwen Code) is not read: hooks and denials in it do NOT hold" in first.stderr
    assert "~/.config/opencode/plugins (plugins of OpenCode) is not read: guards in them are NOT run" in first.stderr
    assert second.stderr == ""
    assert "calls that they forbid are NOT denied" in run_wolo("trust").stdout
    agents = ["several agents", "Gemini CLI", "OpenCode", "Qwen Code", "GitHub Copilot", "Cursor"]
    assert [each["agent"] for each in run_wolo("trust", "--json").json["unread"]] == agents


@pytest.mark.usefixtures("trusted")
def test_setup_for_roo_goose_and_continue_works(provider: ProviderServer) -> None:
    put(
        ".roomodes",
        "customModes:\n  - slug: docs\n    name: Docs\n    roleDefinition: Write like a sailor.\n    groups: [read]\n",
    )
    put(".roo/rules-docs/a.md", "Knots, not miles.")
    put(".goose/recipes/greet.yaml", "description: Greets\nprompt: Greet {{ who }}.\n")
    put(".continue/mcpServers/docs.yaml", "name: Docs\nmcpServers:\n  - name: docs\n    command: 'true'\n    args: [x]\n")
    provider.script(text("Ahoy."))
    done = run_wolo("-p", *provider.flags, "--agent", "docs", "/greet Ann")
    assert (done.stdout, "docs of this project is not started" in done.stderr) == ("Ahoy.\n", True)
    system, prompt = provider.requests[0].messages[:2]
    assert "Write like a sailor." in system["content"]
    assert f"read the files in {Path.cwd()}/.roo/rules-docs: the rules of this mode." in system["content"]
    assert "Greet Ann." in str(prompt["content"])
    assert "write" not in [each["function"]["name"] for each in provider.requests[0].json["tools"]]
    assert run_wolo("mcp", "allow", "docs").stdout.count("runs: true x") == 1


DAMAGE = {
    "deep": b'{"hooks":' * 10_000,
    "half a character": b'{"mcpServers": {"a": {"command": "\\ud800"}}, "hooks": {"a": "\\ud800"}}',
}


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("damage", [*DAMAGE, "pipe", "folder"])
def test_damaged_files_of_every_agent_cost_themselves_only(provider: ProviderServer, damage: str) -> None:
    put("AGENTS.md", "Say ahoy.")
    places = [
        path
        for row in TABLE
        for path in row.paths
        if not row.why and not row.is_users and Path(path).suffix in (".json", ".toml")
    ]
    for place in {*places, ".roomodes", ".kiro/hooks/a.json", ".claude/agents/a.md", ".cursor/rules/a.mdc"}:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        if damage == "pipe":
            os.mkfifo(place)
        elif damage == "folder":
            Path(place).mkdir()
        else:
            Path(place).write_bytes(DAMAGE[damage])
    Path(".wolo/config.toml").unlink(missing_ok=True) if damage != "folder" else Path(".wolo/config.toml").rmdir()
    provider.script(text("Ahoy."))
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "Ahoy.\n")
    assert "Say ahoy." in provider.requests[0].messages[0]["content"]
    assert "Traceback" not in done.stderr
    assert "crashed" not in done.stderr
    for place in (".cursor/mcp.json", ".cursor/hooks.json", ".kiro/hooks/a.json", ".roomodes"):
        assert place in done.stderr, place
    assert run_wolo("import-config").exit_code == 0


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("place", MCP_SERVERS.places)
def test_servers_of_every_agent_are_offered(place: str) -> None:
    if place.endswith(".toml"):
        put(place, '[mcp_servers.docs]\ncommand = "true"\nargs = ["x"]\n')
    elif "opencode" in place:
        put(place, '{"mcp": {"docs": {"type": "local", "command": ["true", "x"],},} /* ours */}')
    else:
        put(place, json.dumps(FORMS.get(place, {"mcpServers": {"docs": PROGRAM}})))
    listed = run_wolo("mcp", "list", "--json")
    assert [(row["name"], row["state"], row["source"]) for row in listed.json] == [("docs", "needs consent", place)]
    assert listed.stderr == ""
    assert run_wolo("mcp", "allow", "docs").stdout.count("runs: true x") == 1
    assert run_wolo("mcp", "list", "--json").json[0]["state"] == "not tried yet"


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("place", MCP_SERVERS.places)
@pytest.mark.parametrize(
    "bad", [b'{"mcpServers": {', b'{"a":' * 40_000, b"\xff\xfe\0\0", b"[]", b"/*" * 60_000, b'{"mcpServers": 3, "mcp": 3}']
)
def test_bad_file_of_servers_costs_itself_only(place: str, bad: bytes) -> None:
    put(".mcp.json" if place != ".mcp.json" else ".wolo/mcp.json", json.dumps({"mcpServers": {"good": PROGRAM}}))
    put(place, "")
    Path(place).write_bytes(bad)
    listed = run_wolo("mcp", "list", "--json")
    assert (listed.exit_code, [row["name"] for row in listed.json]) == (0, ["good"])
    assert place in listed.stderr


@pytest.mark.usefixtures("trusted")
def test_value_from_a_file_is_never_sent_literally() -> None:
    put("opencode.json", '{"mcp": {"a": {"type": "remote", "url": "https://a.example", "headers": {"X": "{file:~/.k}"}}}}')
    listed = run_wolo("mcp", "list", "--json")
    assert listed.json == []
    assert "opencode.json: the MCP server a: a value comes from a file." in listed.stderr


@pytest.mark.usefixtures("trusted")
def test_file_without_a_usable_hook_needs_no_consent() -> None:
    hook = {
        "enabled": True,
        "name": "a",
        "version": "1",
        "when": {"type": "fileEdited"},
        "then": {"type": "askAgent", "prompt": "x"},
    }
    put(".kiro/hooks/a.kiro.hook", json.dumps(hook))
    listed = run_wolo("hooks", "list")
    assert ".kiro/hooks/a.kiro.hook  (nothing in it can run)" in listed.stdout
    assert "wolo has no event fileEdited" in listed.stderr


def test_server_of_unanswered_project_needs_trust(provider: ProviderServer) -> None:
    put(".cursor/mcp.json", json.dumps({"mcpServers": {"docs": {"command": "touch", "args": ["started"]}}}))
    provider.script(text("Done."))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    assert "docs" not in json.dumps(provider.requests[0].json["tools"])
    assert not Path("started").exists()
    assert "needs trust" in run_wolo("mcp", "list").stdout
    assert run_wolo("mcp", "list", "--json", "--trust").json[0]["state"] == "needs consent"
    assert run_wolo("mcp", "test", "docs").exit_code != 0
    consents.save_trust(find_places(), Path.cwd(), "never")
    assert run_wolo("mcp", "list", "--json").json == []
    assert not Path("started").exists()


GUARD = """import json, sys
event = json.load(sys.stdin)
open("seen", "a").write(json.dumps(event) + "\\n")
command = {command}
if "forbidden" in command:
    {answer}
"""
SAY = "print(json.dumps({}))"
GUARDS: dict[str, tuple[Any, str, str]] = {
    ".cursor/hooks.json": (
        {"version": 1, "hooks": {"beforeShellExecution": [{"command": "python3 guard.py"}]}},
        'event["command"]',
        SAY.format('{"permission": "deny", "agent_message": "not here"}'),
    ),
    ".github/hooks/guard.json": (
        {"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": "python3 guard.py"}]}},
        'json.loads(event["toolArgs"])["command"]',
        SAY.format('{"permissionDecision": "deny", "permissionDecisionReason": "not here"}'),
    ),
    ".gemini/settings.json": (
        {
            "hooks": {
                "BeforeTool": [{"matcher": "run_shell_command", "hooks": [{"type": "command", "command": "python3 guard.py"}]}]
            }
        },
        'event["tool_input"]["command"]',
        SAY.format('{"decision": "deny", "reason": "not here"}'),
    ),
    ".codex/hooks.json": (
        {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "python3 guard.py"}]}]}},
        'event["tool_input"]["command"]',
        'sys.exit("not here") if False else (print("not here", file=sys.stderr), sys.exit(2))',
    ),
    ".windsurf/hooks.json": (
        {"hooks": {"pre_run_command": [{"command": "python3 guard.py"}]}},
        'event["tool_info"]["command_line"]',
        '(print("not here", file=sys.stderr), sys.exit(2))',
    ),
    ".factory/settings.json": (
        {"hooks": {"PreToolUse": [{"matcher": "Execute", "hooks": [{"type": "command", "command": "python3 guard.py"}]}]}},
        'event["tool_input"]["command"]',
        SAY.format('{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not here"}}'),
    ),
    ".kiro/hooks/guard.json": (
        {
            "version": "v1",
            "hooks": [
                {"trigger": "PreToolUse", "matcher": "execute_bash", "action": {"type": "command", "command": "python3 guard.py"}}
            ],
        },
        'event["tool_input"]["command"]',
        '(print("not here", file=sys.stderr), sys.exit(2))',
    ),
    ".clinerules/hooks/PreToolUse": (
        "#!/bin/sh\nexec python3 guard.py\n",
        'event["preToolUse"]["parameters"]["command"]',
        SAY.format('{"cancel": True, "errorMessage": "not here"}'),
    ),
}


def put_hooks(place: str, content: Any) -> None:
    put(place, content if isinstance(content, str) else json.dumps(content))
    Path(place).chmod(0o755)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("place", GUARDS)
def test_guard_of_another_agent_guards_after_consent(provider: ProviderServer, place: str) -> None:
    content, command, denial = GUARDS[place]
    put_hooks(place, content)
    put("guard.py", GUARD.format(command=command, answer=denial))
    provider.script(call("shell", {"command": "touch forbidden"}), text("One."))
    before = run_wolo("-p", *provider.flags, "--mode", "auto", "go")
    assert f"Project hooks are not run: {place}." in before.stderr
    assert not Path("seen").exists()
    Path("forbidden").unlink(missing_ok=True)
    provider.forget_prefix()
    assert run_wolo("hooks", "allow").exit_code == 0
    provider.script(call("shell", {"command": "touch forbidden"}), call("shell", {"command": "touch fine"}), text("Two."))
    done = run_wolo("-p", *provider.flags, "--mode", "auto", "go")
    assert (done.stdout, Path("forbidden").exists(), Path("fine").exists()) == ("Two.\n", False, True)
    assert "not here" in provider.requests[3].results[0]
    put(place, Path(place).read_text().replace("guard.py", "guard.py x"))
    provider.forget_prefix()
    provider.script(text("Three."))
    assert f"Project hooks are not run: {place}." in run_wolo("-p", *provider.flags, "go").stderr


@pytest.mark.usefixtures("trusted")
def test_guard_that_fails_lets_nothing_pass_unseen(provider: ProviderServer) -> None:
    put(".github/hooks/a.json", json.dumps({"hooks": {"preToolUse": [{"type": "command", "bash": "exit 1"}]}}))
    put(".cursor/hooks.json", json.dumps({"hooks": {"beforeTabFileRead": [{"command": "true"}]}}))
    assert run_wolo("hooks", "allow").exit_code == 0
    provider.script(call("shell", {"command": "touch done"}), text("One."))
    done = run_wolo("-p", *provider.flags, "--mode", "auto", "go")
    assert not Path("done").exists()
    assert "wolo has no event beforeTabFileRead; its hooks are not run" in done.stderr
