"""Asking whether a folder is trusted, once, where it brings something along that would change how wolo works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.text import Text

from wolo.config import consents, project
from wolo.config.cli_options import Given
from wolo.config.project import ProjectFile
from wolo.errors import ConfigError
from wolo.frontends.terminal.display.line_prompt import ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.terminal_text import escaped_pieces
from wolo.places import find_places
from wolo.workspace.root import find_root

ANSWER_WITHIN_S = 120.0
"""Nobody may be there: a script can have a terminal too, and its task must not wait for ever."""
MOST_SHOWN = 12


async def ask_trust(given: Given, terminal: Terminal) -> None:
    """Whatever is not a yes leaves the folder untrusted. Raises Dismissed for Ctrl-C."""
    root = find_root()
    brought = project.find(root, Path.cwd())
    if not brought or given.get("trust") == str(root) or consents.trust_in(find_places(), root, []):
        return
    match await ask_once(_found(root, brought), TRUST, terminal):
        case "y" | "yes":
            if not keep_answer(partial(consents.save_trust, find_places(), root, "trusted"), terminal):
                terminal.screen.say("--trust trusts the folder for one run.", "dim")
        case "never":
            keep_answer(partial(consents.save_trust, find_places(), root, "never"), terminal)


def _found(root: Path, brought: Sequence[ProjectFile]) -> list[Text]:
    width = max(len(each.kind) for each in brought)
    lines = [Text.assemble(("? ", "bold warning"), ("This folder brings along:", "bold"))]
    for each in brought[:MOST_SHOWN]:
        lines.append(Text.assemble((f"  {each.kind:<{width}}  ", "dim"), whole(str(each.path.relative_to(root)))))
    if len(brought) > MOST_SHOWN:
        lines.append(Text(f"  and {len(brought) - MOST_SHOWN} more", "dim"))
    lines.append(Text.assemble(("  in ", "dim"), whole(str(root))))
    return [
        *lines,
        Text("  Nothing of it is used unless you trust the folder.", "dim"),
        Text("  Your permissions stay as they are either way.", "dim"),
    ]


class Wording(NamedTuple):
    """Of a question that is answered by yes, not now, or never."""

    question: str
    yes: str
    about: str
    """What the answer is about, in the line that tells it."""
    granted: str
    refused: str
    """In that line, after `never` and `not`."""


TRUST = Wording("Trust it?", "Yes, trust it", "what this folder brings along", "trusted", "trusted")


async def ask_once(lines: Sequence[Text], wording: Wording, terminal: Terminal) -> str:
    """`yes`, `never`, or something else, which is a no for now; so it is when nobody is there."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            if terminal.has_panels:
                return await _choose(lines, wording, terminal)
            for line in lines:
                terminal.screen.print(line)
            typed = await ask_line(f"  {wording.question} [y]es  [N]ot now  [never] › ", terminal.screen, terminal.keyboard)
    except (EOFError, TimeoutError):
        return ""
    return typed.strip().lower()


async def _choose(lines: Sequence[Text], wording: Wording, terminal: Terminal) -> str:
    from wolo.frontends.terminal.live.temporary_region import choose  # noqa: PLC0415  # the same
    from wolo.frontends.terminal.panels.button_row import Choice  # noqa: PLC0415  # prompt_toolkit is for the REPL only

    choices = (Choice("n", "Not now"), Choice("y", wording.yes), Choice("d", "No, and don't ask again"))
    chosen = await choose([*lines, Text(f"  {wording.question}", "bold")], choices, terminal)
    said = {"y": ("yes", wording.granted), "d": ("never", f"never {wording.refused}")}
    answer, words = said.get(chosen, ("", f"not {wording.refused} now"))
    terminal.screen.print(Text.assemble(("? ", "warning"), (wording.about, "dim"), " → ", (words, "bold")))
    return answer


def keep_answer(keep: Callable[[], None], terminal: Terminal) -> bool:
    """Whether it could be."""
    try:
        keep()
    except ConfigError as error:
        terminal.screen.say(f"Your answer could not be kept: {error.message}", "warning")
        return False
    return True


def whole(text: str, style: str = "accent") -> Text:
    """All of it, on one line."""
    pieces = escaped_pieces(text)
    return Text.assemble(
        *((piece.replace("\n", "\\n"), "reverse" if is_escape or "\n" in piece else style) for piece, is_escape in pieces)
    )
