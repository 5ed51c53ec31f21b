"""Reading PDF documents: their pages as text, which pages, and what becomes of those that cannot be read."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import pypdf
import pytest

from tests.tools.documents import pdf
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.tools.documents import pdf as pdf_reading

PAGES = tuple(f"This is page {n}" for n in range(1, 31))


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def read(harness: ToolHarness, data: bytes, **arguments: object) -> str:
    harness.put("a.pdf", data)
    return (await harness.call("read", path="a.pdf", **arguments)).text


async def test_pages_come_as_text_with_their_numbers(harness: ToolHarness) -> None:
    text = await read(harness, pdf("First (one)".replace("(", "\\(").replace(")", "\\)"), "Second"))
    assert text == "[page 1]\nFirst (one)\n\n[page 2]\nSecond\n\n[2 pages, 1 to 2, of 2.]"


async def test_a_long_document_is_read_on_by_pages(harness: ToolHarness) -> None:
    text = await read(harness, pdf(*PAGES))
    assert text.count("[page ") == 20
    assert text.endswith('[20 pages, 1 to 20, of 30. Continue with pages="21-".]')
    text = await read(harness, pdf(*PAGES), pages="21-")
    assert text.startswith("[page 21]\nThis is page 21")
    assert text.endswith("[10 pages, 21 to 30, of 30.]")


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        ({"pages": "3"}, [3]),
        ({"pages": "2-4"}, [2, 3, 4]),
        ({"pages": "2, 29-"}, [2, 29, 30]),
        ({"pages": "29-99"}, [29, 30]),
        ({"offset": 4, "limit": 2}, [4, 5]),
        ({"limit": 1}, [1]),
        ({"page_range": "7"}, [7]),
    ],
)
async def test_which_pages(harness: ToolHarness, given: dict[str, object], numbers: list[int]) -> None:
    text = await read(harness, pdf(*PAGES), **given)
    assert [line for line in text.split("\n") if line.startswith("[page ")] == [f"[page {n}]" for n in numbers]


@pytest.mark.parametrize("pages", ["0", "-3", "a", "5-2", "1;2", "", "1-2-3", "1,"])
async def test_pages_that_are_none(harness: ToolHarness, pages: str) -> None:
    with pytest.raises(ToolError, match="pages"):
        await read(harness, pdf("x"), pages=pages)


async def test_pages_beyond_the_end_and_text_pages(harness: ToolHarness) -> None:
    with pytest.raises(ToolError, match="has 1 page; there is no page 7"):
        await read(harness, pdf("x"), pages="7")
    harness.put("a.txt", "x")
    with pytest.raises(ToolError, match="is no PDF"):
        await harness.call("read", path="a.txt", pages="1")


async def test_a_scanned_document_is_told_as_such(harness: ToolHarness) -> None:
    text = await read(harness, pdf("", ""))
    assert "(no text)" in text
    assert "probably scanned" in text


async def test_password_is_reported_and_empty_one_is_none(harness: ToolHarness) -> None:
    for password, user in (("secret", "secret"), ("owner", "")):
        writer = pypdf.PdfWriter(io.BytesIO(pdf("Hidden")))
        writer.encrypt(user, password, algorithm="RC4-128")
        out = io.BytesIO()
        writer.write(out)
        if user:
            with pytest.raises(ToolError, match="encrypted with a password"):
                await read(harness, out.getvalue())
        else:
            assert "Hidden" in await read(harness, out.getvalue())


@pytest.mark.parametrize(
    "data", [b"%PDF-1.4\n", b"%PDF-1.7\n" + b"\0\xff" * 5_000, b"%PDF-1.4\ntrailer << /Root 1 0 R >>\nstartxref\n9\n%%EOF"]
)
async def test_a_damaged_document_is_told_as_such(harness: ToolHarness, data: bytes) -> None:
    with pytest.raises(ToolError, match=r"damaged|no page"):
        await read(harness, data)


async def test_much_text_is_cut(harness: ToolHarness) -> None:
    text = await read(harness, pdf("word " * 20_000, "more"))
    assert len(text) < 51_000
    assert "[cut: the page is longer]" in text
    assert 'Continue with pages="2-"' in text


async def test_one_that_takes_too_long_is_stopped(harness: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_reading, "WHOLE_S", 0.0)
    with pytest.raises(ToolError, match="could not be opened within"):
        await read(harness, pdf("x"))


async def test_large_unpacking_costs_its_own_process_only(harness: ToolHarness) -> None:
    packed = zlib.compress(zlib.compress(b"\0" * (1 << 28)))
    stream = f"<< /Length {len(packed)} /Filter [/FlateDecode /FlateDecode] >>\nstream\n".encode() + packed + b"\nendstream"
    plain = pdf("MARK")
    start, end = plain.index(b"<< /Length"), plain.index(b"endstream") + 9
    text = await read(harness, plain[:start] + stream + plain[end:])
    assert "page 1" in text
