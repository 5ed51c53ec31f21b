"""JsonLines that another program writes, and what happens to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.sessions.exchange import json_files as module
from wolo.sessions.exchange.json_files import JsonLines


@pytest.mark.parametrize(
    ("data", "read", "skipped"),
    [
        (b'{"a":1}\n{"a":2}', [1, 2], 0),
        (b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"a":2}\n', [1, 2], 0),
        (b'{"a":1}\n{"a":', [1], 1),
        (b'{"a":1}\n\0\0\0\n{"a":2}\n', [1, 2], 1),
        (b'{"a":1}\n\0\0\0{"a":2}\n', [1, 2], 1),
        (b'{"a":1}\n\0\0\0', [1], 1),
        (b'{"a":1}\n\0\0\0{"a":', [1], 1),
        (b'{"a":"\xff"}\n{"a":2}\n', [2], 1),
        (b'{"a":"\xf0\x9f\x98"}\n{"a":2}\n', [2], 1),
        (b'{"a":"\\ud83d"}\n', ["\ud83d"], 0),
        (b'[{"a":1}]\n"a"\nnull\n7\n', [], 4),
        (b"[" * 100_000 + b"\n", [], 1),
        (b'{"a":1}{"a":2}\n{"a":3}\n', [3], 1),
        (b"", [], 0),
    ],
)
def test_readable_lines_are_read_and_others_counted(tmp_path: Path, data: bytes, read: list[object], skipped: int) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    lines = JsonLines(path)
    assert [each["a"] for each in lines] == read
    assert lines.skipped == skipped


def test_endless_line_is_skipped_with_places_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_LIMIT_BYTES", 100)
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"a":1}\n' + b"x" * 950 + b'\n{"a":2}\n' + b"y" * 300)
    lines = JsonLines(path)
    placed = list(lines.with_offsets())
    assert [each["a"] for _, each in placed] == [1, 2]
    assert lines.skipped == 2
    assert list(lines.at_offsets([place for place, _ in placed])) == [each for _, each in placed]
