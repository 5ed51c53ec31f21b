"""A kept session as a provider would see it: what would be sent, what is wrong with it, why the prompt cache was missed."""

from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import Completed, run_wolo, start_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import Hold, call, calls, error, text, usage
from tests.fakes.screen import pty_wolo
from wolo.formats.lint.linters import LINTERS
from wolo.messages.message import Message, Producer, user
from wolo.messages.parts import Blob, ImagePart, TextPart, ThinkingPart, ToolPart
from wolo.models.format_selection import FORMATS
from wolo.places import find_places
from wolo.sessions.entries import MessageEntry, ResultsEntry
from wolo.sessions.store import Store

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20


def sessions(*args: str) -> Completed:
    """Offline: the provider is gone, and there is no key."""
    return run_wolo("sessions", *args)


def kept(*messages: Message, model: str = "custom/test-model") -> str:
    """A session of this directory that holds these messages."""
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd(), model=model)
        store.append(session.id, [MessageEntry(message=message) for message in messages])
        return session.id


def assistant(*parts: TextPart | ThinkingPart | ToolPart, producer: Producer | None = None) -> Message:
    return Message(role="assistant", parts=parts, producer=producer, finished=True, finish_reason="stop")


@pytest.fixture
def lively(provider: ProviderServer) -> ProviderServer:
    """A session that went through much: calls that ran, failed, could not be read, an attempt that failed, an image."""
    Path("a.txt").write_text("hello")
    Path("dot.png").write_bytes(PNG)
    provider.script(
        calls(("read", {"path": "a.txt"}), ("read", {"path": "missing.txt"}), ("glob", {"pattern": "*"}), reasoning="Look."),
        call("read", '{"path": "a.t'),
        error(500, {"error": {"message": "try again"}}),
        text("Done."),
    )
    said = run_wolo("-p", *provider.flags, "-f", "dot.png", "look around")
    assert said.exit_code == 0, said.stderr
    return provider


def test_every_format_has_a_linter() -> None:
    assert set(FORMATS) == set(LINTERS)


def test_long_mixed_session_is_sound_in_every_format(lively: ProviderServer) -> None:
    checked = sessions("lint", "--as", "all", "--json")
    assert (checked.json["findings"], checked.exit_code) == ([], 0)
    assert checked.json["formats"] == list(FORMATS)
    assert any("could not be read" in note["text"] for note in checked.json["notes"])


def test_wrong_call_is_not_reported_as_unreadable(provider: ProviderServer) -> None:
    provider.script(calls(("frobnicate", {"x": 1}), ("read", {"pfad": "a.txt"})), text("Done."))
    run_wolo("-p", *provider.flags, "go")
    checked = sessions("lint", "--json")
    assert (checked.json["findings"], checked.json["notes"]) == ([], [])


def test_next_request_begins_with_the_last_request(lively: ProviderServer) -> None:
    shown = sessions("wire", "--json")
    assert shown.stdout.count("\n") == 1
    sent, body = lively.requests[-1].whole, shown.json
    assert body["messages"][: len(sent["messages"])] == sent["messages"]
    assert body["tools"] == sent["tools"]
    assert KEY not in shown.stdout


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("format", FORMATS)
def test_the_wire_can_be_seen_in_every_format(lively: ProviderServer, format: str) -> None:
    plain, pretty, full = (sessions("wire", "--as", format, *more) for more in (("--json",), (), ("--full",)))
    assert (plain.exit_code, plain.stderr) == (0, "")
    assert full.json == plain.json
    assert "hello" in plain.stdout
    assert len(pretty.stdout.splitlines()) > 10


def test_large_images_are_shortened_where_people_read(provider: ProviderServer) -> None:
    session = kept(user("look", ImagePart(data=PNG, media_type="image/png")), model="openai/gpt-4o")
    shown, full = (sessions("wire", session, "--as", "openai-chat", "-m", "openrouter/x/y", *more) for more in ((), ("--full",)))
    assert "characters)" in shown.stdout
    assert len(shown.stdout) < len(full.stdout) - 5_000


def test_an_interrupted_session_is_sound_in_every_format(provider: ProviderServer) -> None:
    provider.script(calls(("shell", {"command": "touch begun; sleep 30"}), ("shell", {"command": "true"})))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
        wait_for(lambda: Path("begun").exists())
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    checked = sessions("lint", "--as", "all", "--json")
    assert (checked.json["findings"], checked.exit_code) == ([], 0)
    said = [note["text"] for note in checked.json["notes"] if "no result" in note["text"]]
    assert ["interrupted" in said[0], "never started" in said[1], len(said)] == [True, True, 2]


def test_a_stopped_answer_is_sound_in_every_format(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("a beginning").then(hold))
    with start_wolo("-p", *provider.flags, "go") as process:
        hold.wait_until_reached()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    hold.release()
    assert sessions("lint", "--as", "all").exit_code == 0


def test_an_entry_that_is_damaged_is_a_finding(lively: ProviderServer) -> None:
    with sqlite3.connect(find_places().data / "wolo.db") as database:
        database.execute("UPDATE entries SET body = replace(body, 'look around', 'look AROUND') WHERE kind = 'message'")
    checked = sessions("lint")
    assert checked.exit_code == 1
    assert "cannot be read" in checked.stdout


def test_a_result_without_its_call_is_a_finding() -> None:
    session = kept(user("hi"))
    with Store.open(find_places().data) as store:
        orphan = ToolPart(tool="read", status="completed", outcome="ok")
        store.append(session, [ResultsEntry(message_id="msg_gone", parts=(orphan,))])
    checked = sessions("lint", session, "--json")
    assert checked.exit_code == 1
    assert "belongs to a missing call" in checked.json["findings"][0]["text"]


def test_calls_that_stand_twice_are_noted_and_mended() -> None:
    twice = ToolPart(id="part_1", tool="read", call_id="call_1", status="completed", outcome="ok", output="x")
    other = ToolPart(tool="read", call_id="call_1", status="completed", outcome="ok", output="y")
    session = kept(user("hi"), assistant(twice), assistant(twice), assistant(other))
    checked = sessions("lint", session, "--as", "all", "--json")
    assert (checked.json["findings"], checked.exit_code) == ([], 0)
    said = " ".join(note["text"] for note in checked.json["notes"])
    assert "more than once" in said
    assert "its own id" in said


def test_loss_for_another_model_is_noted() -> None:
    claude = Producer(provider="anthropic", format="anthropic", model="claude-x")
    thought = ThinkingPart(text="Hm.", blobs=(Blob(kind="anthropic.signature", data="c2ln"),))
    image = ImagePart(data=PNG, media_type="image/png")
    session = kept(user("look", image), assistant(thought, TextPart(text="Seen."), producer=claude), model="zai/glm-5.2")
    checked = sessions("lint", session, "--json")
    assert checked.exit_code == 0
    said = " ".join(note["text"] for note in checked.json["notes"])
    assert "reasoning and signatures in 1 answer of anthropic/claude-x" in said
    assert "This image is not sent" in said


def test_missing_format_or_model_is_named(lively: ProviderServer) -> None:
    for wrong, said in ((("--as", "soap"), "soap"), (("--model", "zzz/x"), "zzz")):
        for command in ("wire", "lint"):
            refused = sessions(command, *wrong)
            assert refused.exit_code == 2
            assert said in refused.stderr
            assert "Traceback" not in refused.stderr


def test_session_with_missing_provider_is_checked_for_another(provider: ProviderServer) -> None:
    settings = find_places().config / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[providers.mine]\nbase_url = "{provider.base_url}"\n')
    settings.chmod(0o600)
    provider.linted = False
    provider.script(text("Fine."))
    assert run_wolo("-p", "-m", "mine/m", "go").exit_code == 0
    settings.unlink()
    done = run_wolo("sessions", "lint")
    assert done.exit_code == 2
    assert "mine/m, is not available any more" in done.stderr
    assert "--model" in done.stderr
    assert run_wolo("sessions", "lint", "-m", "zai/glm-5.2", "--as", "all").exit_code == 0


@pytest.mark.parametrize("model", ["", "anthropic/claude-long-gone", "vendor/of-theirs"])
def test_unknown_model_session_is_checked_in_every_format(model: str) -> None:
    kept(user("hi"), assistant(TextPart(text="Hello.")), model=model)
    checked = sessions("lint", "--as", "all")
    assert (checked.exit_code, checked.stderr) == (0, "")
    assert json.loads(sessions("wire", "--as", "gemini", "--json").stdout)["contents"][0]["role"] == "user"
    undecided = sessions("wire")
    assert undecided.exit_code == 2
    assert "--as FORMAT" in undecided.stderr


@pytest.mark.parametrize("model", ["", "anthropic/claude-long-gone"])
def test_unknown_model_session_is_shown_for_configured_model(model: str) -> None:
    kept(user("hi"), assistant(TextPart(text="Hello.")), model=model)
    assert run_wolo("sessions", "wire", "--json", env={"WOLO_MODEL": "zai/glm-5.2"}).json["model"] == "glm-5.2"


def test_without_a_session_there_is_a_sentence() -> None:
    for command in ("wire", "lint", "cache"):
        refused = sessions(command)
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert "no session of this directory" in refused.stderr


# The prompt cache


def test_changed_system_prompt_is_reported_with_v_only(provider: ProviderServer) -> None:
    provider.script(*(text(f"{number}", usage=usage(9_000, 5)) for number in range(4)))
    first = run_wolo("-p", "-v", *provider.flags, "one")
    assert "cache" not in first.stderr
    Path("AGENTS.md").write_text("Be kind.")
    provider.forget_prefix()
    loud = run_wolo("-p", "-v", "-c", *provider.flags, "two")
    assert "Prompt cache missed: the system prompt changed" in loud.stderr
    Path("AGENTS.md").write_text("Be brief.")
    provider.forget_prefix()
    quiet = run_wolo("-p", "-c", *provider.flags, "three")
    assert (quiet.stdout, quiet.stderr) == ("2\n", "")
    table = sessions("cache", "--json").json
    assert [row["miss"] and row["miss"]["block"] for row in table["requests"]] == [None, "system", "system"]
    assert table["total"]["misses"] == 2


def test_forgotten_cache_differs_from_changed_prefix(provider: ProviderServer) -> None:
    counts = (usage(9_000, 5), usage(9_100, 5, cached=8_960), usage(9_200, 5))
    provider.script(*(text("ok", usage=each) for each in counts))
    for flags in ((), ("-c",), ("-c",)):
        assert run_wolo("-p", *flags, *provider.flags, "go on").exit_code == 0
    rows = sessions("cache", "--json").json["requests"]
    assert [row["miss"] and row["miss"]["kind"] for row in rows] == [None, None, "provider"]
    assert rows[1]["share"] == round(8_960 / 9_100, 4)
    shown = sessions("cache").stdout
    assert "expired or evicted" in shown
    assert shown.splitlines()[-1].split()[0] == "sum"


def test_kept_own_data_is_never_sent(lively: ProviderServer) -> None:
    assert "same_bytes" not in json.dumps([asked.json for asked in lively.requests])


@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_terminal_reports_a_miss_with_v_only(provider: ProviderServer, flags: tuple[str, ...]) -> None:
    provider.script(text("one", usage=usage(9_000, 5)), text("two", usage=usage(9_000, 5)))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    Path("AGENTS.md").write_text("Be kind.")
    provider.forget_prefix()
    with pty_wolo(*flags, *provider.flags, "-c", "go on", columns=200) as terminal:
        assert terminal.wait_for_exit() == 0
    assert (terminal.shows("Prompt cache missed: the tools changed")) == bool(flags)  # one is offered to a person only


def test_another_model_is_told_as_the_reason(provider: ProviderServer) -> None:
    provider.script(text("one", usage=usage(9_000, 5)), text("two", usage=usage(9_000, 5)))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    provider.forget_prefix()
    assert run_wolo("-p", *provider.flags, "-m", "custom/other", "-c", "go on").exit_code == 0
    miss = sessions("cache", "--json").json["requests"][1]["miss"]
    assert (miss["kind"], miss["tokens"]) == ("model", 9_000)
    assert "from custom/test-model to custom/other" in miss["reason"]
