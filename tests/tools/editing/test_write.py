from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import threading
from pathlib import Path

import pytest

from tests import unprivileged
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.guard.intents import WriteIntent
from wolo.tools.editing.write import Write, WriteArgs
from wolo.tools.tool_values import Diff, TextChange
from wolo.workspace.files import file_locks
from wolo.workspace.files.atomic_write import content_hash


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_a_file_is_created_with_its_folders(harness: ToolHarness) -> None:
    result = await harness.call("write", path="src/calc.py", content="a = 1\nb = 2\n")
    path = harness.root / "src/calc.py"
    assert path.read_text() == "a = 1\nb = 2\n"
    assert result.text == "Created src/calc.py (2 lines)."
    assert result.view == Diff(
        path="src/calc.py",
        text="@@ -0,0 +1,2 @@\n+a = 1\n+b = 2",
        added=2,
        removed=0,
        created=True,
        changes=(TextChange(str(path), None, "a = 1\nb = 2\n", 1),),
    )
    assert result.files_changed == (str(path),)


async def test_just_written_file_may_be_rewritten(harness: ToolHarness) -> None:
    await harness.call("write", path="a", content="1\n")
    result = await harness.call("write", path="a", content="2\n")
    assert result.text == "Replaced a (+1 -1)."


async def test_a_file_not_read_before_is_not_replaced(harness: ToolHarness) -> None:
    path = harness.put("a", "precious\n")
    with pytest.raises(ToolError, match="you have not read it; nothing was written"):
        await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "precious\n"
    await harness.call("read", path="a")
    await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_file_changed_since_reading_is_not_replaced(harness: ToolHarness) -> None:
    path = harness.put("a", "one\n")
    await harness.call("read", path="a")
    path.write_text("one, by a person\n")
    with pytest.raises(ToolError, match="has changed since you last read it"):
        await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "one, by a person\n"


async def test_file_deleted_since_reading_returns_deliberately_only(harness: ToolHarness) -> None:
    path = harness.put("a", "one\n")
    await harness.call("read", path="a")
    path.unlink()
    with pytest.raises(ToolError, match="was deleted since you last saw it; nothing was written"):
        await harness.call("write", path="a", content="new\n")
    assert not path.exists()
    await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_a_touched_file_is_replaced(harness: ToolHarness) -> None:
    path = harness.put("a", "one\n")
    await harness.call("read", path="a")
    os.utime(path, (1, 1))
    await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_an_empty_file_has_nothing_to_lose(harness: ToolHarness) -> None:
    path = harness.put("a", "")
    await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_the_same_content_is_not_written(harness: ToolHarness) -> None:
    path = harness.put("a", "same\n")
    inode = path.stat().st_ino
    result = await harness.call("write", path="a", content="same\n")
    assert "exactly this content already" in result.text
    assert result.files_changed == ()
    assert path.stat().st_ino == inode


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"a\r\nb\nc\n", "a\nb\nNEW\nc\n", b"a\r\nb\nNEW\nc\n"),
        (b"a\r\nb\r\n", "a\nb\n", b"a\nb\n"),  # only the endings differ: that is what was asked for
        (codecs.BOM_UTF8 + b"a\n", "x\n", codecs.BOM_UTF8 + b"x\n"),
        (codecs.BOM_UTF8 + b"a\n", "\ufeffx\n", codecs.BOM_UTF8 + b"x\n"),
        ("é\n".encode("utf-16"), "ü\n", "ü\n".encode("utf-16")),
        ("é à\n".encode("latin-1"), "ü\n", "ü\n".encode("latin-1")),
        (b"a\n", "no newline at the end", b"no newline at the end"),
        (b"a\n", "", b""),
    ],
)
async def test_encoding_mark_and_line_endings_stay(harness: ToolHarness, before: bytes, content: str, after: bytes) -> None:
    path = harness.put("a", before)
    await harness.call("read", path="a")
    await harness.call("write", path="a", content=content)
    assert path.read_bytes() == after


async def test_character_unknown_to_the_file_changes_nothing(harness: ToolHarness) -> None:
    path = harness.put("a", "é à\n".encode("latin-1"))
    await harness.call("read", path="a")
    with pytest.raises(ToolError, match="Latin-1, which cannot hold `→`"):
        await harness.call("write", path="a", content="→\n")
    with pytest.raises(ToolError, match=r"U\+D800"):
        await harness.call("write", path="b", content="\ud800")
    assert path.read_bytes() == "é à\n".encode("latin-1")
    assert sorted(each.name for each in harness.root.iterdir()) == ["a"]


async def test_link_stays_and_its_target_is_written(harness: ToolHarness) -> None:
    harness.put("real/a", "one\n")
    (harness.root / "link").symlink_to("real/a")
    await harness.call("read", path="link")
    await harness.call("write", path="link", content="two\n")
    assert (harness.root / "link").is_symlink()
    assert (harness.root / "real/a").read_text() == "two\n"


async def test_other_names_of_a_file_are_told(harness: ToolHarness) -> None:
    (harness.root / "other").hardlink_to(harness.put("a", "one\n"))
    await harness.call("read", path="a")
    assert "2 names" in (await harness.call("write", path="a", content="two\n")).text
    assert (harness.root / "other").read_text() == "one\n"


def intents_in_closed_folder(folder: Path) -> list[tuple[int, bool]]:
    harness = ToolHarness(folder)
    harness.put("closed/a", "one\n").parent.chmod(0o555)
    (harness.root / "twice").hardlink_to(harness.put("b", "two\n"))
    (harness.root / "sub/folder").mkdir(parents=True)
    told = []
    for name in ("closed/a", "closed/new", "b", "new", "sub"):
        (intent,) = Write().intents(WriteArgs(path=name, content=""), harness.services)
        assert isinstance(intent, WriteIntent)
        told.append((intent.links, intent.in_place))
    return told


def test_guard_is_told_of_an_unreplaceable_file() -> None:
    with unprivileged.folder() as folder:
        told = unprivileged.call(intents_in_closed_folder, folder)
    assert told == [(1, True), (1, False), (2, False), (1, False), (1, False)]


@pytest.mark.parametrize("given", ["new/", "folder", ".", "/", "file/below", "n" * 300, "d/" * 2500 + "x"])
async def test_impossible_path_is_refused(harness: ToolHarness, given: str) -> None:
    harness.put("file", "x")
    (harness.root / "folder").mkdir()
    with pytest.raises(ToolError):
        await harness.call("write", path=given, content="x")
    assert sorted(each.name for each in harness.root.iterdir()) == ["file", "folder"]


async def test_two_hundred_folders_deep_is_fine(harness: ToolHarness) -> None:
    await harness.call("write", path="d/" * 200 + "x", content="deep")
    assert (harness.root / ("d/" * 200 + "x")).read_text() == "deep"


async def test_a_binary_file_is_not_replaced_by_text(harness: ToolHarness) -> None:
    harness.put("a", bytes(100))
    with pytest.raises(ToolError, match="not text"):
        await harness.call("write", path="a", content="x")


async def test_interrupt_waits_for_the_whole_file(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write is held up by its lock, cancelled, then released: it must be over when the call has ended."""
    locks = harness.folder / "locks"
    locks.mkdir(exist_ok=True)
    lock = locks / f"{content_hash(os.fsencode(harness.root / 'a'))[:32]}.lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    tried, try_lock = threading.Event(), file_locks._try_lock

    def try_to_lock(handle: int) -> bool:
        tried.set()
        return try_lock(handle)

    monkeypatch.setattr(file_locks, "_try_lock", try_to_lock)
    task = asyncio.create_task(harness.call("write", path="a", content="x"))
    await asyncio.to_thread(tried.wait)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, os.close, handle)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (harness.root / "a").read_text() == "x"
    assert sorted(each.name for each in harness.root.iterdir()) == ["a"]


def test_intent_names_the_file_to_write(harness: ToolHarness, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (harness.root / "link").symlink_to(tmp_path / "outside")
    intents = Write().intents(WriteArgs(path="link/new", content=""), harness.services)
    assert intents == (WriteIntent(tmp_path / "outside/new", "link/new", inside=False),)
