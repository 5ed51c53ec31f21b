"""What the watch over a workspace sees, what it costs nobody to leave out, and where it keeps things."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
from pathlib import Path

import pytest

from tests import unprivileged
from tests.workspace.checkpoints.bench import Bench, names
from wolo.errors import ToolError
from wolo.workspace.checkpoints import attribution, directory_cache, scan, tracker
from wolo.workspace.checkpoints.undo_plan import UNCLEAR
from wolo.workspace.files.atomic_write import FileChange


def settle() -> None:
    """Until the clock of the file system has moved on."""
    time.sleep(directory_cache.RACY_NS / 1e9 + 0.02)


def test_all_that_is_kept_is_for_its_owner_alone(bench: Bench) -> None:
    before = os.umask(0)
    try:
        bench.turn()
        bench.write("a", "x" * 1000)
        bench.command(lambda: bench.put("b", "x"))
    finally:
        os.umask(before)
    kept = list((bench.folder / "wolo").rglob("*"))
    assert {path.name.partition("-")[0] for path in kept} >= {"checkpoints", "work"}
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_disk_that_is_full_stops_the_change_with_a_sentence(bench: Bench) -> None:
    path = bench.put("a", os.urandom(200_000))
    bench.turn()
    bench.store._connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(ToolError, match="disk is full"):
        bench.write("a", os.urandom(200_000))
    with pytest.raises(ToolError, match="disk is full"):
        bench.watch.before_command("command")
    assert path.stat().st_size == 200_000
    bench.store._connection.execute("PRAGMA max_page_count = 100000")
    bench.command(path.unlink)
    bench.undo()
    assert path.exists()


def test_a_damaged_file_is_set_aside_and_undo_works_from_then_on(bench: Bench) -> None:
    bench.turn()
    bench.write("a", "x")
    bench.watch.close()
    database = next((bench.folder / "wolo" / "checkpoints").glob("*.db"))
    database.write_bytes(b"noise" * 1000)
    bench.watch = bench.new_watch()
    bench.turn()
    bench.write("b", "x")
    bench.undo()
    assert set(bench.picture()) == {"a"}


def test_damage_that_shows_later_is_set_aside_too(bench: Bench) -> None:
    bench.turn()
    for number in range(30):
        bench.write(f"a{number}", os.urandom(3000))
    bench.watch.close()
    database = next((bench.folder / "wolo" / "checkpoints").glob("*.db"))
    content = bytearray(database.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    database.write_bytes(content)
    bench.watch = bench.new_watch()
    bench.watch.recover_killed()
    bench.turn()
    bench.write("b", "x")
    assert any("moved aside" in text for text in bench.watch.take_notices())
    bench.undo()
    assert not (bench.root / "b").exists()


def test_where_nothing_can_be_kept_wolo_works_and_says_so_once(bench: Bench) -> None:
    (bench.folder / "wolo").write_text("in the way")
    bench.turn()
    bench.write("a", "x")
    bench.command(lambda: bench.put("b", "x"))
    assert len(bench.watch.take_notices()) == 1
    assert bench.watch.take_notices() == []


def test_a_second_look_reads_only_what_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        bench.put(f"folder{number % 5}/file{number}", str(number))
    settle()
    bench.turn()
    bench.command(lambda: None)
    read: list[str] = []
    kept = scan.Scan._read
    monkeypatch.setattr(scan.Scan, "_read", lambda self, path: (read.append(path), kept(self, path))[1])
    bench.watch = bench.new_watch()
    changes = bench.command(lambda: bench.put("folder1/file1", "other"))
    assert names(bench, changes.changed) == ["folder1/file1"]
    assert set(names(bench, read)) == {"folder1/file1"}


def test_a_change_in_the_same_instant_with_the_same_size_is_seen(bench: Bench) -> None:
    """Also where the time of the change is put back."""
    path = bench.put("a", "one")
    bench.turn()

    def work() -> None:
        status = path.stat()
        path.write_text("two")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert names(bench, bench.command(work).changed) == ["a"]
    settle()
    bench.command(lambda: None)
    assert names(bench, bench.command(work).changed) == []
    path.write_text("one")
    assert names(bench, bench.command(work).changed) == ["a"]


def test_touching_a_file_changes_nothing(bench: Bench) -> None:
    path = bench.put("a", "one")
    bench.turn()
    assert bench.command(lambda: os.utime(path)).paths == ()
    assert bench.plan().steps == ()


def test_what_is_left_out_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_FILE_BYTES", 1000)
    large = bench.put("large", b"x" * 2000)
    bench.put(".gitignore", "built/\n")
    bench.put("built/x", "x")
    bench.put("nested/.git/config", "x")
    bench.put("nested/file", "one")
    os.mkfifo(bench.root / "pipe")
    bench.turn()
    bench.command(
        lambda: (bench.put("large", b"y" * 2000), bench.put("nested/file", "two"), bench.put("nested/.git/config", "y"))
    )
    left_out = bench.watch.not_covered()
    assert [Path(path).name for path in (*left_out.large, *left_out.special, *left_out.ignored)] == [
        "large",
        "pipe",
        "built",
    ]
    assert any("large" in text for text in bench.watch.take_notices())
    undone = bench.undo()
    assert names(bench, (each.path for each in undone.conflicts)) == ["large"]
    assert large.read_bytes() == b"y" * 2000
    assert (bench.root / "nested" / "file").read_text() == "one"
    assert (bench.root / "nested" / ".git" / "config").read_text() == "y"


def test_a_workspace_that_is_too_large_keeps_what_tools_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_ENTRIES", 20)
    for number in range(30):
        bench.put(f"file{number}", "one")
    bench.turn()
    assert bench.command(lambda: bench.put("file1", "two")).paths == ()
    bench.write("file2", "two")
    assert len(bench.watch.take_notices()) == 1
    bench.undo()
    assert ((bench.root / "file1").read_text(), (bench.root / "file2").read_text()) == ("two", "one")


def test_what_there_was_no_time_for_is_kept_by_the_next_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put("a", "one")
    settle()
    bench.turn()
    with monkeypatch.context() as patch:
        patch.setattr(scan, "_KEEP_S", -1.0)
        bench.command(lambda: None)
    assert bench.watch.not_covered().later == 1
    assert bench.command(lambda: None).paths == ()
    bench.turn()
    bench.command((bench.root / "a").unlink)
    bench.undo()
    assert (bench.root / "a").read_text() == "one"


def test_two_wolos_in_one_workspace_keep_their_changes_apart(bench: Bench) -> None:
    other = bench.new_watch("other session")
    bench.turn()
    other.begin_turn("other turn")
    bench.command(lambda: None)
    other.before_command("other")
    bench.put("theirs", "x")
    assert names(bench, other.after_command("other").made) == ["theirs"]
    bench.command(lambda: bench.put("mine", "x"))
    bench.undo()
    assert set(bench.picture()) == {"theirs"}
    bench.undo(["other turn"])
    assert bench.picture() == {}
    other.close()


def test_what_either_of_two_wolos_may_have_done_is_undone_by_neither(bench: Bench) -> None:
    bench.put("shared", "one")
    other = bench.new_watch("other session")
    bench.turn()
    other.begin_turn("other turn")
    bench.watch.before_command("mine")
    bench.put("alone", "mine for sure")
    other.before_command("theirs")
    bench.put("shared", "two")
    bench.watch.after_command("mine")
    bench.put("at last", "theirs for sure")
    other.after_command("theirs")
    for turns, sure in ((bench.turns, ["alone"]), (["other turn"], ["at last"])):
        plan = bench.plan(turns)
        assert names(bench, (step.path for step in plan.steps)) == sure
        assert {conflict.reason for conflict in plan.conflicts} <= {UNCLEAR}
    bench.undo()
    bench.undo(["other turn"])
    assert {name: content for name, (_, _, content) in bench.picture().items()} == {"shared": b"two"}
    other.close()


def test_a_job_is_told_apart_from_the_person_between_turns(bench: Bench) -> None:
    bench.put("mine", "one")
    bench.turn()
    bench.watch.before_command("job")
    bench.watch.after_command("job", runs_on=True)
    bench.put("by job", "x")
    bench.watch.end_turn(lambda: True)
    bench.put("mine", "two")
    bench.turn()
    bench.command(lambda: None)
    plan = bench.plan(bench.turns)
    assert names(bench, (step.path for step in plan.steps)) == ["by job"]
    assert names(bench, (conflict.path for conflict in plan.conflicts)) == ["mine"]
    bench.watch.end_turn(lambda: False)
    bench.put("mine", "three")
    bench.turn()
    bench.command(lambda: None)
    assert bench.plan().conflicts == ()


def test_wolos_own_files_are_left_out_wherever_they_lie(bench: Bench) -> None:
    inside = bench.root / ".home"
    bench.watch = tracker.FileTracker(inside / "checkpoints", (bench.root,), "session", leave_out=[str(inside)])
    bench.turn()
    bench.command(lambda: (inside / "log").write_text("x"))
    assert bench.plan().steps == ()


def test_old_changes_and_contents_go_and_what_counts_stays(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker, "MAX_STORE_BYTES", 1 << 20)
    monkeypatch.setattr(tracker, "_PRUNE_EVERY_S", 0.0)
    bench.put("a", os.urandom(300_000))
    bench.turn()
    for _ in range(10):
        bench.command(lambda: bench.put("a", os.urandom(300_000)))
    database = bench.store.path
    grown = database.stat().st_size
    bench.watch.close()
    assert database.stat().st_size <= 1 << 20 < grown
    bench.watch = bench.new_watch()
    bench.turn()
    before = bench.picture()
    bench.command((bench.root / "a").unlink)
    bench.undo()
    assert bench.picture() == before


def test_several_threads_may_note_at_once(bench: Bench) -> None:
    bench.turn()
    workers = [threading.Thread(target=bench.write, args=(f"f{number}", "x")) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    bench.undo()
    assert bench.picture() == {}


def _shut_and_opened(folder: Path) -> tuple[set[str], list[str], set[str]]:
    bench = Bench(folder)
    bench.put("shut/in", "x")
    bench.turn()
    bench.command((bench.root / "shut").chmod and (lambda: (bench.root / "shut").chmod(0)))
    seen = {str(Path(step.path).name) for step in bench.plan().steps}
    bench.command(lambda: None)
    undone = bench.undo()
    return seen, [each.reason for each in undone.conflicts], set(bench.picture())


def test_what_may_not_be_read_any_more_is_not_taken_for_gone() -> None:
    with unprivileged.folder() as folder:
        seen, conflicts, there = unprivileged.call(_shut_and_opened, folder)
    assert (seen, conflicts, there) == ({"shut"}, [], {"shut", "shut/in"})


def test_the_mode_of_a_new_file_is_the_old_one_from_its_first_moment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put("secret", "x", 0o600)
    bench.turn()
    bench.command((bench.root / "secret").unlink)
    seen: list[int] = []
    link = os.link
    monkeypatch.setattr(
        os, "link", lambda *a, **k: (seen.append(stat.S_IMODE(os.stat(a[0], dir_fd=k["src_dir_fd"]).st_mode)), link(*a, **k))
    )
    bench.undo()
    assert seen == [0o600]


def test_a_note_is_on_the_disk_before_the_change(bench: Bench) -> None:
    path = bench.put("a", "one")
    bench.turn()
    bench.watch.note("call", FileChange(path, b"one", 0o644, b"two"))
    with sqlite3.connect(bench.store.path) as other:
        assert other.execute("SELECT count(*) FROM changes").fetchone() == (1,)
    other.close()


def test_a_time_so_young_that_the_clock_may_not_have_moved_is_not_trusted() -> None:
    now = time.time_ns()
    assert directory_cache.trusted((now, now, 0, 0, 0)) == ()
    old = now - 10 * directory_cache.RACY_NS - 1
    assert directory_cache.trusted((old, old, 0, 0, 0)) == (old, old, 0, 0, 0)
    coarse = (now // 10**9 - 1) * 10**9
    assert directory_cache.trusted((coarse, coarse, 0, 0, 0)) == ()


def test_what_changes_while_a_killed_wolos_command_was_not_made_up_for_is_unclear(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("mine", "one")
    other = bench.new_watch("other session")
    other.begin_turn("other turn")
    other.before_command("other")
    monkeypatch.setattr(attribution, "is_dead_owner", lambda owner: True)
    bench.put("mine", "two")
    bench.turn()
    bench.command(lambda: None)
    assert bench.plan().steps == ()
    assert names(bench, (conflict.path for conflict in bench.plan(["other turn"]).conflicts)) == ["mine"]
    other.close()
