"""Sessions of other agents on this machine: which there are of this directory, and the one a person means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.cli.as_json import print_json
from wolo.errors import SessionError, UsageError
from wolo.frontends.streams import tell

if TYPE_CHECKING:
    from wolo.sessions.exchange.importers.discovery import FoundSession

TITLE_CHARACTERS = 80
CANDIDATES_SHOWN = 8


def list_elsewhere(agent: str, *, as_json: bool) -> None:
    from wolo.sessions.timestamps import age, iso

    found = _of_this_directory(agent)
    if as_json:
        rows = [{"id": each.id, "title": each.title, "updated": iso(each.updated), "file": str(each.source)} for each in found]
        print_json(rows)
        return
    for each in found:
        tell(f"{each.id}  {age(each.updated):>8}  {_title(each)}")
    if found:
        tell(f"Take one of them in: wolo sessions import --from {agent} ID")
    else:
        tell(f"{agent} keeps no session of this directory.")


def find_elsewhere(agent: str, spec: str) -> Path:
    """By its id, the beginning of it, or words of the title. Raises SessionError when none or several match."""
    found = _of_this_directory(agent)
    exact = [each for each in found if each.id == spec]
    begun = [each for each in found if each.id.startswith(spec)]
    titled = [each for each in found if spec.lower() in each.title.lower()]
    matching = exact or begun or titled
    if len(matching) == 1:
        return matching[0].source
    if not matching:
        hint = f"`wolo sessions import --from {agent}` lists them; of another directory, name the file itself."
        raise SessionError(f"{agent} keeps no session {spec} of this directory.", hint=hint)
    listed = "".join(f"\n  {each.id}  {_title(each)}" for each in matching[:CANDIDATES_SHOWN])
    raise SessionError(f"{len(matching)} sessions of {agent} match {spec}:{listed}", hint="Name one by more of its id.")


def _of_this_directory(agent: str) -> list[FoundSession]:
    from wolo.sessions.exchange.format_table import AGENTS

    if agent not in AGENTS:
        raise UsageError(f"Wolo does not know where {agent} keeps its sessions.", hint=f"It knows of {', '.join(AGENTS)}.")
    return AGENTS[agent](Path.cwd(), os.environ)


def _title(found: FoundSession) -> str:
    title = " ".join(found.title.split())
    return title if len(title) <= TITLE_CHARACTERS else f"{title[: TITLE_CHARACTERS - 1]}…"
