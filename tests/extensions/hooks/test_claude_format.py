"""Hooks in the form of Claude Code, as its own files write them and as nobody should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ExtensionError
from wolo.extensions.hooks.definitions import EVENTS, Hook
from wolo.extensions.hooks.hook_files import read_hooks

HOOKS = Path("hooks.json")
SETTINGS = Path(".claude/settings.json")


def one(event: str = "PreToolUse", **entry: Any) -> dict[str, Any]:
    return {event: [{"matcher": "Bash", "hooks": [{"type": "command", "command": "check", **entry}]}]}


def read(content: Any, path: Path = HOOKS) -> tuple[tuple[tuple[str, Hook], ...], tuple[str, ...]]:
    found = read_hooks(json.dumps(content).encode(), path)
    return found.hooks, found.problems


def test_hook_group_is_read_one_by_one() -> None:
    group = {
        "matcher": "Write|Edit",
        "hooks": [{"type": "command", "command": "a", "timeout": 5}, {"command": "b", "strict": True}],
    }
    hooks, problems = read({"hooks": {"PreToolUse": [group], "Stop": [{"hooks": [{"command": "c"}]}]}})
    assert problems == ()
    assert hooks == (
        ("PreToolUse", Hook(command="a", matcher="Write|Edit", timeout_s=5.0)),
        ("PreToolUse", Hook(command="b", matcher="Write|Edit", strict=True)),
        ("Stop", Hook(command="c")),
    )


def test_hook_file_needs_no_outer_key_settings_do() -> None:
    assert len(read(one())[0]) == 1
    assert read({"model": "opus", **one()}, SETTINGS) == ((), ())
    assert len(read({"model": "opus", "hooks": one()}, SETTINGS)[0]) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (one("PreToolUses"), "there is no event PreToolUses; its hooks are not used. Did you mean PreToolUse?"),
        (one("BeforeModel"), "wolo has no event BeforeModel; its hooks are not used."),
        (one(type="mcp_tool"), "PreToolUse: a hook of type mcp_tool is not used: wolo calls no MCP server for hooks."),
        (
            one(type="magic"),
            "PreToolUse: a hook of type magic is not used: wolo has hooks of type command, prompt, agent and http.",
        ),
        (one(command="a\0b"), "PreToolUse: a hook is not used: a command contains a NUL character."),
        (one(command=" "), "PreToolUse: a hook is not used: a hook of type command needs a command."),
        (one(type="http", command=""), "PreToolUse: a hook is not used: a hook of type http needs a url."),
        (one(type="http", command="", url="ftp://x"), "PreToolUse: a hook is not used: the url ftp://x is no http"),
        (
            one("SessionStart", type="prompt", command="", prompt="?"),
            "SessionStart: a hook is not used: no model can be asked at",
        ),
        (one(shell="powershell"), "PreToolUse: `check` is not used: wolo runs hooks in bash, not in powershell."),
        (
            {"FileChanged": [{"hooks": [{"command": "x"}]}]},
            "FileChanged: a hook is not used: the matcher must name the files to watch",
        ),
        ({"Stop": [{"matcher": "[", "hooks": []}]}, 'Stop: the matcher "[" is no regular expression'),
        ({"Stop": [{"hooks": [{"command": 1}]}]}, "Stop: a hook is not used: Expected str, got int - at $.command"),
        ({"Stop": {"command": "x"}}, "Stop is not used: it is no list of groups."),
        ({"Stop": [{"command": "x"}]}, "Stop: a group without a list of hooks is not used"),
        ({"Stop": [{"matcher": 1, "hooks": []}]}, "Stop: the matcher is no text."),
    ],
)
def test_unusable_entry_is_named_and_costs_nothing_else(content: dict[str, Any], said: str) -> None:
    hooks, problems = read({"hooks": {**content, "Notification": [{"hooks": [{"command": "bell"}]}]}})
    assert [event for event, _ in hooks] == ["Notification"]
    assert [problem.startswith(f"hooks.json: {said}") for problem in problems] == [True], problems


@pytest.mark.parametrize(
    "guard",
    [
        "check",
        {"command": "check"},
        ["check"],
        [{"matcher": "Bash", "command": "check"}],
        [{"matcher": "(", "hooks": [{"command": "check"}]}],
        [{"matcher": 1, "hooks": [{"command": "check"}]}],
        [{"hooks": {"command": "check"}}],
        [{"hooks": ["check"]}],
        [{"hooks": [{"command": ["check"]}]}],
        [{"hooks": [{"type": "command"}]}],
        [{"hooks": [{"command": "check", "timeout": "long"}]}],
        [{"hooks": [{"command": "check\0"}]}],
    ],
)
def test_unreadable_guard_alone_is_distinguished(guard: Any) -> None:
    found = read_hooks(json.dumps({"hooks": {"PreToolUse": guard}}).encode(), HOOKS)
    assert len(found.unreadable_guards) == 1
    assert found.problems == found.unreadable_guards
    elsewhere = read_hooks(json.dumps({"hooks": {"Stop": guard, **one()}}).encode(), HOOKS)
    assert (len(elsewhere.hooks), len(elsewhere.problems), elsewhere.unreadable_guards) == (1, 1, ())


def test_program_with_arguments_runs_without_a_shell() -> None:
    words = {"command": "${CLAUDE_PROJECT_DIR}/a b.sh", "args": ["-x", "$HOME; rm", "$CLAUDE_PROJECT_DIR"]}
    hooks, problems = read(one(**words))
    assert problems == ()
    assert hooks[0][1].command == "\"$CLAUDE_PROJECT_DIR\"'/a b.sh' -x '$HOME; rm' \"$CLAUDE_PROJECT_DIR\""


def test_file_disables_its_hooks_and_other_keys_named() -> None:
    assert read({"hooks": one(), "disableAllHooks": True})[0] == ()
    hooks, problems = read({"hooks": one(), "$schema": "x", "theme": "dark"})
    assert (len(hooks), problems) == (1, ("hooks.json: theme is unknown and ignored.",))


def test_foreign_field_does_not_keep_hooks_from_running() -> None:
    hooks, problems = read(one(color="red", statusMessage="…"))
    assert len(hooks) == 1
    assert "color" in problems[0]
    assert "statusMessage" not in problems[0]


def test_every_field_of_claude_code_is_read() -> None:
    more = {"async": True, "once": True, "timeout": 9, "if": "Bash(git *)"}
    request = {"type": "http", "url": "http://localhost:1/x", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]}
    (http, prompt), problems = read(
        {"PreToolUse": [{"hooks": [{**request, **more}, {"type": "prompt", "prompt": "?", "model": "m"}]}]}
    )
    assert problems == ()
    assert http[1] == Hook(
        type="http",
        url="http://localhost:1/x",
        headers={"A": "$B"},
        allowed_env_vars=("B",),
        condition="Bash(git *)",
        timeout_s=9,
        in_background=True,
        once=True,
    )
    assert prompt[1] == Hook(type="prompt", prompt="?", model="m")
    assert prompt[1].limit_s == 30


def test_events_of_gemini_have_other_names_and_milliseconds() -> None:
    hooks, problems = read(
        {"hooks": {"BeforeTool": [{"matcher": "write_file", "hooks": [{"command": "a", "name": "n", "timeout": 5000}]}]}}
    )
    assert (hooks, problems) == ((("PreToolUse", Hook(command="a", matcher="write_file", timeout_s=5.0)),), ())
    for theirs, ours in (("AfterTool", "PostToolUse"), ("BeforeAgent", "UserPromptSubmit"), ("AfterAgent", "Stop")):
        assert read(one(theirs))[0][0][0] == ours
    assert read(one("PreCompress"))[0][0][0] == "PreCompact"


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"hooks": []}', b"\xff", b"[" * 100_000, b'"x"'])
def test_file_without_hooks_is_refused_whole(data: bytes) -> None:
    with pytest.raises(ExtensionError, match=r"hooks\.json"):
        read_hooks(data, HOOKS)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*EVENTS, "hooks", "matcher", "command", "timeout", "type"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_whatever_stands_there_is_read_or_refused(content: Any) -> None:
    try:
        hooks, problems = read(content)
    except ExtensionError:
        return
    assert all(event in EVENTS and hook.action.strip() and hook.limit_s > 0 for event, hook in hooks)
    assert all(isinstance(problem, str) for problem in problems)
