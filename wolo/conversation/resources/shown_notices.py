"""What a person needs to read once, and not every day."""

from __future__ import annotations

from wolo.places import Places, make_private


def show_once(places: Places, notice: str) -> tuple[str, ...]:
    """The notice, if nobody has read it yet on this machine."""
    told = places.state / "told-no-sandbox"
    if not notice or told.exists():
        return ()
    try:
        make_private(places.state)
        told.touch(mode=0o600)
    except OSError:
        pass  # then it is said again
    return (notice,)
