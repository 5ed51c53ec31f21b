"""Where a path leads, also where a link on the way is nobody's to follow."""

from __future__ import annotations

import os


def led_to(path: str | os.PathLike[str]) -> str:
    """`os.path.realpath`, which raises before Python 3.13 at links of `/proc` that belong to another's process."""
    try:
        return os.path.realpath(path)
    except OSError:
        above, name = os.path.split(os.path.abspath(path))  # noqa: PTH100  # text all along
        return os.path.join(led_to(above), name) if name else above  # noqa: PTH118  # the same
