"""Calls tools as the model does: a workspace, a file ledger, jobs and the toolbox."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wolo.tools.background.background_jobs import BackgroundJobs
from wolo.tools.tool import CallContext, ShellState, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import Toolbox
from wolo.workspace.checkpoints.tracker import FileTracker
from wolo.workspace.files.file_reading import FileLedger
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace


class ToolHarness:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "work"
        self.root.mkdir(exist_ok=True)
        self.toolbox = Toolbox()
        self.services = self.new_services()
        self.call_id = ""
        self.progress: Callable[[str], None] = lambda text: None
        self.confined = False
        """Calls run inside the sandbox only."""

    @property
    def context(self) -> CallContext:
        return CallContext(self.services, self.call_id, progress=self.progress, confined=self.confined)

    def new_services(self) -> ToolServices:
        """Those of another session at the same files."""
        tracker = FileTracker(self.folder / "data" / "checkpoints", (Path(os.path.realpath(self.root)),), "session")
        return ToolServices(
            workspace=Workspace(self.root),
            ledger=FileLedger(self.folder / "locks"),
            save_output=lambda name, data: self.folder / name,
            tracker=lambda: tracker,
            shell=self._shell(),
        )

    def _shell(self) -> ShellState:
        processes = Processes(self.folder / "commands")
        return ShellState(self.root, processes, BackgroundJobs(processes, self.folder / "jobs"))

    async def call(self, name: str, /, **arguments: Any) -> CallResult:
        """Raises ToolError as the tool does."""
        tool, args = self.toolbox.decode(name, arguments)
        tool.intents(args, self.services)
        return await tool.run(args, self.context)

    def put(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file
