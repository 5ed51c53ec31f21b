"""Notebooks: what is shown of their cells and outputs, and edits that keep them notebooks."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.tools.documents import code, markdown, notebook
from tests.tools.harness import ToolHarness
from tests.tools.test_read import PNG
from wolo.errors import ToolError

STREAM = {"name": "stdout", "output_type": "stream", "text": ["one\n", "two\n"]}
FAILURE = {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[31mValueError\x1b[0m: bad"]}
PICTURE = {
    "output_type": "display_data",
    "metadata": {},
    "data": {"image/png": base64.b64encode(PNG).decode() + "\n", "text/plain": ["<Figure>"]},
}


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def test_cells_come_with_numbers_kinds_and_outputs(harness: ToolHarness) -> None:
    harness.put("a.ipynb", notebook(markdown("# Title\n", "text"), code("print(1)", STREAM, run=3), code("x", FAILURE, run=None)))
    assert (await harness.call("read", path="a.ipynb")).text == (
        "[cell 1, markdown]\n# Title\ntext\n\n"
        "[cell 2, code, run 3]\nprint(1)\n[output of cell 2, stdout]\none\ntwo\n\n"
        "[cell 3, code]\nx\n[error of cell 3: ValueError]\nValueError: bad\n\n"
        "[3 cells. `edit` replaces text in the source of cells.]"
    )


async def test_images_of_outputs_are_given_as_images(harness: ToolHarness) -> None:
    broken = {"output_type": "display_data", "data": {"image/png": "no base64!"}}
    harness.put("a.ipynb", notebook(code("plot()", PICTURE, broken, *[PICTURE] * 9)))
    result = await harness.call("read", path="a.ipynb")
    assert [part.data for part in result.media] == [PNG] * 6
    assert "image 1 below]\n[output of cell 1]\n<Figure>" in result.text
    assert "which is damaged" in result.text
    assert result.text.count("left out") == 4


async def test_long_outputs_are_cut_and_notebooks_paged(harness: ToolHarness) -> None:
    long = {"name": "stdout", "output_type": "stream", "text": "y" * 100_000}
    html = {"output_type": "execute_result", "data": {"text/html": "<b>"}}
    harness.put("a.ipynb", notebook(*(code("x = 1", long, html) for _ in range(40))))
    text = (await harness.call("read", path="a.ipynb")).text
    assert len(text) < 60_000
    assert "left out" in text
    assert "is not shown: text/html" in text
    assert "Cells 1 to 12 of 40. Continue with offset=13." in text
    text = (await harness.call("read", path="a.ipynb", offset=39, limit=1)).text
    assert text.startswith("[cell 39, code")
    assert "Cells 39 to 39 of 40" in text
    assert "[cell 40" in (await harness.call("read", path="a.ipynb", offset=-1)).text
    with pytest.raises(ToolError, match="has 40 cells; cell 41 is past its end"):
        await harness.call("read", path="a.ipynb", offset=41)


@pytest.mark.parametrize("content", ["{", "[]", '{"cells": 1, "nbformat": 4}', '{"worksheets": [], "nbformat": 3}', "plain\n"])
async def test_invalid_notebook_is_read_as_text(harness: ToolHarness, content: str) -> None:
    harness.put("a.ipynb", content)
    assert (await harness.call("read", path="a.ipynb")).text.startswith("1→")


@pytest.mark.parametrize(
    "odd", [{"cell_type": "code"}, {"source": 7, "outputs": 3}, {"outputs": [1, {}, {"output_type": "stream"}]}]
)
async def test_odd_cells_cost_themselves_only(harness: ToolHarness, odd: dict[str, Any]) -> None:
    harness.put("a.ipynb", notebook(odd, code("x = 1")))
    assert "x = 1" in (await harness.call("read", path="a.ipynb")).text


@pytest.mark.parametrize("indent", [1, 2, None])
async def test_edit_changes_only_the_source_of_cell(harness: ToolHarness, indent: int | None) -> None:
    before = notebook(markdown("é\n", "text"), code(["a = 1\n", "b = 'x'\n", "c = 3"], STREAM), code("d = 4"), indent=indent)
    file = harness.put("a.ipynb", before)
    await harness.call("read", path="a.ipynb")
    result = await harness.call("edit", path="a.ipynb", old="b = 'x'\nc", new='b = "y"\nnew\nc')
    assert result.text.startswith("Edited a.ipynb at cell 2 (")
    wanted = notebook(
        markdown("é\n", "text"), code(["a = 1\n", 'b = "y"\n', "new\n", "c = 3"], STREAM), code("d = 4"), indent=indent
    )
    assert file.read_text() == wanted
    await harness.call("edit", path="a.ipynb", edits=[{"old": "d = 4", "new": "d = 5"}, {"old": "a = 1", "new": "a = 2"}])
    cells = json.loads(file.read_text())["cells"]
    assert (cells[2]["source"], cells[1]["source"][0]) == ("d = 5", "a = 2\n")


async def test_an_edit_must_be_clear_across_cells(harness: ToolHarness) -> None:
    file = harness.put("a.ipynb", notebook(code("x = 1"), code("x = 1")))
    with pytest.raises(ToolError, match=r"occurs 2 times .* \(cell 1, 2\)"):
        await harness.call("edit", path="a.ipynb", old="x = 1", new="x = 2")
    await harness.call("edit", path="a.ipynb", old="x = 1", new="x = 2", replace_all=True)
    assert file.read_text() == notebook(code("x = 2"), code("x = 2"))
    with pytest.raises(ToolError, match="`old`"):
        await harness.call("edit", path="a.ipynb", old="nowhere at all", new="y")


async def test_json_is_editable_while_it_stays_valid(harness: ToolHarness) -> None:
    file = harness.put("a.ipynb", notebook(code("x = 1", run=7)))
    await harness.call("edit", path="a.ipynb", old='"execution_count": 7', new='"execution_count": 8')
    assert file.read_text() == notebook(code("x = 1", run=8))
    with pytest.raises(ToolError, match="no longer be a notebook"):
        await harness.call("edit", path="a.ipynb", old='"execution_count": 8', new='"execution_count": ')
    await harness.call("read", path="a.ipynb")
    with pytest.raises(ToolError, match="no longer be a notebook"):
        await harness.call("write", path="a.ipynb", content="print('no JSON')")
    assert file.read_text() == notebook(code("x = 1", run=8))
    await harness.call("write", path="new.ipynb", content=notebook(code("x")))


async def test_a_patch_changes_the_source_of_cells(harness: ToolHarness) -> None:
    file = harness.put("a.ipynb", notebook(code(["a = 1\n", "b = 2"], STREAM), code("c = 3")))
    hunks = "@@\n a = 1\n-b = 2\n+b = 4\n@@\n-c = 3\n+c = 5"
    await harness.call("apply_patch", patch=f"*** Begin Patch\n*** Update File: a.ipynb\n{hunks}\n*** End Patch")
    assert file.read_text() == notebook(code(["a = 1\n", "b = 4"], STREAM), code("c = 5"))
    for patch in ("*** Add File: b.ipynb\n+x = 1", "*** Update File: a.ipynb\n@@\n-{\n+["):
        with pytest.raises(ToolError, match="no longer be a notebook"):
            await harness.call("apply_patch", patch=f"*** Begin Patch\n{patch}\n*** End Patch")
