"""Python of another machine, from Debian's packages, for a folder that is built here and cannot be started here.

apt keeps its lists in a folder of its own, so nothing on this system changes. The release of Debian is that of this system, and
Python is of the same minor version as the one that runs this, which compiles for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME_AT_DEBIAN = {"aarch64": "arm64"}
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


class ForeignPython:
    def __init__(self, machine: str) -> None:
        self.machine = machine

    def tool(self, name: str) -> str:
        """Of the cross compiler's package."""
        return f"{self.machine}-linux-gnu-{name}"

    def compiler(self) -> str:
        if shutil.which(self.tool("gcc")) is None:
            sys.exit(f"{self.tool('gcc')} is missing: install gcc-{self.machine}-linux-gnu.")
        return self.tool("gcc")

    @contextmanager
    def unpack(self) -> Iterator[Path]:
        """Yields a root with Python and the libraries it needs."""
        if shutil.which("apt-get") is None:
            sys.exit(f"Python for {self.machine} comes from Debian's packages, and there is no apt-get here.")
        with tempfile.TemporaryDirectory() as scratch:
            state, root = Path(scratch, "apt"), Path(scratch, "root")
            for folder in (state / "lists" / "partial", state / "cache" / "archives" / "partial", root):
                folder.mkdir(parents=True)
            (state / "status").touch()
            settings = {
                "APT::Architecture": NAME_AT_DEBIAN[self.machine],
                "APT::Architectures": NAME_AT_DEBIAN[self.machine],
                "Dir::State::Lists": state / "lists",
                "Dir::State::status": state / "status",
                "Dir::Cache": state / "cache",
                "APT::Sandbox::User": "",
                "Debug::NoLocking": "1",
            }
            apt = ["apt-get", "-q", *(f"-o{key}={value}" for key, value in settings.items())]
            run(*apt, "update")
            packages = (f"python{VERSION}-minimal", f"libpython{VERSION}-stdlib", "libstdc++6")  # wheels need the last
            run(*apt, "install", "--yes", "--download-only", "--no-install-recommends", *packages)
            for package in sorted(state.glob("cache/archives/*.deb")):
                run("dpkg-deb", "--extract", str(package), str(root))
            yield root

    def install(self, library: Path, *what: str) -> None:
        """Wheels for the machine, beside the standard library `library`, where Debian's Python looks for them.

        Their conditions are those of this machine, which is a Linux as well.
        """
        glibc = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])  # the same release of Debian
        platforms = [f"--platform=manylinux_2_{minor}_{self.machine}" for minor in range(17, glibc + 1)]
        with tempfile.TemporaryDirectory() as scratch:
            chosen = ["--only-binary", ":all:", "--implementation", "cp", "--python-version", VERSION, *platforms]
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", scratch]
            run(*pip, *chosen, *what)
            for record in Path(scratch).glob("*.dist-info/RECORD"):
                record.write_text(re.sub(r"(?m)^\.\./\.\./(bin|share)/", r"../../../\1/", record.read_text()))
            for name in ("bin", "share"):
                if Path(scratch, name).exists():
                    shutil.copytree(Path(scratch, name), library.parents[1] / name, dirs_exist_ok=True)
                    shutil.rmtree(Path(scratch, name))
            shutil.copytree(scratch, library / "dist-packages", dirs_exist_ok=True)

    def copy_libraries(self, folder: Path, root: Path) -> None:
        """What the programs in `folder` name as needed, and the loader; `ldd` would have to start them."""
        places = [root / top / f"{self.machine}-linux-gnu" for top in ("lib", "usr/lib")]
        waiting = [path for path in (folder / "lib").rglob("*") if path.is_file() and not path.is_symlink()]
        own = {path.name for path in waiting}
        while waiting:
            path = waiting.pop()
            with path.open("rb") as file:
                if file.read(4) != b"\x7fELF":
                    continue
            for name in re.findall(r"\(NEEDED\)\s+Shared library: \[(.+)\]", run("readelf", "--dynamic", str(path))):
                if name in own:
                    continue
                source = next((place / name for place in places if (place / name).exists()), None)
                if source is None:
                    sys.exit(f"{path} needs {name}.")
                copy = folder / "lib" / ("loader" if name.startswith("ld-linux") else name)
                shutil.copy(os.path.realpath(source), copy)
                own.add(name)
                waiting.append(copy)


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:2])} … failed:\n{done.stdout}{done.stderr}")
    return done.stdout
