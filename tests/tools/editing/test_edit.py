from __future__ import annotations

import asyncio
import codecs
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import unprivileged
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent, WriteIntent
from wolo.tools.editing.edit import Edit, EditArgs
from wolo.tools.tool_values import Diff, TextChange


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_passage_is_replaced_and_its_place_reported(harness: ToolHarness) -> None:
    path = harness.put("calc.py", "def add(a, b):\n    return a - b\n")
    result = await harness.call("edit", path="calc.py", old="a - b", new="a + b")
    assert path.read_text() == "def add(a, b):\n    return a + b\n"
    assert result.text == "Edited calc.py at line 2 (+1 -1)."
    assert result.view == Diff(
        path="calc.py",
        text="@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b",
        added=1,
        removed=1,
        changes=(TextChange(str(path), "def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n", 2),),
    )
    assert result.files_changed == (str(path),)


ENCODED = {
    "utf-8": ("é → 你 ", b""),
    "utf-8-sig": ("é → 你 ", b""),
    "utf-16": ("é → 你 ", b""),
    "utf-16-le": ("plain letters only here ", b""),
    "latin-1": ("déjà vu, où ", b""),
    "cp1252": ("“it’s” – €5 ", b""),
    "gbk": ("你好，世界 ", b""),
    "cp932": ("こんにちは、表示 ", b""),
    "ascii": ("lone: ", b"\xe9"),
    "utf-8 with a stray byte": ("é → 你 ", b"\xff\xe9"),
}


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", sorted(ENCODED))
async def test_word_edit_keeps_other_bytes_in_any_encoding(harness: ToolHarness, name: str, ending: str) -> None:
    codec = name.split(" ")[0]
    unit = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}.get(codec, codec)
    letters, stray = ENCODED[name]
    head = (f"{letters}{ending}" * 3 + "x = ").encode(codec) + stray
    tail = stray + f" {letters}{ending}no final newline".encode(unit)
    path = harness.put("file", head + "hello".encode(unit) + tail)
    await harness.call("edit", path="file", old="hello", new="goodbye")
    assert path.read_bytes() == head + "goodbye".encode(unit) + tail


@given(
    head=st.binary(max_size=60),
    tail=st.binary(max_size=60),
    new=st.text("abc é\n", min_size=1, max_size=12).filter(lambda t: t != "MARK"),
)
async def test_in_noise_an_edit_is_exact_or_refused(harness: ToolHarness, head: bytes, tail: bytes, new: str) -> None:
    before = head + b"\nMARK\n" + tail
    path = harness.put("noise", before)
    try:
        await harness.call("edit", path="noise", old="MARK", new=new)
    except ToolError:
        assert path.read_bytes() == before
        return
    after = path.read_bytes()
    candidates = [place for place in range(len(before)) if before.startswith(b"MARK", place)]
    assert any(after.startswith(before[:place]) and after.endswith(before[place + 4 :]) for place in candidates)


async def test_mark_mode_and_final_newline_stay(harness: ToolHarness) -> None:
    path = harness.put("run.sh", codecs.BOM_UTF8 + b"echo one\r\necho two")
    path.chmod(0o755)
    await harness.call("edit", path="run.sh", old="echo one\necho", new="echo 1\necho 1.5\necho")
    assert path.read_bytes() == codecs.BOM_UTF8 + b"echo 1\r\necho 1.5\r\necho two"
    assert path.stat().st_mode & 0o777 == 0o755


async def test_the_rule_that_matched_is_told(harness: ToolHarness) -> None:
    harness.put("a", "one  \r\ntwo\r\n")
    result = await harness.call("edit", path="a", old="one\ntwo", new="1\n2")
    assert result.text == "Edited a at line 1 (+2 -2). Matched despite different trailing spaces."


async def test_two_matches_are_refused_with_their_lines(harness: ToolHarness) -> None:
    path = harness.put("a", "x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ToolError, match=r"occurs 2 times in `a`, at lines 1, 3; nothing was changed"):
        await harness.call("edit", path="a", old="x = 1", new="x = 2")
    assert path.read_text() == "x = 1\ny = 2\nx = 1\n"
    result = await harness.call("edit", path="a", old="x = 1", new="x = 2", replace_all=True)
    assert path.read_text() == "x = 2\ny = 2\nx = 2\n"
    assert result.text == "Edited a at lines 1, 3 (+2 -2)."


async def test_replace_all_takes_what_does_not_share_characters(harness: ToolHarness) -> None:
    path = harness.put("a", "aaaaa")
    await harness.call("edit", path="a", old="aa", new="b", replace_all=True)
    assert path.read_text() == "bba"


async def test_several_edits_are_made_together_or_never(harness: ToolHarness) -> None:
    path = harness.put("a", "one\ntwo\nthree\n")
    with pytest.raises(ToolError, match=r"edits\[2\]: `old` was not found"):
        await harness.call("edit", path="a", edits=[{"old": "one", "new": "1"}, {"old": "four", "new": "4"}])
    assert path.read_text() == "one\ntwo\nthree\n"
    await harness.call("edit", path="a", edits=[{"old": "three", "new": "3"}, {"old": "one", "new": "three"}])
    assert path.read_text() == "three\ntwo\n3\n"


async def test_overlapping_edits_are_refused(harness: ToolHarness) -> None:
    path = harness.put("a", "one two three\n")
    with pytest.raises(ToolError, match="overlap at line 1"):
        await harness.call("edit", path="a", edits=[{"old": "one two", "new": "x"}, {"old": "two three", "new": "y"}])
    with pytest.raises(ToolError, match="overlap"):
        await harness.call("edit", path="a", edits=[{"old": "one", "new": "x"}, {"old": "one", "new": "y"}])
    assert path.read_text() == "one two three\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"old": "", "new": "x"}, "`old` is empty"),
        ({"old": "one", "new": "one"}, "the same"),
        ({"old": "one"}, "`new` is missing"),
        ({"new": "one"}, "`old` is missing"),
        ({}, "are missing"),
        ({"edits": []}, "are missing"),
        ({"old": "one", "new": "1", "edits": [{"old": "two", "new": "2"}]}, "either"),
        ({"edits": [{"old": "one", "new": "1"}, {"old": "", "new": "2"}]}, r"edits\[2\]: `old` is empty"),
    ],
)
async def test_arguments_that_make_no_sense_change_nothing(harness: ToolHarness, arguments: dict[str, object], said: str) -> None:
    path = harness.put("a", "one\ntwo\n")
    with pytest.raises(ToolError, match=said):
        await harness.call("edit", path="a", **arguments)
    assert path.read_text() == "one\ntwo\n"


async def test_a_miss_shows_the_nearest_lines(harness: ToolHarness) -> None:
    harness.put("a", "import os\n\ndef add(first, second):\n    return first + second\n")
    with pytest.raises(ToolError) as error:
        await harness.call("edit", path="a", old="def add(frist, second):", new="x")
    assert error.value.message.endswith("Nearest lines:\n3→def add(first, second):")


async def test_second_miss_shows_the_current_region(harness: ToolHarness) -> None:
    harness.put("a", "".join(f"line {n}\n" for n in range(1, 200)))
    for misses in (1, 2, 3):
        with pytest.raises(ToolError) as error:
            await harness.call("edit", path="a", old="line 100!", new="x")
        assert (f"miss {misses} in a row" in error.value.message) == (misses > 1)
    assert "\n80→line 80\n" in error.value.message
    assert len(error.value.message) < 2000


async def test_an_edit_made_before_is_recognised(harness: ToolHarness) -> None:
    harness.put("a", "value = compute(2)\n")
    with pytest.raises(ToolError, match=r"The new text is there already, at line 1"):
        await harness.call("edit", path="a", old="value = compute(1)", new="value = compute(2)")


async def test_text_outside_the_encoding_changes_nothing(harness: ToolHarness) -> None:
    path = harness.put("a", "d\xe9j\xe0 vu\n".encode("latin-1"))
    with pytest.raises(ToolError, match="cannot hold `→`"):
        await harness.call("edit", path="a", old="vu", new="→")
    assert path.read_bytes() == "d\xe9j\xe0 vu\n".encode("latin-1")
    await harness.call("edit", path="a", old="déjà", new="où")
    assert path.read_bytes() == "où vu\n".encode("latin-1")


async def test_unread_file_may_be_edited_but_not_replaced(harness: ToolHarness) -> None:
    harness.put("a", "one\ntwo\n")
    await harness.call("edit", path="a", old="one", new="1")
    with pytest.raises(ToolError, match="you have not read it"):
        await harness.call("write", path="a", content="new")


async def test_read_and_edited_file_may_be_replaced(harness: ToolHarness) -> None:
    path = harness.put("a", "one\ntwo\n")
    await harness.call("read", path="a")
    await harness.call("edit", path="a", old="one", new="1")
    await harness.call("write", path="a", content="new\n")
    assert path.read_text() == "new\n"


async def test_foreign_changes_elsewhere_are_kept_and_reported(harness: ToolHarness) -> None:
    path = harness.put("a", "one\ntwo\nthree\n")
    await harness.call("read", path="a")
    path.write_text("one\ntwo\nthree, by a person\n")
    result = await harness.call("edit", path="a", old="one", new="1")
    assert path.read_text() == "1\ntwo\nthree, by a person\n"
    assert "had changed since you last read it; those changes are kept" in result.text
    with pytest.raises(ToolError, match="has changed since"):
        await harness.call("write", path="a", content="new")


async def test_a_change_during_the_edit_is_kept_too(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    path = harness.put("a", "one\ntwo\n")
    sync = os.fsync

    def save_once(handle: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        path.write_text("one\ntwo, by a person\n")
        sync(handle)

    monkeypatch.setattr(os, "fsync", save_once)
    await harness.call("edit", path="a", old="one", new="1")
    assert path.read_text() == "1\ntwo, by a person\n"


async def test_two_sessions_editing_one_file_lose_nothing(harness: ToolHarness) -> None:
    path = harness.put("a", "".join(f"slot {n}\n" for n in range(40)))
    other = ToolHarness(harness.folder)

    async def edit_all(session: ToolHarness, slots: range) -> None:
        for slot in slots:
            await session.call("edit", path="a", old=f"slot {slot}\n", new=f"done {slot}\n")

    await asyncio.gather(edit_all(harness, range(0, 40, 2)), edit_all(other, range(1, 40, 2)))
    assert path.read_text() == "".join(f"done {n}\n" for n in range(40))


async def test_a_link_stays_a_link(harness: ToolHarness) -> None:
    harness.put("real", "one\n")
    (harness.root / "link").symlink_to("real")
    await harness.call("edit", path="link", old="one", new="two")
    assert (harness.root / "link").is_symlink()
    assert (harness.root / "real").read_text() == "two\n"


@pytest.mark.parametrize("name", ["missing", "folder", "pipe", "binary"])
async def test_non_text_file_is_refused(harness: ToolHarness, name: str) -> None:
    (harness.root / "folder").mkdir()
    os.mkfifo(harness.root / "pipe")
    harness.put("binary", bytes(50) + b"one")
    with pytest.raises(ToolError):
        await harness.call("edit", path=name, old="one", new="two")


def edit_as_somebody(folder: Path) -> str:
    harness = ToolHarness(folder)
    path = harness.put("a", "one\n")
    path.chmod(0o444)
    try:
        asyncio.run(harness.call("edit", path="a", old="one", new="two"))
    except ToolError as error:
        return error.message
    return path.read_text()


def test_readonly_file_is_refused_in_a_sentence() -> None:
    with unprivileged.folder() as folder:
        assert "read-only" in unprivileged.call(edit_as_somebody, folder)


def test_reading_and_writing_are_both_intended(harness: ToolHarness) -> None:
    """A failed edit shows lines, so a file that must not be read must not be edited either."""
    path = harness.put(".env", "KEY=1\n")
    intents = Edit().intents(EditArgs(path=".env", old="a", new="b"), harness.services)
    assert intents == (ReadIntent(path, ".env"), WriteIntent(path, ".env"))


async def test_two_sessions_editing_concurrently_lose_nothing(harness: ToolHarness) -> None:
    """Each edit is made in what the file holds at that moment, whoever changed it since this session read it."""
    file = harness.put("a", "".join(f"a{n}=0\nb{n}=0\n" for n in range(100)))
    size, torn, failed, done = len(file.read_bytes()), list[int](), list[BaseException](), threading.Event()

    def change(who: str) -> None:
        mine = ToolHarness(harness.folder)
        try:
            for n in range(100):
                asyncio.run(mine.call("edit", path="a", old=f"{who}{n}=0", new=f"{who}{n}=1"))
        except BaseException as error:
            failed.append(error)

    def poll() -> None:
        while not done.is_set():
            if (length := len(file.read_bytes())) != size:
                torn.append(length)
            done.wait(0.001)

    reader = threading.Thread(target=poll)
    writers = [threading.Thread(target=change, args=(who,)) for who in "ab"]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join(60)
    done.set()
    reader.join()
    assert failed == []
    assert torn == []
    assert file.read_text() == "".join(f"a{n}=1\nb{n}=1\n" for n in range(100))


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, "x\ny", b"a\nb\nx\ny\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),
        (b"a\nb", 1, "\n", b"a\n\nb"),
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"a\r\nb", 2, "x\ny", b"a\r\nb\r\nx\r\ny"),
        (b"a\rb\r", 0, "x", b"x\ra\rb\r"),
        (codecs.BOM_UTF8 + b"a\n", 0, "x", codecs.BOM_UTF8 + b"x\na\n"),
    ],
)
async def test_lines_are_inserted_behind_a_line(harness: ToolHarness, before: bytes, line: int, new: str, after: bytes) -> None:
    path = harness.put("a", before)
    await harness.call("edit", path="a", insert_line=line, new=new)
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("name", "arguments", "complaint"),
    [
        ("a", {"insert_line": 3, "new": "x"}, "must be from 0 to 2: so many lines has `a`"),
        ("a", {"insert_line": -1, "new": "x"}, "must be from 0 to 2"),
        ("a", {"insert_line": 1, "new": ""}, "goes with a text `new`"),
        ("a", {"insert_line": 1, "new": "x", "old": "one"}, "with neither `old` nor `edits`"),
        ("a.ipynb", {"insert_line": 1, "new": "x"}, "does not count lines of notebooks"),
    ],
)
async def test_impossible_insertion_changes_nothing(
    harness: ToolHarness, name: str, arguments: dict[str, object], complaint: str
) -> None:
    path = harness.put(name, "one\ntwo\n")
    with pytest.raises(ToolError) as error:
        await harness.call("edit", path=name, **arguments)
    assert complaint in error.value.message
    assert path.read_text() == "one\ntwo\n"
