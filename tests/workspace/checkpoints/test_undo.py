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
from tests.workspace.checkpoints.bench import Bench, names
from wolo.workspace.checkpoints import restore as restoring
from wolo.workspace.checkpoints.path_state import Change
from wolo.workspace.checkpoints.restore import restore


def test_an_edit_is_undone_and_redone_with_its_mode(bench: Bench) -> None:
    path = bench.put("a.sh", "one\n", 0o751)
    bench.turn()
    bench.write("a.sh", "two\n")
    undone = bench.undo()
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one\n", 0o751)
    assert (names(bench, undone.restored), undone.removed, undone.conflicts) == (["a.sh"], (), ())
    bench.redo(undone)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("two\n", 0o751)


def test_a_new_file_goes_with_the_folders_that_were_made_for_it(bench: Bench) -> None:
    bench.put("kept/old", "x")
    before = bench.picture()
    bench.turn()
    bench.write("kept/deep/er/new", "x")
    undone = bench.undo()
    assert bench.picture() == before
    assert names(bench, undone.removed) == ["kept/deep", "kept/deep/er", "kept/deep/er/new"]


def test_a_folder_in_which_somebody_put_something_stays(bench: Bench) -> None:
    bench.turn()
    bench.write("made/new", "x")
    bench.put("made/mine", "y")
    undone = bench.undo()
    assert set(bench.picture()) == {"made", "made/mine"}
    assert undone.conflicts == ()


def test_what_somebody_changed_since_is_a_conflict_and_untouched(bench: Bench) -> None:
    for name in "ABC":
        bench.put(name, "one")
    bench.turn()
    bench.write("A", "agent")
    bench.write("B", "agent")
    bench.put("B", "person")
    bench.put("C", "person")
    undone = bench.undo()
    assert {name: content for name, (_, _, content) in bench.picture().items()} == {"A": b"one", "B": b"person", "C": b"person"}
    assert names(bench, undone.restored) == ["A"]
    assert names(bench, (conflict.path for conflict in undone.conflicts)) == ["B"]


def test_what_a_person_did_between_two_turns_is_not_undone_with_them(bench: Bench) -> None:
    bench.put("A", "one")
    first = bench.turn()
    bench.write("A", "agent")
    bench.put("A", "person")
    second = bench.turn()
    bench.write("A", "agent again")
    assert names(bench, (conflict.path for conflict in bench.plan([first, second]).conflicts)) == ["A"]
    bench.undo([second])
    assert (bench.root / "A").read_text() == "person"


def test_several_turns_go_back_to_before_the_first(bench: Bench) -> None:
    bench.put("A", "0")
    for number in range(1, 4):
        bench.turn()
        bench.write("A", str(number))
    bench.undo(bench.turns[1:])
    assert (bench.root / "A").read_text() == "1"


def test_turns_go_back_one_by_one_too(bench: Bench) -> None:
    for number in range(3):
        bench.turn()
        bench.write("A", str(number))
    bench.undo(bench.turns[2:])
    bench.undo(bench.turns[1:2])
    assert (bench.root / "A").read_text() == "0"
    bench.undo(bench.turns[:1])
    assert bench.picture() == {}


def test_a_command_is_undone_whatever_it_did(bench: Bench) -> None:
    for name in ("gone", "changed", "moved", "mode", "typed"):
        bench.put(f"folder/{name}", f"{name}\n", 0o640)
    (bench.root / "link").symlink_to("folder/gone")
    (bench.root / "empty").mkdir(0o711)
    (bench.root / "becomes").mkdir()
    bench.put("becomes/inner", "x")
    before = bench.picture()
    bench.turn()

    def work() -> None:
        folder = bench.root / "folder"
        (folder / "gone").unlink()
        (folder / "changed").write_text("other\n")
        (folder / "moved").rename(bench.root / "elsewhere")
        (folder / "mode").chmod(0o400)
        (folder / "typed").unlink()
        (folder / "typed").mkdir()
        (folder / "typed" / "new").write_text("x")
        (bench.root / "link").unlink()
        (bench.root / "link").symlink_to("elsewhere")
        (bench.root / "empty").rmdir()
        shutil.rmtree(bench.root / "becomes")
        (bench.root / "becomes").write_text("a file now")
        (bench.root / "made").mkdir()
        (bench.root / "made" / "file").write_text("new")

    changes = bench.command(work)
    after = bench.picture()
    assert names(bench, changes.gone) == ["becomes/inner", "folder/gone", "folder/moved", "folder/typed"]
    undone = bench.undo()
    assert undone.conflicts == ()
    assert bench.picture() == before
    assert bench.redo(undone).conflicts == ()
    assert bench.picture() == after


def test_a_folder_that_may_not_be_written_is_opened_for_the_undo_and_closed_again(bench: Bench) -> None:
    bench.put("shut/file", "x", 0o444)
    before = bench.picture()
    bench.turn()

    def work() -> None:
        (bench.root / "shut" / "file").unlink()
        (bench.root / "shut").chmod(0o500)

    bench.command(work)
    bench.undo()
    assert bench.picture() == before


def _open_for_a_moment(folder: Path) -> tuple[object, object, object, object]:
    bench = Bench(folder)
    shut = bench.put("shut/file", "x").parent
    shut.chmod(0o500)
    before = bench.picture()
    bench.turn()

    def work() -> None:
        shut.chmod(0o700)
        (shut / "file").rename(shut / "other")
        shut.chmod(0o500)

    bench.command(work)
    after = bench.picture()
    undone = bench.undo()
    back = bench.picture()
    bench.redo(undone)
    bench.watch.close()
    return before, after, back, bench.picture()


def test_what_a_command_did_in_a_folder_that_it_opened_for_a_moment_goes_back_and_forth() -> None:
    with unprivileged.folder() as folder:
        before, after, back, forth = unprivileged.call(_open_for_a_moment, folder)
    assert (back, forth) == (before, after)
    assert before != after


def test_a_link_that_appeared_is_not_followed(bench: Bench) -> None:
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("agent")
    bench.put("folder/file", "one")
    bench.put("folder/gone", "one")
    bench.turn()
    bench.write("folder/file", "agent")
    bench.command((bench.root / "folder" / "gone").unlink)
    shutil.rmtree(bench.root / "folder")
    (bench.root / "folder").symlink_to(outside)
    undone = bench.undo()
    assert len(undone.conflicts) == 2
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"file": "agent"}


def test_a_command_that_shows_what_was_ignored_did_not_make_it(bench: Bench) -> None:
    bench.put(".gitignore", "secret\nbuilt/\n")
    bench.put("secret", "mine")
    bench.put("built/file", "mine")
    before = bench.picture()
    bench.turn()
    changes = bench.command((bench.root / ".gitignore").unlink)
    assert names(bench, changes.paths) == [".gitignore"]
    bench.undo()
    assert bench.picture() == before


def test_once_covered_is_covered_even_if_it_is_ignored_now(bench: Bench) -> None:
    bench.put("a.log", "one")
    bench.put("logs/b", "one")
    bench.turn()
    bench.command(lambda: bench.put(".gitignore", "*.log\nlogs\n"))
    bench.turn()
    bench.command(lambda: (bench.put("a.log", "two"), shutil.rmtree(bench.root / "logs")))
    bench.undo(bench.turns)
    assert {name: content for name, (_, _, content) in bench.picture().items()} == {
        "a.log": b"one",
        "logs": b"",
        "logs/b": b"one",
    }


def test_only_the_named_paths_go_back(bench: Bench) -> None:
    for name in ("a", "b/c"):
        bench.put(name, "one")
    bench.turn()
    for name in ("a", "b/c"):
        bench.write(name, "two")
    bench.undo(only=[bench.root / "b"])
    assert ((bench.root / "a").read_text(), (bench.root / "b" / "c").read_text()) == ("two", "one")
    bench.undo()
    assert (bench.root / "a").read_text() == "one"


def test_a_killed_command_is_made_up_for_at_the_next_start(bench: Bench) -> None:
    bench.put("a", "one")
    bench.turn()
    bench.watch.before_command("command")
    bench.put("a", "two")
    bench.put("new", "x")
    bench.watch = bench.new_watch()
    bench.watch.recover_killed()
    bench.undo()
    assert {name: content for name, (_, _, content) in bench.picture().items()} == {"a": b"one"}
    assert bench.store.running() == []


def test_an_undo_that_was_killed_is_finished_by_another_and_redone_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        bench.put(name, "one")
    bench.turn()
    for name in "abc":
        bench.write(name, "two")
    calls = iter(range(10))

    def killed(*_: object, **__: object) -> None:
        if next(calls) == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        from wolo.workspace.checkpoints import restore

        put = restore._Restoring._restore
        patch.setattr(restore._Restoring, "_restore", lambda self, step: (killed(), put(self, step)))
        with pytest.raises(KeyboardInterrupt):
            bench.undo()
    assert sorted(path.read_text() for path in bench.root.iterdir()) == ["one", "two", "two"]
    undone = bench.undo()
    assert {path.read_text() for path in bench.root.iterdir()} == {"one"}
    bench.redo(undone)
    assert {path.read_text() for path in bench.root.iterdir()} == {"two"}


@pytest.mark.parametrize("after", range(10))
def test_folders_are_as_they_were_wherever_an_undo_or_a_redo_was_killed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    for name, mode in (("gone/in", 0o750), ("shut/in", 0o500), ("link/in", 0o755)):
        bench.put(name, "one").parent.chmod(mode)
    before = bench.picture()
    bench.turn()

    def work() -> None:
        for name in ("gone", "link"):
            shutil.rmtree(bench.root / name)
        (bench.root / "shut").chmod(0o555)
        (bench.root / "link").symlink_to("shut")
        (bench.root / "new").mkdir()
        (bench.root / "new").chmod(0o511)

    bench.command(work)
    done = bench.picture()
    _kill(bench.undo, after, monkeypatch)
    undone = bench.undo()
    assert (bench.picture(), undone.conflicts) == (before, ())
    _kill(lambda: bench.redo(undone), after, monkeypatch)
    redone = bench.redo(undone)
    assert (bench.picture(), redone.conflicts) == (done, ())


def _kill(work: Callable[[], object], after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it."""
    left = iter(range(after))

    def attempt(self: restoring._Restoring, step: Change, do: Callable[[Change], None]) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        original(self, step, do)

    original = restoring._Restoring._attempt
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(restoring._Restoring, "_attempt", attempt)
        work()


def test_a_file_torn_in_place_is_whole_again(bench: Bench) -> None:
    from wolo.workspace.files.atomic_write import FileChange

    path = bench.put("a", b"old" * 1000)
    bench.turn()
    bench.watch.note("call", FileChange(path, b"old" * 1000, 0o644, b"new!" * 900, in_place=True))
    torn = b"new!" * 500 + (b"old" * 1000)[2000:]
    path.write_bytes(torn)
    bench.undo()
    assert path.read_bytes() == b"old" * 1000
    path.write_bytes(torn + b"by somebody")
    assert len(bench.plan().conflicts) == 1


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
def test_any_turns_of_tools_and_commands_go_back_and_forth(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[Act],
    turns: list[list[tuple[bool, list[Act]]]],
    back: int,
) -> None:
    bench = Bench(tmp_path_factory.mktemp("any"))
    act(bench.root, first)
    before = []
    for calls in turns:
        before.append(bench.picture())
        bench.turn()
        for by_tool, acts in calls:
            if not by_tool:
                bench.command(lambda acts=acts: act(bench.root, acts))
                continue
            for kind, name, content in acts:
                path = bench.root / name
                if kind == "write" and os.path.realpath(path) == str(path) and os.access(path, os.W_OK) == path.exists():
                    try:
                        bench.write(name, content)  # type: ignore[arg-type]  # a write has a content
                    except (OSError, Exception):
                        continue
    after = bench.picture()
    undone = bench.undo(bench.turns[-back:])
    assert undone.conflicts == ()
    assert bench.picture() == before[-back:][0]
    assert bench.redo(undone).conflicts == ()
    assert bench.picture() == after
    bench.watch.close()


def test_what_changes_between_plan_and_undo_is_left_alone(bench: Bench) -> None:
    for name in ("replaced", "removed", "linked"):
        bench.put(name, "one")
    bench.turn()
    bench.write("replaced", "agent")
    bench.write("made", "agent")
    bench.command(lambda: ((bench.root / "removed").unlink(), (bench.root / "linked").unlink()))
    found = bench.plan()
    for name in ("replaced", "made", "removed"):
        bench.put(name, "person")
    (bench.root / "linked").symlink_to("removed")
    outcome = restore(bench.store, found, bench.locks, session="session", turns=bench.turns)
    assert (outcome.restored, outcome.removed, len(outcome.conflicts)) == ((), (), 4)
    assert {path.read_text() for path in bench.root.iterdir()} == {"person"}


def test_a_file_with_two_names_goes_back_under_both(bench: Bench) -> None:
    path = bench.put("a", "one")
    os.link(path, bench.root / "b")
    bench.turn()
    bench.command(lambda: path.write_text("two"))
    undone = bench.undo()
    for content in ("one", "two"):
        if content == "two":
            bench.redo(undone)
        assert {each.read_text() for each in bench.root.iterdir()} == {content}
        assert {(each.stat().st_nlink, each.stat().st_ino) for each in bench.root.iterdir()} == {(2, path.stat().st_ino)}


def test_two_files_of_one_content_stay_two(bench: Bench) -> None:
    paths = [bench.put(name, "one") for name in ("a", "b")]
    bench.turn()
    bench.command(lambda: [path.write_text("two") for path in paths])
    bench.undo()
    assert {path.stat().st_nlink for path in paths} == {1}


@pytest.mark.parametrize("name", ["-rf", "new\nline", "ß 🙂", os.fsdecode(b"\xff\xfe"), "*", "a" * 250])
def test_names_of_any_kind(bench: Bench, name: str) -> None:
    bench.put(f"{name}/{name}", "one")
    bench.put("other", "x")
    before = bench.picture()
    bench.turn()
    bench.command(lambda: shutil.rmtree(bench.root / name))
    bench.watch.close()
    bench.watch = bench.new_watch()
    bench.undo()
    assert bench.picture() == before
