"""Prompts that begin with a slash, without an interactive session."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import text
from tests.fakes.written import command, skill
from wolo.agent.events import Event
from wolo.commands.expansion import expand
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import UsageError


@pytest.fixture
def home(isolated: Path) -> Path:
    return isolated / "home"


@pytest.fixture
async def conversation(provider: ProviderServer) -> AsyncIterator[Conversation]:
    command(Path(".wolo/commands"), "git/squash", "Squash $1.")
    options = {"base_url": provider.base_url, "model": "test-model", "api_key": "sk-key-0123456789abcdef", "mode": "ask"}
    begun = await open_conversation(StartOptions(flags={**options, "trust": str(Path.cwd())}, attended=False))
    yield begun
    await begun.close()


async def expanded(prompt: str, conversation: Conversation) -> str | None:
    events: list[Event] = []
    made = await expand(prompt, conversation, events.append, "command line")
    return made.text if made else None


async def test_command_is_found_by_full_and_short_name(conversation: Conversation) -> None:
    assert await expanded("/git:squash three", conversation) == "Squash three."
    assert await expanded("/squash 'two commits'\n", conversation) == "Squash two commits."
    command(Path(".wolo/commands"), "svn/squash", "Not this one.")
    with pytest.raises(UsageError, match="Several commands are called squash") as failed:
        await expanded("/squash", conversation)
    assert failed.value.hint == "Name one in full: /git:squash, /svn:squash. A blank before the slash sends it as text."
    command(Path(".wolo/commands"), "2nd", "The second.")
    assert await expanded("/2nd", conversation) == "The second."
    command(Path(".wolo/commands"), "squash", "The short one.")
    assert await expanded("/squash", conversation) == "The short one."


@pytest.mark.parametrize(
    "prompt",
    ["/etc/hosts is wrong", "/tmp is full", "/ alone", "//note", "/5 of them fail", " /squash", "see /squash", "/squash/it"],
)
async def test_a_path_and_other_text_stay_text(prompt: str, conversation: Conversation) -> None:
    assert await expanded(prompt, conversation) is None


@pytest.mark.parametrize(
    ("prompt", "is_told"), [("/squash three", True), ("/unknown", True), ("/tmp is full", False), ("/5 of them fail", False)]
)
async def test_a_command_nobody_typed_is_told(prompt: str, is_told: bool, conversation: Conversation) -> None:
    events: list[Event] = []
    assert await expand(prompt, conversation, events.append, "file") is None
    assert ["slash commands count where a person types them" in repr(each) for each in events] == [True] * is_told


async def test_unknown_command_is_an_error_naming_the_nearest(conversation: Conversation) -> None:
    with pytest.raises(UsageError, match="Unknown command: /squahs") as failed:
        await expanded("/squahs", conversation)
    assert failed.value.hint == "Did you mean /squash? A blank before the slash sends it as text."
    with pytest.raises(UsageError, match="/help works in an interactive session only"):
        await expanded("/help", conversation)


async def test_built_in_prompts_and_skills_are_expanded(conversation: Conversation, home: Path) -> None:
    skill(home / ".agents/skills", "pdf", body="Run fill.py.")
    assert "the last commit" in str(await expanded("/review the last commit", conversation))
    assert "Run fill.py." in str(await expanded("/pdf form.pdf", conversation))
    skill(home / ".agents/skills", "doc", body="Write about $ARGUMENTS in ${CLAUDE_SKILL_DIR}.")
    assert f"Write about the sea in {home}/.agents/skills/doc." in str(await expanded("/doc the sea", conversation))


async def test_shell_commands_of_a_project_pass_the_gate(conversation: Conversation, home: Path) -> None:
    command(home / ".claude/commands", "own", "Now: !`echo $((6 * 7))`.")
    command(Path(".claude/commands"), "theirs", "Now: !`touch ran-it`.")
    assert await expanded("/own", conversation) == "Now: 42."
    assert "!`touch ran-it`" in str(await expanded("/theirs", conversation))
    assert not Path("ran-it").exists()


def test_a_headless_run_expands_its_prompt(provider: ProviderServer, home: Path) -> None:
    command(home / ".claude/commands", "fix", "---\nallowed-tools: Bash(rm:*)\n---\nFix issue $1 in @$2.")
    Path("code.py").write_text("print('the code')")
    provider.script(text("Fixed."))
    done = run_wolo("-p", "/fix 12 code.py", *provider.flags)
    assert (done.exit_code, done.stdout) == (0, "Fixed.\n")
    sent = str(provider.requests[0].messages[-1])
    assert "Fix issue 12 in @code.py." in sent
    assert "the code" in sent


def test_server_prompt_is_expanded_in_first_run_too(provider: ProviderServer) -> None:
    server = Path(__file__).parents[1] / "fakes/mcp_features.py"
    assert run_wolo("mcp", "add", "f", "--", sys.executable, str(server)).exit_code == 0
    provider.script(text("Planned."))
    done = run_wolo("-p", "/mcp__f__plan Rome 3", *provider.flags)
    assert (done.exit_code, done.stdout) == (0, "Planned.\n"), done.stderr
    assert "Plan 3 days in Rome." in str(provider.requests[0].messages)


def test_unknown_command_ends_headless_run_before_sending(provider: ProviderServer) -> None:
    done = run_wolo("-p", "/nonsense now", *provider.flags)
    assert done.exit_code == 2
    assert "Unknown command: /nonsense." in done.stderr
    command(Path(".claude/commands"), "fix", "Fix it.")
    assert (
        "Not used, because this folder is not trusted (--trust): .claude/commands."
        in run_wolo("-p", "/fix", *provider.flags).stderr
    )
    assert provider.requests == []
    provider.script(text("A file."))
    assert run_wolo("-p", "/etc/hosts is what?", *provider.flags).exit_code == 0
