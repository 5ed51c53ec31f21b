"""Instructions during a conversation: nested files, changed files, and notes that the model proposes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.test_every_command import begin, ran, say, shown
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from wolo.commands.command import EditFile
from wolo.conversation.resources.learned_notes import MAX_BYTES, LearnedNotes
from wolo.errors import UsageError
from wolo.places import find_places

LEAD = "<instructions file="


def put(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def results(provider: ProviderServer, at: int = -1) -> list[str]:
    return [message["content"] for message in provider.requests[at].messages if message["role"] == "tool"]


async def test_nested_file_comes_once_with_first_lower_result(provider: ProviderServer) -> None:
    put("sub/AGENTS.md", "Speak softly.")
    put("sub/a.txt", "a")
    put("sub/b.txt", "b")
    both = calls(("read", {"path": "sub/a.txt"}), ("read", {"path": "sub/b.txt"}), ("read", {"path": "sub/missing.txt"}))
    conversation = await begin(provider, both, call("read", {"path": "sub/a.txt", "limit": 1}), text("Done."))
    await say(conversation, "read")
    assert "softly" not in provider.requests[0].body.decode()
    assert sum("Speak softly." in result for result in results(provider)) == 1
    assert "sub/AGENTS.md  (given with a file below it)" in await shown("/memory", conversation)
    await conversation.close()
    again = await begin(provider, call("read", {"path": "sub/b.txt"}), text("Done."), resume=conversation.info.session_id)
    await say(again, "again")
    assert sum("Speak softly." in result for result in results(provider)) == 1
    put("sub/AGENTS.md", "Speak loudly.")
    provider.script(call("read", {"path": "sub/a.txt"}), text("Done."))
    await say(again, "and again")
    assert sum("Speak loudly." in result for result in results(provider)) == 1
    await again.close()


async def test_changed_file_is_sent_with_next_prompt(provider: ProviderServer) -> None:
    put("AGENTS.md", "First.")
    conversation = await begin(provider, text("One."), text("Two."), text("Three."), text("Four."))
    await say(conversation, "one")
    await say(conversation, "two")
    assert LEAD not in provider.requests[-1].body.decode()
    put("AGENTS.md", "Second.")
    put("CLAUDE.local.md", "Local.")
    await say(conversation, "three")
    system, *_, changed = provider.requests[-1].messages
    assert "First." in system["content"]
    for words in ("Second.", "Local.", "replace their earlier versions"):
        assert words in str(changed["content"])
    Path("CLAUDE.local.md").unlink()
    await say(conversation, "four")
    assert "CLAUDE.local.md was removed" in str(provider.requests[-1].messages[-1]["content"])
    await conversation.close()


async def test_note_counts_only_once_accepted_by_user(provider: ProviderServer) -> None:
    propose = calls(
        ("remember", {"note": "Run tests with `make  test`."}),
        ("remember", {"note": "The user likes tea.", "scope": "user"}),
        ("remember", {"note": "Wrong."}),
    )
    conversation = await begin(provider, propose, text("Done."), text("Hm."))
    await say(conversation, "learn")
    assert "Run tests" not in (await shown("/memory", conversation)).split("for your decision")[0]
    assert not (find_places().config / "memory").exists()
    listed = await shown("/memory inbox", conversation)
    assert listed.splitlines()[:2] == ["1  Run tests with `make test`.  (this project)", "2  The user likes tea.  (all projects)"]
    await shown("/memory inbox edit 1 Run tests with `make check`.", conversation)
    assert "Rejected 1 note." in await shown("/memory inbox reject 3", conversation)
    accepted = await shown("/memory inbox accept all", conversation)
    assert "Accepted 2 notes" in accepted
    assert accepted.count("\n- ") == 2
    assert "No note waits" in await shown("/memory inbox", conversation)
    await say(conversation, "go on")
    assert "make check" in str(provider.requests[-1].messages[-1]["content"])
    await conversation.close()
    opened = await begin(provider)
    assert "- Run tests with `make check`." in opened.agent.services.prefix.system
    await opened.close()


@pytest.mark.parametrize("wrong", ["accept", "accept 7", "accept x", "delete 1", "edit 1"])
async def test_a_wrong_word_changes_no_note(provider: ProviderServer, wrong: str) -> None:
    conversation = await begin(provider, call("remember", {"note": "A."}), text("Done."))
    await say(conversation, "learn")
    with pytest.raises(UsageError):
        await ran(f"/memory inbox {wrong}", conversation)
    assert "1  A." in await shown("/memory inbox", conversation)
    await conversation.close()


def test_accepted_notes_have_a_size_limit() -> None:
    notes = LearnedNotes(find_places(), Path.cwd())
    notes.propose("short", "session", everywhere=False)
    notes.here.parent.mkdir(parents=True)
    notes.here.write_text("x" * MAX_BYTES)
    with pytest.raises(UsageError, match="longer than"):
        notes.accept([1])
    assert [note.text for note in notes.waiting()] == ["short"]


async def test_without_learning_the_tool_is_not_offered(provider: ProviderServer) -> None:
    conversation = await begin(provider, set=["memory.learn=false"])  # type: ignore[arg-type]
    assert "remember" not in [spec.name for spec in conversation.tools]
    await conversation.close()


async def test_memory_numbers_the_files_and_opens_one(provider: ProviderServer) -> None:
    put("AGENTS.md", "top @more.md")
    put("more.md", "more")
    conversation = await begin(provider)
    listed = await shown("/memory", conversation)
    assert f"2  {Path.cwd() / 'more.md'}  (4 bytes, imported by AGENTS.md)" in listed
    assert await ran("/memory edit 2", conversation) == EditFile(Path.cwd() / "more.md")
    for wrong in ("edit", "edit 3", "show"):
        with pytest.raises(UsageError):
            await ran(f"/memory {wrong}", conversation)
    await conversation.close()
