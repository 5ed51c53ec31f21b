"""A tool that cuts its own output, and says so."""

from wolo.extension import Extension

MOST_LINES = 3


def extend(ext: Extension) -> None:
    @ext.tool()
    def numbers(count: int) -> str:
        """List numbers."""
        lines = [str(number) for number in range(count)]
        more = f"\n[{len(lines) - MOST_LINES} more lines]" if len(lines) > MOST_LINES else ""
        return "\n".join(lines[:MOST_LINES]) + more
