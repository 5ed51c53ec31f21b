"""What servers are started in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace


class Surroundings(Struct, frozen=True):
    workspace: Workspace
    cwd: Path
    environ: Mapping[str, str]
    processes: Processes
    """Those of the servers alone: they go on when the commands of a conversation end."""
