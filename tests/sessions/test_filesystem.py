"""Detects directories on network file systems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.sessions.database_file import is_remote


@pytest.mark.parametrize(
    ("kind", "remote"),
    [
        ("nfs4", True),
        ("cifs", True),
        ("9p", True),
        ("fuse.sshfs", True),
        ("ext4", False),
        ("tmpfs", False),
        ("fuseblk", False),
        ("overlay", False),
    ],
)
def test_the_mount_table_tells(tmp_path: Path, kind: str, remote: bool) -> None:
    device = tmp_path.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:21 / /proc rw,nosuid shared:5 - proc proc rw\n"
        f"36 1 {numbers} / /home rw,relatime shared:1 - {kind} server:/home rw\n"
        "40 1 0:99 / /other rw - nfs server:/other rw\nnonsense\n"
    )
    assert is_remote(tmp_path, mounts) is remote


def test_a_system_without_a_mount_table_is_trusted(tmp_path: Path) -> None:
    assert not is_remote(tmp_path, tmp_path / "missing")
