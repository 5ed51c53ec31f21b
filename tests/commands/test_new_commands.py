"""/status, /config, /login, /logout, /add-dir, /fork and /import: what each says and does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.test_every_command import begin, ran, say, shown
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from wolo.commands.command import RunEvents, SwitchConversation
from wolo.config.key_store import FILE
from wolo.diagnostics.health_check import lines
from wolo.diagnostics.provider_login import find_login_provider, save_key
from wolo.errors import UsageError, WoloError
from wolo.places import find_places
from wolo.sessions.store import Store


async def test_status_tells_what_holds_now(provider: ProviderServer) -> None:
    conversation = await begin(provider, text("One."))
    for line in ("custom/test-model", provider.base_url, conversation.info.session_id, "ask", str(Path.cwd()), "config.toml"):
        assert line in await shown("/status", conversation)
    assert "None" not in await shown("/status", conversation)
    await say(conversation, "one")
    assert "price unknown" in await shown("/status", conversation)
    await conversation.close()


async def test_setting_is_shown_written_and_applied_at_once(provider: ProviderServer) -> None:
    conversation = await begin(provider, text("One."), text("Two."))
    await say(conversation, "one")
    assert "mode = " in await shown("/config", conversation)
    assert await shown("/config shell.timeout_s", conversation) == "shell.timeout_s = 120.0  (default)"
    opened = await ran("/config shell.timeout_s 7", conversation)
    assert isinstance(opened, SwitchConversation)
    assert opened.text == f"Saved shell.timeout_s in {find_places().config / 'config.toml'}."
    assert opened.conversation.info.session_id == conversation.info.session_id
    assert opened.conversation.permissions.config.settings.shell.timeout_s == 7
    overridden = await ran("/config model zai/glm-5.2", opened.conversation)
    assert isinstance(overridden, SwitchConversation)
    assert "--model overrides it" in overridden.text
    for wrong in (
        "/config nothing.here",
        "/config shell.timeout_s many",
        "/config mode yolo",
        "/config providers.zai.api_key sk-1",
    ):
        with pytest.raises(WoloError):
            await ran(wrong, overridden.conversation)
    provider.forget_prefix()
    await say(overridden.conversation, "two")
    await overridden.conversation.close()


async def test_output_style_is_listed_and_chosen(provider: ProviderServer) -> None:
    style = find_places().config / "output-styles/terse.md"
    style.parent.mkdir(parents=True)
    style.write_text("---\ndescription: Says little.\n---\nThree words.")
    conversation = await begin(provider, text("One."), text("Two."))
    assert [line.split() for line in (await shown("/output-style", conversation)).splitlines()] == [
        ["*", "default", "no", "style", "of", "your", "own"],
        ["terse", "Says", "little."],
    ]
    opened = await ran("/output-style Terse", conversation)
    assert isinstance(opened, SwitchConversation)
    await say(opened.conversation, "one")
    assert "# Output style: terse\n\nThree words." in str(provider.requests[-1].messages[0]["content"])
    prefix = opened.conversation.agent.services.prefix
    before = prefix.system
    prefix.reload()  # as after a compaction
    assert prefix.system == before
    with pytest.raises(UsageError, match="no output style none"):
        await ran("/output-style none", opened.conversation)
    opened = await ran("/output-style default", opened.conversation)
    assert isinstance(opened, SwitchConversation)
    assert opened.conversation.permissions.config.settings.output_style == "default"
    provider.forget_prefix()
    await say(opened.conversation, "two")
    assert "Three words" not in str(provider.requests[-1].messages[0]["content"])
    await opened.conversation.close()


async def test_key_needs_terminal_for_entry_not_for_removal(provider: ProviderServer) -> None:
    conversation = await begin(provider)
    outcome = await ran("/login zai", conversation)
    assert isinstance(outcome, RunEvents)
    with pytest.raises(UsageError, match="terminal"):
        async for _ in outcome.events:
            pass
    save_key(find_login_provider("zai"), "zk-0123456789abcdef", in_keyring=False)
    assert "Removed" in await shown("/logout zai", conversation)
    assert "zk-" not in (find_places().config / FILE).read_text()
    with pytest.raises(UsageError):
        await ran("/logout zai", conversation)
    save_key(find_login_provider("zai"), "zk-0123456789abcdef", in_keyring=False, account="work")
    with pytest.raises(UsageError, match="no account `home`: zai has work"):
        await ran("/logout zai --name home", conversation)
    assert "zai (account work)" in await shown("/logout zai --name work", conversation)
    with pytest.raises(UsageError, match="needs a value"):
        await ran("/logout zai --name", conversation)
    await conversation.close()


async def test_added_directory_survives_other_changes(provider: ProviderServer, tmp_path: Path) -> None:
    (tmp_path / "a library").mkdir()
    (tmp_path / "a library" / "there.txt").write_text("found it\n")
    path = tmp_path / "a library" / "there.txt"
    conversation = await begin(provider)
    assert str(Path.cwd()) in await shown("/add-dir", conversation)
    opened = await ran(f'/add-dir "{path.parent}"', conversation)
    assert isinstance(opened, SwitchConversation)
    later = await ran("/new", opened.conversation)
    assert isinstance(later, SwitchConversation)
    provider.script(call("read", {"path": str(path)}), text("Read."))
    await say(later.conversation, "read it", allowed=False)
    assert "found it" in str(provider.requests[-1].messages[-1]["content"])
    assert str(path.parent) in await shown("/add-dir", later.conversation)
    for wrong in ("/add-dir missing", "/add-dir a b"):
        with pytest.raises(UsageError):
            await ran(wrong, later.conversation)
    await later.conversation.close()


async def test_a_fork_goes_its_own_way(provider: ProviderServer) -> None:
    conversation = await begin(provider, text("One."), text("Two."))
    with pytest.raises(UsageError):
        await ran("/fork", conversation)
    await say(conversation, "one")
    opened = await ran("/fork Another way", conversation)
    assert isinstance(opened, SwitchConversation)
    fork = opened.conversation
    assert fork.info.session_id != conversation.info.session_id
    await say(fork, "two")
    assert [message["content"] for message in provider.requests[-1].messages[1:]] == ["one", "One.", "two"]
    await fork.close()
    with Store.open(find_places().data) as store:
        found = {info.id: info for info in store.list()}
    assert set(found) == {conversation.info.session_id, fork.info.session_id}
    assert (found[conversation.info.session_id].turns, found[fork.info.session_id].title) == (1, "Another way")


async def test_an_imported_session_is_continued(provider: ProviderServer) -> None:
    told = [{"role": "user", "content": "hello there"}, {"role": "assistant", "content": "Hi."}]
    Path("from elsewhere.json").write_text(json.dumps(told))
    conversation = await begin(provider, text("Two."))
    opened = await ran('/import "from elsewhere.json"', conversation)
    assert isinstance(opened, SwitchConversation)
    assert "Imported" in opened.text
    await say(opened.conversation, "two")
    assert [message["content"] for message in provider.requests[-1].messages[1:]] == ["hello there", "Hi.", "two"]
    for wrong in ("/import", "/import missing.json"):
        with pytest.raises(WoloError):
            await ran(wrong, opened.conversation)
    await opened.conversation.close()


def test_doctor_prints_one_problem_a_line() -> None:
    from wolo.diagnostics.health_check import examine

    report = examine()
    report["problems"] += ["One\nproblem\n  in three lines.", "Another."]
    printed = list(lines(report))
    assert all("\n" not in line for line in printed)
    assert len([line for line in printed if line.startswith("fail  problem ")]) == len(report["problems"])
