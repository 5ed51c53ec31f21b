"""Runs the sandbox's small programs in a bare Python, passed as text through memory descriptors."""

from __future__ import annotations

import marshal
import os
import sys
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path

_FOLDER = Path(__file__).parent
_GUARD = "wolo.guard."
_OLD_FORM = 2
"""A marshal version that every Python reads."""
_UNPACK = """
import marshal, sys
for name, code in marshal.loads(open({}, "rb").read()):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
"""


def bare_python() -> str:
    """A Python that can be started; empty if there is none (wolo may be packed into one file)."""
    known = (os.path.realpath(sys.executable), "/usr/bin/python3") if sys.executable else ("/usr/bin/python3",)
    return next((python for python in known if os.access(python, os.X_OK)), "")


def text_of(program: str) -> str:
    """`..name` is a module of the folder above."""
    return _file_of(program).read_text()


def _file_of(program: str) -> Path:
    folder = _FOLDER.parent if program.startswith("..") else _FOLDER
    return folder / f"{program.lstrip('.')}.py"


@cache
def pack_programs(*programs: str) -> bytes:
    """Packs modules of this folder, once in a process; the last is the program.

    Compiled if the bare Python has the same version: read from the bytecode that Python keeps beside them, as an import would.
    """
    names = [(_GUARD + program[2:] if program.startswith("..") else f"{__package__}.{program}", program) for program in programs]
    if bare_python() != os.path.realpath(sys.executable):
        return marshal.dumps([(name, text_of(program)) for name, program in names], _OLD_FORM)
    return marshal.dumps([(name, SourceFileLoader(name, str(_file_of(program))).get_code(name)) for name, program in names])


def line_for(code: int) -> list[str]:
    """Command line that runs the program of `pack_programs` behind this descriptor; arguments follow."""
    return [bare_python(), "-I", "-S", "-c", _UNPACK.format(code)]
