"""A command confined to a directory changes nothing elsewhere, nor do its children."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from wolo.workspace.landlock import ConfinedRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has Landlock")


async def run(command: str) -> str:
    ended = await asyncio.to_thread(subprocess.run, ["sh", "-c", command], capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def confined(command: str, folder: Path) -> str:
    work = ConfinedRunner(lambda: run(command), folder)
    said = work.run()
    if not work.is_held:
        pytest.skip("this kernel has no Landlock")
    return said


def test_command_writes_in_its_folder_only(isolated: Path) -> None:
    folder = isolated / "copy"
    folder.mkdir()
    kept = isolated / "kept.txt"
    kept.write_text("kept\n")
    said = confined(
        f"cd {folder}; echo in > a; mkdir b; mv a b/a; echo x > {kept}; rm {kept}; touch {isolated}/new; true",
        folder,
    )
    assert (folder / "b" / "a").read_text() == "in\n"
    assert kept.read_text() == "kept\n"
    assert not (isolated / "new").exists()
    assert said.count("denied") == 3


def test_it_reads_anything_and_writes_to_devices(isolated: Path) -> None:
    folder = isolated / "copy"
    folder.mkdir()
    (isolated / "there.txt").write_text("there\n")
    assert confined(f"cat {isolated}/there.txt; echo gone > /dev/null", folder) == "there\n"


def test_shared_host_memory_stays_unchanged(isolated: Path) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as kept:
        kept.write(b"kept")
        kept.flush()
        assert "denied" in confined(f"echo x > {kept.name}", isolated)
        assert Path(kept.name).read_bytes() == b"kept"


def test_whoever_waits_is_not_confined(isolated: Path) -> None:
    folder = isolated / "copy"
    folder.mkdir()
    confined("true", folder)
    (isolated / "after.txt").write_text("x")
    assert subprocess.run(["touch", isolated / "after2.txt"], check=False).returncode == 0


def test_exception_in_the_work_is_raised(isolated: Path) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        ConfinedRunner(fail, isolated).run()
