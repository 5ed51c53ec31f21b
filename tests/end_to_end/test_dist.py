"""What `make dist` builds: the packages twice and equal, and a folder that starts where there is nothing else."""

from __future__ import annotations

import os
import platform
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


ENTER_WITH_QEMU = r"""
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
printf %s ":qemu:M::$magic:$mask:$(command -v qemu-aarch64-static):F" > /proc/sys/fs/binfmt_misc/register
"""
"""Lets programs of arm64 run in this user namespace, and nowhere else; Linux has it since 6.7."""


def build(out: Path, only: str, *more: str) -> Path:
    command = [sys.executable, str(BUILD), "--out", str(out), "--only", only, *more]
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
    starts_in_an_empty_root(enter, build(tmp_path / "dist", "folder"), provider, tmp_path)


@NEEDS_LINUX
@pytest.mark.timeout(900)
def test_folder_of_arm64_starts_under_qemu(provider: ProviderServer, tmp_path: Path) -> None:
    """Every program of the folder, and each that it starts, is run by an emulator of the processor."""
    missing = [name for name in ("apt-get", "aarch64-linux-gnu-gcc", "qemu-aarch64-static") if shutil.which(name) is None]
    if platform.machine() != "x86_64" or missing:
        pytest.skip(f"builds for arm64 on x86_64, with {' and '.join(missing)} (gcc-aarch64-linux-gnu, qemu-user-static)")
    private = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
    if subprocess.run([*private, ENTER_WITH_QEMU], capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("this kernel runs programs of other machines for all its users or for none")
    dist = build(tmp_path / "dist", "folder", "--arch", "arm64")
    [wheel] = dist.glob("*.whl")
    assert "aarch64" in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        assert machine_of(packed.read("wolo/guard/sandbox/namespace_launcher")) == ARM64
    starts_in_an_empty_root([*private, f'{ENTER_WITH_QEMU}exec chroot "$@"', "sh"], dist, provider, tmp_path)
    programs = [path for path in (tmp_path / "root" / "moved").rglob("*") if path.is_file() and not path.is_symlink()]
    assert {machine_of(path.read_bytes()) for path in programs} <= {ARM64, None}


ARM64 = 0xB7


def machine_of(program: bytes) -> int | None:
    """Of an ELF file: https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html."""
    return int.from_bytes(program[18:20], "little") if program.startswith(b"\x7fELF") else None


def starts_in_an_empty_root(enter: list[str], dist: Path, provider: ProviderServer, tmp_path: Path) -> None:
    [folder] = [path for path in dist.iterdir() if path.is_dir()]
    root = tmp_path / "root"
    (root / "work").mkdir(parents=True)
    folder.rename(root / "moved")
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "WOLO_HOME": "/home"}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*enter, str(root), *args], capture_output=True, text=True, timeout=120, check=False, env=environ)

    assert run("/moved/bin/wolo", "--version").stdout.startswith("wolo ")
    assert run("/moved/bin/wolo", "--help").stdout.startswith("Usage: wolo")
    assert run("/moved/bin/rg", "--version").returncode == 0
    doctor = run("/moved/bin/wolo", "doctor").stdout
    assert "was changed after it was installed" not in doctor
    provider.script(call("write", {"path": "made.txt", "content": "made\n"}), text("Done."))
    done = run("/moved/bin/wolo", *provider.flags, "-C", "/work", "--mode", "edit", "-p", "write a file")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (root / "work" / "made.txt").read_text() == "made\n"
