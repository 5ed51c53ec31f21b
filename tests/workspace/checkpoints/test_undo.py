"""Undoing what tools and commands did, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import unprivileged
from tests.workspace.checkpoints.harness import CheckpointHarness, names
from wolo.workspace.checkpoints import restore as restoring
from wolo.workspace.checkpoints.path_state import PathChange
from wolo.workspace.checkpoints.restore import restore


def test_edit_is_undone_and_redone_with_mode(harness: CheckpointHarness) -> None:
    path = harness.put("a.sh", "one\n", 0o751)
    harness.turn()
    harness.write("a.sh", "two\n")
    undone = harness.undo()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one\n", 0o751)
    assert (names(harness, undone.restored), undone.removed, undone.conflicts) == (["a.sh"], (), ())
    harness.redo(undone)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two\n", 0o751)


def test_new_file_goes_with_its_new_folders(harness: CheckpointHarness) -> None:
    harness.put("kept/old", "x")
    before = harness.picture()
    harness.turn()
    harness.write("kept/deep/er/new", "x")
    undone = harness.undo()
    assert harness.picture() == before
    assert names(harness, undone.removed) == ["kept/deep", "kept/deep/er", "kept/deep/er/new"]


def test_a_folder_in_which_somebody_put_something_stays(harness: CheckpointHarness) -> None:
    harness.turn()
    harness.write("made/new", "x")
    harness.put("made/mine", "y")
    undone = harness.undo()
    assert set(harness.picture()) == {"made", "made/mine"}
    assert undone.conflicts == ()


def test_later_foreign_change_is_a_conflict_untouched(harness: CheckpointHarness) -> None:
    for name in "ABC":
        harness.put(name, "one")
    harness.turn()
    harness.write("A", "agent")
    harness.write("B", "agent")
    harness.put("B", "person")
    harness.put("C", "person")
    undone = harness.undo()
    assert {name: content for name, (_, _, content) in harness.picture().items()} == {"A": b"one", "B": b"person", "C": b"person"}
    assert names(harness, undone.restored) == ["A"]
    assert names(harness, (conflict.path for conflict in undone.conflicts)) == ["B"]


def test_user_change_between_turns_is_not_undone(harness: CheckpointHarness) -> None:
    harness.put("A", "one")
    first = harness.turn()
    harness.write("A", "agent")
    harness.put("A", "person")
    second = harness.turn()
    harness.write("A", "agent again")
    assert names(harness, (conflict.path for conflict in harness.plan([first, second]).conflicts)) == ["A"]
    harness.undo([second])
    assert (harness.root / "A").read_text() == "person"


def test_several_turns_go_back_to_before_the_first(harness: CheckpointHarness) -> None:
    harness.put("A", "0")
    for number in range(1, 4):
        harness.turn()
        harness.write("A", str(number))
    harness.undo(harness.turns[1:])
    assert (harness.root / "A").read_text() == "1"


def test_turns_go_back_one_by_one_too(harness: CheckpointHarness) -> None:
    for number in range(3):
        harness.turn()
        harness.write("A", str(number))
    harness.undo(harness.turns[2:])
    harness.undo(harness.turns[1:2])
    assert (harness.root / "A").read_text() == "0"
    harness.undo(harness.turns[:1])
    assert harness.picture() == {}


def test_a_command_is_undone_whatever_it_did(harness: CheckpointHarness) -> None:
    for name in ("gone", "changed", "moved", "mode", "typed"):
        harness.put(f"folder/{name}", f"{name}\n", 0o640)
    (harness.root / "link").symlink_to("folder/gone")
    (harness.root / "empty").mkdir(0o711)
    (harness.root / "becomes").mkdir()
    harness.put("becomes/inner", "x")
    before = harness.picture()
    harness.turn()

    def work() -> None:
        folder = harness.root / "folder"
        (folder / "gone").unlink()
        (folder / "changed").write_text("other\n")
        (folder / "moved").rename(harness.root / "elsewhere")
        (folder / "mode").chmod(0o400)
        (folder / "typed").unlink()
        (folder / "typed").mkdir()
        (folder / "typed" / "new").write_text("x")
        (harness.root / "link").unlink()
        (harness.root / "link").symlink_to("elsewhere")
        (harness.root / "empty").rmdir()
        shutil.rmtree(harness.root / "becomes")
        (harness.root / "becomes").write_text("a file now")
        (harness.root / "made").mkdir()
        (harness.root / "made" / "file").write_text("new")

    changes = harness.command(work)
    after = harness.picture()
    assert names(harness, changes.gone) == ["becomes/inner", "folder/gone", "folder/moved", "folder/typed"]
    undone = harness.undo()
    assert undone.conflicts == ()
    assert harness.picture() == before
    assert harness.redo(undone).conflicts == ()
    assert harness.picture() == after


def test_closed_folder_opens_for_undo_and_closes_again(harness: CheckpointHarness) -> None:
    harness.put("shut/file", "x", 0o444)
    before = harness.picture()
    harness.turn()

    def work() -> None:
        (harness.root / "shut" / "file").unlink()
        (harness.root / "shut").chmod(0o500)

    harness.command(work)
    harness.undo()
    assert harness.picture() == before


def _open_for_a_moment(folder: Path) -> tuple[object, object, object, object]:
    harness = CheckpointHarness(folder)
    shut = harness.put("shut/file", "x").parent
    shut.chmod(0o500)
    before = harness.picture()
    harness.turn()

    def work() -> None:
        shut.chmod(0o700)
        (shut / "file").rename(shut / "other")
        shut.chmod(0o500)

    harness.command(work)
    after = harness.picture()
    undone = harness.undo()
    back = harness.picture()
    harness.redo(undone)
    harness.watch.close()
    return before, after, back, harness.picture()


def test_command_change_in_reopened_folder_goes_both_ways() -> None:
    with unprivileged.folder() as folder:
        before, after, back, forth = unprivileged.call(_open_for_a_moment, folder)
    assert (back, forth) == (before, after)
    assert before != after


def test_a_link_that_appeared_is_not_followed(harness: CheckpointHarness) -> None:
    outside = harness.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("agent")
    harness.put("folder/file", "one")
    harness.put("folder/gone", "one")
    harness.turn()
    harness.write("folder/file", "agent")
    harness.command((harness.root / "folder" / "gone").unlink)
    shutil.rmtree(harness.root / "folder")
    (harness.root / "folder").symlink_to(outside)
    undone = harness.undo()
    assert len(undone.conflicts) == 2
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"file": "agent"}


def test_command_showing_ignored_files_did_not_make_them(harness: CheckpointHarness) -> None:
    harness.put(".gitignore", "secret\nbuilt/\n")
    harness.put("secret", "mine")
    harness.put("built/file", "mine")
    before = harness.picture()
    harness.turn()
    changes = harness.command((harness.root / ".gitignore").unlink)
    assert names(harness, (*changes.made, *changes.changed, *changes.gone)) == [".gitignore"]
    harness.undo()
    assert harness.picture() == before


def test_covered_file_stays_covered_though_ignored_later(harness: CheckpointHarness) -> None:
    harness.put("a.log", "one")
    harness.put("logs/b", "one")
    harness.turn()
    harness.command(lambda: harness.put(".gitignore", "*.log\nlogs\n"))
    harness.turn()
    harness.command(lambda: (harness.put("a.log", "two"), shutil.rmtree(harness.root / "logs")))
    harness.undo(harness.turns)
    assert {name: content for name, (_, _, content) in harness.picture().items()} == {
        "a.log": b"one",
        "logs": b"",
        "logs/b": b"one",
    }


def test_only_the_named_paths_go_back(harness: CheckpointHarness) -> None:
    for name in ("a", "b/c"):
        harness.put(name, "one")
    harness.turn()
    for name in ("a", "b/c"):
        harness.write(name, "two")
    harness.undo(only=[harness.root / "b"])
    assert ((harness.root / "a").read_text(), (harness.root / "b" / "c").read_text()) == ("two", "one")
    harness.undo()
    assert (harness.root / "a").read_text() == "one"


def test_killed_command_is_settled_at_next_start(harness: CheckpointHarness) -> None:
    harness.put("a", "one")
    harness.turn()
    harness.watch.before_command("command")
    harness.put("a", "two")
    harness.put("new", "x")
    harness.watch = harness.new_watch()
    harness.watch.recover_killed()
    harness.undo()
    assert {name: content for name, (_, _, content) in harness.picture().items()} == {"a": b"one"}
    assert harness.store.running() == []


def test_killed_undo_is_finished_elsewhere_and_redone_whole(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        harness.put(name, "one")
    harness.turn()
    for name in "abc":
        harness.write(name, "two")
    calls = iter(range(10))

    def killed(*_: object, **__: object) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        from wolo.workspace.checkpoints import restore

        put = restore._Restoring._restore
        patch.setattr(restore._Restoring, "_restore", lambda self, step: (killed(), put(self, step)))
        with pytest.raises(KeyboardInterrupt):
            harness.undo()
    assert sorted(path.read_text() for path in harness.root.iterdir()) == ["one", "two", "two"]
    undone = harness.undo()
    assert {path.read_text() for path in harness.root.iterdir()} == {"one"}
    harness.redo(undone)
    assert {path.read_text() for path in harness.root.iterdir()} == {"two"}


@pytest.mark.parametrize("after", range(10))
def test_folders_are_restored_after_any_kill(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    for name, mode in (("gone/in", 0o750), ("shut/in", 0o500), ("link/in", 0o755)):
        harness.put(name, "one").parent.chmod(mode)
    before = harness.picture()
    harness.turn()

    def work() -> None:
        for name in ("gone", "link"):
            shutil.rmtree(harness.root / name)
        (harness.root / "shut").chmod(0o555)
        (harness.root / "link").symlink_to("shut")
        (harness.root / "new").mkdir()
        (harness.root / "new").chmod(0o511)

    harness.command(work)
    done = harness.picture()
    _kill(harness.undo, after, monkeypatch)
    undone = harness.undo()
    assert (harness.picture(), undone.conflicts) == (before, ())
    _kill(lambda: harness.redo(undone), after, monkeypatch)
    redone = harness.redo(undone)
    assert (harness.picture(), redone.conflicts) == (done, ())


def _kill(work: Callable[[], object], after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it."""
    left = iter(range(after))

    def attempt(self: restoring._Restoring, step: PathChange, do: Callable[[PathChange], None]) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        original(self, step, do)

    original = restoring._Restoring._attempt
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(restoring._Restoring, "_attempt", attempt)
        work()


def test_a_file_torn_in_place_is_whole_again(harness: CheckpointHarness) -> None:
    from wolo.workspace.files.atomic_write import PendingChange

    path = harness.put("a", b"old" * 1000)
    harness.turn()
    harness.watch.note("call", PendingChange(path, b"old" * 1000, 0o644, b"new!" * 900, in_place=True))
    torn = b"new!" * 500 + (b"old" * 1000)[2000:]
    path.write_bytes(torn)
    harness.undo()
    assert path.read_bytes() == b"old" * 1000
    path.write_bytes(torn + b"by somebody")
    assert len(harness.plan().conflicts) == 1


# Whatever happens

NAMES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "d/e/f", "g", "g/h"])
CONTENTS = st.sampled_from([b"", b"one\n", b"two\n", b"x" * 5000])
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444])
ACTS = st.one_of(
    st.tuples(st.just("write"), NAMES, CONTENTS),
    st.tuples(st.just("chmod"), NAMES, MODES),
    st.tuples(st.just("remove"), NAMES, st.none()),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("folder"), NAMES, st.none()),
    st.tuples(st.just("move"), NAMES, NAMES),
)
Act = tuple[str, str, object]


def act(root: Path, acts: list[Act]) -> None:
    """As a command does: what cannot be done is not done."""
    for kind, name, more in acts:
        path = root / name
        try:
            if kind == "write":
                assert isinstance(more, bytes)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(more)
            elif kind == "chmod":
                assert isinstance(more, int)
                if not path.is_symlink():
                    path.chmod(more | (0o700 if path.is_dir() else 0))
            elif kind == "remove":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            elif kind == "link":
                path.symlink_to(str(more))
            elif kind == "folder":
                path.mkdir(parents=True)
            else:
                path.rename(root / str(more))
        except OSError:
            continue


@given(
    first=st.lists(ACTS, max_size=8),
    turns=st.lists(
        st.lists(st.tuples(st.booleans(), st.lists(ACTS, min_size=1, max_size=5)), max_size=3), min_size=1, max_size=3
    ),
    back=st.integers(1, 3),
)
def test_any_tool_and_command_turns_go_both_ways(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Act],
    turns: list[list[tuple[bool, list[Act]]]],
    back: int,
) -> None:
    harness = CheckpointHarness(tmp_path_factory.mktemp("any"))
    act(harness.root, first)
    before = []
    for calls in turns:
        before.append(harness.picture())
        harness.turn()
        for by_tool, acts in calls:
            if not by_tool:
                harness.command(lambda acts=acts: act(harness.root, acts))
                continue
            for kind, name, content in acts:
                path = harness.root / name
                if kind == "write" and os.path.realpath(path) == str(path) and os.access(path, os.W_OK) == path.exists():
                    try:
                        harness.write(name, content)  # type: ignore[arg-type]  # a write has a content
                    except (OSError, Exception):
                        continue
    after = harness.picture()
    undone = harness.undo(harness.turns[-back:])
    assert undone.conflicts == ()
    assert harness.picture() == before[-back:][0]
    assert harness.redo(undone).conflicts == ()
    assert harness.picture() == after
    harness.watch.close()


def test_change_between_plan_and_undo_is_left_alone(harness: CheckpointHarness) -> None:
    for name in ("replaced", "removed", "linked"):
        harness.put(name, "one")
    harness.turn()
    harness.write("replaced", "agent")
    harness.write("made", "agent")
    harness.command(lambda: ((harness.root / "removed").unlink(), (harness.root / "linked").unlink()))
    found = harness.plan()
    for name in ("replaced", "made", "removed"):
        harness.put(name, "person")
    (harness.root / "linked").symlink_to("removed")
    outcome = restore(harness.store, found, harness.locks, session="session", turns=harness.turns)
    assert (outcome.restored, outcome.removed, len(outcome.conflicts)) == ((), (), 4)
    assert {path.read_text() for path in harness.root.iterdir()} == {"person"}


def test_file_with_two_names_returns_under_both(harness: CheckpointHarness) -> None:
    path = harness.put("a", "one")
    os.link(path, harness.root / "b")
    harness.turn()
    harness.command(lambda: path.write_text("two"))
    undone = harness.undo()
    for content in ("one", "two"):
        if content == "two":
            harness.redo(undone)
        assert {each.read_text() for each in harness.root.iterdir()} == {content}
        assert {(each.stat().st_nlink, each.stat().st_ino) for each in harness.root.iterdir()} == {(2, path.stat().st_ino)}


def test_two_files_of_one_content_stay_two(harness: CheckpointHarness) -> None:
    paths = [harness.put(name, "one") for name in ("a", "b")]
    harness.turn()
    harness.command(lambda: [path.write_text("two") for path in paths])
    harness.undo()
    assert {path.stat().st_nlink for path in paths} == {1}


@pytest.mark.parametrize("name", ["-rf", "new\nline", "ß 🙂", os.fsdecode(b"\xff\xfe"), "*", "a" * 250])
def test_names_of_any_kind(harness: CheckpointHarness, name: str) -> None:
    harness.put(f"{name}/{name}", "one")
    harness.put("other", "x")
    before = harness.picture()
    harness.turn()
    harness.command(lambda: shutil.rmtree(harness.root / name))
    harness.watch.close()
    harness.watch = harness.new_watch()
    harness.undo()
    assert harness.picture() == before
