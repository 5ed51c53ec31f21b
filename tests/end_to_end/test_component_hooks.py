"""Hooks in the settings of skills and agents run while those are active, or the skill or agent is not used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.config import consents
from wolo.places import find_home, find_places

WRITE = {"path": "a.txt", "content": "one"}
GROUP = "    - matcher: Write\n      hooks:\n        - type: command\n          command: echo not now >&2; exit 2\n"
DENY = f"hooks:\n  PreToolUse:\n{GROUP}"
STOP = "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: touch stopped\n"


def put(place: str, hooks: str = DENY, more: str = "", folder: Path | None = None) -> None:
    path = (folder or find_home()) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: careful\ndescription: Be careful.\n{more}{hooks}---\nBe careful.\n")


def run(provider: ProviderServer, *words: str, mode: str = "edit") -> int:
    Path("a.txt").unlink(missing_ok=True)
    provider.forget_prefix()
    done = run_wolo("--json", *provider.flags, "--mode", mode, *words)
    run.stderr = done.stderr  # type: ignore[attr-defined]  # for the assertion that follows
    return done.exit_code


def stderr() -> str:
    return str(run.stderr)  # type: ignore[attr-defined]  # set above


SKILL, AGENT = ".claude/skills/careful/SKILL.md", ".claude/agents/careful.md"
LOAD = call("skill", {"name": "careful"})


def test_skill_hooks_run_once_it_is_loaded(provider: ProviderServer) -> None:
    put(SKILL)
    provider.script(call("write", WRITE), text("Done."))
    assert run(provider, "go") == 0
    provider.script(LOAD, call("write", WRITE), text("I see."))
    assert run(provider, "go") == 4
    assert "not now" in provider.requests[-1].results[-1]
    provider.script(call("write", WRITE), text("I see."))
    assert run(provider, "-c", "again") == 4
    provider.script(call("write", WRITE), text("I see."))
    assert run(provider, "-p", "/careful go") == 4


def test_hooks_of_an_agent_run_while_it_works(provider: ProviderServer) -> None:
    put(AGENT)
    task = {"prompt": "write it", "agent": "careful"}
    provider.script(call("task", task), call("write", WRITE), text("I could not."), call("write", WRITE), text("Done."))
    assert run(provider, "go") == 4
    assert "not now" in provider.requests[2].results[-1]
    assert Path("a.txt").exists()
    provider.script(call("write", WRITE), text("I see."))
    assert run(provider, "--agent", "careful", "go") == 4


def test_stop_of_an_agent_ends_its_task(provider: ProviderServer) -> None:
    put(AGENT, STOP)
    provider.script(call("task", {"prompt": "x", "agent": "careful"}), text("One."))
    provider.script(text("Two."))
    run(provider, "go")
    assert Path("stopped").exists()


@pytest.mark.parametrize(("place", "words"), [(SKILL, ["-p", "/careful go"]), (AGENT, ["--agent", "careful", "go"])])
def test_a_projects_need_consent_before_it_is_used(provider: ProviderServer, place: str, words: list[str]) -> None:
    put(place, folder=Path.cwd())
    consents.save_trust(find_places(), Path.cwd(), "trusted")
    assert run(provider, *words) == 2
    assert not provider.requests
    allowed = run_wolo("hooks", "allow")
    assert "echo not now" in allowed.stdout
    provider.script(call("write", WRITE), text("I see."))
    assert run(provider, *words) == 4
    put(place, DENY.replace("not now", "never"), folder=Path.cwd())
    assert run(provider, *words) == 2


@pytest.mark.parametrize(
    ("hooks", "why"),
    [
        (DENY.replace("PreToolUse", "PreToolUs"), "there is no event PreToolUs"),
        (DENY.replace("type: command", "type: mcp_tool"), "calls no MCP server for hooks"),
        (DENY.replace("matcher: Write", "matcher: '['"), "is no regular expression"),
        ("hooks: [1]\n", "is no table of events"),
        (f"argument-hint: [a] [b]\n{DENY}", "are not valid YAML"),
    ],
)
def test_skill_with_unusable_hooks_is_left_out(provider: ProviderServer, hooks: str, why: str) -> None:
    put(SKILL, hooks)
    provider.script(LOAD, text("Done."))
    run(provider, "go")
    assert why in stderr()
    assert "There is no tool `skill`" in provider.requests[-1].results[-1]


def test_skill_writable_by_the_model_brings_no_hooks(provider: ProviderServer) -> None:
    put("careful/SKILL.md", folder=Path.cwd())
    link = find_home() / ".claude/skills/careful"
    link.parent.mkdir(parents=True)
    link.symlink_to(Path.cwd() / "careful")
    provider.script(text("Done."))
    run(provider, "go")
    assert "its file is in the workspace, where the model writes" in stderr()
