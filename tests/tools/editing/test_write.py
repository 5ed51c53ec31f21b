from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
from pathlib import Path

import pytest

from tests import unprivileged
from tests.tools.desk import Desk
from wolo.errors import ToolError
from wolo.guard.intents import WriteIntent
from wolo.tools.editing.write import Write, WriteArgs
from wolo.tools.tool_values import Diff
from wolo.workspace.files.atomic_write import content_hash


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_file_is_created_with_its_folders(desk: Desk) -> None:
    result = await desk.call("write", path="src/calc.py", content="a = 1\nb = 2\n")
    path = desk.root / "src/calc.py"
    assert path.read_text() == "a = 1\nb = 2\n"
    assert result.text == "Created src/calc.py (2 lines)."
    assert result.view == Diff(path="src/calc.py", text="@@ -0,0 +1,2 @@\n+a = 1\n+b = 2", added=2, removed=0, created=True)
    assert result.files_changed == (str(path),)


async def test_what_was_just_written_may_be_written_again(desk: Desk) -> None:
    await desk.call("write", path="a", content="1\n")
    result = await desk.call("write", path="a", content="2\n")
    assert result.text == "Replaced a (+1 -1)."


async def test_a_file_not_read_before_is_not_replaced(desk: Desk) -> None:
    path = desk.put("a", "precious\n")
    with pytest.raises(ToolError, match="you have not read it; nothing was written"):
        await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "precious\n"
    await desk.call("read", path="a")
    await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_a_file_changed_since_it_was_read_is_not_replaced(desk: Desk) -> None:
    path = desk.put("a", "one\n")
    await desk.call("read", path="a")
    path.write_text("one, by a person\n")
    with pytest.raises(ToolError, match="has changed since you last read it"):
        await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "one, by a person\n"


async def test_a_file_deleted_since_it_was_read_comes_back_only_on_purpose(desk: Desk) -> None:
    path = desk.put("a", "one\n")
    await desk.call("read", path="a")
    path.unlink()
    with pytest.raises(ToolError, match="was deleted since you last saw it; nothing was written"):
        await desk.call("write", path="a", content="new\n")
    assert not path.exists()
    await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_a_touched_file_is_replaced(desk: Desk) -> None:
    path = desk.put("a", "one\n")
    await desk.call("read", path="a")
    os.utime(path, (1, 1))
    await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_an_empty_file_has_nothing_to_lose(desk: Desk) -> None:
    path = desk.put("a", "")
    await desk.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_the_same_content_is_not_written(desk: Desk) -> None:
    path = desk.put("a", "same\n")
    inode = path.stat().st_ino
    result = await desk.call("write", path="a", content="same\n")
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
async def test_encoding_mark_and_line_endings_stay(desk: Desk, before: bytes, content: str, after: bytes) -> None:
    path = desk.put("a", before)
    await desk.call("read", path="a")
    await desk.call("write", path="a", content=content)
    assert path.read_bytes() == after


async def test_a_character_that_the_file_cannot_hold_changes_nothing(desk: Desk) -> None:
    path = desk.put("a", "é à\n".encode("latin-1"))
    await desk.call("read", path="a")
    with pytest.raises(ToolError, match="Latin-1, which cannot hold `→`"):
        await desk.call("write", path="a", content="→\n")
    with pytest.raises(ToolError, match=r"U\+D800"):
        await desk.call("write", path="b", content="\ud800")
    assert path.read_bytes() == "é à\n".encode("latin-1")
    assert sorted(each.name for each in desk.root.iterdir()) == ["a"]


async def test_a_link_stays_a_link_and_its_target_is_written(desk: Desk) -> None:
    desk.put("real/a", "one\n")
    (desk.root / "link").symlink_to("real/a")
    await desk.call("read", path="link")
    await desk.call("write", path="link", content="two\n")
    assert (desk.root / "link").is_symlink()
    assert (desk.root / "real/a").read_text() == "two\n"


async def test_other_names_of_a_file_are_told(desk: Desk) -> None:
    (desk.root / "other").hardlink_to(desk.put("a", "one\n"))
    await desk.call("read", path="a")
    assert "2 names" in (await desk.call("write", path="a", content="two\n")).text
    assert (desk.root / "other").read_text() == "one\n"


def intents_in_closed_folder(folder: Path) -> list[tuple[int, bool]]:
    desk = Desk(folder)
    desk.put("closed/a", "one\n").parent.chmod(0o555)
    (desk.root / "twice").hardlink_to(desk.put("b", "two\n"))
    (desk.root / "sub/folder").mkdir(parents=True)
    told = []
    for name in ("closed/a", "closed/new", "b", "new", "sub"):
        (intent,) = Write().intents(WriteArgs(path=name, content=""), desk.services)
        assert isinstance(intent, WriteIntent)
        told.append((intent.links, intent.in_place))
    return told


def test_the_guard_hears_of_a_file_that_cannot_be_replaced_like_another() -> None:
    with unprivileged.folder() as folder:
        told = unprivileged.call(intents_in_closed_folder, folder)
    assert told == [(1, True), (1, False), (2, False), (1, False), (1, False)]


@pytest.mark.parametrize("given", ["new/", "folder", ".", "/", "file/below", "n" * 300, "d/" * 2500 + "x"])
async def test_a_path_that_cannot_be_a_file_is_refused(desk: Desk, given: str) -> None:
    desk.put("file", "x")
    (desk.root / "folder").mkdir()
    with pytest.raises(ToolError):
        await desk.call("write", path=given, content="x")
    assert sorted(each.name for each in desk.root.iterdir()) == ["file", "folder"]


async def test_two_hundred_folders_deep_is_fine(desk: Desk) -> None:
    await desk.call("write", path="d/" * 200 + "x", content="deep")
    assert (desk.root / ("d/" * 200 + "x")).read_text() == "deep"


async def test_a_binary_file_is_not_replaced_by_text(desk: Desk) -> None:
    desk.put("a", bytes(100))
    with pytest.raises(ToolError, match="not text"):
        await desk.call("write", path="a", content="x")


async def test_an_interrupt_waits_for_the_file_to_be_whole(desk: Desk) -> None:
    """The write is held up by its lock, cancelled, then released: it must be over when the call has ended."""
    locks = desk.folder / "locks"
    locks.mkdir(exist_ok=True)
    lock = locks / f"{content_hash(os.fsencode(desk.root / 'a'))[:32]}.lock"
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    task = asyncio.create_task(desk.call("write", path="a", content="x"))
    await asyncio.sleep(0.02)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, os.close, handle)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (desk.root / "a").read_text() == "x"
    assert sorted(each.name for each in desk.root.iterdir()) == ["a"]


def test_the_intent_names_the_file_that_would_be_written(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (desk.root / "link").symlink_to(tmp_path / "outside")
    intents = Write().intents(WriteArgs(path="link/new", content=""), desk.services)
    assert intents == (WriteIntent(tmp_path / "outside/new", "link/new", inside=False),)
