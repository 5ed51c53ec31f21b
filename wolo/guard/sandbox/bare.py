"""A bare Python for the two small programs of the sandbox, which are handed over as text: as it was when wolo started."""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent


def bare_python() -> str:
    """Any that can be started; empty when there is none (wolo's own may be packed into one file, or lie out of reach)."""
    known = (os.path.realpath(sys.executable), "/usr/bin/python3") if sys.executable else ("/usr/bin/python3",)
    return next((python for python in known if os.access(python, os.X_OK)), "")


def text_of(program: str) -> str:
    return (_FOLDER / f"{program}.py").read_text()


def line_for(code: int) -> list[str]:
    """How a bare Python runs what `compiled` has put behind the descriptor `code`; its arguments follow."""
    read = f"open({code}, 'rb').read()"
    return [bare_python(), "-I", "-S", "-c", f"import marshal; exec(marshal.loads({read}))" if _is_own() else f"exec({read})"]


def compiled(text: str) -> bytes:
    """The program as the bare Python starts it soonest."""
    return marshal.dumps(compile(text, "sandbox", "exec")) if _is_own() else text.encode()


def _is_own() -> bool:
    """It is the one that runs wolo, so it understands what this one has compiled."""
    return bare_python() == os.path.realpath(sys.executable)
