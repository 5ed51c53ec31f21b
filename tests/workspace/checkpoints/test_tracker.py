"""Changes that the tracker of a workspace sees, those it ignores, and its storage."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from pathlib import Path

import pytest

from tests import unprivileged
from tests.workspace.checkpoints.harness import CheckpointHarness, names
from wolo.errors import ToolError
from wolo.workspace.checkpoints import attribution, scan, tracker
from wolo.workspace.checkpoints.path_state import ChangedPaths
from wolo.workspace.checkpoints.restore import UNCLEAR
from wolo.workspace.files.atomic_write import PendingChange


def settle() -> None:
    """Until the clock of the file system has moved on."""
    time.sleep(scan.RACY_NS / 1e9 + 0.02)


def test_kept_files_are_private(harness: CheckpointHarness) -> None:
    before = os.umask(0)
    try:
        harness.turn()
        harness.write("a", "x" * 1000)
        harness.command(lambda: harness.put("b", "x"))
    finally:
        os.umask(before)
    kept = list((harness.folder / "wolo").rglob("*"))
    assert {path.name.partition("-")[0] for path in kept} >= {"checkpoints", "work"}
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_full_disk_stops_the_change_with_sentence(harness: CheckpointHarness) -> None:
    path = harness.put("a", os.urandom(200_000))
    harness.turn()
    harness.store._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(ToolError, match="disk is full"):
        harness.write("a", os.urandom(200_000))
    with pytest.raises(ToolError, match="disk is full"):
        harness.watch.before_command("command")
    assert path.stat().st_size == 200_000
    harness.store._connection.execute("PRAGMA max_page_count = 100000")
    harness.command(path.unlink)
    harness.undo()
    assert path.exists()


def test_damaged_file_is_set_aside_and_undo_works(harness: CheckpointHarness) -> None:
    harness.turn()
    harness.write("a", "x")
    harness.watch.close()
    database = next((harness.folder / "wolo" / "checkpoints").glob("*.db"))
    database.write_bytes(b"noise" * 1000)
    harness.watch = harness.new_watch()
    harness.turn()
    harness.write("b", "x")
    harness.undo()
    assert set(harness.picture()) == {"a"}


def test_damage_that_shows_later_is_set_aside_too(harness: CheckpointHarness) -> None:
    harness.turn()
    for number in range(30):
        harness.write(f"a{number}", os.urandom(3000))
    harness.watch.close()
    database = next((harness.folder / "wolo" / "checkpoints").glob("*.db"))
    content = bytearray(database.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    database.write_bytes(content)
    harness.watch = harness.new_watch()
    harness.watch.recover_killed()
    harness.turn()
    harness.write("b", "x")
    assert any("moved aside" in text for text in harness.watch.take_notices())
    harness.undo()
    assert not (harness.root / "b").exists()


def test_impossible_keeping_is_reported_once_and_wolo_works(harness: CheckpointHarness) -> None:
    (harness.folder / "wolo").write_text("in the way")
    harness.turn()
    harness.write("a", "x")
    harness.command(lambda: harness.put("b", "x"))
    assert len(harness.watch.take_notices()) == 1
    assert harness.watch.take_notices() == []


def test_a_second_look_reads_only_what_changed(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        harness.put(f"folder{number % 5}/file{number}", str(number))
    settle()
    harness.turn()
    harness.command(lambda: None)
    read: list[str] = []
    kept = scan.Scan._read
    monkeypatch.setattr(scan.Scan, "_read", lambda self, path: (read.append(path), kept(self, path))[1])
    harness.watch = harness.new_watch()
    changes = harness.command(lambda: harness.put("folder1/file1", "other"))
    assert names(harness, changes.changed) == ["folder1/file1"]
    assert set(names(harness, read)) == {"folder1/file1"}


def test_equal_sized_change_in_the_instant_is_seen(harness: CheckpointHarness) -> None:
    """Also where the time of the change is put back."""
    path = harness.put("a", "one")
    harness.turn()

    def work() -> None:
        status = path.stat()
        path.write_text("two")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert names(harness, harness.command(work).changed) == ["a"]
    settle()
    harness.command(lambda: None)
    assert names(harness, harness.command(work).changed) == []
    path.write_text("one")
    assert names(harness, harness.command(work).changed) == ["a"]


def test_touching_a_file_changes_nothing(harness: CheckpointHarness) -> None:
    path = harness.put("a", "one")
    harness.turn()
    assert harness.command(lambda: os.utime(path)) == ChangedPaths()
    assert harness.plan().steps == ()


def test_omitted_file_is_named(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_FILE_BYTES", 1000)
    large = harness.put("large", b"x" * 2000)
    harness.put(".gitignore", "built/\n")
    harness.put("built/x", "x")
    harness.put("nested/.git/config", "x")
    harness.put("nested/file", "one")
    os.mkfifo(harness.root / "pipe")
    harness.turn()
    harness.command(
        lambda: (harness.put("large", b"y" * 2000), harness.put("nested/file", "two"), harness.put("nested/.git/config", "y"))
    )
    left_out = harness.watch.not_covered()
    assert [Path(path).name for path in (*left_out.large, *left_out.special, *left_out.ignored)] == [
        "large",
        "pipe",
        "built",
    ]
    assert any("large" in text for text in harness.watch.take_notices())
    undone = harness.undo()
    assert names(harness, (each.path for each in undone.conflicts)) == ["large"]
    assert large.read_bytes() == b"y" * 2000
    assert (harness.root / "nested" / "file").read_text() == "one"
    assert (harness.root / "nested" / ".git" / "config").read_text() == "y"


def test_overlarge_workspace_keeps_tool_changes(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_ENTRIES", 20)
    for number in range(30):
        harness.put(f"file{number}", "one")
    harness.turn()
    assert harness.command(lambda: harness.put("file1", "two")) == ChangedPaths()
    harness.write("file2", "two")
    assert len(harness.watch.take_notices()) == 1
    harness.undo()
    assert ((harness.root / "file1").read_text(), (harness.root / "file2").read_text()) == ("two", "one")


def test_untimed_part_is_kept_by_the_next_look(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.put("a", "one")
    settle()
    harness.turn()
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_KEEP_S", -1.0)
        harness.command(lambda: None)
    assert harness.watch.not_covered().later == 1
    assert harness.command(lambda: None) == ChangedPaths()
    harness.turn()
    harness.command((harness.root / "a").unlink)
    harness.undo()
    assert (harness.root / "a").read_text() == "one"


def test_two_wolos_keep_their_changes_apart(harness: CheckpointHarness) -> None:
    other = harness.new_watch("other session")
    harness.turn()
    other.begin_turn("other turn")
    harness.command(lambda: None)
    other.before_command("other")
    harness.put("theirs", "x")
    assert names(harness, other.after_command("other").made) == ["theirs"]
    harness.command(lambda: harness.put("mine", "x"))
    harness.undo()
    assert set(harness.picture()) == {"theirs"}
    harness.undo(["other turn"])
    assert harness.picture() == {}
    other.close()


def test_changes_of_two_possible_wolos_are_undone_never(harness: CheckpointHarness) -> None:
    harness.put("shared", "one")
    other = harness.new_watch("other session")
    harness.turn()
    other.begin_turn("other turn")
    harness.watch.before_command("mine")
    harness.put("alone", "mine for sure")
    other.before_command("theirs")
    harness.put("shared", "two")
    harness.watch.after_command("mine")
    harness.put("at last", "theirs for sure")
    other.after_command("theirs")
    for turns, sure in ((harness.turns, ["alone"]), (["other turn"], ["at last"])):
        plan = harness.plan(turns)
        assert names(harness, (step.path for step in plan.steps)) == sure
        assert {conflict.reason for conflict in plan.conflicts} <= {UNCLEAR}
    harness.undo()
    harness.undo(["other turn"])
    assert {name: content for name, (_, _, content) in harness.picture().items()} == {"shared": b"two"}
    other.close()


def test_job_differs_from_person_between_turns(harness: CheckpointHarness) -> None:
    harness.put("mine", "one")
    harness.turn()
    harness.watch.before_command("job")
    harness.watch.after_command("job", runs_on=True)
    harness.put("by job", "x")
    harness.watch.end_turn(lambda: True)
    harness.put("mine", "two")
    harness.turn()
    harness.command(lambda: None)
    plan = harness.plan(harness.turns)
    assert names(harness, (step.path for step in plan.steps)) == ["by job"]
    assert names(harness, (conflict.path for conflict in plan.conflicts)) == ["mine"]
    harness.watch.end_turn(lambda: False)
    harness.put("mine", "three")
    harness.turn()
    harness.command(lambda: None)
    assert harness.plan().conflicts == ()


def test_own_files_are_left_out_anywhere(harness: CheckpointHarness) -> None:
    inside = harness.root / ".home"
    harness.watch = tracker.FileTracker(inside / "checkpoints", (harness.root,), "session", leave_out=[str(inside)])
    harness.turn()
    harness.command(lambda: (inside / "log").write_text("x"))
    assert harness.plan().steps == ()


def test_old_changes_go_and_needed_content_stays(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "MAX_STORE_BYTES", 1 << 20)
    monkeypatch.setattr(tracker, "_PRUNE_EVERY_S", 0.0)
    harness.put("a", os.urandom(300_000))
    harness.turn()
    for _ in range(10):
        harness.command(lambda: harness.put("a", os.urandom(300_000)))
    database = harness.store.path
    grown = database.stat().st_size
    harness.watch.close()
    assert database.stat().st_size <= 1 << 20 < grown
    harness.watch = harness.new_watch()
    harness.turn()
    before = harness.picture()
    harness.command((harness.root / "a").unlink)
    harness.undo()
    assert harness.picture() == before


def test_several_threads_may_note_at_once(harness: CheckpointHarness) -> None:
    harness.turn()
    workers = [threading.Thread(target=harness.write, args=(f"f{number}", "x")) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    harness.undo()
    assert harness.picture() == {}


def _shut_and_opened(folder: Path) -> tuple[set[str], list[str], set[str]]:
    harness = CheckpointHarness(folder)
    harness.put("shut/in", "x")
    harness.turn()
    harness.command((harness.root / "shut").chmod and (lambda: (harness.root / "shut").chmod(0)))
    seen = {str(Path(step.path).name) for step in harness.plan().steps}
    harness.command(lambda: None)
    undone = harness.undo()
    return seen, [each.reason for each in undone.conflicts], set(harness.picture())


def test_unreadable_file_is_not_taken_for_gone() -> None:
    with unprivileged.folder() as folder:
        seen, conflicts, there = unprivileged.call(_shut_and_opened, folder)
    assert (seen, conflicts, there) == ({"shut"}, [], {"shut", "shut/in"})


def test_new_file_has_its_mode_from_the_beginning(harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness.put("secret", "x", 0o600)
    harness.turn()
    harness.command((harness.root / "secret").unlink)
    seen: list[int] = []
    link = os.link
    monkeypatch.setattr(
        os, "link", lambda *a, **k: (seen.append(stat.S_IMODE(os.stat(a[0], dir_fd=k["src_dir_fd"]).st_mode)), link(*a, **k))
    )
    harness.undo()
    assert seen == [0o600]


def test_note_is_on_disk_before_the_change(harness: CheckpointHarness) -> None:
    path = harness.put("a", "one")
    harness.turn()
    harness.watch.note("call", PendingChange(path, b"one", 0o644, b"two"))
    with sqlite3.connect(harness.store.path) as other:
        assert other.execute("SELECT count(*) FROM changes").fetchone() == (1,)
    other.close()


def test_too_recent_time_is_not_trusted() -> None:
    now = time.time_ns()
    assert scan.trust((now, now, 0, 0, 0)) == ()
    old = now - 10 * scan.RACY_NS - 1
    assert scan.trust((old, old, 0, 0, 0)) == (old, old, 0, 0, 0)
    coarse = (now // 10**9 - 1) * 10**9
    assert scan.trust((coarse, coarse, 0, 0, 0)) == ()


def test_changes_before_settling_a_killed_command_are_unclear(
    harness: CheckpointHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.put("mine", "one")
    other = harness.new_watch("other session")
    other.begin_turn("other turn")
    other.before_command("other")
    monkeypatch.setattr(attribution, "is_dead_owner", lambda owner: True)
    harness.put("mine", "two")
    harness.turn()
    harness.command(lambda: None)
    assert harness.plan().steps == ()
    assert names(harness, (conflict.path for conflict in harness.plan(["other turn"]).conflicts)) == ["mine"]
    other.close()
