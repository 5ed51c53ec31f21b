"""`make dist`: the packages of the commit, built twice and equal, a folder that needs no Python, the SBOM and the checksums.

Everything has the time of the commit, or of SOURCE_DATE_EPOCH. WOLO_SIGNING_KEY names an SSH key that signs the checksums.
With `--arch arm64` (`make dist ARCH=arm64`) an x86_64 machine builds for the other one: see `foreign_python.py`. With
`--os windows` (`make dist OS=windows`) the folder is a zip for Windows on x86_64: see `windows_folder.py`.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import hashlib
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreign_python import ForeignPython

ROOT = Path(__file__).parents[2]
PINNED = ROOT / ".ci" / "requirements" / "run.txt"
UNUSED = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages", "dist-packages", "__pycache__")
"""Of the standard library."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=ROOT / "dist")
    options.add_argument("--only", choices=["packages", "folder"], help="without SBOM and checksums")
    options.add_argument("--arch", choices=["arm64"], help="instead of this machine's")
    options.add_argument("--os", choices=["windows"], help="instead of Linux")
    chosen = options.parse_args()
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or output("git", "-C", str(ROOT), "log", "-1", "--format=%ct")
    os.environ |= {"SOURCE_DATE_EPOCH": epoch, "TZ": "UTC"}
    chosen.out.mkdir(parents=True, exist_ok=True)
    foreign = None
    if chosen.arch and platform.machine() != "aarch64":
        from foreign_python import ForeignPython  # noqa: PLC0415  # lies beside

        foreign = ForeignPython("aarch64")
        os.environ["CC"] = foreign.compiler()
    if chosen.os:
        os.environ["CC"] = "false"  # no launcher of the sandbox: the wheel is for every system
    wheel = build_twice(chosen.out)
    if chosen.only == "packages":
        return
    if chosen.os:
        import windows_folder  # noqa: PLC0415  # lies beside

        windows_folder.archive(windows_folder.make_folder(wheel, chosen.out, int(epoch)), int(epoch))
    elif sys.platform == "linux":
        archive(make_folder(wheel, chosen.out, foreign), int(epoch))
    if chosen.only is None:
        write_sbom(wheel)
        write_recipes(chosen.out, wheel)
        write_checksums(chosen.out)


def build_twice(out: Path) -> Path:
    """Builds in two clones at different places; the wheel. Files that are not committed do not count."""
    with tempfile.TemporaryDirectory() as scratch:
        builds = [build(Path(scratch, name)) for name in ("first", "the other one")]
        for one, other in zip(*builds, strict=True):
            if one.name != other.name or one.read_bytes() != other.read_bytes():
                sys.exit(f"{one.name} is not built the same twice.")
            shutil.copy(one, out / one.name)
            print(f"{out / one.name}: built twice, the same")
        return next(out / path.name for path in builds[0] if path.suffix == ".whl")


def build(place: Path) -> list[Path]:
    output("git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(place))
    origin = subprocess.run(["git", "-C", ROOT, "remote", "get-url", "origin"], capture_output=True, text=True, check=False)
    output("git", "-C", str(place), "remote", "set-url", "origin", origin.stdout.strip() or "none")
    output(sys.executable, "-m", "hatchling", "build", "-d", str(place / "dist"), cwd=place)
    return sorted((place / "dist").iterdir())


def make_folder(wheel: Path, out: Path, foreign: ForeignPython | None) -> Path:
    """Python, its libraries and loader, wolo and what it needs; the folder can be moved."""
    version = wheel.name.split("-")[1]
    folder = out / f"wolo-{version}-linux-{foreign.machine if foreign else platform.machine()}"
    shutil.rmtree(folder, ignore_errors=True)
    library = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "bin").mkdir(parents=True)
    start = folder / "bin" / "python3"
    source = Path(__file__).with_name("start.c")
    flags = ("-D_GNU_SOURCE", "-O2", "-s", "-static", "-Wall", "-Werror", "-o")
    output(os.environ.get("CC") or "cc", *flags, str(start), str(source))
    if foreign is None:
        copy_python(Path(sysconfig.get_path("stdlib")), Path(os.path.realpath(sys.executable)), library)
        copy_libraries(folder)
        pip = [sys.executable, "-m", "pip", "--python", str(start), "install", "--quiet", "--no-compile"]
        output(*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(PINNED))
        output(*pip, "--no-deps", "--no-index", str(wheel))
        copy_libraries(folder)
    else:
        with foreign.unpack() as root:
            copy_python(root / "usr" / "lib" / library.name, root / "usr" / "bin" / library.name, library)
            foreign.install(library, "--require-hashes", "-r", str(PINNED))
            foreign.install(library, "--no-deps", "--no-index", str(wheel))
            foreign.copy_libraries(folder, root)
    for script in (folder / "bin").iterdir():
        if script.read_bytes()[:2] == b"#!":
            script.unlink()  # begins with the path of this machine
    shutil.copy(start, folder / "bin" / "wolo")
    for path in (*folder.glob("lib/*.so*"), *library.glob("lib-dynload/*.so"), folder / "lib" / "interpreter"):
        output(foreign.tool("strip") if foreign else "strip", "--strip-unneeded", str(path))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # no times in them; nobody edits these files
    compileall.compile_dir(library, quiet=2, stripdir=str(folder), invalidation_mode=unchecked)
    (folder / "lib" / "self-contained").write_text(f"{folder.name}\n{releases()}\n{signer()}\n", encoding="utf-8")
    shutil.copy(ROOT / "LICENSE", folder)
    return folder


def copy_python(standard_library: Path, interpreter: Path, library: Path) -> None:
    leave_out = shutil.ignore_patterns(*UNUSED, "config-*", "*.a", "_test*", "_tkinter*", "_ctypes_test*")
    shutil.copytree(standard_library, library, ignore=leave_out, symlinks=True)
    shutil.copy(interpreter, library.with_name("interpreter"))


def repository() -> str:
    sys.path.insert(0, str(ROOT / ".ci"))
    from project_metadata import find_repository  # noqa: PLC0415  # lies beside

    return str(find_repository(str(ROOT)))


def releases() -> str:
    """Where `wolo update` looks for SHA256SUMS; empty: nowhere."""
    return os.environ.get("WOLO_RELEASES") or (f"{home}/releases/latest/download" if (home := repository()) else "")


def signer() -> str:
    """The public key that `wolo update` of the folder asks of later releases; empty: none."""
    key = os.environ.get("WOLO_SIGNING_KEY", "")
    return Path(f"{key.removesuffix('.pub')}.pub").read_text(encoding="utf-8").strip() if key else ""


def copy_libraries(folder: Path) -> None:
    """What the dynamic linker would load from the system, and the linker itself."""
    binaries = [path for path in (folder / "lib").rglob("*") if path.is_file() and not path.is_symlink()]
    for path in binaries:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            if "not found" in line and not (folder / "lib" / line.split()[0]).exists():
                sys.exit(f"{path} needs {line.strip()}.")
            if (match := re.search(r"(/\S+) \(0x", line)) and not Path(match[1]).is_relative_to(folder):
                name = "loader" if re.match(r"ld-(linux|musl)", Path(match[1]).name) else Path(match[1]).name
                if not (folder / "lib" / name).exists():
                    shutil.copy(os.path.realpath(match[1]), folder / "lib" / name)


def archive(folder: Path, epoch: int) -> None:
    def same(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "root", "root"
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        return member

    target = folder.with_name(f"{folder.name}.tar.gz")
    with (
        target.open("wb") as file,
        gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in (folder, *sorted(folder.rglob("*"))):
            tar.add(path, str(path.relative_to(folder.parent)), recursive=False, filter=same)
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")


def write_sbom(wheel: Path) -> None:
    """CycloneDX, of the packages that are installed with wolo."""
    target = wheel.with_name(f"{'-'.join(wheel.name.split('-')[:2])}.cdx.json")
    tool = ROOT / ".venv" / "dist" / "bin" / "cyclonedx-py"
    if not tool.exists():
        sys.exit(f"{tool} is missing: `make dist` installs it.")
    output(
        str(tool),
        "requirements",
        str(PINNED),
        "--pyproject",
        str(ROOT / "pyproject.toml"),
        "--output-reproducible",
        "--of",
        "JSON",
        "-o",
        str(target),
    )
    print(target)


def write_recipes(out: Path, wheel: Path) -> None:
    """The formula of Homebrew, the file of nix and the manifests of winget, for the archives that are in the folder."""
    version = wheel.name.split("-")[1]
    if not (address := releases().replace("/latest/download", f"/download/v{version}")):
        print(
            "No recipes for Homebrew, nix and winget: neither WOLO_RELEASES nor the remote `origin` names the place of archives."
        )
        return
    archives = {
        "SDIST": f"wolo_cli-{version}.tar.gz",
        "X86_64": f"wolo-{version}-linux-x86_64.tar.gz",
        "AARCH64": f"wolo-{version}-linux-aarch64.tar.gz",
        "WINDOWS": f"wolo-{version}-windows-x86_64.zip",
    }
    values = {"VERSION": version, "ADDRESS": address, "HOMEPAGE": repository() or address}
    for key, name in archives.items():
        path = out / name
        values[key] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    recipes = [Path(__file__).with_name(name) for name in ("wolo.rb", "wolo.nix")]
    if values["WINDOWS"]:
        recipes += sorted(Path(__file__).with_name("winget").iterdir())
    for recipe in recipes:
        text = re.sub(r"@([A-Z0-9_]+)@", lambda match: values[match[1]], recipe.read_text(encoding="utf-8"))
        (out / recipe.name).write_text(text, encoding="utf-8")
        print(out / recipe.name)


def write_checksums(out: Path) -> None:
    files = sorted(path for path in out.iterdir() if path.is_file() and not path.name.startswith("SHA256SUMS"))
    sums = out / "SHA256SUMS"
    sums.write_text(
        "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files), encoding="utf-8"
    )
    signature = out / "SHA256SUMS.sig"
    signature.unlink(missing_ok=True)
    if key := os.environ.get("WOLO_SIGNING_KEY"):
        output("ssh-keygen", "-Y", "sign", "-f", key, "-n", "wolo", str(sums))
        print(signature)
    else:
        print(f"{sums}: not signed; WOLO_SIGNING_KEY names no SSH key")


def output(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
