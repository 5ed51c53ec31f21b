"""Commands that are files: what they are called beside the built-in ones, and what they ask to be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.provider_server import ProviderServer
from tests.fakes.written import command, skill
from wolo.commands.command import Command, CommandContext, SendPrompt, ShowText, dispatch
from wolo.commands.table import load_commands
from wolo.commands.user_commands import CommandList, load_user_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import ExtensionError, UsageError

COMMANDS = load_commands()


async def begin(provider: ProviderServer, **given: str) -> Conversation:
    options = {"base_url": provider.base_url, "model": "test-model", "api_key": "sk-key-0123456789abcdef", "mode": "ask", **given}
    return await open_conversation(StartOptions(flags=options, attended=True))


@pytest.fixture
def home(isolated: Path) -> Path:
    return isolated / "home"


@pytest.fixture
async def conversation(provider: ProviderServer) -> AsyncIterator[Conversation]:
    """In a project that is trusted; it must bring something along for that."""
    command(Path(".wolo/commands"), "brought", "Brought.")
    begun = await begin(provider, trust=str(Path.cwd()))
    yield begun
    await begun.close()


def found(conversation: Conversation) -> dict[str, Command]:
    return {each.name: each for each in load_user_commands(conversation, COMMANDS)}


async def prompted(line: str, conversation: Conversation) -> SendPrompt:
    outcome = await dispatch(line, CommandContext(conversation, CommandList(COMMANDS).all(conversation)))
    assert isinstance(outcome, SendPrompt)
    return outcome


async def test_commands_of_all_places_count_projects_first(conversation: Conversation, home: Path, isolated: Path) -> None:
    for number, place in enumerate((".wolo", ".agents", ".claude")):
        command(Path(place, "commands"), f"project{number}", "x")
        command(Path(place, "commands"), "both", f"The one in {place}.")
    for number, folder in enumerate((isolated / "wolo/config", home / ".agents", home / ".claude")):
        command(folder / "commands", f"own{number}", "x")
        command(folder / "commands", "both", "The user's.")
    command(home / ".wolo/commands", "none", "x")  # wolo's own directory is another one
    assert set(found(conversation)) == {"both", "brought", *(f"{whose}{n}" for whose in ("own", "project") for n in range(3))}
    assert (await prompted("/both", conversation)).text == "The one in .wolo."


async def test_built_in_names_win_then_commands_then_skills(conversation: Conversation, home: Path) -> None:
    command(home / ".claude/commands", "help", "x")
    command(home / ".claude/commands", "q", "x")  # another name of /exit
    command(home / ".claude/commands", "pdf", "The command.")
    skill(home / ".claude/skills", "pdf")
    skill(home / ".claude/skills", "diff")
    skill(home / ".claude/skills", "docx")
    names = {name: each.aliases for name, each in found(conversation).items()}
    assert names == {"brought": (), "pdf": (), "skill:diff": (), "skill:docx": ("docx",), "skill:pdf": ()}
    assert isinstance(await dispatch("/help", CommandContext(conversation, CommandList(COMMANDS).all(conversation))), ShowText)
    assert (await prompted("/pdf", conversation)).text == "The command."


async def test_skill_not_for_people_is_no_command(conversation: Conversation, home: Path) -> None:
    skill(home / ".claude/skills", "its", more="user-invocable: false\n")
    skill(home / ".claude/skills", "mine", more="disable-model-invocation: true\n")
    assert set(found(conversation)) == {"brought", "skill:mine"}
    asked = await prompted("/mine do it", conversation)
    assert asked.text.startswith("Use the skill mine: do it\n\n<skill")
    assert asked.typed == "do it"  # what the skill's text mentions is attached by nobody


async def test_the_name_ends_with_the_line_too(conversation: Conversation) -> None:
    command(Path(".wolo/commands"), "fix", "Fix:\n$ARGUMENTS")
    assert (await prompted("/fix\nthis\nand that", conversation)).text == "Fix:\nthis\nand that"


async def test_only_own_commands_choose_a_model(conversation: Conversation, home: Path) -> None:
    command(home / ".claude/commands", "own", "---\nmodel: zai/glm-5.2\n---\nx")
    command(Path(".claude/commands"), "theirs", "---\nmodel: zai/glm-5.2\n---\nx")
    assert (await prompted("/own", conversation)).model == "zai/glm-5.2"
    assert (await prompted("/theirs", conversation)).model == ""
    pages = [found(conversation)[name].more for name in ("own", "theirs")]
    assert "Answered by zai/glm-5.2." in pages[0]
    assert "only your own commands may select one" in pages[1]


async def test_user_command_uses_user_rights_project_command_models(conversation: Conversation, home: Path) -> None:
    command(home / ".claude/commands", "own", "Now: !`touch x`")
    command(Path(".claude/commands"), "theirs", "Now: !`touch x`")
    own, theirs = await prompted("/own", conversation), await prompted("/theirs", conversation)
    assert [(run.command, run.rights) for run in own.runs] == [("touch x", "person")]
    assert theirs.runs == ()
    assert theirs.notices == ("Not run, sent as text: !`touch x`",)


async def test_named_tools_are_reported_and_allow_nothing(conversation: Conversation, home: Path) -> None:
    command(home / ".claude/commands", "own", "---\nallowed-tools: Bash(rm:*)\n---\nx")
    before = conversation.permissions.judge.rules
    await prompted("/own", conversation)
    assert conversation.permissions.judge.rules == before
    assert "Names the tools Bash(rm:*); this grants no permission." in found(conversation)["own"].more


async def test_command_may_give_its_prompt_to_an_agent(conversation: Conversation, home: Path) -> None:
    folder = home / ".claude/commands"
    command(folder, "look", "---\nagent: Explore\n---\nLook at !`pwd`.")
    command(folder, "task", "---\nsubtask: true\n---\nDo it.")
    command(folder, "build", "---\nagent: build\n---\nDo it.")
    command(folder, "gone", "---\nagent: gone\n---\nDo it.")
    look = await prompted("/look", conversation)
    assert look.text.startswith("Give this task to the agent explore with the tool `task`")
    assert look.text[: look.runs[0].at].endswith("\n\nLook at ")
    assert "to the agent general" in (await prompted("/task", conversation)).text
    assert (await prompted("/build", conversation)).text == "Do it."
    assert (await prompted("/gone", conversation)).notices == (
        "/gone names the agent gone, which is not available for tasks; it is ignored.",
    )


async def test_a_long_text_is_shown_by_its_beginning(conversation: Conversation) -> None:
    command(Path(".wolo/commands"), "long", "\n".join(f"line {n}" for n in range(30)))
    command(Path(".wolo/commands"), "short", "\n".join(f"line {n}" for n in range(9)))
    long, short = await prompted("/long", conversation), await prompted("/short", conversation)
    assert long.shown.endswith("line 7\n… 22 more lines")
    assert long.text.endswith("line 29")
    assert short.shown == short.text


async def test_unusable_command_is_listed_with_its_reason(conversation: Conversation) -> None:
    command(Path(".wolo/commands"), "broken", "---\na: b")
    command(Path(".wolo/commands"), "empty", "---\na: b\n---\n")
    for line, said in (("/broken", "cannot be used: .*broken.md:1"), ("/empty", "has no text")):
        with pytest.raises(ExtensionError, match=said):
            await prompted(line, conversation)
    with pytest.raises(UsageError, match="Unknown command: /gone"):
        await prompted("/gone", conversation)


async def test_command_files_are_reread_before_running(conversation: Conversation) -> None:
    commands = CommandList(COMMANDS)
    before = {each.name for each in commands.all(conversation)}
    command(Path(".wolo/commands"), "fresh", "x")
    assert {each.name for each in commands.all(conversation)} == before  # while one types
    assert {each.name for each in commands.all(conversation, anew=True)} == before | {"fresh"}


async def test_files_neither_skill_nor_command_are_reported(conversation: Conversation) -> None:
    command(Path(".wolo/commands"), "two words", "x")
    skill(Path(".wolo/skills"), "Bad one")
    outcome = await dispatch("/skills", CommandContext(conversation, COMMANDS))
    assert isinstance(outcome, ShowText)
    assert [line[:2] for line in outcome.text.splitlines()[-2:]] == ["! ", "! "]
    assert "the skill is called Bad-one" in outcome.text
    assert "it is /two-words" in outcome.text


async def test_untrusted_project_has_no_commands(provider: ProviderServer) -> None:
    command(Path(".wolo/commands"), "brought", "x")
    skill(Path(".wolo/skills"), "pdf")
    conversation = await begin(provider)
    assert found(conversation) == {}
    with pytest.raises(UsageError, match="Unknown command: /brought") as failed:
        await dispatch("/brought", CommandContext(conversation, load_commands()))
    assert failed.value.hint == "Not used, because this folder is not trusted (--trust): .wolo/skills, .wolo/commands."
    assert conversation.user_files.skills() == replace(conversation.user_files.skills(), skills=(), notices=())
    await conversation.close()
