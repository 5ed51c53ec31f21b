from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.workspace.files.atomic_write import FileChanged, PendingChange, content_hash
from wolo.workspace.files.multi_file_write import MultiFileError, Put, Removal, Step, apply_changes


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o7777) for path in files}


def test_files_are_made_replaced_and_removed(work: Path, tmp_path: Path) -> None:
    (work / "a").write_bytes(b"1")
    (work / "b").write_bytes(b"2")
    done = apply_changes(
        [Removal(work / "b", content_hash(b"2")), Put(work / "a", b"one", content_hash(b"1")), Put(work / "c/d", b"new", None)],
        locks=tmp_path / "locks",
    )
    assert {path.name: written is not None for path, written in done.items()} == {"a": True, "b": False, "d": True}
    assert {name: data for name, (data, _) in tree(work).items()} == {"a": b"one", "c/d": b"new"}


def test_one_unexpected_file_leaves_all_untouched(work: Path, tmp_path: Path) -> None:
    (work / "a").write_bytes(b"1")
    (work / "b").write_bytes(b"changed")
    before, told = tree(work), list[PendingChange]()
    steps: list[Step] = [Put(work / "a", b"one", content_hash(b"1")), Put(work / "n/ew", b"x", None)]
    for last in (Put(work / "b", b"two", content_hash(b"2")), Removal(work / "gone/x", "0"), Put(work / "b", b"new", None)):
        with pytest.raises(FileChanged):
            apply_changes([*steps, last], locks=tmp_path / "locks", note=told.append)
    assert tree(work) == before
    assert told == []
    assert not (work / "n").exists()


@given(data=st.data())
def test_whenever_it_fails_everything_is_as_before(tmp_path: Path, data: st.DataObject) -> None:
    """Any mixture of changes, failing at any of them: contents, modes, folders and links are what they were."""
    work = tmp_path / os.urandom(4).hex()
    work.mkdir()
    kinds = data.draw(st.lists(st.sampled_from(["new", "deep", "change", "remove", "move"]), min_size=1, max_size=6))
    steps: list[Step] = []
    for number, kind in enumerate(kinds):
        path = work / f"f{number}"
        if kind in ("change", "remove", "move"):
            path.write_bytes(f"old {number}".encode())
            path.chmod(data.draw(st.sampled_from([0o600, 0o644, 0o755, 0o4711])))
        was = content_hash(f"old {number}".encode())
        if kind == "new":
            steps.append(Put(path, b"new", None))
        elif kind == "deep":
            steps.append(Put(work / f"d{number}/e/f", b"new", None))
        elif kind == "change":
            steps.append(Put(path, b"changed", was))
        elif kind == "remove":
            steps.append(Removal(path, was))
        else:
            steps += [Put(work / f"moved{number}", b"moved", None, like=path), Removal(path, was)]
    before, folders = tree(work), sorted(path for path in work.rglob("*") if path.is_dir())
    fails_at = data.draw(st.integers(1, len(steps)))
    told: list[PendingChange] = []

    def note(change: PendingChange) -> None:
        told.append(change)
        if len(told) == fails_at:
            raise OSError(28, "No space left on device")

    with pytest.raises(MultiFileError) as failed:
        apply_changes(steps, locks=tmp_path / "locks", note=note)
    assert tree(work) == before
    assert sorted(path for path in work.rglob("*") if path.is_dir()) == folders
    assert failed.value.not_reverted == ()
    assert len(failed.value.put_back) == fails_at - 1
    assert list((tmp_path / "locks").iterdir()) == []
    apply_changes(steps, locks=tmp_path / "locks")
    assert {name for name, _ in tree(work).items()} == {
        str(step.path.relative_to(work)) for step in steps if isinstance(step, Put)
    }
