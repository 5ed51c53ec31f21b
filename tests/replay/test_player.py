"""A session may have ended anywhere: whatever was kept of it can be replayed."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from wolo.conversation.resources.request_prefix import saved_options
from wolo.places import find_places
from wolo.replay.player import Replayed, ReplayOptions, replay
from wolo.replay.replay_setup import from_store, prepare_workspace
from wolo.sessions.listing import SessionInfo
from wolo.sessions.store import Store


async def play(store: Store, info: SessionInfo, folder: Path, start: Path) -> Replayed:
    folder.mkdir()
    recording = from_store(store, info)
    stage = prepare_workspace(recording, folder, start)
    return await replay(
        ReplayOptions(tape=recording.tape, stage=stage, model=info.model, mode=info.mode, flags={}, is_strict=True)
    )


async def test_session_cut_anywhere_replays_as_far_as_possible(provider: ProviderServer, isolated: Path) -> None:
    start = isolated / "start"
    start.mkdir()
    for folder in (start, Path.cwd()):
        (folder / "a.txt").write_text("one\ntwo\n")
    provider.script(
        calls(("read", {"path": "a.txt"}), ("grep", {"pattern": "two"}), content="Both at once."),
        call("write", '{"path": "b.txt", "content'),
        calls(("edit", {"path": "a.txt", "old": "two", "new": "three"}), ("shell", {"command": "cat a.txt"})),
        text(""),
        text("Done."),
        call("shell", {"command": "rm a.txt"}),
        text("Refused."),
    )
    for options in (("--yolo",), ("-c", "--yolo", "--deny", "shell:rm *")):
        run_wolo("-p", *options, *provider.flags, "go")
    with Store.open(find_places().data) as store:
        session = store.latest(Path.cwd())
        assert session is not None
        entries = store.load(session.id).entries
        assert len(entries) > 12
        for length in range(1, len(entries) + 1):
            cut = store.create(Path.cwd(), model=session.model, mode=session.mode)
            store.append(cut.id, entries[:length])
            replayed = await play(store, store.find(cut.id), isolated / f"copy-{length}", start)
            assert replayed.divergence is None, (length, replayed)
    assert (start / "a.txt").read_text() == "one\ntwo\n"


async def test_the_options_of_a_run_are_played_again(provider: ProviderServer, isolated: Path) -> None:
    added, start = isolated / "other" / "notes", isolated / "start"
    added.mkdir(parents=True)
    (added / "a.txt").write_text("one\n")
    prompt = isolated / "prompt.md"
    prompt.write_text("You are a pirate called Wolo.")
    provider.script(
        call("read", {"path": f"{added}/a.txt"}),
        calls(("edit", {"path": f"{added}/a.txt", "old": "one", "new": "two"}), ("read", {"path": "secret.txt"})),
        call("write", {"path": f"{added}/b.txt", "content": "b\n"}),
        text("Done."),
    )
    Path("secret.txt").write_text("x\n")
    options = ("--add-dir", str(added), "--tools", "read,edit,write", "--system-prompt", f"@{prompt}", "--name", "Jack")
    more = ("--append-system-prompt", "Arr.", "--mode", "edit", "--deny", "read:secret.txt")
    assert run_wolo("-p", *options, *more, *provider.flags, "go").exit_code == 4
    prompt.unlink()
    with Store.open(find_places().data) as store:
        session = store.latest(Path.cwd())
        assert session is not None
        for number, begin in enumerate((None, start)):
            if begin is not None:
                begin.mkdir()
                (begin / "secret.txt").write_text("x\n")
                (added / "a.txt").write_text("one\n")
                (added / "b.txt").unlink()
            folder = isolated / f"copy-{number}"
            folder.mkdir()
            recording = from_store(store, session)
            stage = prepare_workspace(recording, folder, begin)
            rerun = ReplayOptions(
                tape=recording.tape, stage=stage, model=session.model, mode=session.mode, flags={}, is_strict=True
            )
            replayed = await replay(rerun)
            assert replayed.divergence is None, replayed
            assert stage.added[added].joinpath("a.txt").read_text() == "two\n"
    assert (added / "a.txt").read_text() == "one\n"
    assert not (added / "b.txt").exists()


async def test_a_rule_that_decided_nothing_is_known_too(provider: ProviderServer, isolated: Path) -> None:
    provider.script(call("write", {"path": "a.txt", "content": "a\n"}), text("Done."))
    run_wolo("-p", "--mode", "ask", "--allow", "write:a.txt", "--deny", "shell:*", *provider.flags, "go")
    with Store.open(find_places().data) as store:
        session = store.latest(Path.cwd())
        assert session is not None
        (turn,) = from_store(store, session).tape.turns
    options = saved_options(turn.opened)
    assert options is not None
    assert [str(rule) for rule in options.parsed_rules()] == ["write:a.txt", "shell:*"]
