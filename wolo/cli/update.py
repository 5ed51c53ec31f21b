"""`wolo update`: prints the command that updates this installation of wolo."""

from __future__ import annotations

from wolo.frontends.streams import say, tell


def update() -> None:
    """Print the command that updates wolo.

    It depends on how wolo was installed; nothing is changed.
    """
    from wolo import __version__
    from wolo.diagnostics.installation import this_installation, update_command

    say(f"This is wolo {__version__}. To update it, run:")
    tell(update_command(this_installation()))
