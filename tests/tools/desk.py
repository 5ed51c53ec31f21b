"""A place to try tools at: a workspace, a ledger, and calls made the way a model makes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wolo.tools.background.jobs import Jobs
from wolo.tools.tool import Result, ShellState, ToolContext
from wolo.tools.toolbox import Toolbox
from wolo.workspace.checkpoints.tracker import Watch
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.toolbox = Toolbox()
        self.context = self.new_context()

    def new_context(self) -> ToolContext:
        """What another session at the same files has."""
        return ToolContext(
            workspace=Workspace(self.root),
            ledger=FileLedger(self.folder / "locks"),
            keep=lambda name, data: self.folder / name,
            watch=Watch(self.folder / "data" / "checkpoints", (Path(os.path.realpath(self.root)),), "session"),
            shell=self._shell(),
        )

    def _shell(self) -> ShellState:
        processes = Processes(self.folder / "commands")
        return ShellState(self.root, processes, Jobs(processes, self.folder / "jobs"))

    async def call(self, name: str, /, **arguments: Any) -> Result:
        """Raises ToolError as the tool does."""
        tool, args = self.toolbox.decode(name, arguments)
        tool.intents(args, self.context)
        return await tool.run(args, self.context)

    def put(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file
