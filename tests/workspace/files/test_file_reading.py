from __future__ import annotations

import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.clock import clock_counts, processor_time_below
from wolo.errors import ToolError
from wolo.workspace.files import file_reading
from wolo.workspace.files.atomic_write import content_hash
from wolo.workspace.files.file_reading import FilePage, PageLimits, read_page

ROOMY = PageLimits(max_lines=100, width=1000, size_bytes=100_000)


def page_of(path: Path, offset: int = 1, limits: PageLimits = ROOMY) -> FilePage:
    handle = os.open(path, os.O_RDONLY)
    try:
        return read_page(handle, offset, limits)
    finally:
        os.close(handle)


def shown(page: FilePage) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in page.lines]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_a_page_is_numbered_from_one(path: Path) -> None:
    path.write_text("a\nb\nc")
    page = page_of(path, 2)
    assert shown(page) == [(2, "b"), (3, "c")]
    assert page.total == 3
    assert page.hash == content_hash(b"a\nb\nc")


def test_a_negative_offset_counts_from_the_end(path: Path) -> None:
    path.write_text("a\nb\nc\n")
    assert shown(page_of(path, -2)) == [(2, "b"), (3, "c")]
    assert shown(page_of(path, -9)) == [(1, "a"), (2, "b"), (3, "c")]


def test_page_ends_at_size_with_one_line_minimum(path: Path) -> None:
    path.write_text("é" * 50 + "\n" + "b\n" * 50)
    assert len(page_of(path, 1, replace(ROOMY, size_bytes=10)).lines) == 1
    assert len(page_of(path, 1, replace(ROOMY, size_bytes=110)).lines) == 11


def test_long_line_is_cut_and_gives_its_length(path: Path) -> None:
    path.write_text("é" * 2000 + "\nb\n")
    page = page_of(path)
    assert page.lines[0].text == "é" * 1000
    assert page.lines[0].full_bytes == 4000
    assert page.lines[1].full_bytes == 0


TEXT = st.lists(st.text("abé→😀", max_size=12), max_size=30).map("\n".join)


@given(
    text=TEXT, final=st.booleans(), offset=st.integers(-35, 35).filter(bool), count=st.integers(1, 12), chunk=st.integers(1, 40)
)
def test_large_file_is_paged_like_small(
    tmp_path_factory: pytest.TempPathFactory, text: str, final: bool, offset: int, count: int, chunk: int
) -> None:
    path = tmp_path_factory.mktemp("page") / "file"
    path.write_text(text + "\n" * final)
    limits = PageLimits(count, 5, 60)
    small = page_of(path, offset, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_reading, "_WHOLE_BYTES", -1)
        patch.setattr(file_reading, "_CHUNK_BYTES", chunk)
        large = page_of(path, offset, limits)
        assert (shown(large), large.total, large.hash) == (shown(small), small.total, small.hash)
        patch.setattr(file_reading, "MAX_TEXT_BYTES", -1)
        huge = page_of(path, offset, limits)
    assert huge.total is None
    assert huge.hash is None
    back = 0 if offset > 0 else (small.total or 0) + 1  # a file that is not counted is numbered from its end
    assert shown(huge) == [(number - back, line) for number, line in shown(small)]


def test_sparse_huge_file_is_recognised_at_once(path: Path) -> None:
    path.write_bytes(b"first\n" * 40_000)
    os.truncate(path, 5 << 30)
    with processor_time_below(4):
        assert shown(page_of(path, 2, replace(ROOMY, max_lines=2))) == [(2, "first"), (3, "first")]
        assert page_of(path, -1).lines[0].number == -1
        with pytest.raises(ToolError, match="256 MiB"):
            page_of(path, 50_000)
        assert page_of(path, 40_001).lines[0].full_bytes > 0


def test_a_sparse_file_of_nothing_is_binary(path: Path) -> None:
    path.touch()
    os.truncate(path, 5 << 30)
    with pytest.raises(ToolError, match="binary"):
        page_of(path)


def test_fifty_megabyte_line_is_never_held_whole(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 1_000_000)
        file.write(b"\nlast\n")
    tracemalloc.start()
    start = time.process_time()
    page = page_of(path)
    took = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert page.lines[0].full_bytes == 50_000_000
    assert page.lines[1].text == "last"
    assert page.total == 2
    assert peak < 5_000_000
    assert took < 2 or not clock_counts()


def test_a_large_utf16_file_is_read_too(path: Path) -> None:
    path.write_text("a line\n" * 400_000, encoding="utf-16")
    page = page_of(path, 399_999)
    assert shown(page) == [(399_999, "a line"), (400_000, "a line")]
    assert page.encoding.label == "UTF-16 LE"


def test_sample_ending_within_a_character_is_utf8(path: Path) -> None:
    path.write_text("x" + "é" * 3_000_000)
    assert page_of(path).encoding.label == "UTF-8"
