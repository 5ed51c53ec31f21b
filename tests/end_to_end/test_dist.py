"""What `make dist` builds: the packages twice and equal, and a folder that starts where there is nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.components import miss
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".ci" / "packaging" / "make_dist.py"
NEEDS_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the folder is for Linux")


def build(out: Path, only: str) -> Path:
    command = [sys.executable, str(BUILD), "--out", str(out), "--only", only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="builds the commit of a checkout")
def test_packages_are_built_the_same_twice(tmp_path: Path) -> None:
    """At another place and another time; the script compares them."""
    out = build(tmp_path, "packages")
    [wheel], [sdist] = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        assert [name for name in packed.namelist() if name.endswith("share/man/man1/wolo.1")]
    with tarfile.open(sdist) as packed_sources:
        assert len({member.mtime for member in packed_sources}) == 1


@NEEDS_LINUX
@pytest.mark.timeout(900)
def test_folder_starts_in_an_empty_root(provider: ProviderServer, tmp_path: Path) -> None:
    """No loader, no libraries, no shell, no /proc, no /etc: whatever it needs it brings along."""
    enter = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
    if shutil.which(enter[0], path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        miss(f"{enter[0]} (install the package `util-linux`)")
    [folder] = [path for path in build(tmp_path / "dist", "folder").iterdir() if path.is_dir()]
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    folder.rename(root / "moved")
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "WOLO_HOME": "/home"}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*enter, str(root), *args], capture_output=True, text=True, timeout=60, check=False, env=environ)

    assert run("/moved/bin/wolo", "--version").stdout.startswith("wolo ")
    assert run("/moved/bin/rg", "--version").returncode == 0
    doctor = run("/moved/bin/wolo", "doctor").stdout
    assert "was changed after it was installed" not in doctor
    provider.script(call("write", {"path": "made.txt", "content": "made\n"}), text("Done."))
    done = run("/moved/bin/wolo", *provider.flags, "-C", "/work", "--mode", "edit", "-p", "write a file")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (root / "work" / "made.txt").read_text() == "made\n"
