from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.clock import processor_time_below
from tests.tools.harness import ToolHarness
from wolo.errors import ToolError
from wolo.guard.intents import ReadIntent
from wolo.messages.parts import ImagePart
from wolo.tools.read import Read, ReadArgs

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_file_comes_with_line_numbers_and_length(harness: ToolHarness) -> None:
    harness.put("calc.py", "def add(a, b):\n\treturn a + b\n")
    assert (await harness.call("read", path="calc.py")).text == "1→def add(a, b):\n\treturn a + b\n[2 lines.]"


async def test_a_page_says_where_the_next_one_begins(harness: ToolHarness) -> None:
    harness.put("a", "".join(f"{n}\n" for n in range(1, 6)))
    assert (
        await harness.call("read", path="a", offset=2, limit=2)
    ).text == "2→2\n3\n[Lines 2 to 3 of 5. Continue with offset=4.]"
    assert (await harness.call("read", path="a", offset=-1)).text == "5→5\n[Lines 5 to 5 of 5.]"


async def test_long_files_come_in_pages_of_bounded_size(harness: ToolHarness) -> None:
    harness.put("many", "x\n" * 5000)
    assert (await harness.call("read", path="many", limit=9999)).text.endswith(
        "[Lines 1 to 2000 of 5000. Continue with offset=2001.]"
    )
    harness.put("wide", ("y" * 1000 + "\n") * 500)
    wide = (await harness.call("read", path="wide")).text
    assert len(wide) < 60_000
    assert wide.endswith("[Lines 1 to 50 of 500. Continue with offset=51.]")


async def test_an_empty_file_is_told_as_such(harness: ToolHarness) -> None:
    harness.put("empty", "")
    assert (await harness.call("read", path="empty")).text == "[The file is empty.]"


async def test_line_past_the_end_is_error_with_length(harness: ToolHarness) -> None:
    harness.put("a", "1\n2\n")
    with pytest.raises(ToolError, match="has 2 lines; line 9 is past its end"):
        await harness.call("read", path="a", offset=9)
    with pytest.raises(ToolError, match="limit"):
        await harness.call("read", path="a", limit=0)


async def test_unusual_encodings_and_line_endings_are_reported(harness: ToolHarness) -> None:
    harness.put("a", "d\xe9j\xe0 vu\r\n".encode("latin-1"))
    assert (await harness.call("read", path="a")).text == "1→déjà vu\n[1 line. Encoding: Latin-1. Line endings: CRLF.]"


async def test_bytes_without_character_can_be_sent(harness: ToolHarness) -> None:
    harness.put("a", "é ".encode() + b"\xff\n")
    text = (await harness.call("read", path="a")).text
    assert "1→é \ufffd" in text
    text.encode()


async def test_an_image_is_returned_to_be_looked_at(harness: ToolHarness) -> None:
    harness.put("dot.png", PNG)
    result = await harness.call("read", path="dot.png")
    assert [type(part) for part in result.media] == [ImagePart]
    assert isinstance(image := result.media[0], ImagePart)
    assert (image.media_type, image.data) == ("image/png", PNG)


async def test_an_image_too_large_for_providers_is_refused(harness: ToolHarness) -> None:
    harness.put("big.png", PNG + bytes(4_000_000))
    harness.put("wide.png", PNG[:16] + (8_001).to_bytes(4) + PNG[20:])
    with pytest.raises(ToolError, match=r"8001 x 1 pixels; at most 8000 per side can be shown. Scale it down"):
        await harness.call("read", path="wide.png")
    with pytest.raises(ToolError, match="Scale it down"):
        await harness.call("read", path="big.png")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"PK\3\4" + bytes(30), "a ZIP archive"),
        (b"\x7fELF" + bytes(30), "an ELF program"),
        (bytes(range(32)), "a binary file"),
    ],
)
async def test_binary_files_are_described_not_shown(harness: ToolHarness, data: bytes, kind: str) -> None:
    harness.put("data", data)
    with pytest.raises(ToolError, match=f"This is {kind}"):
        await harness.call("read", path="data")


async def test_a_folder_lists_its_names(harness: ToolHarness) -> None:
    harness.put("src/a.py", "")
    harness.put("src/sub/b.py", "")
    (harness.root / "src/loop").symlink_to("loop")
    with pytest.raises(ToolError, match=r"`src` is a folder. It holds: a.py, loop, sub/."):
        await harness.call("read", path="src")


async def test_a_missing_file_brings_the_nearest_names(harness: ToolHarness) -> None:
    harness.put("calculator.py", "")
    with pytest.raises(ToolError, match=r"Did you mean `calculator.py`\?"):
        await harness.call("read", path="Calculater.py")
    with pytest.raises(ToolError, match=r"nor does its folder; the nearest that does is `\.`"):
        await harness.call("read", path="no/such/place")


async def test_file_relative_to_the_shell_is_suggested(harness: ToolHarness) -> None:
    harness.put("sub/deep.py", "")
    harness.services.shell.cwd = harness.root / "sub"
    with pytest.raises(ToolError, match=r"Did you mean `sub/deep.py`\?"):
        await harness.call("read", path="deep.py")


async def test_secret_names_are_not_suggested(harness: ToolHarness) -> None:
    harness.put(".env.secret", "")
    harness.services = replace(harness.services, is_readable=lambda path: ".env" not in path.name)
    with pytest.raises(ToolError) as missing:
        await harness.call("read", path=".env.secre")
    with pytest.raises(ToolError) as folder:
        await harness.call("read", path=".")
    assert ".env.secret" not in missing.value.message + folder.value.message


@pytest.mark.parametrize("given", ["/dev/zero", "pipe", "/"])
async def test_special_file_is_refused_at_once(harness: ToolHarness, given: str) -> None:
    os.mkfifo(harness.root / "pipe")
    with pytest.raises(ToolError):
        await harness.call("read", path=given)


async def test_gigantic_file_shows_its_beginning_unremembered(harness: ToolHarness) -> None:
    path = harness.put("big", "line\n" * 40_000)
    os.truncate(path, 5 << 30)
    with processor_time_below(2):
        text = (await harness.call("read", path="big", limit=2)).text
    assert text.startswith("1→line\nline\n[Lines 1 to 2; the file has 5,368,709,120 bytes.")
    assert "Continue with offset=3." in text
    assert harness.services.ledger.last_hash(path) is None


async def test_reading_a_part_remembers_the_whole_file(harness: ToolHarness) -> None:
    path = harness.put("a", "1\n2\n3\n")
    await harness.call("read", path="a", limit=1)
    assert harness.services.ledger.last_hash(path) is not None


def test_the_intent_names_the_real_file(harness: ToolHarness) -> None:
    (harness.root / "link").symlink_to("/etc/hostname")
    intents = Read().intents(ReadArgs(path="link"), harness.services)
    assert intents == (ReadIntent(Path("/etc/hostname").resolve(), "link", inside=False),)
