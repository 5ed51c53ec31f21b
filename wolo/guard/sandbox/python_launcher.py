"""A bare Python for the two small programs of the sandbox, which are handed over as text: as it was when wolo started."""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_OLD_FORM = 2
"""Which every Python reads."""
_UNPACK = """
import marshal, sys
for name, code in marshal.loads(open({}, "rb").read()):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
"""


def bare_python() -> str:
    """Any that can be started; empty when there is none (wolo's own may be packed into one file, or lie out of reach)."""
    known = (os.path.realpath(sys.executable), "/usr/bin/python3") if sys.executable else ("/usr/bin/python3",)
    return next((python for python in known if os.access(python, os.X_OK)), "")


def text_of(program: str) -> str:
    return (_FOLDER / f"{program}.py").read_text()


def packed(*programs: str) -> bytes:
    """Modules of this folder for a bare Python, the last of which is the program: compiled where it understands that."""
    texts = [(f"{__package__}.{name}", text_of(name)) for name in programs]
    if bare_python() != os.path.realpath(sys.executable):
        return marshal.dumps(texts, _OLD_FORM)
    return marshal.dumps([(name, compile(text, name, "exec")) for name, text in texts])


def line_for(code: int) -> list[str]:
    """How a bare Python runs what is `packed` behind that descriptor; its arguments follow."""
    return [bare_python(), "-I", "-S", "-c", _UNPACK.format(code)]


def in_memory(data: bytes) -> int:
    """A descriptor to read this from, from its beginning."""
    fd = os.memfd_create("wolo-walls", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
