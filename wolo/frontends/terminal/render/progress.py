"""How far something large has come, as a bar and in megabytes."""

from __future__ import annotations

BAR_CELLS = 12


def in_words(done_bytes: int, total_bytes: int) -> str:
    share = done_bytes / max(total_bytes, 1)
    bar = "━" * round(share * BAR_CELLS) + "─" * (BAR_CELLS - round(share * BAR_CELLS))
    return f"{bar} {share:.0%} · {done_bytes / 1e6:,.0f} of {total_bytes / 1e6:,.0f} MB"
