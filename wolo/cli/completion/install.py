"""`wolo completion`: prints or installs the completion script of a shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from wolo.errors import UsageError
from wolo.frontends.streams import print_line, print_message
from wolo.workspace.files.unfinished import write_whole

SCRIPTS = {"bash": "wolo.bash", "zsh": "_wolo", "fish": "wolo.fish"}
Shell = Annotated[str, typer.Argument(metavar="[bash|zsh|fish]", show_default=False, help="Shell; yours if not given.")]
Install = Annotated[bool, typer.Option("--install", help="Install it where the shell looks for it.")]


def completion(shell: Shell = "", install: Install = False) -> None:
    """Print the completion script of a shell, for options, models, sessions and files.

    For the current shell only: eval "$(wolo completion bash)"
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SCRIPTS:
        raise UsageError("Unknown shell.", hint="wolo completion bash|zsh|fish")
    script = Path(__file__).parent.joinpath("scripts", SCRIPTS[shell]).read_text("utf-8")
    if not install:
        print_line(script, end="")
        return
    from wolo.places import find_home

    data = Path(os.environ.get("XDG_DATA_HOME") or find_home() / ".local/share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or find_home() / ".config")
    place = {
        "bash": data / "bash-completion/completions/wolo",
        "zsh": data / "zsh/site-functions/_wolo",
        "fish": config / "fish/completions/wolo.fish",
    }[shell]
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, script.encode(), mode=0o666)
    except OSError as error:
        raise UsageError(f"Cannot write {place}: {error.strerror}.", hint="Print it without --install.") from error
    print_line(str(place))
    print_message(
        {
            "bash": f"Active in the next bash if bash-completion is installed. If not, add to ~/.bashrc: source '{place}'",
            "zsh": f"Add to ~/.zshrc, before compinit: fpath=('{place.parent}' $fpath)",
            "fish": "Active in the next fish.",
        }[shell]
    )
