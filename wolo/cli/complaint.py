"""How an error is shown: one sentence, one hint, on stderr."""

from __future__ import annotations

import sys

from wolo.errors import WoloError


def show_error(error: WoloError) -> None:
    print(f"wolo: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"      {error.hint}", file=sys.stderr)
