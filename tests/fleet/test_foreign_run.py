"""A folder of a run that comes from others names no file outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wolo.errors import WoloError
from wolo.fleet.ledger.outcomes import Patch


@pytest.mark.parametrize("path", ["../key", "/etc/passwd", "attempts/../../key", "link"])
def test_a_patch_outside_of_its_run_is_refused(path: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "key").write_text("secret")
    (run / "link").symlink_to("../key")
    with pytest.raises(WoloError, match="outside of its folder"):
        Patch(path, "0", 6, 1).file_in(run)


def test_a_patch_inside_of_its_run_is_found(tmp_path: Path) -> None:
    assert Patch("attempts/a/1-1/patch.diff", "0", 6, 1).file_in(tmp_path) == tmp_path / "attempts/a/1-1/patch.diff"
