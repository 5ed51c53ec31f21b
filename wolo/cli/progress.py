"""How far half a gigabyte is: one line on stderr that counts up."""

from __future__ import annotations

import sys


def show_progress(done: int, total: int) -> None:
    """Nothing where stderr is no terminal."""
    from wolo.models.local.weights import format_size

    if sys.stderr.isatty():
        share = 100 * done // max(total, 1)
        end = "\n" if done >= total else ""
        print(f"\r  {share:3d} %  {format_size(done)} of {format_size(total)} ", end=end, file=sys.stderr, flush=True)
