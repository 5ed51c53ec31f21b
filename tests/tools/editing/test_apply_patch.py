from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import unprivileged
from tests.clock import processor_time_below
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent, WriteIntent
from wolo.tools.editing.apply_patch import ApplyPatchArgs
from wolo.tools.tool_values import CallResult, Diff
from wolo.workspace.files.atomic_write import PendingChange

TWO_CLASSES = "class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    def f(self):\n        return 1\n"


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def patch(harness: ToolHarness, *lines: str) -> CallResult:
    return await harness.call("apply_patch", patch="\n".join(("*** Begin Patch", *lines, "*** End Patch")))


def tree(harness: ToolHarness) -> dict[str, bytes]:
    return {str(path.relative_to(harness.root)): path.read_bytes() for path in harness.root.rglob("*") if path.is_file()}


async def test_files_are_added_updated_moved_and_deleted_together(harness: ToolHarness) -> None:
    harness.put("a.py", "one\ntwo\nthree\n")
    harness.put("old.txt", "first\r\nlast")
    harness.put("gone.txt", "x\n")
    result = await patch(
        harness,
        *("*** Update File: a.py", "@@", " one", "-two", "+2", " three"),
        *("*** Add File: new/b.py", "+print(1)", "+", "+print(2)"),
        *("*** Update File: old.txt", "*** Move to: sub/new.txt", "@@", " first", "+second", " last"),
        "*** Delete File: gone.txt",
    )
    assert tree(harness) == {
        "a.py": b"one\n2\nthree\n",
        "new/b.py": b"print(1)\n\nprint(2)\n",
        "sub/new.txt": b"first\r\nsecond\r\nlast",
    }
    assert result.text.splitlines() == [
        "Updated a.py at line 2 (+1 -1).",
        "Added new/b.py (3 lines).",
        "Moved old.txt to sub/new.txt at line 2 (+1 -0). Matched despite different line endings.",
        "Deleted gone.txt.",
    ]
    assert {Path(path).relative_to(harness.root).as_posix() for path in result.files_changed} == {
        *("a.py", "new/b.py", "old.txt", "sub/new.txt", "gone.txt")
    }
    assert isinstance(result.view, Diff)
    assert "@ a.py\n@@ -1,3 +1,3 @@" in result.view.text


async def test_guard_sees_both_names_of_every_file(harness: ToolHarness) -> None:
    harness.put("a", "x\n")
    os.link(harness.put("twice", "y\n"), harness.root / "other")
    text = "\n".join(
        (
            "*** Begin Patch",
            *("*** Update File: a", "*** Move to: ../b", "@@", "-x", "+y"),
            *("*** Add File: c", "+1", "*** Delete File: twice", "*** End Patch"),
        )
    )
    tool, args = harness.toolbox.decode("apply_patch", {"patch": text})
    assert isinstance(args, ApplyPatchArgs)
    assert tool.intents(args, harness.services) == [
        ReadIntent(harness.root / "a", "a", True),
        WriteIntent(harness.root / "a", "a", True),
        WriteIntent(harness.folder / "b", "../b", False),
        WriteIntent(harness.root / "c", "c", True),
        WriteIntent(harness.root / "twice", "twice", True, links=2),
    ]


# Where a hunk belongs


@pytest.mark.parametrize(
    ("anchors", "place"),
    [
        (["@@ class B:"], 1),
        (["@@ class A:"], 0),
        (["@@ class B"], 1),
        (["@@ class B:", "@@     def f(self):"], 1),
        (["@@ class A:", "@@ def f(self):"], 0),
        (["@@ -6,3 +6,3 @@ made up", "@@ class B:"], 1),
        (["@@ class B: @@"], 1),
    ],
)
async def test_line_behind_the_signs_chooses_the_place(harness: ToolHarness, anchors: list[str], place: int) -> None:
    file = harness.put("a.py", TWO_CLASSES)
    await patch(harness, "*** Update File: a.py", *anchors, "-        return 1", "+        return 2")
    first, second = file.read_text().split("\n\n\n")
    assert ["return 2" in each for each in (first, second)] == [place == 0, place == 1]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["@@", "-        return 1", "+        return 2"], "occurs 2 times in `a.py`, at lines 3, 8"),
        (["@@     def f(self):", "-        return 1", "+        return 2"], "occurs 2 times in `a.py`, at lines 3, 8"),
        (["@@ class B:", "-class A:", "+class C:"], "is in `a.py` at line 1, not after `@@ class B:`"),
        (["@@", "-class Z:", "+class C:"], "was not found in `a.py`; nothing was changed. Nearest lines:\n1→class A:"),
        (["@@     def f(self):", "+    x = 1"], "The line `    def f(self):` occurs 2 times"),
        (["@@ class Q:", "+    x = 1"], "The line `class Q:` was not found in `a.py`"),
        (["@@", "-class A:", "+class C:", "@@", "-class A:", "+class D:"], "overlap at line 1"),
        (["@@", " class A:", "     def f(self):"], "Line 3 of the patch: This part of the patch changes nothing"),
    ],
)
async def test_doubtful_or_missing_place_changes_nothing(harness: ToolHarness, lines: list[str], said: str) -> None:
    harness.put("a.py", TWO_CLASSES)
    with pytest.raises(ToolError) as error:
        await patch(harness, "*** Update File: a.py", *lines)
    assert said in error.value.message
    assert tree(harness) == {"a.py": TWO_CLASSES.encode()}


@pytest.mark.parametrize(
    ("before", "lines", "after"),
    [
        ("a\nb\nb\n", ["@@", "-b", "+c", "*** End of File"], "a\nb\nc\n"),
        ("a\nb", ["@@", " a", " b", "+c"], "a\nb\nc"),
        ("a\nb", ["@@", "-b", "+c", "*** End of File"], "a\nc"),
        ("a\nb", ["@@", "-a"], "b"),
        ("a\nb\n", ["@@", "+c"], "a\nb\nc\n"),
        ("a\r\nb", ["@@", "+c", "+d"], "a\r\nb\r\nc\r\nd"),
        ("", ["@@", "+c"], "c\n"),
        (
            "def f():\n    pass\n\ndef g():\n    pass\n",
            ["@@ def g():", "+    x = 1"],
            "def f():\n    pass\n\ndef g():\n    x = 1\n    pass\n",
        ),
        ("x\n  keep  \nold\n", ["@@", "   keep", "-old", "+new"], "x\n  keep  \nnew\n"),
        ("\tif x:\n\t\told\n", ["@@", " if x:", "-\told", "+\tnew"], "\tif x:\n\t\tnew\n"),
        ("a\n\nb\n", ["@@", " a", "", "-b", "+c", ""], "a\n\nc\n"),
        ("a\nb\n", ["@@", "a", "-b", "+c"], "a\nc\n"),
        ("one\ntwo\nthree\n", ["@@", "-three", "+3", "@@", "-one", "+1"], "1\ntwo\n3\n"),
        ("a\n-- b\n", ["@@", "--- b", "+-- c"], "a\n-- c\n"),
        ("a\rb\rc", ["@@", " a", "-b", "+x", " c"], "a\rx\rc"),
    ],
)
async def test_hunks_find_their_place_and_leave_the_rest(harness: ToolHarness, before: str, lines: list[str], after: str) -> None:
    file = harness.put("f", before)
    await patch(harness, "*** Update File: f", *lines)
    assert file.read_bytes() == after.encode()


async def test_two_sections_of_one_file_are_one(harness: ToolHarness) -> None:
    file = harness.put("f", "a\nb\nc\n")
    await patch(harness, "*** Update File: f", "@@", "-a", "+1", "*** Update File: ./f", "@@", "-c", "+3")
    assert file.read_text() == "1\nb\n3\n"


# How it is written


WRAPPED = [
    "{}",
    "```\n{}\n```",
    "```diff\n{}\n```\n",
    "\n\n{}\n\n",
    "apply_patch <<'EOF'\n{}\nEOF",
    "Here is the patch:\n{}",
]


@pytest.mark.parametrize("wrapping", WRAPPED)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_text_around_a_patch_does_not_matter(harness: ToolHarness, wrapping: str, ending: str) -> None:
    file = harness.put("f", "a\n")
    text = wrapping.format("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch").replace("\n", ending)
    await harness.call("apply_patch", input=text)
    assert file.read_bytes() == b"b\n"


@pytest.mark.parametrize(
    "padded",
    [
        "*** Begin Patch\n  *** Update File: f\n@@\n-a\n+b\n *** End Patch",
        " *** Begin Patch\n *** Update File: f\n-a\n+b\n\t*** End Patch\n```",
        "*** Begin Patch\n*** Add File: g\n+1\n  *** Update File: f\n@@\n-a\n+b\n*** End Patch",
        "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n   *** Add File: g\n+1\n  *** End Patch",
        "*** Begin Patch\n  *** Update File: f\n  *** Move to: f2\n@@\n-a\n+b\n  *** End of File\n *** End Patch",
        "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n *** Delete File: gone\n *** Delete File: gone2\n *** End Patch",
    ],
)
async def test_blanks_before_a_marker_are_forgiven(harness: ToolHarness, padded: str) -> None:
    harness.put("f", "a\n")
    harness.put("gone", "x\n")
    harness.put("gone2", "x\n")
    await harness.call("read", path="gone")
    await harness.call("read", path="gone2")
    await harness.call("apply_patch", patch=padded)
    after = tree(harness)
    assert after.get("f", after.get("f2")) == b"b\n"
    assert ("gone" in after) is ("Delete" not in padded)
    assert ("g" in after) is ("Add" in padded)


async def test_markers_that_are_file_lines_stay_lines(harness: ToolHarness) -> None:
    harness.put("f", "*** Update File: x\n*** End Patch\na\n*** End Patch\n")
    await patch(harness, "*** Update File: f", "@@", " *** Update File: x", " *** End Patch", "-a", "+b", " *** End Patch")
    assert tree(harness) == {"f": b"*** Update File: x\n*** End Patch\nb\n*** End Patch\n"}


async def test_a_line_that_stays_deletes_no_file(harness: ToolHarness) -> None:
    harness.put("f", "a\n*** Delete File: gone\n")
    harness.put("gone", "x\n")
    await harness.call("read", path="gone")
    await patch(harness, "*** Update File: f", "@@", "-a", "+b", " *** Delete File: gone")
    assert tree(harness) == {"f": b"b\n*** Delete File: gone\n", "gone": b"x\n"}


async def test_several_patches_in_one_are_one(harness: ToolHarness) -> None:
    await harness.call(
        "apply_patch",
        patch="*** Begin Patch\n*** Add File: a\n+1\n*** End Patch\n\n*** Begin Patch\n*** Add File: b\n2\n*** End Patch",
    )
    assert tree(harness) == {"a": b"1\n", "b": b"2\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b", "ends without `*** End Patch`: it was cut off"),
        ("*** Begin Patch\n*** Add File: g\n+b\n", "ends without `*** End Patch`"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch", "`*** Update File: f` is followed by no change"),
        ("*** Begin Patch\n*** End Patch", "The patch names no file."),
        ("*** Begin Patch\n*** Rename File: f\n*** End Patch", "Line 2 of the patch: `*** Rename File: f`"),
        (
            "*** Begin Patch\n*** Update File: f\n@@\n-a\n*** Rename to: g\n*** End Patch",
            "Line 5 of the patch: `*** Rename to: g`",
        ),
        ("*** Begin Patch\n*** Delete File:\n*** End Patch", "`*** Delete File:` is not followed by a path"),
        ("*** Begin Patch\n*** Add File: g\n+a\nb\n*** End Patch", "Line 4 of the patch: `b` begins without `+`"),
        ("*** Begin Patch\n*** Delete File: f\n*** End Patch\n+more", "Line 4 of the patch: `+more` follows"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "This is a unified diff."),
        ("diff --git a/f b/f\n", "This is a unified diff."),
        ("s/a/b/", "This is not a patch."),
        ("", "This is not a patch."),
        ("*** Begin Patch\n*** Add File: g\n+1\n*** Delete File: g\n*** End Patch", "`g` occurs twice"),
        ("*** Begin Patch\n*** Update File: f\n*** Move to: f\n*** End Patch", "`f` occurs twice"),
        ("*** Begin Patch\n*** Update File: fx\n@@\n-a\n+b\n*** End Patch", "`fx` does not exist. Did you mean `f`"),
        ("*** Begin Patch\n*** Delete File: fx\n*** End Patch", "`fx` does not exist. Did you mean `f`"),
        ("*** Begin Patch\n*** Update File: f\n*** Move to: kept\n*** End Patch", "cannot be moved to `kept`: that exists"),
        ("*** Begin Patch\n" + "".join(f"*** Add File: g{n}\n+1\n" for n in range(300)) + "*** End Patch", "names 300 files"),
        ("*** Begin Patch\n*** Add File: g/\n+1\n*** End Patch", "ends with a slash"),
        ("*** Begin Patch\n*** Add File: kept\n+1\n*** End Patch", "`kept` exists, and you have not read it"),
        ("*** Begin Patch\n*** Delete File: sub\n*** End Patch", "`sub` is a folder"),
        ("*** Begin Patch\n*** Delete File: link\n*** End Patch", "`link` is a link to `f`"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+\ud800\n*** End Patch", "cannot hold"),
        ("*** Begin Patch\n*** Update File: bin\n@@\n-a\n+b\n*** End Patch", "This is gzip data, not text."),
        ("*** Begin Patch\n*** Update File: \0\n@@\n-a\n+b\n*** End Patch", "NUL"),
    ],
)
async def test_unusable_patch_says_why_and_changes_nothing(harness: ToolHarness, text: str, said: str) -> None:
    harness.put("f", "a\n")
    harness.put("kept", "k\n")
    harness.put("bin", b"\x1f\x8b\0\0\0")
    (harness.root / "sub").mkdir()
    (harness.root / "link").symlink_to("f")
    before = tree(harness)
    with pytest.raises(ToolError) as error:
        await harness.call("apply_patch", patch=text)
    assert said in error.value.message
    assert tree(harness) == before


async def test_blank_only_patch_takes_no_time(harness: ToolHarness) -> None:
    """Whoever reads it goes through it once, however it is laid out."""
    harness.put("f", "a\n")
    with processor_time_below(10):
        for odd in ("\n" * 200_000, " " * 200_000 + "x\n", "@@\n" * 100_000, "\n@@\n" * 50_000):
            for first in ("*** Begin Patch\n", "*** Update File: f\n", "*** Add File: "):
                with suppress(ToolError):
                    await harness.call("apply_patch", patch=f"{first}{odd}*** End Patch")


# All or nothing


async def test_each_unfitting_file_is_reported_and_none_changed(harness: ToolHarness) -> None:
    harness.put("a", "1\n")
    harness.put("b", "2\n")
    before = tree(harness)
    with pytest.raises(ToolError) as error:
        await patch(
            harness,
            *("*** Update File: a", "@@", "-1", "+one", "*** Update File: b", "@@", "-9", "+nine"),
            *("*** Update File: c", "@@", "-1", "+one", "*** Add File: d", "+4"),
        )
    assert tree(harness) == before
    head, b, c, fits = error.value.message.split("\n\n")
    assert head == "Nothing was changed: the patch does not fit 2 of 4 files."
    assert b.startswith("What the hunk at line 7 of the patch shows was not found in `b`")
    assert c.startswith("`c` does not exist.")
    assert fits == "The patch fits `a`, `d`; nothing was changed there either."


def apply_with_closed_folder(folder: Path) -> tuple[str, list[PendingChange]]:
    harness = ToolHarness(folder)
    told: list[PendingChange] = []
    harness.services = replace(harness.services, record_change=lambda call_id, change: told.append(change))
    (harness.root / "closed").chmod(0o555)
    import asyncio

    try:
        asyncio.run(
            patch(
                harness,
                *("*** Update File: a", "@@", "-1", "+one", "*** Add File: deep/er/new", "+n"),
                *("*** Delete File: gone", "*** Add File: closed/new", "+4"),
            )
        )
    except ToolError as error:
        return error.message, told
    return "", told


def test_unwritable_file_restores_those_before_it() -> None:
    with unprivileged.folder() as folder:
        harness = ToolHarness(folder)
        harness.put("a", "1\n").chmod(0o754)
        harness.put("gone", "g\n")
        (harness.root / "closed").mkdir()
        for path in (harness.root, *harness.root.rglob("*")):
            if os.getuid() == 0:
                os.chown(path, unprivileged.NOBODY, unprivileged.NOBODY)
        before = tree(harness)
        said, told = unprivileged.call(apply_with_closed_folder, folder)
        assert tree(harness) == before
        assert (harness.root / "a").stat().st_mode & 0o777 == 0o754
        assert sorted(path.name for path in harness.root.iterdir()) == ["a", "closed", "gone"]
    assert said.splitlines() == [
        "Nothing was changed: one of the files could not be written.",
        "`closed/new`: `closed/new` cannot be accessed (permission denied).",
        "Written before it and restored: `deep/er/new`, `a`.",
    ]
    assert [(change.path.name, change.before, change.after) for change in told] == [
        ("a", b"1\n", b"one\n"),
        ("new", None, b"n\n"),
        ("new", None, b"4\n"),
        ("new", b"n\n", None),
        ("a", b"one\n", b"1\n"),
    ]


async def test_a_deletion_that_fails_brings_everything_back(harness: ToolHarness) -> None:
    (harness.root / "sub").mkdir()
    harness.put("a", "1\n")
    harness.put("gone", "g\n").chmod(0o751)
    harness.put("kept", "k\n")

    def refuse(call_id: str, change: PendingChange) -> None:
        if change.path.name == "kept":
            raise OSError(28, "No space left on device")

    harness.services = replace(harness.services, record_change=refuse)
    before = tree(harness)
    with pytest.raises(ToolError, match="`kept`: `kept` could not be written: the disk is full") as error:
        await patch(harness, "*** Update File: a", "@@", "-1", "+one", "*** Delete File: gone", "*** Delete File: kept")
    assert "Written before it and restored: `gone`, `a`." in error.value.message
    assert tree(harness) == before
    assert (harness.root / "gone").stat().st_mode & 0o777 == 0o751


async def test_failed_restore_is_reported(harness: ToolHarness) -> None:
    a, b = harness.put("a", "1\n"), harness.put("b", "2\n")

    def interfere(call_id: str, change: PendingChange) -> None:
        if change.path == b:
            a.write_text("somebody else's\n")
            raise OSError(28, "No space left on device")

    harness.services = replace(harness.services, record_change=interfere)
    with pytest.raises(ToolError) as error:
        await patch(harness, "*** Update File: a", "@@", "-1", "+one", "*** Update File: b", "@@", "-2", "+two")
    assert error.value.message.splitlines()[0] == "The patch was applied in part."
    assert "`a` was changed and could not be restored: The file was changed meanwhile." in error.value.message
    assert a.read_text() == "somebody else's\n"


# Others at the same files


async def test_concurrently_changed_file_keeps_its_change_undeleted(harness: ToolHarness) -> None:
    file = harness.put("a", "1\n2\n3\n")
    await harness.call("read", path="a")
    file.write_text("1\n2\n3\nfour\n")
    result = await patch(harness, "*** Update File: a", "@@", "-2", "+two")
    assert file.read_text() == "1\ntwo\n3\nfour\n"
    assert "those changes are kept" in result.text
    with pytest.raises(ToolError, match="has changed since you last read it; it was not deleted"):
        await patch(harness, "*** Delete File: a")
    await harness.call("read", path="a")
    await patch(harness, "*** Delete File: a")
    assert not file.exists()


async def test_file_may_be_replaced_by_delete_and_add(harness: ToolHarness) -> None:
    file = harness.put("a", "1\n")
    await patch(harness, "*** Delete File: a", "*** Add File: a", "+new")
    assert file.read_text() == "new\n"


async def test_two_patches_in_opposite_order_both_arrive(harness: ToolHarness) -> None:
    """Whoever comes second waits or looks again; nobody waits for the other for ever."""
    names = [f"f{number}" for number in range(8)]
    for name in names:
        harness.put(name, "".join(f"a{round}\nb{round}\n" for round in range(10)))
    failed: list[BaseException] = []

    def change(who: str, order: list[str]) -> None:
        import asyncio

        mine = ToolHarness(harness.folder)
        for round in range(10):
            lines = [line for name in order for line in (f"*** Update File: {name}", "@@", f"-{who}{round}", f"+{who}{round}!")]
            try:
                asyncio.run(patch(mine, *lines))
            except BaseException as error:
                failed.append(error)

    threads = [threading.Thread(target=change, args=args) for args in (("a", names), ("b", names[::-1]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    for name in names:
        assert (harness.root / name).read_text() == "".join(f"a{round}!\nb{round}!\n" for round in range(10))
    assert list((harness.folder / "locks").iterdir()) == []


async def test_moved_file_keeps_mode_and_binary_bytes(harness: ToolHarness) -> None:
    harness.put("a.bin", bytes(range(256))).chmod(0o754)
    assert (await patch(harness, "*** Update File: a.bin", "*** Move to: b/c.bin")).text == "Moved a.bin to b/c.bin."
    assert tree(harness) == {"b/c.bin": bytes(range(256))}
    assert (harness.root / "b/c.bin").stat().st_mode & 0o777 == 0o754


# Any file, any change

LINE = st.text(st.sampled_from("ab \t{é"), max_size=5)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])


@given(
    lines=st.lists(st.tuples(LINE, st.sampled_from(["\n", "\n", "\r\n"])), min_size=1, max_size=12),
    data=st.data(),
    encoding=ENCODINGS,
    closed=st.booleans(),
)
async def test_only_the_lines_of_the_patch_change(
    tmp_path: Path, lines: list[tuple[str, str]], data: st.DataObject, encoding: str, closed: bool
) -> None:
    """The whole file is shown, so the place is not in doubt; a line that comes for another ends like it."""
    texts = [text + ending for text, ending in lines]
    if not closed:
        texts[-1] = texts[-1].rstrip("\r\n") or "x"
    before = "".join(texts).encode(encoding)
    harness = ToolHarness(tmp_path)
    file = harness.put("f", before)
    signs = data.draw(st.lists(st.sampled_from(" -r"), min_size=len(texts), max_size=len(texts)))
    hunk, kept, ends = [], [], []
    for sign, text in zip(signs, texts, strict=True):
        bare = text.rstrip("\r\n")
        hunk += [" " + bare] if sign == " " else ["-" + bare] if sign == "-" else ["-" + bare, "+NEW"]
        ends = [] if sign == " " else [*ends, text.removeprefix(bare)]  # of a run of lines, the first for the first
        kept += [text] if sign == " " else [] if sign == "-" else ["NEW" + ends.pop(0)]
    if set(signs) == {" "}:
        return
    await patch(harness, "*** Update File: f", "@@", *hunk, "*** End of File")
    after = file.read_bytes().decode(encoding)
    expected = "".join(kept)
    if not closed and signs[-1] != " ":  # the file had no end at its last line and may have none at the new last one
        after, expected = after.rstrip("\r\n"), expected.rstrip("\r\n")
    assert after == expected
