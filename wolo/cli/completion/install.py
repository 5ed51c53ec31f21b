"""`wolo completion`: the script that lets a shell complete what is typed behind `wolo`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from wolo.errors import UsageError
from wolo.frontends.streams import say, tell

SCRIPTS = {"bash": "wolo.bash", "zsh": "_wolo", "fish": "wolo.fish"}
Shell = Annotated[str, typer.Argument(metavar="[bash|zsh|fish]", show_default=False, help="Your own if not given.")]
Install = Annotated[bool, typer.Option("--install", help="Put it where the shell looks for it.")]


def completion(shell: Shell = "", install: Install = False) -> None:
    """Print the script that lets a shell complete options, models, sessions and files.

    For this shell alone: eval "$(wolo completion bash)"
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SCRIPTS:
        raise UsageError("Which shell is it?", hint="wolo completion bash|zsh|fish")
    script = Path(__file__).parent.joinpath("scripts", SCRIPTS[shell]).read_text("utf-8")
    if not install:
        tell(script, end="")
        return
    place = place_of(shell)
    _write(place, script)
    tell(str(place))
    say(_next_step(shell, place))


def place_of(shell: str) -> Path:
    """Where the shell looks, or can be told to look."""
    from wolo.places import find_home

    data = Path(os.environ.get("XDG_DATA_HOME") or find_home() / ".local/share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or find_home() / ".config")
    return {
        "bash": data / "bash-completion/completions/wolo",
        "zsh": data / "zsh/site-functions/_wolo",
        "fish": config / "fish/completions/wolo.fish",
    }[shell]


def _next_step(shell: str, place: Path) -> str:
    return {
        "bash": f"The next bash has it, if bash-completion is installed. If not, put this into ~/.bashrc: source '{place}'",
        "zsh": f"Put this into ~/.zshrc, before compinit: fpath=('{place.parent}' $fpath)",
        "fish": "The next fish has it.",
    }[shell]


def _write(place: Path, script: str) -> None:
    """Whole or not at all. Raises UsageError."""
    beside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(script, "utf-8")
        beside.replace(place)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise UsageError(f"{place} cannot be written: {error.strerror}.", hint="Print it without --install.") from error
