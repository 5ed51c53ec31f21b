"""A running tool does exactly the call that was judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.harness import ToolHarness
from wolo.errors import ToolError

CALLS = {
    "read": {"path": "folder/file"},
    "write": {"path": "folder/new", "content": "x"},
    "edit": {"path": "folder/file", "old": "inside", "new": "x"},
    "grep": {"path": "folder", "pattern": "."},
    "glob": {"path": "folder", "pattern": "*"},
}


@pytest.mark.parametrize("name", CALLS)
async def test_link_placed_after_the_verdict_is_not_followed(tmp_path: Path, name: str) -> None:
    harness = ToolHarness(tmp_path)
    harness.put("folder/file", "inside\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("inside, or so it says\n")
    tool, args = harness.toolbox.decode(name, CALLS[name])
    context = harness.services.for_call("call_1", print, tool.intents(args, harness.services))

    (harness.root / "folder").rename(harness.root / "moved")
    (harness.root / "folder").symlink_to(outside)
    with pytest.raises(ToolError, match=r"resolves to another file|became a link"):
        await tool.run(args, context)
    assert [path.read_text() for path in outside.iterdir()] == ["inside, or so it says\n"]

    (harness.root / "folder").unlink()
    (harness.root / "moved").rename(harness.root / "folder")
    await tool.run(args, context)
