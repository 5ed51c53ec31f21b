"""What every running tool is held to: the call that was judged, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.desk import Desk
from wolo.errors import ToolError

CALLS = {
    "read": {"path": "folder/file"},
    "write": {"path": "folder/new", "content": "x"},
    "edit": {"path": "folder/file", "old": "inside", "new": "x"},
    "grep": {"path": "folder", "pattern": "."},
    "glob": {"path": "folder", "pattern": "*"},
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_link_put_in_the_way_after_the_verdict_is_not_followed(tmp_path: Path, name: str) -> None:
    desk = Desk(tmp_path)
    desk.put("folder/file", "inside\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("inside, or so it says\n")
    tool, args = desk.toolbox.decode(name, CALLS[name])
    context = desk.services.for_call("call_1", print, tool.intents(args, desk.services))

    (desk.root / "folder").rename(desk.root / "moved")
    (desk.root / "folder").symlink_to(outside)
    with pytest.raises(ToolError, match=r"resolves to another file|became a link"):
        await tool.run(args, context)
    assert [path.read_text() for path in outside.iterdir()] == ["inside, or so it says\n"]

    (desk.root / "folder").unlink()
    (desk.root / "moved").rename(desk.root / "folder")
    await tool.run(args, context)
