"""Output of every slash command in a used session, an empty one, and one that is not saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.fakes.prompts import typed
from tests.fakes.provider_server import ProviderServer, Script
from tests.fakes.replies import call, text, usage
from wolo.agent.events import ApprovalAsked
from wolo.commands.command import CommandContext, Outcome, SendPrompt, ShowText, SwitchConversation, dispatch, rows
from wolo.commands.sessions import ENDS
from wolo.commands.table import load_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.factory import open_conversation
from wolo.conversation.resources.startup import StartOptions
from wolo.errors import ConfigError, SessionError, UsageError, WoloError
from wolo.places import find_places
from wolo.sessions.exchange.format_table import EXPORT_FORMATS

COMMANDS = load_commands()

LOOKING = (
    "help", "todo", "jobs", "tree", "diff", "sessions", "context", "cost", "mode", "permissions", "sandbox", "tools", "memory",
    "debug", "model", "thinking", "rewind", "branch", "resume", "status", "config", "add-dir",
)  # fmt: skip


async def begin(provider: ProviderServer, *script: Script, **given: str | bool) -> Conversation:
    provider.script(*script)
    options: dict[str, str | bool | list[str]] = {
        "base_url": provider.base_url,
        "model": "test-model",
        "api_key": "sk-key-0123456789abcdef",
        "mode": "ask",
        **given,
    }
    return await open_conversation(StartOptions(flags=options, attended=True))


async def say(conversation: Conversation, words: str, *, allowed: bool = True) -> None:
    async for event in conversation.prompt(typed(words)):
        if isinstance(event, ApprovalAsked):
            conversation.answer(event.id, allowed=allowed)


async def ran(line: str, conversation: Conversation) -> Outcome:
    return await dispatch(line, CommandContext(conversation, COMMANDS))


async def shown(line: str, conversation: Conversation) -> str:
    outcome = await ran(line, conversation)
    assert isinstance(outcome, ShowText), outcome
    return outcome.text


@pytest.fixture
async def conversation(provider: ProviderServer) -> AsyncIterator[Conversation]:
    begun = await begin(provider)
    yield begun
    await begun.close()


@pytest.mark.parametrize("given", [{}, {"no_session": True}], ids=["kept", "not kept"])
@pytest.mark.parametrize("name", LOOKING)
async def test_looking_commands_answer_before_any_prompt(provider: ProviderServer, name: str, given: dict[str, bool]) -> None:
    conversation = await begin(provider, **given)
    said = await shown(f"/{name}", conversation)
    assert said.strip()
    assert "Traceback" not in said
    await conversation.close()
    assert not list(find_places().data.glob("sessions/*"))


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.arguments], ids=lambda each: each.name)
async def test_arguments_are_known_while_a_person_types(conversation: Conversation, command: object) -> None:
    assert command.arguments is not None  # type: ignore[attr-defined]
    offered = command.arguments(CommandContext(conversation, COMMANDS))  # type: ignore[attr-defined]
    assert all(isinstance(word, str) and isinstance(words, str) for word, words in offered)


# Help


async def test_help_page_fits_eighty_columns_and_names_everything(conversation: Conversation) -> None:
    page = await shown("/help", conversation)
    assert max(map(len, page.splitlines())) <= 80
    for command in COMMANDS:
        alone = await shown(f"/help {command.name}", conversation)
        assert alone.startswith(f"/{command.name}")
        assert command.help in " ".join(alone.split())
        assert max(map(len, alone.splitlines())) <= 80


async def test_help_finds_a_command_by_any_name(conversation: Conversation) -> None:
    assert await shown("/help /quit", conversation) == await shown("/help exit", conversation)
    assert "list the commands" in await shown("/help other", conversation)
    assert "/compact" not in await shown("/help other", conversation)


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (24, 30), (24, 12), (5, 20), (12, 80)])
async def test_help_fits_the_window(provider: ProviderServer, rows: int, columns: int) -> None:
    conversation = await begin(provider)
    outcome = await dispatch("/help", CommandContext(conversation, COMMANDS, rows=rows, columns=columns))
    assert isinstance(outcome, ShowText)
    lines = outcome.text.split("\n")
    assert all(f"/{command.name}" in outcome.text for command in COMMANDS)
    if columns >= 20:
        assert max(map(len, lines)) < columns + 1
    if rows < 16 and columns == 80:
        assert len(lines) < rows
    await conversation.close()


@pytest.mark.parametrize(
    ("typed", "meant"), [("hlep", "help"), ("sess", "sessions"), ("Model", "model"), ("perm", "permissions")]
)
async def test_typing_slip_is_told_the_intended_command(conversation: Conversation, typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        await ran(f"/{typed}", conversation)
    assert f"/{meant}?" in caught.value.hint
    assert "/help" in caught.value.hint


async def test_an_unknown_name_cannot_paint_the_screen(conversation: Conversation) -> None:
    with pytest.raises(UsageError) as caught:
        await ran("/\x1b[2Jno", conversation)
    assert "\x1b" not in caught.value.message


# Finding and naming


async def test_search_finds_what_was_said_here_and_elsewhere(provider: ProviderServer, conversation: Conversation) -> None:
    provider.script(text("An ostrich is a bird."), text("It runs."))
    await say(conversation, "tell me of the ostrich")
    following = await ran("/new", conversation)
    assert isinstance(following, SwitchConversation)
    later = following.conversation
    await say(later, "does an ostrich run?")
    found = await shown("/search ostrich", later)
    assert f"* {later.info.session_id}" in found
    assert f"  {conversation.info.session_id}" in found
    assert "user: does an ostrich run?" in found
    assert await shown("/search emu", later) == "No matches."
    for wrong in ("/search", "/search --here", '/search "'):
        with pytest.raises(WoloError):
            await ran(wrong, later)
    await later.close()


async def test_title_before_the_first_prompt_stays(provider: ProviderServer) -> None:
    conversation = await begin(provider, text("One."))
    assert await shown("/title The big work", conversation) == "Title: The big work"
    await say(conversation, "hello")
    assert "The big work" in await shown("/sessions", conversation)
    await shown("/title Another", conversation)
    assert "Another" in await shown("/sessions", conversation)
    with pytest.raises(UsageError):
        await ran("/title", conversation)
    await conversation.close()
    unkept = await begin(provider, no_session=True)
    with pytest.raises(UsageError, match="not saved"):
        await ran("/title x", unkept)
    await unkept.close()


# What changed


async def test_diff_shows_tool_and_command_changes_without_git(provider: ProviderServer) -> None:
    Path("kept.txt").write_text("one\ntwo\n")
    Path("gone.txt").write_text("bye\n")
    Path("fence.md").write_text("```\nx\n```\n")
    conversation = await begin(
        provider,
        call("write", {"path": "new.txt", "content": "fresh\n"}),
        call("edit", {"path": "kept.txt", "old": "two", "new": "three"}),
        call("shell", {"command": "rm gone.txt; echo '```' >> fence.md"}),
        text("Done."),
    )
    assert await shown("/diff", conversation) == "This session has changed no files."
    await say(conversation, "go")
    outcome = await ran("/diff", conversation)
    assert isinstance(outcome, ShowText)
    assert outcome.is_answer
    for line in (
        "--- a/gone.txt\n+++ /dev/null",
        "-bye",
        "--- /dev/null\n+++ b/new.txt",
        "+fresh",
        "-two\n+three",
        "4 files changed",
    ):
        assert line in outcome.text
    assert outcome.text.startswith("````diff\n")
    only = await shown("/diff kept.txt", conversation)
    assert "three" in only
    assert "fresh" not in only
    assert await shown("/diff nowhere", conversation) == "This session has changed nothing there."
    Path("kept.txt").write_text("somebody else\n")
    assert "changed again since by another program" in await shown("/diff kept.txt", conversation)
    await conversation.close()


async def test_diff_names_unshowable_files_and_stays_short(provider: ProviderServer) -> None:
    conversation = await begin(
        provider,
        call("write", {"path": "long.txt", "content": "line\n" * 900}),
        call("shell", {"command": "printf 'a\\0b' > binary"}),
        text("Done."),
    )
    await say(conversation, "go")
    said = await shown("/diff", conversation)
    assert "not text" in said
    assert "more lines; /diff PATH" in said
    assert len(said.splitlines()) < 420
    await conversation.close()


# Permissions


async def test_mode_changes_and_shows(conversation: Conversation) -> None:
    assert "* ask" in await shown("/mode", conversation)
    assert (await shown("/mode yolo", conversation)).startswith("Mode yolo: nothing asks")
    assert "* yolo" in await shown("/mode", conversation)
    with pytest.raises(UsageError, match="no mode"):
        await ran("/mode careful", conversation)


async def test_plan_only_reads_and_requests_a_task_plan(conversation: Conversation) -> None:
    assert (await shown("/plan", conversation)).startswith("Mode plan: reads only")
    outcome = await ran("/plan make it faster", conversation)
    assert isinstance(outcome, SendPrompt)
    assert outcome.text.endswith("make it faster")
    assert conversation.info.mode == "plan"


async def test_permissions_are_shown_tried_out_and_taken_back(provider: ProviderServer) -> None:
    conversation = await begin(provider, call("shell", {"command": "touch made"}), text("ok"), allow=["shell:ls"])  # type: ignore[arg-type]
    async for event in conversation.prompt(typed("go")):
        if isinstance(event, ApprovalAsked):
            conversation.answer(event.id, allowed=True, scope="always")
    assert "allow  shell:ls" in await shown("/permissions", conversation)
    assert (await shown("/permissions test shell:ls", conversation)).startswith("allow")
    assert "shell:touch" in Path(find_places().config / "permissions.toml").read_text()
    following = await ran("/new", conversation)
    assert isinstance(following, SwitchConversation)
    conversation = following.conversation
    (rule,) = [str(rule) for rule in conversation.permissions.judge.rules if "touch" in str(rule)]
    assert f"allow  {rule}" in await shown("/permissions", conversation)
    gone = await ran(f"/permissions remove {rule}", conversation)
    assert isinstance(gone, SwitchConversation)
    assert "touch" not in await shown("/permissions", gone.conversation)
    for wrong in ("/permissions remove shell:nope", "/permissions test", "/permissions test nonsense", "/permissions frob"):
        with pytest.raises(UsageError):
            await ran(wrong, gone.conversation)
    await gone.conversation.close()


async def test_the_sandbox_says_what_it_does_not_cover(conversation: Conversation) -> None:
    assert "not covered" in await shown("/sandbox", conversation)


async def test_tools_are_named_with_one_line_each(conversation: Conversation) -> None:
    lines = (await shown("/tools", conversation)).splitlines()
    assert {line.split()[0] for line in lines} == set(conversation.info.tool_names)
    assert max(map(len, lines)) < 80


def test_command_description_ends_with_its_line() -> None:
    assert rows([("a", "word " * 30), ("long-name", "said")], 40) == [f"a          {'word ' * 5}wo…", "long-name  said"]
    assert rows([("a", "x" * 99)], 10) == [f"a  {'x' * 23}…"]


async def test_help_gives_a_long_command_its_own_line(conversation: Conversation) -> None:
    written = replace(
        next(each for each in COMMANDS if each.name == "help"), name="a-name-that-is-long", help="what it does", aliases=()
    )
    said = await dispatch("/a-name-that-is-long", CommandContext(conversation, (written,)))
    assert isinstance(said, ShowText)
    assert "  /a-name-that-is-long\n                    what it does\n" in said.text


async def test_memory_names_the_files_that_are_read(conversation: Conversation) -> None:
    assert "/init" in await shown("/memory", conversation)
    Path("AGENTS.md").write_text("Be kind.\n")
    assert str(Path.cwd() / "AGENTS.md") in await shown("/memory", conversation)
    Path("CLAUDE.md").write_text("Something else.")
    assert "CLAUDE.md is not read: AGENTS.md comes first, and they differ." in await shown("/memory", conversation)
    Path("CLAUDE.md").unlink()


async def test_lsp_lists_servers_and_their_states(
    provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    conversation = await begin(provider)
    assert "No language server is installed" in await shown("/lsp", conversation)
    (tmp_path / "gopls").touch(mode=0o755)
    assert await shown("/lsp", conversation) == "gopls  starts at the first edit  .go"
    await conversation.close()


# Prompts


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("/init", "AGENTS.md"),
        ("/init in French", "in French"),
        ("/review", "git diff HEAD"),
        ("/review src/a.py", "Review this: src/a.py."),
        ("/commit", "git status"),
        ("/commit only the docs", "only the docs"),
    ],
)
async def test_prompt_commands_are_readable_by_a_person(conversation: Conversation, line: str, part: str) -> None:
    outcome = await ran(line, conversation)
    assert isinstance(outcome, SendPrompt)
    assert part in outcome.text
    assert "{" not in outcome.text


async def test_a_question_aside_is_answered_and_counted(provider: ProviderServer, conversation: Conversation) -> None:
    provider.script(text("One.", usage=usage(100, 10)), text("**Aside.**", usage=usage(30, 3)))
    await say(conversation, "one")
    outcome = await ran("/btw what is that?", conversation)
    assert outcome == ShowText("**Aside.**", is_answer=True)
    cost = await shown("/cost", conversation)
    assert cost.startswith("130 tokens in · 13 out")
    assert cost.endswith("1 answer and 1 side question in this session")
    with pytest.raises(UsageError):
        await ran("/btw", conversation)


# Other


async def test_export_writes_the_request_without_keys(provider: ProviderServer, conversation: Conversation) -> None:
    with pytest.raises(UsageError, match="not been saved"):
        await ran("/export", conversation)
    provider.script(text("Answer."))
    await say(conversation, "my question")
    assert f"{conversation.info.session_id}.md" in await shown("/export", conversation)
    await shown("/export page.html", conversation)
    await shown("/export openai", conversation)
    await shown("/export atif sub.json", conversation)
    assert "my question" in Path(f"{conversation.info.session_id}.md").read_text()
    assert "my question" in Path("page.html").read_text()
    assert Path(f"{conversation.info.session_id}.json").read_text().startswith("[")
    assert oct(Path("page.html").stat().st_mode & 0o777) == "0o600"
    with pytest.raises(UsageError, match="already"):
        await ran("/export page.html", conversation)
    with pytest.raises(UsageError, match="selects no format"):
        await ran("/export notes.docx", conversation)
    with pytest.raises(SessionError, match="cannot be written"):
        await ran("/export no/such/folder.md", conversation)


def test_every_shape_of_an_export_has_an_ending() -> None:
    assert set(ENDS) == set(EXPORT_FORMATS)


async def test_debug_tells_the_state_and_no_secret(provider: ProviderServer, conversation: Conversation) -> None:
    provider.script(text("One.", usage=usage(100, 10, cached=40)))
    await say(conversation, "confidential words")
    said = await shown("/debug", conversation)
    for part in (conversation.info.session_id, "custom/test-model", "100 tokens in (40 cached), 10 out", str(Path.cwd())):
        assert part in said
    assert "sk-key" not in said
    assert "confidential" not in said


async def test_doctor_says_what_wolo_doctor_says(conversation: Conversation) -> None:
    said = await shown("/doctor", conversation)
    assert said.startswith("ok    wolo ")
    assert "sandbox" in said


async def test_bad_concurrent_setting_is_an_error_without_loss(provider: ProviderServer, conversation: Conversation) -> None:
    provider.script(text("One."))
    await say(conversation, "one")
    settings = find_places().config / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("mode = [")
    with pytest.raises(ConfigError):
        await ran("/export", conversation)
    settings.unlink()
    assert "Exported to" in await shown("/export", conversation)
