from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.errors import ToolError
from wolo.workspace.files.atomic_write import content_hash
from wolo.workspace.files.file_reading import MAX_TEXT_BYTES, FileLedger, read_file


def test_text_file_is_read_whole_with_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("é\r\n".encode("utf-16"))
    file = read_file(tmp_path / "a")
    assert file.text == "é\r\n"
    assert file.encoding.label == "UTF-16 LE"
    assert file.hash == content_hash(file.data)


def test_binary_data_is_described(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(ToolError, match="an SQLite database, not text"):
        read_file(tmp_path / "a")


def test_a_gigantic_file_is_not_taken_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text\n")
    os.truncate(tmp_path / "a", MAX_TEXT_BYTES + 1)
    with pytest.raises(ToolError, match="larger than 64 MiB"):
        read_file(tmp_path / "a")


def test_the_ledger_knows_what_was_recorded(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "locks")
    path = tmp_path / "a"
    assert ledger.last_hash(path) is None
    ledger.record(path, "1")
    ledger.record(path, "2")
    assert ledger.last_hash(path) == "2"


def test_misses_count_until_something_is_found(tmp_path: Path) -> None:
    ledger = FileLedger(tmp_path / "locks")
    path = tmp_path / "a"
    assert [ledger.count_miss(path), ledger.count_miss(path), ledger.count_miss(tmp_path / "b")] == [1, 2, 1]
    ledger.reset_misses(path)
    assert ledger.count_miss(path) == 1
    ledger.record(path, "read again")
    assert ledger.count_miss(path) == 1
