"""The main part of a page that does not name it, found in a process of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.tools.harness import ToolHarness
from tests.tools.web.site import answer, site
from wolo.tools.toolbox import Toolbox
from wolo.tools.web.main_content import find_main_part

TEXT = "This is what the page is about, and it goes on with words that a person would read. " * 8
PAGE = (
    "<html><body><div class='sidebar'><ul><li><a href='/a'>Topic A</a><li><a href='/b'>Topic B</a></ul></div>"
    f"<div class='content'><h1>It</h1><p>{TEXT}</p><p>See <a href='/x'>there</a>. {TEXT}</p></div>"
    "<div class='footer'>All rights reserved, subscribe now</div></body></html>"
)
NAMED = PAGE.replace("<div class='content'>", "<main>").replace("</div><div class='footer'>", "</main><div class='footer'>")


@pytest.fixture(autouse=True)
def trafilatura() -> None:
    pytest.importorskip("trafilatura")


async def test_it_is_found_where_no_part_is_named() -> None:
    found = await find_main_part(PAGE, "https://site.example/", 60.0)
    assert found.startswith("# It\n\nThis is what")
    assert "[there](https://site.example/x)" in found
    assert "Topic A" not in found
    assert "subscribe" not in found


async def test_page_naming_its_main_part_is_believed(tmp_path: Path) -> None:
    async with site() as here:
        here.pages |= {"/": answer(PAGE), "/named": answer(NAMED)}
        tool = here.tool()
        context = ToolHarness(tmp_path).context
        texts = []
        for path in ("/", "/named"):
            _, args = Toolbox((tool,)).decode("fetch", {"url": here.url(path)})
            texts.append((await tool.run(args, context)).text)  # type: ignore[arg-type]  # the toolbox made them
    assert ["Main part only" in text for text in texts] == [True, False]
    assert all("Topic A" not in text and "# It" in text for text in texts)


@pytest.mark.parametrize("source", ["", "<", "<div>" * 100_000, "x\x00y" * 9, "<table><tr><td>" * 50_000])
async def test_whatever_it_makes_of_a_page_is_survived(source: str) -> None:
    assert isinstance(await find_main_part(source, "https://site.example/", 8.0), str)


async def test_overlong_extraction_is_ended() -> None:
    assert await find_main_part(PAGE, "https://site.example/", 0.01) == ""


async def test_extraction_ends_once_nobody_waits() -> None:
    task = asyncio.ensure_future(find_main_part(PAGE * 200, "https://site.example/", 3600.0))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
