"""Compiles the launcher of the sandbox when wolo is built or installed from a checkout, on Linux with a C compiler.

Without one the package is the same for all systems, and the sandbox starts its launcher in Python or uses bubblewrap. With musl
it begins faster than with glibc, which asks the processor for its abilities: half a millisecond in a virtual machine.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = "wolo/guard/sandbox/namespace_launcher"
FLAGS = ("-std=gnu11", "-O2", "-s", "-static", "-Wall", "-Wextra")
OF_MUSL = ("musl-gcc", "-idirafter", "/usr/include", "-idirafter", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}")
"""Compiles with musl, and with the kernel's headers of the system."""


def run(command: list[str]) -> str:
    """Why it failed; empty if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


class CompileLauncher(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is `editable` for a checkout, which keeps the program beside its source."""
        if sys.platform != "linux":
            return
        target = Path(self.root, PROGRAM)
        new = target.with_suffix(".new")
        compilers = [(os.environ["CC"],)] if os.environ.get("CC") else [OF_MUSL, ("cc",)]
        for compiler in compilers:
            problem = run([*compiler, *FLAGS, "-o", str(new), str(target.with_suffix(".c"))])
            if not problem:
                break
        if problem:
            target.unlink(missing_ok=True)  # one of an older source would not fit
            self.app.display_warning(f"The launcher of the sandbox was not compiled; it runs in Python. {problem}")
            return
        new.chmod(0o755)
        new.replace(target)
        build_data["artifacts"].append(f"/{PROGRAM}")
        build_data["pure_python"] = False
        machine = _machine(compiler[0])  # the program needs no library, so any Linux of this machine runs it
        build_data["tag"] = f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"


def _machine(compiler: str) -> str:
    """The one that the compiler makes programs for, which `CC` may have chosen for another machine than this."""
    done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=False)
    name = done.stdout.partition("-")[0]
    return name if name == "aarch64" else platform.machine()
