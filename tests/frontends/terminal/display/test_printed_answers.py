"""Answers as they are printed on the screen: long lines and links."""

from __future__ import annotations

import re

import pytest

from tests.frontends.terminal.drawn_terminal import DrawnTerminal, drawn_terminal
from wolo.agent.events import RequestStarted, TextStreamed

SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
END = "The end."


async def answer(drawn: DrawnTerminal, text: str) -> None:
    drawn.screen.show(RequestStarted(model="m", attempt=1, context_tokens=1))
    drawn.screen.show(TextStreamed(text=f"{text}\n\n"))
    drawn.screen.show_text(END)
    drawn.screen.stdout.flush()
    await drawn.wait_for(END)


@pytest.mark.parametrize("columns", [40, 100])
async def test_address_is_one_link_where_links_show(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    address = "https://example.org/" + "/".join(f"part-{number}" for number in range(12)) + "?q=1"
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    async with drawn_terminal(monkeypatch, columns=columns, has_region=False) as drawn:
        await answer(drawn, f"Read {address}, please: `{address}`.\n\n| a |\n|---|\n| {address} |")
    links = re.findall(r"\x1b\]8;([^;]*);([^\x1b]*)\x1b\\(.*?)\x1b\]8;;\x1b\\", drawn.raw.decode(), re.DOTALL)
    assert {target for _, target, _ in links} == {address}
    shown = [SEQUENCE.sub("", words) for _, _, words in links]
    assert shown.count(address) >= 2  # in sentences nothing is between its characters
    assert "".join(shown[2:]) == address  # a cell may be narrower: one link in pieces
    assert len({id for id, _, _ in links[2:]}) == 1


async def test_unknown_terminal_gets_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    async with drawn_terminal(monkeypatch, has_region=False) as drawn:
        await answer(drawn, "See https://example.org.")
    assert b"\x1b]8" not in drawn.raw


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(" ".join(f"word{number}" for number in range(60)), id="a paragraph without a newline"),
        pytest.param("x = '" + "y" * 290 + "'", id="code"),
        pytest.param("漢字" * 100, id="wide characters"),
    ],
)
async def test_lines_are_copied_as_the_model_wrote_them(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    async with drawn_terminal(monkeypatch, columns=40) as drawn:
        await answer(drawn, f"Here:\n\n```\n{line}\n```\n\n{line}")
        lines = drawn.text.split("\n")
    assert f"  {line}" in lines
    assert line in lines
