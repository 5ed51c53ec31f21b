from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from tests.components import require
from wolo.workspace.files.line_diff import diff_lines


def test_changed_line_has_three_lines_around_it() -> None:
    before = "".join(f"{n}\n" for n in range(1, 10))
    diff = diff_lines(before, before.replace("5\n", "five\n"))
    assert diff.text == "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8"
    assert (diff.added, diff.removed) == (1, 1)


def test_new_and_emptied_files_are_wholly_changed() -> None:
    assert diff_lines("", "a\nb\n") == ("@@ -0,0 +1,2 @@\n+a\n+b", 2, 0)
    assert diff_lines("a\n", "") == ("@@ -1 +0,0 @@\n-a", 0, 1)
    assert diff_lines("same\n", "same\n") == ("", 0, 0)


def test_a_missing_final_newline_is_told() -> None:
    assert diff_lines("a\nb", "a\nb\n").text == "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b"


def test_a_changed_line_ending_is_a_changed_line() -> None:
    assert diff_lines("a\r\n", "a\n")[1:] == (1, 1)


def test_distant_changes_are_hunks_of_their_own() -> None:
    before = "".join(f"{n}\n" for n in range(40))
    after = before.replace("5\n", "x\n", 1).replace("30\n", "y\n")
    assert diff_lines(before, after).text.count("@@ -") == 2


def test_huge_rewrite_is_bounded_in_time_and_size() -> None:
    before = "".join(f"{n % 7} {n}\n" for n in range(200_000))
    after = "".join(f"{n % 5} {n}\n" for n in range(200_000))
    with processor_time_below(5):
        diff = diff_lines(before, after)
    assert diff.added == diff.removed > 199_000
    assert len(diff.text) < 50_000
    assert diff.text.endswith("changed lines in all")


def test_a_very_long_line_is_cut() -> None:
    assert len(diff_lines("", "x" * 1_000_000).text) < 1000


@given(before=st.lists(st.sampled_from("abc"), max_size=30), after=st.lists(st.sampled_from("abcd"), max_size=30))
def test_the_diff_can_be_applied(tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str]) -> None:
    folder = tmp_path_factory.mktemp("patch")
    old, new = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    diff = diff_lines(old, new)
    if not diff.text:
        assert old == new
        return
    (folder / "f").write_text(old)
    patch = f"--- f\n+++ f\n{diff.text}\n"
    subprocess.run([require("patch"), "-s", "--no-backup-if-mismatch", "f"], cwd=folder, input=patch.encode(), check=True)
    result = Path(folder / "f")
    assert (result.read_text() if result.exists() else "") == new
    assert diff.added - diff.removed == len(after) - len(before)
