"""A bare Python for the two small programs of the sandbox, which are handed over as text: as it was when wolo started."""

from __future__ import annotations

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
